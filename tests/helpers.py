"""Catalogues of small problems, and an independent distillation written without the core."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill.core.adjoint import Adjoint
from datadistill.core.distilled import Steps
from datadistill.core.engine import Engine, PlainEngine
from datadistill.core.network import Network, Weights
from datadistill.core.objective import Classification, Objective, Regression
from datadistill.core.random import stream
from datadistill.core.update import GradientDescent, UpdateRule, train
from datadistill.engine.kernels.library import library


class Convolutional(nn.Module):
    """Convolution, pooling and a smooth non-linearity on 1×6×6 images."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.fc = nn.Linear(3 * 2 * 2, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(F.avg_pool2d(torch.tanh(self.conv(x)), 2).flatten(1))


class Mlp(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.Softplus(), nn.Linear(5, 5))
        self.head = nn.Sequential(nn.Tanh(), nn.Linear(5, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


class SharedWeights(nn.Module):
    """One matrix used twice under two names, one never used, and a constant buffer."""

    scale: Tensor

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.into = nn.Linear(36, 4)
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.unused = nn.Linear(3, 3)
        self.out = nn.Linear(4, outputs)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.into(x.flatten(1)) * self.scale)
        return self.out(torch.sigmoid(self.second(torch.tanh(self.first(h)))))


class FrozenBody(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.body = nn.Linear(36, 6).requires_grad_(False)
        self.head = nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.body(x.flatten(1))))


class Branches(nn.Module):
    """Two convolutions whose results are put together, which no known layer does."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(1, 2, 3, padding=1)
        self.other = nn.Conv2d(1, 2, 1)
        self.fc = nn.Linear(36, outputs)

    def forward(self, x: Tensor) -> Tensor:
        both = torch.cat([torch.tanh(self.one(x)), self.other(x).sigmoid()], 1)
        return self.fc(F.avg_pool2d(both, 2).flatten(1))


class PartlyUsed(nn.Module):
    """A table of which some rows are never looked at, and a scale that is a single number."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(50, 4))
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.out = nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.scale * (x.flatten(1) @ self.table[7:43])))


class Recurrent(nn.Module):
    """A recurrent layer over the rows of an image."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.layer = nn.GRU(6, 3, batch_first=True)
        self.out = nn.Linear(3, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layer(x[:, 0])[0].mean(1))


class Attention(nn.Module):
    """Self-attention over the rows of an image."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.out = nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        rows = x[:, 0]
        return self.out(self.attention(rows, rows, rows, need_weights=False)[0].mean(1))


def batch_normalised(outputs: int) -> nn.Module:
    """The output for an image depends on the images beside it."""
    body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh())
    return nn.Sequential(body, nn.Flatten(), nn.Linear(32, outputs))


def lenet_like(outputs: int) -> nn.Module:
    """Convolutions with ReLU and max-pooling, which the fast engine has kernels for."""
    convolutions = [nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.ReLU()]
    return nn.Sequential(
        *convolutions, nn.Flatten(), nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, outputs)
    )


def linear(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, outputs))


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "linear": linear,
    "mlp": Mlp,
    "convolutional": Convolutional,
    "shared weights": SharedWeights,
    "frozen body": FrozenBody,
}

AWKWARD: dict[str, Callable[[int], nn.Module]] = {
    "partly used": PartlyUsed,
    "recurrent": Recurrent,
    "attention": Attention,
    "batch normalised": batch_normalised,
    "branches": Branches,
    "lenet-like": lenet_like,
}
"""More networks on 1×6×6 images, which an engine may get wrong."""

OBJECTIVES: dict[str, tuple[Objective, int]] = {
    "classification": (Classification(), 3),
    "binary": (Classification(), 1),
    "regression": (Regression(), 2),
}


@dataclass(frozen=True)
class Problem:
    """A distillation small enough for finite differences, in float64."""

    network: Network
    objective: Objective
    steps: Steps
    theta0: Weights
    batch: tuple[Tensor, Tensor]
    rule: UpdateRule = field(default_factory=GradientDescent)

    @property
    def engine(self) -> Engine:
        return PlainEngine(self.network, self.objective)

    def outer_loss(self, weights: Weights) -> Tensor:
        return self.network.losses(weights, *self.batch, self.objective.outer_loss)

    def loss(self, steps: Steps) -> Tensor:
        """The mean outer loss after all updates, without any gradient."""
        weights = train(self.rule, self.engine, self.theta0, steps)
        with torch.no_grad():
            return self.outer_loss(weights).mean()

    def differentiate(
        self, adjoint: Adjoint, steps: Steps | None = None, engine: Engine | None = None
    ) -> tuple[Tensor, Steps]:
        """By the plain engine unless another is given."""
        return adjoint(
            self.rule,
            engine or self.engine,
            self.rule.start(self.theta0),
            steps or self.steps,
            self.outer_loss,
            stream(0, "window", 0),
        )


def problem(
    network: str = "mlp",
    objective: str = "classification",
    steps: int = 1,
    epochs: int = 1,
    networks: int = 1,
    rule: UpdateRule | None = None,
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
) -> Problem:
    """Makes a problem with float labels, so that labels have gradients too."""
    judge, outputs = OBJECTIVES[objective]
    random = torch.Generator().manual_seed(7)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(device, dtype)

    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = NETWORKS[network](outputs).to(device, dtype)
    images = 3
    wrapped = Network(module, normal(2, 1, 6, 6))
    labels = normal(steps, images, outputs)
    real_labels = normal(5, outputs)
    if isinstance(judge, Classification):
        labels = labels.softmax(-1) if outputs > 1 else labels.sigmoid().squeeze(-1)
        real_labels = torch.arange(5, device=device) % max(outputs, 2)
    rates = 0.1 + 0.4 * torch.rand(epochs, steps, generator=random, dtype=torch.float64)
    return Problem(
        wrapped,
        judge,
        Steps(normal(steps, images, 1, 6, 6), labels, rates.to(device, dtype)),
        {n: 0.5 * normal(networks, *w.shape) for n, w in wrapped.weights.items()},
        (normal(5, 1, 6, 6), real_labels),
        rule or GradientDescent(),
    )


def nested_autograd(
    module: nn.Module, theta0: Weights, steps: Steps, batch: tuple[Tensor, Tensor], loss: str
) -> tuple[Tensor, list[Tensor]]:
    """The gradient by a plain unroll of one network: an independent check of the core.

    It uses nothing of the core: the module's own parameters are replaced by hand, the update
    is written out, and one ``backward`` goes through everything.
    """

    def measure(outputs: Tensor, labels: Tensor) -> Tensor:
        if loss == "regression":
            return ((outputs - labels) ** 2).sum() / outputs.numel()
        if loss == "binary":
            z, y = outputs[:, 0], labels.to(outputs.dtype)
            return (torch.log1p(torch.exp(-z)) * y + torch.log1p(torch.exp(z)) * (1 - y)).mean()
        if not labels.is_floating_point():
            labels = torch.eye(outputs.shape[1], dtype=outputs.dtype)[labels]
        return -(labels * (outputs - outputs.exp().sum(1, keepdim=True).log())).sum(1).mean()

    inputs = steps.inputs.clone().requires_grad_()
    labels = steps.labels.clone().requires_grad_()
    rates = steps.learning_rates.clone().requires_grad_()
    theta = {name: w.clone().requires_grad_() for name, w in theta0.items()}
    for epoch in range(rates.shape[0]):
        for step in range(rates.shape[1]):
            outputs = torch.func.functional_call(module, theta, (inputs[step],))
            inner = measure(outputs, labels[step])
            names = list(theta)
            gradients = torch.autograd.grad(
                inner, [theta[n] for n in names], create_graph=True, materialize_grads=True
            )
            theta = {
                n: theta[n] - rates[epoch, step] * g for n, g in zip(names, gradients, strict=True)
            }
    outer = measure(torch.func.functional_call(module, theta, (batch[0],)), batch[1])
    outer.backward()
    return outer.detach(), [_gradient_of(leaf) for leaf in (inputs, labels, rates)]


def _gradient_of(leaf: Tensor) -> Tensor:
    assert leaf.grad is not None
    return leaf.grad


def relative_error(found: Tensor, expected: Tensor) -> float:
    """‖found − expected‖ / ‖expected‖."""
    return float((found - expected).norm() / expected.norm().clamp_min(1e-30))


def leaves(steps: Steps) -> dict[str, Tensor]:
    return {
        "inputs": steps.inputs,
        "labels": steps.labels,
        "learning_rates": steps.learning_rates,
    }


def engine_to_ask_for() -> str:
    """What asks for the engine that made a run of a known network, as messages say it."""
    return "kernels" if library(torch.float32) else "torch"
