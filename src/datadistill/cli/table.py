"""The baseline table on the screen: the paper's Table 1, one method to a row."""

from rich import box
from rich.console import Console
from rich.table import Table

from ..tables import BaselineTable, TableRow
from .console import out

GROUPS = {
    "untrained": "ours",
    "no adaptation": "ours",
    "distilled": "ours",
    "few-shot adversarial": "rival",
    "all real": "reference",
    "full target": "reference",
    "full fine-tuning": "reference",
}
"""Lines separate what the paper groups; all rows but these are images of baselines, or K-NN."""


def print_baselines(table: BaselineTable, console: Console = out) -> None:
    """Prints the table: drawn on terminals, as Markdown where output is piped."""
    # Beside the paper's figures only where it has this experiment.
    paper = any(row.paper for row in table.rows)
    count = "sets ×\nnetworks"
    header = ["images", "accuracy, %", *(["paper, %"] if paper else []), count, "chosen¹"]
    rows = {row.name: _cells(row, paper) for row in table.rows}
    console.print(_title(table), markup=False)
    if console.is_terminal:
        console.print(_drawn(header, rows))
    else:
        rule = ["---", "---:", *(["---:"] if paper else []), "---:", "---"]
        for cells in [header, rule, *rows.values()]:
            console.print(f"| {' | '.join(cells)} |".replace("\n", " "), markup=False)
    console.print(_note(table, paper), markup=False)


def _drawn(header: list[str], rows: dict[str, list[str]]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in header:
        drawn.add_column(name, justify="left" if name in (header[0], header[-1]) else "right")
    names = [*rows]
    for name, following in zip(names, [*names[1:], ""], strict=True):
        drawn.add_row(
            *rows[name],
            style="bold green" if name == "distilled" else None,
            end_section=bool(following) and _group(name) != _group(following),
        )
    return drawn


def _group(name: str) -> str:
    return "K-NN" if name.startswith("K-NN") else GROUPS.get(name, "images")


def _cells(row: TableRow, paper: bool) -> list[str]:
    return [
        row.name,
        f"{100 * row.mean:.1f}" + ("" if row.std is None else f" ± {100 * row.std:.1f}"),
        *([str(row.paper) if row.paper else ""] if paper else []),
        f"{row.sets} sets" if row.name.startswith("K-NN") else f"{row.sets} × {row.networks}",
        row.chosen,
    ]


def _title(table: BaselineTable) -> str:
    pair = f"{table.source} → {table.data}" if table.source else table.data
    return (
        f"{pair}, {table.images} images in {table.steps} step(s), {table.network}, "
        f"{table.initialization} initialization; tested on {table.test_examples:,} images"
    )


def _note(table: BaselineTable, paper: bool) -> str:
    names = {row.name for row in table.rows}
    what = "learning rate and epochs"
    what += ", or γ and updates" if "few-shot adversarial" in names else ""
    what += ", or norm and K" if any(name.startswith("K-NN") for name in names) else ""
    if table.select == "test":
        return f"¹ {what}: the best ON THE TEST SET, which flatters the baselines" + (
            " as in the paper." if paper else "."
        )
    return f"¹ {what}: the best on held-out training data" + (
        " (the paper's: the best on the test set)." if paper else "."
    )
