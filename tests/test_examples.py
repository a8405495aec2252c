"""Every example runs as it stands, and the README marks what CI runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem
)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "%" in done.stdout


def test_the_readmes_commands_are_marked_for_ci() -> None:
    readme = (ROOT / "README.md").read_text()
    for mark in ("quickstart", "test"):
        assert re.search(rf"<!-- {mark} -->\n```sh\n.+\n```", readme)
    assert "sed -n '/<!-- test -->/" in (ROOT / ".ci" / "run").read_text()
