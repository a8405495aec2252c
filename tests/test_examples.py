"""Every example runs as it stands, and the README marks what CI runs."""

import re
from pathlib import Path

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


def test_the_readmes_commands_are_marked_for_ci() -> None:
    readme = (ROOT / "README.md").read_text()
    for mark in ("quickstart", "test"):
        assert re.search(rf"<!-- {mark} -->\n```sh\n.+\n```", readme)
    assert "sed -n '/<!-- test -->/" in (ROOT / ".ci" / "run").read_text()
