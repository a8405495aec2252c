"""The layers of the design: each room imports only from those to its left, and nothing in a circle.

``python -m tests.test_layers`` draws the rooms into ``docs/architecture.md``.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import datadistill
from datadistill.report import making

from .import_graph import NAME, ROOT, cycles, import_graph, modules

LAYERS = [
    {"errors", "exports", "flock", "hints", "notices", "private", "progress", "version"},
    {"files", "importing", "durations", "reading", "given"},
    {"lock", "bars", "markup", "pixels", "folders"},
    {"showing"},
    {"core"},
    {"engine"},
    {"models", "data"},
    {"pools"},
    {"artefact"},
    {"baselines", "evaluation", "exchange", "theory"},
    {"runs"},
    {"tables"},
    {"report"},
    {"cli"},
]
"""From the bottom up. The first four are modules, the others packages: the rooms."""

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BEGIN = "<!-- rooms: written by python -m tests.test_layers -->"
END = "<!-- end of rooms -->"

IMPURE = {
    "builtins",
    "datetime",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "rich",
    "shutil",
    "subprocess",
    "sys",
    "tempfile",
    "time",
}
DRAWS = {
    "torch." + name for name in ("rand", "randn", "randint", "randperm", "normal", "bernoulli")
}
"""What draws from the global random state unless it gets a generator."""

FILES = modules()
graph = functools.cache(import_graph)


def room_of(module: str) -> str:
    """``runs`` for ``datadistill.runs.store.folder``; empty for the package itself."""
    return module.removeprefix(NAME).lstrip(".").partition(".")[0]


def layer_of(room: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if room in names)


@pytest.mark.parametrize("module", sorted(FILES))
def test_each_module_imports_only_from_the_layers_to_its_left(module: str) -> None:
    own = room_of(module)
    if own in ("", "__main__"):
        return
    for other in graph()[module]:
        room = room_of(other)
        assert room == own or layer_of(room) < layer_of(own), f"{module} imports {other}"


def test_no_module_imports_itself_by_a_detour() -> None:
    assert [" → ".join(way) for way in cycles(graph())] == []


@pytest.mark.parametrize(
    "source",
    [
        "from . import b",
        "def f():\n    from .b import thing",
        "from datadistill.p import b",
        "import datadistill.p.b",
        "from importlib import import_module\nimport_module('datadistill.p.b')",
        "import importlib\nimportlib.import_module('.b', __package__)",
        "PROGRAM = 'import sys; from datadistill.p.b import thing'",
        "PROGRAM = '''\nimport datadistill.p.b\n'''",
        "command = f'{python} -m datadistill.p.b'",
        "command = ['python', '-m', 'datadistill.p.b']",
        "LAZY = {'thing': 'datadistill.p.b'}",
        "from . import thing",  # the package itself imports a
    ],
)
def test_a_circle_by_import_or_by_string_is_noticed(tmp_path: Path, source: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.py").write_text(source)
    (tmp_path / "p" / "b.py").write_text("from . import a")
    (tmp_path / "p" / "__init__.py").write_text(
        "from ..core import discover\ndiscover(1, __path__)"
    )
    assert cycles(import_graph(tmp_path))


def test_documentation_and_messages_import_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from . import b")
    (tmp_path / "b.py").write_text(
        '"""Example::\n\n    import datadistill.a\n"""\n'
        'error("Derive a class from datadistill.a; datadistill.a shows how.")'
    )
    assert import_graph(tmp_path) == {"datadistill.a": {"datadistill.b"}, "datadistill.b": set()}


def test_runs_has_at_most_15_modules_at_its_top() -> None:
    top = [path for path in (ROOT / "runs").glob("*.py") if path.stem != "__init__"]
    assert 5 < len(top) <= 15


# No attribute hides a module


def packages() -> Iterator[ModuleType]:
    """Every package, with all its modules imported."""
    for module in FILES:
        if not module.endswith(".__main__"):
            importlib.import_module(module)
    for module, path in FILES.items():
        if path.stem == "__init__":
            yield sys.modules[module]


def test_no_attribute_of_a_package_hides_its_submodule() -> None:
    for package in packages():
        for found in pkgutil.iter_modules(package.__path__):
            if found.name != "__main__":
                attribute = getattr(package, found.name)
                assert attribute is sys.modules[f"{package.__name__}.{found.name}"], attribute


def test_a_name_that_is_imported_on_first_use_hides_no_submodule() -> None:
    for package in packages():
        on_first_use = vars(package).get("__getattr__")
        for found in pkgutil.iter_modules(package.__path__):
            if on_first_use and found.name != "__main__":
                module = sys.modules[f"{package.__name__}.{found.name}"]
                assert on_first_use(found.name) is module


def test_the_package_that_bears_the_name_of_its_function_can_be_called(tmp_path: Path) -> None:
    assert inspect.signature(datadistill.report) == inspect.signature(making.report)
    with pytest.raises(datadistill.DataDistillError, match="nothing"):
        datadistill.report(tmp_path / "nothing")


@pytest.mark.parametrize("module", sorted(n for n, p in FILES.items() if p.stem == "__init__"))
def test_no_package_defines_a_name_that_one_of_its_modules_has(module: str) -> None:
    """Such a name would change its meaning once the module is imported."""
    names = {other.rpartition(".")[2] for other in FILES if other.rpartition(".")[0] == module}
    assert not bound(FILES[module].read_text(encoding="utf-8")) & names


def bound(source: str) -> set[str]:
    """The names that a module binds at its top, except modules of its own package."""
    found = set[str]()
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ImportFrom(module=str()) | ast.Import():
                found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Assign() | ast.AnnAssign() | ast.For():
                names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
                found.update(each.id for each in names if isinstance(each.ctx, ast.Store))
            case _:
                pass
    return found


# The core is pure


@pytest.mark.parametrize(
    "path", sorted((ROOT / "core").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_core_knows_no_files_printing_clock_or_global_random_state(path: Path) -> None:
    assert list(impurities(path.read_text(encoding="utf-8"))) == []


def impurities(source: str) -> Iterator[str]:
    """What a source imports or calls that touches anything but its arguments."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.split(".")[0] in IMPURE)
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in IMPURE:
                yield module
            case ast.Call(func=ast.Name(id=name)):
                if name in {"print", "open", "input", "exec", "eval"}:
                    yield name
            case ast.Call(func=ast.Attribute() as function, keywords=keywords):
                name = ast.unparse(function)
                if name in {"torch.manual_seed", "torch.seed", "torch.save", "torch.load"}:
                    yield name
                if name in DRAWS and "generator" not in {each.arg for each in keywords}:
                    yield name
            case _:
                pass


@pytest.mark.parametrize(
    "source",
    [
        "import os.path",
        "def f():\n    from time import sleep",
        "print(1)",
        "torch.save(x, y)",
        "torch.randn(3)",
    ],
)
def test_impure_code_is_noticed(source: str) -> None:
    assert list(impurities(source))
    assert not list(impurities("from .random import stream\ntorch.randn(3, generator=g)"))


# The page


def rooms() -> list[str]:
    """The packages, from the bottom up."""
    order = [room for layer in LAYERS for room in sorted(layer)]
    return [room for room in order if (ROOT / room).is_dir()]


def room_imports() -> dict[str, set[str]]:
    """Every room, and those that it imports."""
    found = {room: set[str]() for room in rooms()}
    for module, others in graph().items():
        if (own := room_of(module)) in found:
            found[own] |= {room_of(other) for other in others} & found.keys() - {own}
    return found


def arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that do not follow from others: without those that lead there by a detour."""
    beyond: dict[str, set[str]] = {}
    for room in rooms():  # what a room imports comes before it
        beyond[room] = graph[room].union(*(beyond[other] for other in graph[room]))
    return [
        (room, other)
        for room in rooms()
        for other in rooms()
        if other in graph[room] and not any(other in beyond[via] for via in graph[room])
    ]


def sentence(module: str) -> str:
    """The first sentence of a package's docstring."""
    text = inspect.getdoc(importlib.import_module(module)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", first)[0]


def drawn() -> str:
    """The rooms as a diagram and a table."""
    graph = room_imports()
    lines = ["```mermaid", "graph BT"]
    lines += [f"    {room} --> {other}" for room, other in arrows(graph)]
    lines += ["```", "", "| package | what it is | imports |", "|---|---|---|"]
    for room in rooms():
        others = ", ".join(f"`{other}`" for other in rooms() if other in graph[room]) or "none"
        lines.append(f"| **`{room}`** | {sentence(f'{NAME}.{room}')} | {others} |")
        for module, path in FILES.items():
            if module.startswith(f"{NAME}.{room}.") and path.stem == "__init__":
                inside = module.removeprefix(f"{NAME}.").replace(".", "/")
                lines.append(f"| `{inside}` | {sentence(module)} | |")
    return "\n".join(lines)


def with_rooms(page: str) -> str:
    """The page with the rooms as they are."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{drawn()}\n{END}{after}"


def test_the_page_shows_the_rooms_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert page == with_rooms(page), "docs/architecture.md is stale: python -m tests.test_layers"


def test_every_package_says_what_it_is_in_one_sentence() -> None:
    assert sorted(rooms()) == sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    for module, path in FILES.items():
        if path.stem == "__init__":
            assert sentence(module).endswith("."), module
            assert len(sentence(module)) < 120, module


def test_the_page_has_the_layers_in_order() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    order = " ← ".join(", ".join(sorted(layer & set(rooms()))) for layer in LAYERS[4:])
    assert f"`{order}`" in page
    below = ", ".join(f"`{name}`" for layer in LAYERS[:4] for name in sorted(layer))
    assert f"Below them are small modules: {below}." in page


def test_the_page_names_what_the_core_imports() -> None:
    rest = {n for layer in LAYERS[:4] for n in layer}
    used = {
        room_of(other)
        for module, others in graph().items()
        if room_of(module) == "core"
        for other in others
    }
    assert used & rest == {"errors", "given"}
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert "imports nothing of the package but `errors` and `given`" in page
    assert datadistill.__doc__


if __name__ == "__main__":
    PAGE.write_text(with_rooms(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
