"""The parts of a table: one distillation each, at the paper's settings and at quick ones."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ...core.names import FIXED_NAMES
from ...core.settings import default_networks
from ...runs.config import MACHINE, NAMES, RunConfig
from ...runs.recipes import read_recipe
from .scale import Scale

Measured = Literal["figure", "baselines", "attack"]

NOT_COMPARED = MACHINE | {"validate_every", "test_networks", "pool"}
"""Settings that are where and how often, not what."""


@dataclass(frozen=True)
class PoolOf:
    """The pool of pre-trained networks that a part needs.

    Attributes:
        data: The data set that they are trained on.
        model: The network.
        size: Height and width of the images, if not the data set's own.
        channels: Their colours, if not the data set's own.
    """

    data: str
    model: str = "lenet"
    size: int | None = None
    channels: Literal[1, 3] | None = None

    def name(self, model_args: tuple[str, ...]) -> str:
        """What its folder is called."""
        return "-".join([self.data, self.model, *(one.replace("=", "") for one in model_args)])


@dataclass(frozen=True)
class Part:
    """One distillation of a table or figure.

    Attributes:
        run: What its run folder is called; parts of the same name are one run.
        row: The row of the table, or the curve of a figure, in which it stands.
        column: Its column, or its place on the curve.
        recipe: The recipe of the paper's experiment.
        settings: What differs from the recipe at every scale.
        quick: What differs at the quick scale; ``recipe`` there names a recipe that stands in.
        pool: The pool that it needs.
        quick_pool: The pool that it needs at the quick scale, if another.
        measured: What is measured.
        stand_in: What the row is called at the quick scale, if its data stand in for the paper's.
    """

    run: str
    row: str
    column: str
    recipe: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    quick: dict[str, Any] = field(default_factory=dict[str, Any])
    pool: PoolOf | None = None
    quick_pool: PoolOf | None = None
    measured: Measured = "figure"
    stand_in: str = ""

    def row_at(self, scale: Scale) -> str:
        """What its row is called at a scale: by the data that are used."""
        return (self.stand_in if scale.name == "quick" else "") or self.row

    def pool_at(self, scale: Scale) -> PoolOf | None:
        """The pool that it needs at a scale."""
        return (self.quick_pool if scale.name == "quick" else None) or self.pool

    def paper(self) -> RunConfig:
        """The settings of the paper."""
        return replace(read_recipe(self.recipe, "paper").config, **self.settings)

    def config(self, scale: Scale, data_dir: Path | None, pools: Path) -> RunConfig:
        """The settings at a scale."""
        quick = dict(self.quick) if scale.name == "quick" else {}
        recipe = quick.pop("recipe", self.recipe)
        config = read_recipe(recipe, scale.preset).config
        fixed = config.initialization in FIXED_NAMES
        changes: dict[str, Any] = {
            **self.settings,
            **quick,
            "data_dir": data_dir,
            "test_networks": 1 if fixed else scale.networks,
        }
        config = replace(config, **changes)
        if quick:  # measured at its end alone
            config = replace(config, validate_every=config.iterations)
        pool = self.pool_at(scale)
        if pool is None:
            return config
        return replace(config, pool=(pools / pool.name(config.model_args)).absolute())


def differences(used: RunConfig, paper: RunConfig) -> list[str]:
    """The settings in which a run differs from the paper's, each as ``name: paper's → ours``."""
    ours, theirs = _resolved(used), _resolved(paper)
    return [
        f"{name}: {_shown(theirs[name])} → {_shown(ours[name])}"
        for name in NAMES
        if name not in NOT_COMPARED and ours[name] != theirs[name]
    ]


def scale_differences(
    scale: Scale, paper: Scale, parts: Sequence[Part], columns: Sequence[str]
) -> list[str]:
    """The same of how much is computed for these parts and columns: networks, pools, sets."""
    ours, theirs = (_numbers(one, parts, columns) for one in (scale, paper))
    return [
        f"{name}: {_shown(theirs[name])} → {_shown(value)}"
        for name, value in ours.items()
        if value != theirs[name]
    ]


def _numbers(scale: Scale, parts: Sequence[Part], columns: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "held-out networks": scale.networks,
        "training examples of each data set": scale.examples or "all",
    }
    if any(part.pool for part in parts):
        how = [scale.pool_preset, *(f"{n}={v}" for n, v in scale.pool_settings.items())]
        found |= {"networks of a pool": scale.pool_networks, "training of pools": " ".join(how)}
    if any(part.measured != "figure" for part in parts):
        counts = asdict(scale.counts)
        found |= {text: counts[name] for name, text in COUNTS.items()}
        if any(column.startswith("full ") for column in columns):
            found |= {text: counts[name] for name, text in FULL.items()}
        if "few-shot adversarial" in columns:
            found |= {text: counts[name] for name, text in FEW_SHOT.items()}
    return found


COUNTS = {
    "sets": "sets of real images",
    "drawn": "sets that the optimised ones are picked from",
    "kept": "optimised sets",
    "picking_networks": "networks that pick them",
    "choosing_sets": "sets that choose the settings of baselines",
    "choosing_networks": "networks that choose them",
    "examples": "examples to pick and choose on",
}
FULL = {
    "full_networks": "networks trained on all real data",
    "full_epochs": "epochs of their training",
}
FEW_SHOT = {
    "few_shot_networks": "networks of few-shot adaptation",
    "few_shot_choosing": "networks that choose its settings",
    "few_shot_updates": "its updates",
}
"""What the numbers of ``Counts`` are called in a table."""


def _resolved(config: RunConfig) -> dict[str, Any]:
    """All settings, with the number of networks that stands for none."""
    fixed = config.initialization in FIXED_NAMES
    networks = config.networks or default_networks(fixed=fixed)
    periods = config.outer_schedule == "periods"  # a cosine has one, which a run writes down
    every = config.decay_every if periods else None
    return {**config.mapping(), "networks": networks, "decay_every": every}


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
