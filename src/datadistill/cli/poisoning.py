"""An attack on the screen and in results.json: before and after, baselines, defences."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..baselines import Baseline
from ..core.distilled import Steps
from ..data import LabelledData
from ..evaluation.defence import Defended, defend
from ..evaluation.poisoning import Attack, Attacked, Victims, attack
from ..evaluation.result import ClassScore
from ..runs.store.results import read_results, write_results
from ..tables import Counts, PoisoningRow, poisoning_table
from .console import out, print_table

SECTION = "poisoning"
DEFAULTS = Counts()


@dataclass(frozen=True)
class Outcome:
    """What was measured of an attack.

    Attributes:
        attack: Before and after.
        rows: The same beside attacks by real images, if they were asked for.
        defences: The same against defences, if they were.
    """

    attack: Attack
    rows: Sequence[PoisoningRow] = ()
    defences: Sequence[Defended] = ()

    def print(self) -> None:
        """Prints all tables."""
        print_attack(self.attack)
        if self.rows:
            print_rows(self.rows)
        if self.defences:
            print_defences(self.defences)

    def as_json(self) -> dict[str, Any]:
        """All figures, with those of every network."""
        attack = self.attack
        content: dict[str, Any] = {
            **{name: value for name, value in asdict(attack).items() if name != "objective"},
            **asdict(attack.objective),
            "networks": len(attack.after.success.values),
            "before": _figures(attack.before),
            "after": _figures(attack.after),
        }
        if self.rows:
            content["baselines"] = [
                {**asdict(r), "figures": _figures(r.figures)} for r in self.rows
            ]
        if self.defences:
            content["defences"] = [
                {**asdict(one), "name": str(one.defence), "figures": _figures(one.figures)}
                for one in self.defences
            ]
        return content


def measure_attack(
    steps: Steps,
    train: LabelledData,
    victims: Victims,
    *,
    baselines: bool = False,
    own: Sequence[Baseline | str] = (),
    defence: bool = False,
    counts: Counts = DEFAULTS,
    results: Path | None = None,
) -> Outcome:
    """Measures an attack.

    Args:
        steps: Steps of distilled data for poisoning.
        train: Real training data.
        victims: The networks, and the test data.
        baselines: Whether to compare with attacks by real images.
        own: Your own baselines to compare with, beside the built-in ones.
        defence: Whether to measure defences.
        counts: How many sets and networks the baselines are measured with.
        results: A ``results.json`` in which the finished parts of baselines are saved.
    """
    rows: list[PoisoningRow] = []
    if baselines:
        found, rows = poisoning_table(
            steps,
            train,
            victims,
            baselines=own,
            counts=counts,
            results=results,
            progress=victims.progress,
        )
    else:
        found = attack(steps, victims)
    return Outcome(found, rows, defend(steps, victims, train) if defence else [])


def print_attack(attack: Attack) -> None:
    """Prints each figure before and after the steps."""
    networks = len(attack.after.success.values)
    statistics = f", running statistics of {attack.statistics}" if attack.statistics else ""
    out.print(
        f"{attack.objective.text}: {attack.data} {attack.split}, {attack.examples:,} examples, "
        f"{networks} network(s){statistics}",
        markup=False,
    )
    table = _table("", "before", "after")
    before, after = attack.before, attack.after
    table.add_row(after.success.name, cell(before.success), cell(after.success))
    table.add_row("accuracy on modified labels", cell(before.modified), cell(after.modified))
    table.add_row("accuracy on other classes", cell(before.others), cell(after.others))
    for one, other in zip(before.by_class, after.by_class, strict=True):
        table.add_row(f"accuracy on class {one.name}", cell(one), cell(other))
    print_table(table)


def print_rows(rows: Sequence[PoisoningRow]) -> None:
    """Prints the attacks by distilled and by real images."""
    table = _table("images", "turned", "modified labels", "other classes", "sets", "rate")
    for row in rows:
        rate = "learned" if row.rate is None else str(row.rate)
        figures = row.figures
        table.add_row(
            row.name,
            *map(cell, (figures.success, figures.modified, figures.others)),
            str(row.sets),
            rate if row.turns else f"{rate} ¹",
        )
    print_table(table)
    if not all(row.turns for row in rows):
        out.print("¹ No learning rate turns 10 % of the attacked class; this one turns most.")


def print_defences(found: Sequence[Defended]) -> None:
    """Prints what each defence leaves of the attack, and what it costs honest training."""
    table = _table("defence", "turned", "modified labels", "other classes", "stopped", "honest")
    for one in found:
        figures = one.figures
        shares = (f"{100 * share:.1f} %" for share in (one.stopped, one.honest))
        cells = map(cell, (figures.success, figures.modified, figures.others))
        table.add_row(str(one.defence), *cells, *shares)
    print_table(table)
    out.print(
        "stopped: share of the attack's updates that are refused or shortened; "
        "honest: the same share of honest batches",
        markup=False,
    )


def write_attack(path: Path, content: dict[str, Any]) -> None:
    """Writes the figures to a results.json; its other sections stay."""
    content, known = json.loads(json.dumps(content)), read_results(path).get(SECTION)
    # Baselines and defences of the same attack that were measured separately stay.
    kept = known if isinstance(known, dict) and known.get("after") == content["after"] else {}
    write_results(path, {SECTION: {**kept, **content}})


def cell(score: ClassScore) -> str:
    """Mean ± deviation over networks, in percent."""
    deviation = f" ± {100 * score.std:.1f}" if len(score.values) > 1 else ""
    return f"{100 * score.mean:.1f}{deviation} %"


def _figures(found: Attacked) -> dict[str, Any]:
    def one(score: ClassScore) -> dict[str, Any]:
        return {**asdict(score), "mean": score.mean, "std": score.std}

    figures = {name: one(getattr(found, name)) for name in ("success", "modified", "others")}
    return {**figures, "by_class": [one(score) for score in found.by_class]}


def _table(*columns: str) -> Table:
    table = Table(box=None)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    return table
