"""How much is computed for a table: the paper's numbers, or few that prove the pipeline."""

from dataclasses import dataclass, field
from typing import Any, Literal

from ...pools.settings import Preset as PoolPreset
from ...runs.recipes import Preset
from ..image_sets import Counts

ScaleName = Literal["quick", "paper"]


@dataclass(frozen=True)
class Scale:
    """How much is computed.

    Attributes:
        name: What it is called.
        preset: The outer schedule of the recipes.
        networks: Held-out networks of each figure.
        examples: Training examples that distillation and baselines take, at random; all by default.
        pool_networks: Networks of a pool that distillation draws from.
        pool_preset: How they are trained.
        pool_settings: What differs from that.
        counts: How many sets and networks the baselines are measured with.
        steps: The numbers of steps of the figure.
        epochs: The numbers of epochs of the figure.
        images: The images per class of the comparison of one step with many.
    """

    name: ScaleName
    preset: Preset
    networks: int
    pool_networks: int
    pool_preset: PoolPreset
    pool_settings: dict[str, Any] = field(default_factory=dict[str, Any])
    counts: Counts = field(default_factory=Counts)
    examples: int | None = None
    steps: tuple[int, ...] = (1, 2, 5, 10, 20)
    epochs: tuple[int, ...] = (1, 3, 5, 10)
    images: tuple[int, ...] = (1, 2, 5, 10)


SCALES: dict[ScaleName, Scale] = {
    "paper": Scale("paper", "paper", 200, 2000, "paper"),
    "quick": Scale(
        "quick",
        "fast",
        networks=3,
        pool_networks=3,
        pool_preset="quick",
        pool_settings={"epochs": 1, "batch_size": 256},
        counts=Counts(
            sets=2,
            drawn=4,
            kept=2,
            picking_networks=2,
            choosing_sets=1,
            choosing_networks=2,
            examples=512,
            full_networks=1,
            full_epochs=1,
            few_shot_networks=2,
            few_shot_choosing=1,
            few_shot_updates=(20,),
        ),
        examples=5000,
        steps=(1, 3, 10),
        epochs=(1, 3),
        images=(1, 3),
    ),
}
"""Quick takes minutes and says nothing about the method; paper is the paper's own."""
