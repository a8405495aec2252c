"""Every example runs as it stands, and the README marks what CI runs."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.processes import finished

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem
)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    done = finished("-c", example.read_text(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "%" in done.stdout


def test_the_notebook_runs_and_its_results_show_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a notebook does it: cell after cell in one namespace, the last expression displayed."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    displayed: list[Any] = []
    for cell in (one for one in notebook["cells"] if one["cell_type"] == "code"):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop()
        assert isinstance(last, ast.Expr)
        exec(compile(tree, "tour.ipynb", "exec"), names)
        displayed.append(eval(compile(ast.Expression(last.value), "tour.ipynb", "eval"), names))
    shown = [getattr(one, "_repr_html_", lambda: "")() for one in displayed]
    assert shown[1].count("<img ") == 10
    assert "on digits test" in shown[2]
    assert shown[4].startswith("<iframe")
    assert displayed[2].mean > 0.5
    assert (tmp_path / "tour" / "report.html").is_file()


def test_the_readmes_commands_are_marked_for_ci() -> None:
    readme = (ROOT / "README.md").read_text()
    for mark in ("quickstart", "test"):
        assert re.search(rf"<!-- {mark} -->\n```sh\n.+\n```", readme)
    assert "sed -n '/<!-- test -->/" in (ROOT / ".ci" / "run").read_text()
