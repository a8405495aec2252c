"""dd.distill: the whole distillation, from real data to distilled data."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from ..artefact import DistilledData
from ..artefact.make import make
from ..core.adjoint import Adjoint, BackGradient
from ..core.device import resolve_device, resolve_dtype
from ..core.distiller import Distiller, DistillerConfig, DistillerState, Metrics
from ..core.initialization import Initialization, RandomInit
from ..core.network import Network
from ..core.objective import Classification, Objective
from ..core.random import minibatch, stream
from ..data import LabelledData, as_data
from ..errors import ConfigError, NonFiniteError, did_you_mean
from ..evaluation import Evaluation, evaluate
from ..progress import Progress, ProgressCallback, silent

REJECTIONS_ALLOWED = 5
VALIDATION_NETWORKS = 8
VALIDATIONS = 20


def distill(
    train: Any,
    module: nn.Module,
    *,
    initialization: Initialization | None = None,
    objective: Objective | None = None,
    adjoint: Adjoint | None = None,
    validation: float = 0.1,
    keep: Literal["last", "best"] = "last",
    device: str = "auto",
    dtype: str | torch.dtype | None = None,
    progress: ProgressCallback = silent,
    **settings: Any,
) -> DistilledData:
    """Distils a data set into a few synthetic examples and their learning rates.

    Args:
        train: Real training data: :class:`LabelledData`, a pair (inputs, labels) of tensors,
            or any torch ``Dataset`` of such pairs.
        module: The network: any ``nn.Module`` from inputs to logits. It is not changed.
        initialization: Initial weights to distil for: ``RandomInit()`` by default.
        objective: ``Classification()`` by default, or ``Regression()``.
        adjoint: ``BackGradient()`` by default, ``StoredGraph()`` or ``Truncated(window)``.
        validation: Share of the training data that is held out to measure progress.
        keep: Which distilled data to return: the last, as in the paper, or the best of 20 along
            the way on the held-out training data.
        device: Where to compute: auto, cpu, cuda or mps.
        dtype: What to compute in; the module's own by default.
        progress: Called after every outer step.
        settings: Fields of :class:`DistillerConfig`: ``steps``, ``epochs``, ``iterations``…

    Returns:
        The distilled data, with the figure reached on the validation data as their claim.
    """
    config = config_of(settings)
    if not 0 <= validation < 1:
        raise ConfigError(f"validation is {validation}.", "Set it to at least 0 and below 1.")
    if keep == "best" and not validation:
        raise ConfigError("The best cannot be told without validation.", "Set validation to 0.1.")
    data, held_out = as_data(train), None
    network = Network(
        module,
        data.example(),
        device=resolve_device(device),
        dtype=None if dtype is None else resolve_dtype(dtype),
    )
    objective = objective or Classification()
    objective.check(network.outputs, data.labels, complete=True)
    if validation:
        data, held_out = data.hold_out(validation, config.seed)
    distiller = Distiller(
        network,
        initialization or RandomInit(),
        objective,
        config.for_examples(len(data)),
        adjoint or BackGradient(),
    )
    return _Distillation(distiller, module, data, held_out, keep).run(progress)


def config_of(settings: dict[str, Any]) -> DistillerConfig:
    """Turns keyword settings into a configuration; names the nearest of an unknown one."""
    known = [f.name for f in dataclasses.fields(DistillerConfig)]
    for name in settings:
        if name not in known:
            raise ConfigError(
                f"There is no setting {name!r}.{did_you_mean(name, known)}",
                f"The settings are: {', '.join(known)}.",
            )
    return DistillerConfig(**settings)


@dataclass(frozen=True)
class _Distillation:
    """A distiller with the data it learns from, and those it is measured on."""

    distiller: Distiller
    module: nn.Module
    data: LabelledData
    held_out: LabelledData | None
    keep: Literal["last", "best"]

    def run(self, progress: ProgressCallback) -> DistilledData:
        """Makes all outer steps, each on its numbered minibatch."""
        config, network = self.distiller.config, self.distiller.network
        state = self.distiller.init(self.data.input_shape, self.data.labels)
        every = math.ceil(config.iterations / VALIDATIONS)
        shown: dict[str, float] = {}
        kept: tuple[DistillerState, Evaluation] | None = None
        for t in range(config.iterations):
            indices = minibatch(config.seed, t, config.batch_size, len(self.data))
            views = stream(config.seed, "augmentation", t)
            batch = self.data.batch(indices, network.device, network.dtype, views)
            state, metrics = self.distiller.step(state, batch)
            _stop_if_hopeless(state, metrics)
            shown["loss"] = metrics.loss
            due = (t + 1) % every == 0 or t + 1 == config.iterations
            if due and (reached := self.validate(state)):
                shown[f"held-out {reached.metric}"] = reached.mean
                if kept is None or self.keep == "last" or self._better(reached, kept[1]):
                    kept = state, reached
            progress(Progress("distilling", t + 1, config.iterations, dict(shown)))
        return (
            self.distilled(kept[0]).with_claim(kept[1].claim()) if kept else self.distilled(state)
        )

    def distilled(self, state: DistillerState) -> DistilledData:
        """The distilled data of a state, with all that is needed to use them."""
        distiller = self.distiller
        return make(
            state.distilled,
            network=distiller.network,
            module=self.module,
            initialization=distiller.initialization,
            objective=distiller.objective,
            rule=distiller.rule,
            data=self.data,
            configuration={
                **dataclasses.asdict(distiller.config),
                "networks": distiller.networks,
                "adjoint": repr(distiller.adjoint),
                "keep": self.keep,
                "outer_step": state.outer_step,
                "validation_examples": len(self.held_out) if self.held_out else 0,
                "dtype": str(distiller.network.dtype).removeprefix("torch."),
                "training_examples": len(self.data),
            },
        )

    def _better(self, one: Evaluation, other: Evaluation) -> bool:
        sign = 1 if self.distiller.objective.higher_is_better else -1
        return sign * one.mean > sign * other.mean

    def validate(self, state: DistillerState) -> Evaluation | None:
        """How good the distilled data of a state are on held-out training data, if there are."""
        if self.held_out is None:
            return None
        networks = 1 if self.distiller.initialization.fixed else VALIDATION_NETWORKS
        device = str(self.distiller.network.device)
        return evaluate(self.distilled(state), self.held_out, networks=networks, device=device)


def _stop_if_hopeless(state: DistillerState, metrics: Metrics) -> None:
    if state.rejected_in_a_row >= REJECTIONS_ALLOWED:
        rates = state.distilled.learning_rates
        raise NonFiniteError(
            f"The loss or its gradient was not finite in {REJECTIONS_ALLOWED} outer steps in a "
            f"row, up to outer step {state.outer_step} (loss {metrics.loss:.3g}, learning rates "
            f"up to {float(rates.max()):.3g}).",
            "Lower learning_rate or outer_lr, or set clip_norm.",
        )
