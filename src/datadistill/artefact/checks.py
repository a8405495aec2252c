"""Checks of tensors that are whole but may make no sense, before anything is made of them."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from .. import models
from ..core.distilled import Steps
from ..core.names import FIXED_NAMES
from ..core.network import Weights
from ..core.objective import Objective
from ..data import Normalization
from ..data.whitening import Whitening
from ..errors import ArtefactError, DataDistillError
from ..models.description import Architecture
from .architecture import FLOATS, fit
from .cost import Cost, Trial, with_memory_if_small
from .header import Header, NormalizationRecord, Schedule

WHOLE = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
UPDATES = 100_000
"""The most that a schedule may have."""
DRAWN_BYTES = 24
"""For every image that an update draws."""
DRAWN = ("random", "random-pretrained")
"""Initializations of which a file holds no weights."""


class UnsoundError(ArtefactError):
    """The content of a file makes no sense.

    Args:
        found: What was found, as a clause.
    """

    def __init__(self, found: str) -> None:
        super().__init__(f"These distilled data are not valid: {found}.", "Make them again.")
        self.found = found

    def __reduce__(self) -> tuple[type["UnsoundError"], tuple[str]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self), (self.found,)


def check(
    steps: Steps, header: Header, carried: Weights, whitening: Whitening | None = None
) -> None:
    """Refuses tensors that do not fit each other or the header.

    Args:
        steps: The distilled data.
        header: What the file says of them.
        carried: All other tensors.
        whitening: How real images are whitened, if they are.
    """
    _check_schedule(steps, header.schedule)
    _check_values(steps)
    _check_normalization(steps.inputs, header.normalization, whitening)
    _check_carried(carried, header)
    objective = built_in_objective(header)
    if header.claim and objective and header.claim.metric != objective.metric:
        raise UnsoundError(
            f"its claim is of the metric {header.claim.metric[:100]!r}, its objective is judged by "
            f"the {objective.metric}"
        )
    if objective and header.class_names and not steps.labels.is_floating_point():
        _check_range(steps.labels, len(header.class_names), "class names")
    tried = tried_on_meta(header, steps, carried)
    if objective and tried:
        check_labels(steps.labels, tried[1].outputs, objective)


def check_labels(labels: Tensor, outputs: torch.Size, objective: Objective) -> None:
    """Refuses distilled labels that a network cannot learn by an objective of this package."""
    if labels.is_floating_point():
        alike = labels.shape[2:] == outputs if objective.has_classes else True
        if labels[0, 0].numel() != outputs.numel() or not (alike or outputs.numel() == 1):
            raise UnsoundError(
                f"labels of shape {tuple(labels.shape)} do not fit a network with outputs of shape "
                f"{tuple(outputs)}"
            )
    elif not objective.has_classes or labels.dtype != torch.int64 or labels.ndim != 2:
        raise UnsoundError(
            f"labels of type {labels.dtype} and shape {tuple(labels.shape)} are none for the "
            f"objective {objective.name}"
        )
    else:
        _check_range(labels, objective.classes(outputs), "classes")


def tried_on_meta(header: Header, steps: Steps, carried: Weights) -> tuple[nn.Module, Trial] | None:
    """A built-in network, fitted and tried; None for a user's own.

    It has no memory on the meta device, unless it is small.
    """
    module = _on_meta(header.architecture)
    if module is None:
        return None
    module = with_memory_if_small(module, steps.inputs.shape[2:])
    device = next(module.parameters()).device
    constants = {
        name.removeprefix("constants/"): value.to(device)
        for name, value in carried.items()
        if name.startswith("constants/")
    }
    left_out = header.left_out is not None and not carried
    try:
        module = fit(module, header.architecture, constants, left_out=left_out)
        first = next(p for p in module.parameters() if p.requires_grad)
        trial = Trial.of(module, steps.inputs.shape[2:], first.dtype)
    except DataDistillError as error:
        raise UnsoundError(error.what.rstrip(".")) from None
    except (RuntimeError, ValueError, TypeError, StopIteration) as error:
        message = (str(error).strip() or "there is no trainable weight").splitlines()[0]
        raise UnsoundError(
            f"inputs of shape {tuple(steps.inputs.shape[2:])} do not fit "
            f"{header.architecture.name}: {message}"
        ) from None
    return module, trial


def cost_of(header: Header, steps: Steps, carried: Weights) -> Cost | None:
    """What it takes to train the built-in network of a file; None for a user's own."""
    tried, updates = tried_on_meta(header, steps, carried), steps.learning_rates.numel()
    if tried is None:
        return None
    found = tried[1].cost(tried[0], steps.images, updates)
    drawn = DRAWN_BYTES * steps.images * updates if steps.inner else 0
    return replace(found, memory=found.memory + drawn)


def is_ours(kind: type) -> bool:
    """Whether a class is of this package, and not a user's own that has a name."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _on_meta(architecture: Architecture) -> nn.Module | None:
    kind = models.MODELS.get(architecture.name) if architecture.built_in else None
    if kind is None or not is_ours(kind):  # one that is not known is refused when it is used
        return None
    try:
        with torch.device("meta"):
            return models.build(architecture.name, architecture.arguments)
    except DataDistillError as error:
        raise UnsoundError(error.what.rstrip(".")) from None
    except (RuntimeError, OverflowError):
        raise UnsoundError(f"there can be no network {architecture}") from None


def built_in_objective(header: Header) -> Objective | None:
    """The objective that a header names; None for a user's own."""
    if ":" in header.objective["name"]:
        return None
    objective = Objective.from_record(header.objective)
    return objective if is_ours(type(objective)) else None


def _check_schedule(steps: Steps, schedule: Schedule) -> None:
    wanted = (schedule.steps, schedule.images)
    shapes = {
        "inputs": (steps.inputs, steps.inputs.shape[:2] == wanted and steps.inputs.ndim > 2),
        "labels": (steps.labels, steps.labels.shape[:2] == wanted),
        "learning rates": (
            steps.learning_rates,
            steps.learning_rates.shape == (schedule.epochs, schedule.steps),
        ),
    }
    for name, (tensor, fits) in shapes.items():
        if not fits or not tensor.numel():
            raise UnsoundError(f"{name} of shape {tuple(tensor.shape)} do not fit its schedule")
    if schedule.steps * schedule.epochs > UPDATES:
        raise UnsoundError(
            f"its schedule has {schedule.steps * schedule.epochs:,} updates, more than {UPDATES:,}"
        )


def _check_values(steps: Steps) -> None:
    for name, tensor in [("inputs", steps.inputs), ("learning rates", steps.learning_rates)]:
        if tensor.dtype not in FLOATS or not torch.isfinite(tensor).all():
            raise UnsoundError(f"its {name} are not all finite floating-point numbers")
    if not (steps.learning_rates > 0).all():
        raise UnsoundError("its learning rates are not all positive")
    if steps.labels.dtype not in FLOATS | WHOLE:
        raise UnsoundError(f"its labels are of type {steps.labels.dtype}")
    if steps.labels.is_floating_point() and not torch.isfinite(steps.labels).all():
        raise UnsoundError("its labels are not all finite")


def _check_normalization(
    inputs: Tensor, record: NormalizationRecord | None, whitening: Whitening | None
) -> None:
    if record is None:
        return
    channels = inputs.shape[-3] if inputs.ndim > 4 else 1
    for name, values in [("mean", record.mean), ("std", record.std)]:
        if len(values) not in (1, channels):
            raise UnsoundError(
                f"its normalization has {len(values)} values of {name} for {channels} channel(s)"
            )
    images = Normalization((*record.mean,), (*record.std,), whitening).undo(inputs)
    if not torch.isfinite(images).all():
        raise UnsoundError("its images are not all finite once their normalization is undone")


def _check_carried(carried: Weights, header: Header) -> None:
    weights, kind = header.architecture.shapes, header.initialization.kind
    check_range = partial(_check_finite, built_in=header.architecture.built_in)
    initial: dict[str, str] = {}
    for name, tensor in carried.items():
        prefix, _, own = name.partition("/")
        if prefix not in ("initial", "constants") or not own:
            raise UnsoundError(f"it has a tensor {name[:100]!r}, which no artefact has")
        check_range(name, tensor)
        if prefix == "initial":
            initial[own] = str(list(tensor.shape))
    if carried and header.left_out:
        raise UnsoundError("it holds weights that it says it has left out")
    if initial and kind in DRAWN:
        raise UnsoundError(f"it holds initial weights for a {kind} initialization")
    if not initial and kind in FIXED_NAMES and not header.left_out:
        raise UnsoundError(f"it has no initial weights for its {kind} initialization")
    for name in [*weights, *initial]:
        if initial and initial.get(name) != weights.get(name):
            raise UnsoundError(
                f"its initial weight {name[:100]!r} is {initial.get(name, 'missing')}, that of its "
                f"network is {weights.get(name, 'missing')}"
            )


def _check_finite(name: str, tensor: Tensor, *, built_in: bool) -> None:
    """Refuses NaN; and infinities, except in buffers of a user's own network, such as masks."""
    constant = name.startswith("constants/")
    if tensor.dtype not in (FLOATS | WHOLE if constant else FLOATS):
        raise UnsoundError(f"its tensor {name[:100]!r} is of type {tensor.dtype}")
    sound = ~torch.isnan(tensor) if constant and not built_in else torch.isfinite(tensor)
    if not sound.all():
        raise UnsoundError(f"its tensor {name[:100]!r} is not finite everywhere")


def _check_range(labels: Tensor, classes: int, what: str) -> None:
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise UnsoundError(f"its labels run from {low} to {high}, but there are {classes} {what}")
