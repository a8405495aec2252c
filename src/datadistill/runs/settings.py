"""The settings of a run, in groups named by purpose.

Three groups extend those of :mod:`datadistill.core.settings`; the others are about files, data and
the machine, which ``core`` does not know. :class:`~datadistill.runs.config.RunConfig` inherits all.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from ..core.names import DeviceName, DtypeName, LabelKind, OrdinaryName, Placement, Scheme
from ..core.seam import split_arguments
from ..core.settings import Learned, Outer, Settings, Unroll
from ..engine.choice import EngineName
from ..errors import ConfigError

JITTER = 0.5
"""What robust sets."""
Keep = Literal["auto", "last", "best"]


@dataclass(frozen=True, kw_only=True)
class LearnedSettings(Learned):
    """What is learned: the distilled data and their learning rates."""

    parametrisation: str = "plain"
    """How what is learned becomes distilled data: plain; soft-labels; low-resolution, small images
    that are enlarged; bases, mixtures of a few images; or your own as package.module:Class or
    file.py:Class."""
    bases: int | None = None
    """Images that all distilled ones are mixtures of, for bases. 10 by default."""
    downscale: int | None = None
    """Factor by which stored images are smaller than distilled ones: for low-resolution (2 by
    default) and bases (1)."""
    learn_rates: bool = True
    """Learn the learning rates."""
    learn_labels: bool | None = None
    """Learn the labels. By default only for regression. labels says how."""
    learn_momentum: bool = False
    """Learn the momentum of the updates, too: one number, which starts from momentum or 0.5."""
    learn_layer_rates: bool = False
    """Learn a factor on the learning rates for every layer of the network, too."""
    labels: LabelKind | None = None
    """Labels: hard, one class each; soft, learned from there; logits, the softmax of what is
    learned; clipped, as soft but never negative. By default hard; soft for regression."""
    start: Literal["noise", "k-means", "average"] = "noise"
    """What distilled images start from: noise, or each class's k-means centroids or mean."""
    view: str | None = None
    """Random view of real and distilled images alike, drawn anew for every outer step: shift,
    scale, rotate, flip, brightness, contrast, saturation, cutout, several joined by +, as in
    shift+rotate(degrees=20); dsa, one of all these; digits, small changes of handwriting; or your
    own as package.module:Class or file.py:Class."""
    rates_factor: float = 1.0
    """Factor on the learning rates in the artefact. Rates learned on noisy weights are too small
    for others; a factor above 1 corrects them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_positive("rates_factor")
        self._require_count("bases", "downscale")


@dataclass(frozen=True, kw_only=True)
class UnrollSettings(Unroll):
    """The unroll: how networks are trained on the distilled data, and differentiated."""

    update_rule: str | None = None
    """How networks are updated on distilled data: gradient-descent (the default), momentum,
    nesterov, adam, or your own as package.module:Class or file.py:Class."""
    robust: bool = False
    """Distil for ordinary training too: turns shuffle on and sets inner_batch to 1, jitter to 0.5,
    ordinary to sgd and adam, unless they are given."""
    ordinary: tuple[OrdinaryName, ...] = ()
    """Ordinary training to distil for too, e.g. --ordinary sgd adam: each outer step draws one of
    them, or the schedule that is learned."""
    jitter: float = 0.0
    """Multiply the learning rates of an outer step by a random factor, at most 1 + jitter and at
    least its inverse."""
    momentum: float = 0.0
    """Momentum of these updates; 0 is plain gradient descent."""
    weight_decay: float = 0.0
    """Weight decay of these updates: this times the weights is added to the gradient."""
    adjoint: str = "back-gradient"
    """How the gradient travels back through the updates: back-gradient, stored-graph, truncated,
    ridge-head, or your own as package.module:Class or file.py:Class."""
    window: int | None = None
    """Updates that the truncated adjoint differentiates."""
    random_window: bool = True
    """Place the window at random in the schedule; otherwise it is always at the end."""
    window_placement: Placement | None = None
    """Where a random window falls: uniform (the default), or gradient: where the gradients of its
    updates are large early in the run, anywhere later, and where they are small at last."""
    micro_batch: int | None = None
    """Images, real or distilled, to process at a time; fewer need less memory. All by default."""
    compiled: bool | None = None
    """Compile the updates of your own networks with torch.compile. By default for long runs where
    a short measurement finds it faster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("window", "micro_batch")
        self._require_share("momentum")
        self._require(lambda value: 0 <= value < math.inf, "at least 0", "weight_decay", "jitter")

    def bundled(self) -> Self:
        """The same with the settings that robust stands for."""
        if not self.robust:
            return self
        return replace(
            self,
            inner_batch=self.inner_batch or 1,
            shuffle=True,
            jitter=self.jitter or JITTER,
            ordinary=self.ordinary or ("sgd", "adam"),
        )


@dataclass(frozen=True, kw_only=True)
class OuterSettings(Outer):
    """The outer optimiser: how the distilled data follow their gradient."""

    # Our own outer schedule; PAPER in runs/calls/presets.py has the paper's.
    batch_size: int = 512
    """Real examples in a minibatch."""
    outer_lr: float = 0.02
    """Learning rate of Adam on the distilled data."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of Adam's two moments."""
    outer_schedule: Literal["periods", "cosine"] = "cosine"
    """Schedule of both learning rates: multiplied by decay after every period, or a cosine."""
    clip_norm: float | None = 0.3
    """Largest norm of one network's gradient; larger ones are scaled down. None: no limit."""
    plans: tuple[tuple[int, int], ...] = ()
    """Written by runs with a time budget: (outer step, iterations) where the schedule was planned
    again for another number of outer steps. The first pair is the plan at the start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        begins = [begin for begin, _ in self.plans]
        if begins != sorted(begins) or any(total < 1 for _, total in self.plans):
            raise ConfigError(f"plans is {self.plans}.", "Leave it out: runs write it.")

    def planned(self, outer_step: int) -> int:
        """The outer step of the first plan that is as far in it as this one is in its own."""
        totals = [total for begin, total in self.plans if begin <= outer_step]
        if len(totals) < 2:
            return outer_step
        return math.floor(outer_step * totals[0] / totals[-1])

    def replanned(self, outer_step: int, iterations: int) -> Self:
        """The same schedule over another number of outer steps, from an outer step on."""
        plans = (*(self.plans or ((0, self.iterations),)), (outer_step, iterations))
        return replace(self, iterations=iterations, plans=plans)


@dataclass(frozen=True, kw_only=True)
class DataSettings(Settings):
    """The real data."""

    data: str = "digits"
    """Data set by name (datadistill data lists them), a folder of images, an .npz or .csv file, or
    your own as file.py:NAME."""
    data_dir: Path | None = None
    """Data folder. By default $DATADISTILL_DATA, or the user's cache folder."""
    size: int | None = None
    """Height and width to resize images to. By default the data set's own."""
    channels: Literal[1, 3] | None = None
    """1 for grey images, 3 for colour. By default the data set's own."""
    augment: bool | None = None
    """Augment real images. By default where the paper does."""
    normalization: Literal["data", "imagenet", "zca"] | None = None
    """Mean and standard deviation to normalise pixels with: those of the training data (the default
    for your own), or of ImageNet, for networks pre-trained on it. zca: whiten the images, too."""
    validation: float = 0.1
    """Share of the training data held out to measure progress."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("size")
        self._require_share("validation")


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(Settings):
    """The networks, their initial weights, and what they are trained for."""

    model: str = "lenet"
    """Network: alexcifarnet, alexnet, convnet3, largenet, lenet, linear, mlp, squeezenet, textcnn,
    vgg11, or your own as package.module:Class or file.py:Class. Arguments may follow in brackets,
    e.g. "convnet3(width=32)"."""
    model_args: tuple[str, ...] = ()
    """Arguments of the network's constructor, e.g. --model-args width=64 bias=false."""
    architectures: tuple[str, ...] = ()
    """Other networks to distil for too: each outer step draws one of all. Built-in ones, e.g.
    --architectures mlp "convnet3(width=32)"."""
    initialization: str = "random"
    """Initial weights to distil for: random networks, or one fixed network. Pre-trained ones
    (random-pretrained, fixed-pretrained) come from a pool; a single one also from a file. Or your
    own as package.module:Class or file.py:Class."""
    init_seed: int = 0
    """Which network a fixed initialization is: the seed of its weights, or its number in the
    pool."""
    scheme: Scheme = "xavier-normal"
    """How initial weights are drawn; module: as the network's own constructor does."""
    pool: Path | None = None
    """Folder of pre-trained networks, made by datadistill pretrain."""
    pool_networks: int | None = None
    """Use only the first so many training networks of the pool. All by default."""
    pool_noise: float = 0.0
    """Noise on the weights that are drawn, in standard deviations; stands in for a larger pool."""
    weights: Path | None = None
    """File of one pre-trained network: .safetensors, .pth or .pt; also from the data folder."""
    reset_head: bool = False
    """Reset its last layer, for other classes than it was trained on."""
    partial: bool = False
    """Load the weights that fit where file and network differ; the others are reported."""
    trained: tuple[str, ...] = ()
    """Layers of a pre-trained network to train, e.g. --trained classifier features.12; the others
    are frozen, which saves time. All by default."""
    objective: str = "classification"
    """Outer loss on real data: classification, regression, poisoning, or your own function of
    logits and labels, or Objective, as package.module:name or file.py:name."""
    attacked: int | None = None
    """Class that poisoning attacks. 0 by default."""
    target: int | None = None
    """Class that networks are made to predict instead. 1 by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("pool_networks")
        model, arguments = split_arguments(self.model, self.model_args)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "model_args", arguments)


@dataclass(frozen=True, kw_only=True)
class MachineSettings(Settings):
    """The machine."""

    device: DeviceName = "auto"
    """Device to compute on."""
    engine: EngineName | None = None
    """How to compute: fast, as this machine can; kernels, the same but never without C kernels;
    torch, without C kernels; plain, slow and simple. All give the same numbers up to rounding. By
    default $DATADISTILL_ENGINE, or fast."""
    dtype: DtypeName | None = None
    """Floating-point type. By default float32, or that of your own network."""
    processes: int | None = None
    """Processes on this machine that share the networks, or the minibatch of a single one; those of
    torchrun take precedence. By default the fastest in a short measurement, and so are threads."""
    threads: int | None = None
    """CPU threads of each process."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("processes", "threads")


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings(Settings):
    """Validation, checkpoints and the final test."""

    validate_every: int | None = None
    """Outer steps between two validations. By default a twentieth of the run."""
    keep: Keep = "auto"
    """Result of the run: the last distilled data, as in the paper; the best in validation; or auto:
    the best if they beat the last by more than noise, otherwise the last."""
    test_networks: int | None = None
    """Held-out networks of the final test. By default 1 for fixed, 200 for random
    initializations, or all that the pool has."""
    checkpoint_every: int | None = None
    """Outer steps between two checkpoints, in addition to those by time."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints."""
    tensorboard: bool = False
    """Write metrics for TensorBoard too (pip install 'datadistill[tensorboard]')."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_count("validate_every", "test_networks", "checkpoint_every")
        self._require_positive("checkpoint_minutes")


GROUPS: dict[str, type[Settings]] = {
    "distilled data": LearnedSettings,
    "unroll": UnrollSettings,
    "outer optimiser": OuterSettings,
    "data": DataSettings,
    "network and initialization": NetworkSettings,
    "machine": MachineSettings,
    "checkpoint": CheckpointSettings,
}
"""The groups by the names that ``--help`` gives them."""
