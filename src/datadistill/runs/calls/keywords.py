"""The settings that ``dd.distill`` takes by keyword, with types, for editors to complete.

They are those of :class:`~datadistill.runs.config.RunConfig`, which explains them, without those
that are arguments by themselves; paths may be strings, and sequences lists. A test keeps both in
step.
"""

from pathlib import Path
from typing import Literal, TypedDict

from ...core.names import LabelKind, OrdinaryName, Placement, Scheme
from ...engine.choice import EngineName


class Keywords(TypedDict, total=False):
    """Settings of a run by keyword; those that are left out have their defaults."""

    # distilled data
    steps: int
    epochs: int
    images_per_class: int
    images_per_step: int | None
    learning_rate: float
    bases: int | None
    downscale: int | None
    learn_rates: bool
    learn_labels: bool | None
    learn_momentum: bool
    learn_layer_rates: bool
    labels: LabelKind | None
    start: Literal["noise", "k-means", "average"]
    rates_factor: float
    # unroll
    inner_batch: int | None
    shuffle: bool
    robust: bool
    ordinary: tuple[OrdinaryName, ...]
    jitter: float
    momentum: float
    weight_decay: float
    window: int | None
    random_window: bool
    window_placement: Placement | None
    micro_batch: int | None
    compiled: bool | None
    # outer optimiser
    iterations: int
    batch_size: int
    networks: int | None
    outer_lr: float
    betas: tuple[float, float]
    rates_lr: float | None
    labels_lr: float | None
    outer_schedule: Literal["periods", "cosine"]
    decay: float
    decay_every: int | None
    clip_norm: float | None
    clip_factor: float | None
    averaging: float
    seed: int
    plans: tuple[tuple[int, int], ...]
    # data
    data_dir: str | Path | None
    size: int | None
    channels: Literal[1, 3] | None
    augment: bool | None
    normalization: Literal["data", "imagenet", "zca"] | None
    # network and initialization
    architectures: tuple[str, ...] | list[str]
    model_args: tuple[str, ...] | list[str]
    init_seed: int
    scheme: Scheme
    pool: str | Path | None
    pool_networks: int | None
    pool_noise: float
    weights: str | Path | None
    reset_head: bool
    partial: bool
    trained: tuple[str, ...] | list[str]
    attacked: int | None
    target: int | None
    # machine
    engine: EngineName | None
    processes: int | None
    threads: int | None
    # checkpoint
    validate_every: int | None
    test_networks: int | None
    checkpoint_every: int | None
    checkpoint_minutes: float
    tensorboard: bool
