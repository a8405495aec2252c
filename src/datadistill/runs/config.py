"""A run's configuration: the same names in flags, in YAML and in Python."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from ..core.adjoint import Adjoint, BackGradient, StoredGraph, Truncated
from ..core.device import DeviceName, DtypeName
from ..core.initialization import Scheme
from ..core.objective import Objective, OwnObjective, Poisoning
from ..core.objectives import check_name, objective_named
from ..core.settings import DistillerConfig, default_networks
from ..engine.team import check_division
from ..errors import ConfigError, did_you_mean
from ..models.own import locate_function

OUTER = (
    *("batch_size", "networks", "outer_lr", "rates_lr", "betas"),
    *("outer_schedule", "decay", "decay_every", "clip_norm", "averaging"),
)
PAPER: dict[str, Any] = {
    **{f.name: f.default for f in dataclasses.fields(DistillerConfig) if f.name in OUTER},
    "start": "noise",
}
"""The paper's outer schedule."""
VALIDATIONS = 20
"""How many times a run measures itself on held-out training data, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(DistillerConfig):
    """All settings of a run. The outer schedule is our own; :data:`PAPER` holds the paper's."""

    batch_size: int = 512
    """Real examples in one minibatch."""
    outer_lr: float = 0.02
    """Learning rate of Adam on the distilled data."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's decay rates of the moments."""
    outer_schedule: Literal["periods", "cosine"] = "cosine"
    """How these rates fall: by a factor after every period, or along a cosine over one."""
    clip_norm: float | None = 0.3
    """Longest gradient that a single network may give; longer ones are scaled down."""
    start: Literal["noise", "k-means", "average"] = "noise"
    """What distilled images start from: noise, or each class's k-means centroids or mean."""
    data: str = "digits"
    """Data set by name (datadistill data lists them), a folder of images or an .npz file."""
    data_dir: Path | None = None
    """Data folder; $DATADISTILL_DATA or the user's cache folder by default."""
    size: int | None = None
    """Height and width to resize images to; the data set's own by default."""
    channels: Literal[1, 3] | None = None
    """1 for grey, 3 for colour images; the data set's own by default."""
    augment: bool | None = None
    """Whether real images are augmented; by default where the paper does, as the data set says."""
    model: str = "lenet"
    """Network: lenet, alexcifarnet, alexnet, largenet, vgg11, squeezenet, convnet3, linear, mlp,
    or your own as package.module:Class or file.py:Class."""
    model_args: tuple[str, ...] = ()
    """Arguments of the network's constructor, e.g. --model-args width=64 bias=false."""
    initialization: Literal["random", "fixed", "random-pretrained", "fixed-pretrained"] = "random"
    """Initial weights to distil for: many random networks, or one fixed network; or networks
    trained before: many from a pool, or one from a pool or a file."""
    init_seed: int = 0
    """Which network a fixed initialization is: drawn by this seed, or this one of a pool."""
    pool: Path | None = None
    """Folder of pre-trained networks: made by datadistill pretrain."""
    pool_networks: int | None = None
    """How many of the pool's training networks to draw from: the first ones; all by default."""
    pool_noise: float = 0.0
    """Noise on the weights that are drawn, in deviations: stands in for a larger pool."""
    rates_factor: float = 1.0
    """Factor on the learning rates in the distilled data that are written: above 1 where they were
    learned on noisy weights, which makes them timid on others."""
    weights: Path | None = None
    """File of one pre-trained network: .safetensors, .pth or .pt; also from the data folder."""
    reset_head: bool = False
    """Whether its last layer is reset, for other classes than it was trained on."""
    partial: bool = False
    """Whether to load what fits where file and network differ; what does not is told."""
    trained: tuple[str, ...] = ()
    """Layers of a pre-trained network that learn, e.g. --trained classifier features.12; all by
    default. The others are frozen: they stay as they are, and cost little."""
    scheme: Scheme = "xavier-normal"
    """How initial weights are drawn."""
    objective: str = "classification"
    """What the trained networks are judged by on real data: classification, regression, poisoning,
    or your own loss of logits and labels as package.module:function or file.py:function."""
    attacked: int | None = None
    """Class that poisoning makes networks call another; 0 by default."""
    target: int | None = None
    """What they shall call it; 1 by default."""
    adjoint: Literal["back-gradient", "stored-graph", "truncated"] = "back-gradient"
    """How the gradient travels back through the updates."""
    window: int | None = None
    """Updates that the truncated adjoint differentiates."""
    random_window: bool = True
    """Whether that window falls anywhere in the schedule, or is always its end."""
    validation: float = 0.1
    """Share of the training data held out to measure progress."""
    validate_every: int | None = None
    """Outer steps between two measurements on them; a twentieth of the run by default."""
    keep: Literal["last", "best"] = "last"
    """Which become the distilled data: the last, as in the paper, or the best on held-out data."""
    test_networks: int | None = None
    """Held-out networks to test on at the end: 1 for fixed, 200 for random initializations."""
    device: DeviceName = "auto"
    """Where to compute."""
    dtype: DtypeName | None = None
    """What to compute in; float32 by default, or the module's own type."""
    processes: int | None = None
    """Processes on this machine among which the networks are divided; torchrun's go before. By
    default what a short measurement finds fastest, and so are threads."""
    threads: int | None = None
    """Processor threads of each process."""
    compiled: bool | None = None
    """Whether torch.compile compiles the updates of networks of your own; by default where the run
    is long and a short measurement finds it faster."""
    checkpoint_every: int | None = None
    """Outer steps between two checkpoints, beside those by time."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints."""
    tensorboard: bool = False
    """Write the figures for TensorBoard too (pip install 'datadistill[tensorboard]')."""

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = ("size", "validate_every", "test_networks", "threads", "checkpoint_every")
        for name in (*counts, "processes", "window", "pool_networks"):
            self._require(name, lambda value: value >= 1, "at least 1")
        self._require("validation", lambda value: 0 <= value < 1, "at least 0 and below 1")
        for name in ("checkpoint_minutes", "rates_factor"):
            self._require(name, lambda value: 0 < value < math.inf, "a positive number")
        check_name(self.objective)
        if self.objective == Poisoning.name:
            self.make_objective()
        if self.micro_batch and self.adjoint == "stored-graph":
            raise ConfigError(
                "micro_batch saves memory, which the stored-graph adjoint spends.",
                "Choose the back-gradient adjoint, or leave micro_batch out.",
            )
        if self.keep == "best" and not self.validation:
            raise ConfigError(
                "The best cannot be told without validation.", "Set validation to 0.1."
            )

    def for_examples(self, examples: int) -> "RunConfig":
        """Fills in what depends on the number of real training examples."""
        config = super().for_examples(examples)
        assert isinstance(config, RunConfig)
        every = self.validate_every or math.ceil(self.iterations / VALIDATIONS)
        return replace(config, validate_every=every)

    def as_planned(self, before: "RunConfig") -> "RunConfig":
        """The same with the length that the cosine had before, unless it has one of its own."""
        both = self.outer_schedule == before.outer_schedule == "cosine"
        default = both and self.decay_every == self.iterations
        return replace(self, decay_every=before.decay_every) if default else self

    def scaled(self, iterations: int) -> "RunConfig":
        """The same schedule over another number of outer steps."""
        share = iterations / self.iterations
        every = self.decay_every and max(1, round(self.decay_every * share))
        validate = max(1, math.ceil(iterations / VALIDATIONS))
        return replace(self, iterations=iterations, decay_every=every, validate_every=validate)

    def check_division(self) -> None:
        """Refuses more processes than networks, before any is started."""
        fixed = self.initialization.startswith("fixed")
        networks = self.networks or default_networks(fixed=fixed)
        check_division(networks, self.processes or 1, fixed=fixed)

    def make_objective(self) -> Objective:
        """The objective that is named here. A user's own is imported, which runs its code."""
        if self.objective == Poisoning.name:
            attacked = 0 if self.attacked is None else self.attacked
            return Poisoning(attacked, 1 if self.target is None else self.target)
        if self.attacked is not None or self.target is not None:
            raise ConfigError(
                f"The {self.objective} objective has no attacked class and no target.",
                "Choose the poisoning objective, or leave attacked and target out.",
            )
        if ":" in self.objective:
            return OwnObjective(locate_function(self.objective), self.objective)
        return objective_named(self.objective)

    def make_adjoint(self) -> Adjoint:
        """The adjoint that is named here."""
        if self.window is not None and self.adjoint != "truncated":
            raise ConfigError(
                f"A window has no meaning with the {self.adjoint} adjoint.",
                "Choose the truncated adjoint, or leave window out.",
            )
        if self.adjoint == "truncated":
            if self.window is None:
                raise ConfigError(
                    "The truncated adjoint needs a window.", "Set window, e.g. to 10."
                )
            return Truncated(self.window, self.random_window)
        return StoredGraph() if self.adjoint == "stored-graph" else BackGradient()

    def mapping(self) -> dict[str, Any]:
        """All settings in plain types, as YAML and JSON have them; the experiment first."""
        values = json.loads(_ADAPTER.dump_json(self))
        inherited = {field.name for field in dataclasses.fields(DistillerConfig)}
        return {n: values[n] for n in sorted(values, key=lambda name: name in inherited)}


_ADAPTER = TypeAdapter(RunConfig)
NAMES = tuple(field.name for field in dataclasses.fields(RunConfig))

FREE = frozenset(
    {
        "data_dir",
        "pool",
        "weights",
        "processes",
        "threads",
        "compiled",
        "checkpoint_every",
        "checkpoint_minutes",
        "tensorboard",
        "iterations",
    }
)
"""Settings that a resumed run may change: where, how fast, how far, but not what."""

MACHINE = FREE - {"iterations"} | {"device"}
"""Settings that say where a run happened; an artefact does not tell them."""


def config_from(settings: Mapping[str, Any], where: str = "") -> RunConfig:
    """Validates settings from YAML or Python.

    Args:
        settings: Names and values.
        where: Which file they come from, to begin an error's message with.
    """
    prefix = f"{where}: " if where else ""
    for name in settings:
        if name not in NAMES:
            raise ConfigError(
                f"{prefix}There is no setting {name!r}.{did_you_mean(str(name), NAMES)}",
                f"The settings are: {', '.join(NAMES)}.",
            )
    try:
        # Strict as JSON is: a number is a number, and a list is a tuple.
        return _ADAPTER.validate_json(json.dumps(dict(settings), default=_plain), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        raise ConfigError(
            f"{prefix}{name} is {settings.get(name)!r}.", f"Set {name} right: {first['msg']}."
        ) from None
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error.what}", error.remedy) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{prefix}The settings cannot be read: {error}.", "Use plain names and values."
        ) from None


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} is no plain value")


def differences(old: RunConfig, new: RunConfig) -> list[str]:
    """What differs and may not, each as ``name: old → new``."""
    before, after = old.mapping(), new.mapping()
    return [
        f"{name}: {before[name]} → {after[name]}"
        for name in NAMES
        if name not in FREE and before[name] != after[name]
    ]
