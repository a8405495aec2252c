"""Which module of the package imports which: by statement, and by a string that names a module."""

import ast
import re
from collections.abc import Iterator, Mapping, Set
from itertools import pairwise
from pathlib import Path

import datadistill

NAME = "datadistill"
ROOT = Path(datadistill.__file__).parent

IMPORTERS = {"import_module", "__import__", "run_module", "find_spec"}
DISCOVER = {"discover", "iter_modules"}
DOTTED = re.compile(rf"{NAME}(?:\.\w+)*")
PROGRAM = re.compile(
    rf"(?:^|;)\s*from\s+({DOTTED.pattern})\s+import\b"
    rf"|(?:^|;)\s*import\s+({DOTTED.pattern})|(?<!\S)-m\s+({DOTTED.pattern})",
    re.MULTILINE,
)

Graph = Mapping[str, Set[str]]


def module_name(path: Path, root: Path = ROOT) -> str:
    """``datadistill.runs.run`` for ``runs/run.py``; a package is its folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join([NAME, *(part for part in parts if part != "__init__")])


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package and its file."""
    return {module_name(path, root): path for path in sorted(root.rglob("*.py"))}


def import_graph(root: Path = ROOT) -> dict[str, set[str]]:
    """Every module, and those of the package that it imports.

    Whoever imports ``a.b.c`` also runs ``a/__init__`` and ``a.b/__init__``. They count, unless the
    importer is inside them, for then they are running already.
    """
    files = modules(root)
    return {name: set(_imported(name, path, files)) for name, path in files.items()}


def _imported(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for target in imports(path.read_text(encoding="utf-8"), name, path.stem == "__init__", files):
        parts = target.split(".")
        for end in range(1, len(parts) + 1):
            found = ".".join(parts[:end])
            inside = end < len(parts) and f"{name}.".startswith(f"{found}.")
            if found in files and not inside:
                yield found


def imports(source: str, name: str, is_package: bool, files: Mapping[str, Path]) -> set[str]:
    """The full names of all that a module's source imports, at any depth of nesting.

    Args:
        source: The source.
        name: The module's name.
        is_package: Whether it is the ``__init__`` of a package.
        files: The modules that there are.
    """
    package = name if is_package else name.rpartition(".")[0]
    tree, found = ast.parse(source), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = _relative("." * level + (module or ""), package)
                for alias in names:
                    inside = f"{base}.{alias.name}"
                    found.add(inside if inside in files else base)
            case ast.Call(func=function, args=[*arguments]):
                called = ast.unparse(function).rpartition(".")[2]
                own = any(ast.unparse(argument) == "__path__" for argument in arguments)
                if called in DISCOVER and own:  # every module of this package
                    found.update(n for n in files if n.rpartition(".")[0] == package)
                if called in IMPORTERS and arguments:
                    found.update(_named_by(arguments[0], package))
            case _:
                pass
    return found | set(_in_strings(tree))


def _relative(module: str, package: str) -> str:
    """The full name of ``..x`` as seen from a package."""
    bare = module.lstrip(".")
    level = len(module) - len(bare)
    if not level:
        return bare
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([bare] if bare else [])])


def _named_by(argument: ast.expr, package: str) -> Iterator[str]:
    """The module that an argument of ``import_module`` names, as far as it is written there."""
    match argument:
        case ast.Constant(value=str(text)):
            yield _relative(text, package)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            yield _relative(text, package).rstrip(".")
        case _:
            pass


def _in_strings(tree: ast.AST) -> Iterator[str]:
    """The modules that program texts and command lines name; what is documentation does not."""
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in documentation:
                continue
            for found in PROGRAM.findall(node.value):
                yield "".join(found)
            if "." in node.value and DOTTED.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.List | ast.Tuple):
            words = [e.value if isinstance(e, ast.Constant) else None for e in node.elts]
            for flag, word in pairwise(words):
                if flag == "-m" and isinstance(word, str) and DOTTED.fullmatch(word):
                    yield word


def cycles(graph: Graph) -> list[list[str]]:
    """A way round for every edge that leads back to where it came from; empty without cycles."""
    done, found = set[str](), list[list[str]]()

    def visit(name: str, way: list[str]) -> None:
        if name in way:
            found.append([*way[way.index(name) :], name])
        elif name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, [*way, name])
            done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return found
