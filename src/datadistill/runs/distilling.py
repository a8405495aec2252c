"""dd.distill: the whole distillation, from real data to distilled data."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import models
from ..artefact import DistilledData
from ..core.adjoint import Adjoint
from ..core.device import resolve_device, resolve_dtype
from ..core.initialization import Initialization
from ..core.objective import Objective, OwnObjective
from ..core.parametrisation import Parametrisation
from ..core.update import UpdateRule
from ..data import as_data
from ..errors import ConfigError
from ..progress import ProgressCallback, silent
from .config import RunConfig, config_from
from .distillation import Distillation
from .initialization import unused_weights
from .run import Run, distill_in_memory
from .seams import Given, settings_of
from .settings import Keep
from .store.folder import RunFolder
from .store.tensorboard import check_installed


def distill(
    train: Any,
    module: nn.Module,
    *,
    initialization: Initialization | str | None = None,
    objective: Objective | Callable[[Tensor, Tensor], Tensor] | None = None,
    adjoint: Adjoint | None = None,
    update_rule: UpdateRule | None = None,
    parametrisation: Parametrisation | None = None,
    validation: float = 0.1,
    keep: Keep = "auto",
    device: str = "auto",
    dtype: str | torch.dtype | None = None,
    run: str | Path | None = None,
    test: Any = None,
    progress: ProgressCallback = silent,
    **settings: Any,
) -> DistilledData:
    """Distils a data set into a few synthetic examples and their learning rates.

    Args:
        train: Real training data: :class:`LabelledData`, a pair (inputs, labels) of tensors,
            or any torch ``Dataset`` of such pairs.
        module: The network: any ``nn.Module`` from inputs to logits. It is not changed.
        initialization: Initial weights to distil for: ``RandomInit()`` by default, or
            ``FixedInit()`` or ``PoolInit(pool)``, none of which use the module's own weights;
            ``FixedInit.of(module)`` for those; or by a name of :class:`RunConfig`, such as
            ``"fixed-pretrained"`` with ``weights="alexnet.pth"`` and ``reset_head=True``.
        objective: ``Classification()`` by default, ``Regression()``, ``Poisoning(K, T)``, or your
            own outer loss: any function of logits (N, classes) and labels (N,).
        adjoint: ``BackGradient()`` by default, ``StoredGraph()`` or ``Truncated(window)``.
        update_rule: ``GradientDescent()`` by default, ``Momentum(μ)``, ``Nesterov(μ)``, ``Adam()``,
            or any of them as ``WeightDecay(λ, rule)``.
        parametrisation: ``Plain()`` by default, or ``SoftLabels()``, which learns labels too.
        validation: Share of the training data that is held out to measure progress.
        keep: Which distilled data to return: the last, as in the paper; the best of 20 along the
            way on the held-out training data; or, by default, the best if they beat the last by
            more than noise, otherwise the last.
        device: Where to compute: auto, cpu, cuda or mps.
        dtype: What to compute in; the module's own by default.
        run: A folder for checkpoints, figures and the artefact. The same call again goes on
            where it was stopped, to the same bytes.
        test: Test data, in the forms of ``train``; used once, for the claim of the result.
        progress: Called after every outer step.
        settings: Fields of :class:`RunConfig`: ``steps``, ``epochs``, ``iterations``…

    Returns:
        The distilled data; their claim is the figure on the test or else the validation data.
    """
    if objective is not None and not isinstance(objective, Objective):
        objective = OwnObjective.of(objective)
    named: dict[str, Any] = {}
    if isinstance(initialization, str):
        named["initialization"], initialization = initialization, None
    given = Given(initialization, objective, adjoint, update_rule, parametrisation)
    place, real = resolve_device(device), as_data(train)
    named |= {
        "data": real.name,
        "model": models.built_in_name(module) or _class_name(module),
        "validation": validation,
        "keep": keep,
        "device": place.type,
        "dtype": None if dtype is None else str(resolve_dtype(dtype)).removeprefix("torch."),
        **settings_of(*given.objects),
    }
    config = _of_one_process(config_from({**named, **settings}))
    check_installed(config.tensorboard and run is not None)
    distillation = Distillation.prepare(config, real, module, given, place)
    for note in unused_weights(module, distillation.distiller.initialization):
        warnings.warn(note, stacklevel=2)
    tested = None if test is None else as_data(test, split="test")
    if run is not None:
        return Run(distillation, RunFolder(Path(run)), tested, progress=progress).go()
    return distill_in_memory(distillation, tested, progress)


def _of_one_process(config: RunConfig) -> RunConfig:
    if (config.processes or 1) > 1:
        raise ConfigError(
            f"processes is {config.processes}, but a call in Python is one process.",
            "Leave it out, or use the command line: datadistill distill --processes 2.",
        )
    return config


def _class_name(module: nn.Module) -> str:
    return f"{type(module).__module__}:{type(module).__qualname__}"
