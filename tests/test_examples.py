"""Every example runs as it stands, and every document names what exists."""

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


def test_how_it_works_names_functions_that_exist() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text()
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name in re.findall(r"`[\w/.]*?(\w+)`", text):
        if not name.endswith("py") and name not in ("core", "vmap", "functional_call"):
            assert re.search(rf"\b{name}\b", source), name


def test_the_readmes_commands_are_marked_for_ci() -> None:
    readme = (ROOT / "README.md").read_text()
    for mark in ("quickstart", "test"):
        assert re.search(rf"<!-- {mark} -->\n```sh\n.+\n```", readme)
    assert "sed -n '/<!-- test -->/" in (ROOT / ".ci" / "run").read_text()
