"""An evaluation's figures: as tables and as JSON."""

import math
from dataclasses import asdict
from typing import Any

from rich.table import Table

from ..artefact import DistilledData
from ..evaluation import Evaluation
from ..tables import Robustness


def curve_table(results: list[Evaluation], distilled: DistilledData) -> Table:
    """The metric and the loss after every update."""
    table = Table("updates", "epoch", "step", results[0].metric, "loss", box=None)
    schedule = distilled.steps.schedule
    for one in results:
        t = one.updates or 0
        where = [str(part + 1) for part in schedule[t - 1]] if t else ["", ""]
        loss = f"{one.loss:.4g} ± {one.loss_std:.2g}"
        table.add_row(str(t), *where, figure(one.mean, one.std, one.metric), loss)
    return table


def class_table(result: Evaluation) -> Table:
    """The metric of every class."""
    table = Table("class", "examples", result.metric, box=None)
    for one in result.by_class:
        table.add_row(one.name, str(one.examples), figure(one.mean, one.std, result.metric))
    return table


def robustness_table(found: Robustness) -> Table:
    """DD-Ranking's scores, below the accuracies that they are made of."""
    table = Table("", "%", box=None)
    rows = {
        "all real data": found.full,
        "distilled, hard labels": found.hard,
        "distilled": found.own,
        "random real": found.random,
        "distilled, augmented": found.own_viewed,
        "random real, augmented": found.random_viewed,
        "hard label recovery": found.hard_label_recovery,
        "improvement over random": found.improvement_over_random,
        "label-robust score": found.label_robust_score,
        "augmentation-robust score": found.augmentation_robust_score,
    }
    for name, value in rows.items():
        table.add_row(name, f"{100 * value:.2f}")
    return table


def figure(mean: float, std: float, metric: str) -> str:
    """A mean and its deviation, in percent where it is an accuracy."""
    if metric.startswith("accuracy"):
        return f"{100 * mean:.2f} ± {100 * std:.2f} %"
    return f"{mean:.4g} ± {std:.2g}"


def as_json(result: Evaluation) -> dict[str, Any]:
    """All figures of an evaluation; what is not finite is null."""
    by_class = [{**asdict(one), "mean": one.mean, "std": one.std} for one in result.by_class]
    figures = {
        "mean": result.mean,
        "std": result.std,
        "networks": len(result.values),
        "loss": result.loss,
        "loss_std": result.loss_std,
        **asdict(result),
        "by_class": by_class,
    }
    return _finite(figures)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
