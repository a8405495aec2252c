"""How the modules of a run depend on each other: in one direction, by import and by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import datadistill.runs
from datadistill.runs import follow
from datadistill.runs.team import launch

ROOT = Path(datadistill.runs.__file__).parent
MODULES = {path: path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py"))}


def dotted(path: Path) -> str:
    """``team.link`` for ``team/link.py``; a package is its folder."""
    return ".".join(part for part in path.with_suffix("").parts if part != "__init__")


def imported(path: Path) -> Iterator[str]:
    """The modules of this package that a file imports, at any depth of nesting."""
    names = {dotted(name) for name in MODULES.values()}
    package = list(MODULES[path].parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(package) + 1:
            base = package[: len(package) - node.level + 1]
            module = ".".join([*base, *([node.module] if node.module else [])])
            inside = [f"{module}.{alias.name}".lstrip(".") for alias in node.names]
            yield from (name for name in {module, *inside} if name and name in names)


GRAPH = {dotted(name): set(imported(path)) for path, name in MODULES.items()}


def reachable(start: str) -> set[str]:
    found, left = set[str](), [*GRAPH[start]]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += GRAPH[name]
    return found


def test_no_module_imports_itself_by_a_detour() -> None:
    assert len(GRAPH) > 20
    assert "team.link" in reachable("follow")
    assert not [name for name in GRAPH if name in reachable(name)]


def test_files_know_no_processes_processes_no_runs_and_runs_no_plans() -> None:
    for name in GRAPH:
        if name.startswith("store."):
            allowed = {"config", "settings", "seams", "state"}
            assert {n for n in reachable(name) if not n.startswith("store")} <= allowed, name
        if name and not name.startswith(("planning.", "tuning.")):  # a search plans its runs
            assert not [n for n in reachable(name) if n.startswith("planning")], name
        if name.startswith("team."):
            assert all(other.startswith("team") for other in reachable(name)), name


def test_no_program_text_names_a_module_of_ours() -> None:
    for path in MODULES:
        tree = ast.parse(path.read_text())
        texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
        assert not [t for t in texts if isinstance(t, str) and "import datadistill" in t]
        assert not [t for t in texts if isinstance(t, str) and "from datadistill" in t]
    made = launch.PROGRAM.format(module=follow.worker.__module__, name=follow.worker.__name__)
    assert "from datadistill.runs.follow import worker\nworker(line)\n" in made
