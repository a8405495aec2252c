"""Small sound artefacts of many kinds, of which hostile ones are made."""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.artefact.container import read_container
from datadistill.artefact.make import make
from datadistill.core.distilled import Steps
from datadistill.core.network import Network
from datadistill.core.objective import Objective
from datadistill.core.update import UpdateRule
from datadistill.data.normalizing import normalized_with

EXAMPLES = 20
SHAPE = (1, 8, 8)


class Own(nn.Module):
    """A network of a user's own: a frozen layer and a mask with infinities."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(64, 4)
        self.body.requires_grad_(False)
        self.head = nn.Linear(4, 3)
        self.register_buffer("mask", torch.tensor([0.0, 0.0, -torch.inf, 0.0]))

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.head(torch.tanh(self.body(images.flatten(1))) * self.mask.exp())


@dataclass(frozen=True)
class Base:
    """A sound artefact.

    Attributes:
        tensors: Its tensors.
        header: Its header.
        module: Makes the network that a user passes; None where it is built in.
    """

    tensors: dict[str, Tensor]
    header: dict[str, Any]
    module: Callable[[], nn.Module] | None = None


def bases() -> list[Base]:
    """One artefact of every kind."""
    linear = dd.models.Linear(size=8, classes=3)
    convnet = dd.models.ConvNet3(channels=1, size=8, classes=3, width=4)
    rule, fixed = dd.WeightDecay(0.01, dd.Momentum(0.5)), dd.FixedInit(seed=1)
    adam: UpdateRule = dd.Adam()
    poisoning: Objective = dd.Poisoning(0, 2)
    made = [
        _base(linear, initialization=fixed),
        _base(linear, rule=adam, soft=True),
        _base(dd.models.MLP(size=8, classes=3, hidden=4), objective=poisoning, rule=rule),
        _base(convnet, steps=2),
        _base(convnet.double(), initialization=fixed, rule=dd.Momentum()),
        _base(dd.models.Linear(size=8, classes=2), objective=dd.Regression()),
        _base(dd.models.Linear(size=8, classes=1)),
        _base(Own(), initialization=fixed, module=Own),
        _base(Own(), module=Own),
    ]
    made[1].header["initialization"] = {
        "name": "random-pretrained",
        "pool": {"name": "pool", "identity": "0" * 64, "networks": 3, "seen": "0" * 48},
    }
    made[3].header["schedule"]["inner"] = {"images": 1, "classes": 3}
    return [*made, _base(linear, soft=True), *_stored()]


def _stored() -> list[Base]:
    """Artefacts that store something else in place of their inputs, or a whitening."""
    draws = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (30, *SHAPE), generator=draws, dtype=torch.uint8)
    data = dd.LabelledData(pixels, torch.arange(30) % 3, name="digits")
    white = normalized_with("zca", data, data)[0]
    shared: dict[str, Any] = {"iterations": 1, "networks": 1, "batch_size": 9, "test_networks": 3}
    linear = dd.models.Linear(size=8, classes=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.safetensors")
        found: list[Base] = []
        for real, settings in (
            (white, {"parametrisation": "bases", "bases": 2, "labels": "soft"}),
            (white, {"inner_batch": 1, "steps": 2, "labels": "clipped"}),
            (data, {"parametrisation": "low-resolution", "view": "shift"}),
            (data, {"parametrisation": "bases", "bases": 2, "downscale": 2, "steps": 2}),
        ):
            test = real.part(torch.arange(EXAMPLES), "test")
            given: dict[str, Any] = shared | settings
            dd.distill(real, linear, test=test, **given).save(path)
            found.append(Base(*read_container(path)))
    return found


def _base(
    network: nn.Module,
    *,
    initialization: Any = None,
    objective: Objective | None = None,
    rule: UpdateRule | None = None,
    soft: bool = False,
    steps: int = 1,
    module: Callable[[], nn.Module] | None = None,
) -> Base:
    objective, rule = objective or dd.Classification(), rule or dd.GradientDescent()
    name = hashlib.sha256(repr((type(network), objective, rule)).encode()).digest()
    random = torch.Generator().manual_seed(name[0])
    inputs = torch.randn(steps, 3, *SHAPE, generator=random)
    dtype = next(network.parameters()).dtype
    fitted = Network(network, inputs[0].to(dtype))
    classes = objective.classes(fitted.outputs)
    labels = torch.arange(3).expand(steps, 3) % max(classes, 1)
    if soft or not classes:
        labels = torch.randn(steps, 3, *fitted.outputs, generator=random).to(dtype)
    data = dd.LabelledData(
        torch.zeros(classes or 2, *SHAPE, dtype=torch.uint8),
        torch.arange(classes) if classes else torch.zeros(2, *fitted.outputs),
        normalization=dd.data.Normalization((0.3,), (0.2,)),
        class_names=tuple(f"class {c}" for c in range(classes)) if classes else None,
        name="digits",
        split="test",
    )
    made = make(
        Steps(inputs.to(dtype), labels.contiguous(), torch.full((2, steps), 0.02, dtype=dtype)),
        network=fitted,
        module=network,
        initialization=initialization or dd.RandomInit(),
        objective=objective,
        rule=rule,
        data=data,
        configuration={"seed": 0, "validation": 0.1, "data": "digits"},
    )
    networks = 1 if made.initialization.fixed else 3
    claim = dd.Claim(
        metric=objective.metric,
        mean=0.3,
        std=0.0 if networks == 1 else 0.05,
        networks=networks,
        data="digits",
        split="test",
        examples=EXAMPLES,
        seed=0,
    )
    made = made.with_claim(claim)
    tensors = {
        "inputs": made.inputs,
        "labels": made.labels,
        "learning_rates": made.learning_rates,
        **made.carried,
    }
    return Base(tensors, made.header.model_dump(mode="json"), module)
