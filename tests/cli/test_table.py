"""The baseline table as a user sees it."""

import io

import pytest
from rich.console import Console

from datadistill.baselines.paper import Figure
from datadistill.cli.table import print_baselines
from datadistill.tables import BaselineTable, TableRow
from datadistill.tables.rows import Select

ROWS = (
    TableRow("untrained", ((0.1, 0.12),)),
    TableRow("distilled", ((0.7, 0.8),), paper=Figure(79.5, 8.1)),
    TableRow("random real", ((0.5, 0.6), (0.6, 0.7)), "learned, 5 epochs", Figure(68.6, 9.8)),
    TableRow("optimised real", ((0.5, 0.6), (0.6, 0.7)), "learned, 5 epochs", Figure(73.0, 7.6)),
    TableRow("k-means", ((0.5, 0.6), (0.6, 0.7)), "lr 0.1, 5 epochs", Figure(76.4, 9.5)),
    TableRow("average real", ((0.5, 0.6),), "lr 0.1, 3 epochs", Figure(77.1, 2.7)),
    TableRow("K-NN random real", ((0.7,), (0.72,)), "l2, K = 1", Figure(71.5, 2.1)),
    TableRow("K-NN k-means", ((0.92,), (0.92,)), "l2, K = 1", Figure(92.2, 0.1)),
    TableRow("all real", ((0.99,),), "Adam, 5 epochs"),
)


def printed(
    rows: tuple[TableRow, ...] = ROWS, select: Select = "train", terminal: bool = False
) -> str:
    table = BaselineTable(rows, "mnist", 10_000, "lenet", "random", None, 100, 10, select)
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, color_system=None, width=80)
    console.soft_wrap = True
    print_baselines(table, console)
    return file.getvalue()


def test_piped_output_is_a_markdown_table_with_ours_beside_the_paper() -> None:
    lines = printed().splitlines()
    assert lines[0] == (
        "mnist, 100 images in 10 step(s), lenet, random initialization; tested on 10,000 images"
    )
    assert lines[1] == "| images | accuracy, % | paper, % | sets × networks | chosen¹ |"
    assert lines[4] == "| distilled | 75.0 ± 7.1 | 79.5 ± 8.1 | 1 × 2 |  |"
    assert lines[5] == "| random real | 60.0 ± 8.2 | 68.6 ± 9.8 | 2 × 2 | learned, 5 epochs |"
    assert lines[9] == "| K-NN random real | 71.0 ± 1.4 | 71.5 ± 2.1 | 2 sets | l2, K = 1 |"
    assert lines[11] == "| all real | 99.0 |  | 1 × 1 | Adam, 5 epochs |"
    assert "best on held-out training data" in lines[12]
    assert "\x1b" not in printed()


def test_on_a_terminal_of_80_columns_nothing_is_cut_or_wrapped() -> None:
    text = printed(terminal=True)
    assert "…" not in text
    for row in ROWS:
        line = next(line for line in text.splitlines() if f" {row.name} " in line)
        assert line.rstrip().endswith(row.chosen)
        assert row.paper is None or str(row.paper) in line


@pytest.mark.parametrize("terminal", [False, True])
def test_without_figures_of_the_paper_it_has_no_column_for_them(terminal: bool) -> None:
    bare = tuple(TableRow(row.name, row.values, row.chosen) for row in ROWS)
    assert "paper" not in printed(bare, terminal=terminal)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_choice_on_the_test_set_is_labelled_so(terminal: bool) -> None:
    assert "ON THE TEST SET" in printed(select="test", terminal=terminal)
    assert "ON THE TEST SET" not in printed(terminal=terminal)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("K-NN k-means", "epochs, or norm and K:"),
        ("few-shot adversarial", "epochs, or γ and updates:"),
        ("full fine-tuning", "learning rate and epochs:"),
    ],
)
def test_the_note_names_what_its_rows_choose(name: str, told: str) -> None:
    assert told in printed((TableRow("distilled", ((0.7,),)), TableRow(name, ((0.6,),), "chosen")))
