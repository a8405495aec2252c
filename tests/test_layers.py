"""The layers of design: each imports only from those to its left."""

import ast
from pathlib import Path

import pytest

import datadistill

ROOT = Path(datadistill.__file__).parent
LAYERS = [
    {"errors", "progress", "version"},
    {"files", "importing", "durations"},
    {"core", "lock"},
    {"engine"},
    {"models", "data"},
    {"pools"},
    {"artefact"},
    {"baselines", "evaluation", "theory"},
    {"runs"},
    {"tables"},
    {"report"},
    {"cli"},
]
MODULES = sorted(ROOT.rglob("*.py"))
IMPURE = {
    "os",
    "pathlib",
    "io",
    "time",
    "datetime",
    "random",
    "logging",
    "rich",
    "shutil",
    "tempfile",
}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, absolute, at any depth of nesting."""
    package = ["datadistill", *path.relative_to(ROOT).parts[:-1]]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "datadistill":
                found.update(f"datadistill.{alias.name}" for alias in node.names)
            else:
                found.add(module)
    return found


def layer_of(name: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if name in names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_module_imports_only_from_the_layers_to_its_left(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    for module in imports(path):
        if module.startswith("datadistill."):
            other = module.split(".")[1]
            assert other == own or layer_of(other) < layer_of(own), f"{own} imports {module}"


@pytest.mark.parametrize("path", sorted((ROOT / "core").glob("*.py")), ids=lambda path: path.stem)
def test_the_core_knows_no_files_printing_clock_or_global_random_state(path: Path) -> None:
    assert not {module.split(".")[0] for module in imports(path)} & IMPURE
    calls = [
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    ]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    assert not names & {"print", "open", "input", "exec", "eval"}
    attributes = {ast.unparse(call) for call in calls if isinstance(call, ast.Attribute)}
    assert not attributes & {"torch.manual_seed", "torch.seed", "torch.save", "torch.load"}
