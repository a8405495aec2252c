"""Tables of an evaluation's figures."""

from rich.table import Table

from ..artefact import DistilledData
from ..evaluation import Evaluation


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


def figure(mean: float, std: float, metric: str) -> str:
    """A mean and its deviation, in percent where it is an accuracy."""
    if metric.startswith("accuracy"):
        return f"{100 * mean:.2f} ± {100 * std:.2f} %"
    return f"{mean:.4g} ± {std:.2g}"
