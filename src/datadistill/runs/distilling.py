"""dd.distill: the whole distillation, from real data to distilled data."""

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from .. import data, models
from ..artefact import DistilledData
from ..core.adjoint import Adjoint
from ..core.device import DeviceLike, resolve_device, resolve_dtype
from ..core.grad_mode import with_gradients
from ..core.initialization import Initialization
from ..core.objective import Objective
from ..core.parametrisation import Parametrisation
from ..core.seam import parse
from ..core.update import UpdateRule
from ..core.view import View
from ..data import LabelledData, as_data
from ..data.labels import as_classes, check_several_classes, from_zero, in_order_of
from ..errors import ConfigError
from ..evaluation.learners import check_inputs
from ..given import check
from ..progress import ProgressCallback
from ..showing import shown, teller, urgent_teller
from .calls.arguments import check_given_once, check_module, separate
from .calls.keywords import Keywords
from .calls.presets import Preset, preset_settings
from .config import RunConfig, config_from
from .distillation import Distillation
from .initialization import unused_weights
from .preparation import prepare
from .run import Run, distill_in_memory
from .seams import import_own, settings_of
from .settings import Keep
from .store.folder import RunFolder
from .store.tensorboard import check_installed

OPTIONS = ("size", "channels", "augment", "normalization")
"""Settings with which data are loaded by name."""


@with_gradients
def distill(
    train: Any,
    module: nn.Module | str,
    *,
    initialization: Initialization | str | None = None,
    objective: Objective | Callable[[Tensor, Tensor], Tensor] | str | None = None,
    adjoint: Adjoint | str | None = None,
    update_rule: UpdateRule | str | None = None,
    parametrisation: Parametrisation | str | None = None,
    view: View | str | None = None,
    preset: Preset = "fast",
    validation: float = 0.1,
    keep: Keep | None = None,
    device: DeviceLike = "auto",
    dtype: str | torch.dtype | None = None,
    run: str | Path | None = None,
    test: Any = None,
    progress: bool | ProgressCallback = False,
    **settings: Unpack[Keywords],
) -> DistilledData:
    """Distils a data set into a few synthetic examples and their learning rates.

    Whatever is an object below can also be named as on the command line, with the settings that
    belong to it: ``adjoint="truncated", window=5``, ``update_rule="momentum", momentum=0.9``.

    Args:
        train: Real training data: a pair (inputs, labels) of arrays or tensors, a torch or Hugging
            Face data set, a pandas ``DataFrame``, or :class:`LabelledData`; or a name or path, as
            on the command line: ``"mnist"``, ``"photos/"``, ``"mine.npz"``, ``"mine.csv"``.
        module: The network: any ``nn.Module`` from inputs to logits, which is not changed; or a
            name, as on the command line: ``"lenet"``, ``"mine.py:Mine"``.
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
        view: A random transformation of real and distilled images alike, drawn anew for every outer
            step: ``dd.views.Rotate(20)``, ``dd.views.Dsa()``, ``"shift+rotate"``…; none by default.
        preset: Settings below those that are given: ``fast``, our own; ``paper``, the paper's outer
            schedule; ``best``, what reaches the highest accuracy (docs/beyond.md).
        validation: Share of the training data that is held out to measure progress.
        keep: Which distilled data to return: the last, as in the paper; the best of 20 along the
            way on the held-out training data; or, by default, the best if they beat the last by
            more than noise, otherwise the last.
        device: Where to compute: auto, cpu, cuda or mps.
        dtype: What to compute in; the module's own by default.
        run: A folder for checkpoints, figures and the artefact. The same call again
            resumes an interrupted run; the result is bit-identical.
        test: Test data, in the forms of ``train``; used once, for the claim of the result. By
            default those that belong to data by name or path.
        progress: True for a progress bar and messages on standard error (without a terminal, a
            line a minute); or a callback, called after every outer step.
        settings: Fields of :class:`RunConfig`: ``steps``, ``epochs``, ``iterations``…

    Returns:
        The distilled data; their claim is the figure on the test or else the validation data.
    """
    check_module(module)
    check(preset, Preset, "preset")
    check(run, str | Path | None, "run")
    others: dict[str, Any] = {**settings}
    seams = {
        "initialization": initialization,
        "objective": objective,
        "adjoint": adjoint,
        "update_rule": update_rule,
        "parametrisation": parametrisation,
        "view": view,
    }
    given, names = separate(seams)
    check_given_once(given, others)
    place, (real, tested) = resolve_device(device), real_data(train, test, others)
    if _has_classes(given.objective, names.get("objective")):
        real = from_zero(as_classes(real))
        check_several_classes(real)
    module, model = found_network(module, real, others)
    named = {
        "data": _lasting(train) if isinstance(train, str | Path) else real.name,
        "model": model,
        "validation": validation,
        "device": place.type,
        "dtype": None if dtype is None else str(resolve_dtype(dtype)).removeprefix("torch."),
        **settings_of(*given.objects),
        **names,
        **({} if keep is None else {"keep": keep}),
        **others,
    }
    config = _of_one_process(config_from({**preset_settings(preset, named), **named}))
    check_installed(config.tensorboard and run is not None)
    distillation = prepare(config, real, module, given, place)
    if tested is not None:
        _check_test(distillation, tested)
    for note in unused_weights(module, distillation.distiller.initialization):
        warnings.warn(note, stacklevel=2)
    return _distilled(distillation, run, tested, progress)


def _distilled(
    distillation: Distillation,
    run: str | Path | None,
    test: LabelledData | None,
    progress: bool | ProgressCallback,
) -> DistilledData:
    """Makes all outer steps, in a run folder or without, and shows how far they are."""
    tell, warn = teller(progress), urgent_teller(progress)
    with shown(progress) as show:
        if run is None:
            distilled = distill_in_memory(distillation, test, show, tell)
        else:
            in_folder = Run(
                distillation,
                RunFolder(Path(run)),
                test,
                tell=tell,
                warn=warn,
                progress=show,
                in_python=True,
            )
            distilled = in_folder.go()
        if test is not None:
            tell(str(distilled.claim))
    return distilled


def _of_one_process(config: RunConfig) -> RunConfig:
    if (config.processes or 1) > 1:
        raise ConfigError(
            f"processes is {config.processes}, but a call in Python is one process.",
            "Leave it out, or distil on the command line with --processes.",
        )
    return config


def real_data(
    train: Any, test: Any, settings: dict[str, Any]
) -> tuple[LabelledData, LabelledData | None]:
    """The training and the test data, in whatever form they are given."""
    options = {name: settings[name] for name in OPTIONS if settings.get(name) is not None}
    if isinstance(train, str | Path):
        real, own_test = data.load(train, settings.get("data_dir"), **options)
        if test is None:
            return real, own_test
    elif options:
        raise ConfigError(
            f"{next(iter(options))} is only for data that are named by a string.",
            "Leave it out, or load the data with it: dd.data.load(…).",
        )
    else:
        real = as_data(train)
    if isinstance(test, str | Path):
        _, test = data.load(test, settings.get("data_dir"), **options)
    tested = None if test is None else as_data(test, "test", normalization=real.normalization)
    return real, tested


def _check_test(distillation: Distillation, test: LabelledData) -> None:
    """Refuses test data that do not fit, before the first outer step."""
    objective = distillation.distiller.objective
    check_inputs(distillation.data.input_shape, test)
    if objective.has_classes:
        test = in_order_of(distillation.data.class_names, as_classes(test))
    objective.check(distillation.network.outputs, test.labels, complete=False)


def _has_classes(objective: Objective | None, name: str | None) -> bool:
    """Whether labels are classes: unless an objective says that they are not."""
    if name is not None:
        reference, _ = parse(name)
        own = import_own(SimpleNamespace(objective=name)).get("objective")
        return getattr(own or Objective.known().get(reference), "has_classes", True)
    return objective is None or objective.has_classes


def _lasting(name: str | Path) -> str:
    """A path that is still right when the run is resumed from another folder, or a name."""
    own = str(name) not in data.DATA_SETS and Path(name).exists()
    return str(Path(name).absolute()) if own else str(name)


def found_network(
    module: nn.Module | str, real: LabelledData, settings: dict[str, Any]
) -> tuple[nn.Module, str]:
    """The network and its name."""
    if isinstance(module, str):
        found = models.find_for(
            module, real.input_shape, real.classes, settings.get("model_args", ())
        )
        return found, module
    return module, models.built_in_name(module) or _class_name(module)


def _class_name(module: nn.Module) -> str:
    return f"{type(module).__module__}:{type(module).__qualname__}"
