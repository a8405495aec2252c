"""The documentation builds as a site, and the guide's code runs from top to bottom."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_site_names_pages_that_there_are() -> None:
    named = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert len(named) > 20
    assert all((DOCS / name).is_file() for name in named)
    assert {page.name for page in DOCS.glob("*.md")} <= named  # those of results/ follow theirs


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    ended = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    api = (tmp_path / "api" / "index.html").read_text()
    for name in ("distill", "evaluate", "export", "DistilledData"):
        assert f'id="datadistill.{name}"' in api


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "guide.md").read_text(), re.M | re.S)
    code = "\n".join(blocks).replace("iterations=500", "iterations=2")
    space: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, "guide.md", "exec"), space)
    assert (tmp_path / "digits.safetensors").exists()
    assert space["distilled"].header.data == "mine"
