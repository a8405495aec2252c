"""The Python in the documentation parses, and names only what the package has."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])
BLOCKS = [
    pytest.param(block, id=f"{path.relative_to(ROOT)}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    )
]


def names(block: str) -> list[tuple[str, str]]:
    """What a block uses of the package, as (module, name)."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(block)):
        match node:
            case ast.ImportFrom(module=str(module), names=imported):
                found += [(module, name.name) for name in imported]
            case ast.Attribute(value=ast.Name(id="dd"), attr=name):
                found.append(("datadistill", name))
            case _:
                pass
    return [(module, name) for module, name in found if module.split(".")[0] == "datadistill"]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_in_the_documentation_names_what_exists(block: str) -> None:
    for module, name in names(block):
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_imports_and_attributes_of_the_package_are_found() -> None:
    block = "import torch\nfrom datadistill.core import random\ndd.data.load(torch.ones(1))"
    assert names(block) == [("datadistill.core", "random"), ("datadistill", "data")]
