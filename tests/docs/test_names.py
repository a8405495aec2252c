"""Pages about the code name only what there is: every path, dotted name, setting and flag."""

import builtins
import importlib
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import datadistill
from datadistill.cli.distill import Distill
from datadistill.core.settings import Outer
from datadistill.core.vanishing import REJECTIONS_ALLOWED
from datadistill.engine.tape import KEPT_BYTES
from datadistill.runs.calls.presets import PAPER
from datadistill.runs.config import NAMES
from datadistill.runs.recipes import read_recipe, recipe_names

ROOT = Path(__file__).parents[2]
PACKAGE = Path(datadistill.__file__).parent
PAGES = ["how-it-works.md", "architecture.md"]

SPAN = re.compile(r"`([^`\n]+)`")
IN_FILE = re.compile(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)")
FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
FLAGS = {f"--{name.replace('_', '-')}" for name in (*NAMES, *(f.name for f in fields(Distill)))}


@cache
def modules() -> dict[str, ModuleType]:
    """Every module of the package."""
    found = dict[str, ModuleType]()
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(["datadistill", *(part for part in parts if part != "__init__")])
        if path.stem != "__main__":
            found[name] = importlib.import_module(name)
    return found


def module_of(path: str) -> ModuleType:
    """The module of a file, ``core/distiller.py``."""
    return modules()["datadistill." + path.removesuffix(".py").replace("/", ".")]


def reaches(start: object, names: list[str]) -> bool:
    """Whether each name is an attribute, or a field, of what the names before it lead to."""
    for number, name in enumerate(names):
        if hasattr(start, name):
            start = getattr(start, name)
        else:  # a field without a default is no attribute of its class, and has no attributes
            kind: Any = start
            own = {f.name for f in fields(kind)} if is_dataclass(start) else set[str]()
            return name in own and number == len(names) - 1
    return True


def defines(module: ModuleType, names: list[str]) -> bool:
    """Whether names lead to something that a module defines itself, and has not imported."""
    one = vars(module).get(names[0])
    return getattr(one, "__module__", None) == module.__name__ and reaches(one, names[1:])


def exists(name: str) -> bool:
    """Whether a dotted name leads, word for word, to something in the package or a library."""
    first, *rest = name.split(".")
    if first == "datadistill":
        return reaches(datadistill, rest)
    if reaches(datadistill, [first, *rest]):  # core.random.stream
        return True
    if any(defines(module, [first, *rest]) for module in modules().values()):
        return True
    try:
        return bool(rest) and reaches(importlib.import_module(first), rest)
    except ModuleNotFoundError:
        return False


def is_method(name: str) -> bool:
    """Whether a bare name is a method of a class of ours, as in "the engine's ``mean_over``"."""
    classes = (one for module in modules().values() for one in vars(module).values())
    ours = (c for c in classes if isinstance(c, type) and c.__module__.startswith("datadistill"))
    return any(name in vars(one) for one in ours)


def is_file(path: str) -> bool:
    return (PACKAGE / path).exists() or (ROOT / path).exists()


def wrong(page: str) -> Iterator[str]:
    """What a page names and there is not."""
    text = FENCE.sub("", page)
    for path, names in IN_FILE.findall(text):
        for name in SPAN.findall(names):
            if not is_file(path) or not defines(module_of(path), name.split(".")):
                yield f"{path}: {name}"
    for span in SPAN.findall(IN_FILE.sub(r"`\1`", text)):
        word, *others = span.split(" ")
        if "/" in span or span.endswith(".py"):
            found = is_file(span)
        elif word.startswith("--"):
            found = word in FLAGS
        elif re.fullmatch(r"[A-Z_]{4,}=\w+", span):
            name = span.partition("=")[0]
            found = any(name in vars(module).values() for module in modules().values())
        elif others:  # a command, or a row of layers
            continue
        elif "-" in span:
            found = span in recipe_names()
        else:
            known = span in NAMES or hasattr(builtins, span) or is_method(span)
            found = bool(NAME.fullmatch(span)) and (known or exists(span))
        if not found:
            yield span


@pytest.mark.parametrize("page", PAGES)
def test_a_page_about_the_code_names_what_there_is(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert len(SPAN.findall(text)) > 10
    assert list(wrong(text)) == []


@pytest.mark.parametrize(
    "span",
    [
        "`core/distillery.py`",
        "`core/distiller.py`: `Distiller.step`, `Distiller.walk`",
        "`core/distiller.py`: `GradientDescent.update`",  # of another class's module
        "`Distiller.pull_back`",  # there is a pull_back, and a Distiller
        "`Update.pull_back`",  # the page named it once
        "`adjoint._sweep`",
        "`datadistill.core.train`",
        "`core.random.shuffle`",
        "`nothing_of_the_kind`",
        "`--no-such-flag 3`",
        "`DATADISTILL_MOTOR=plain`",
        "`mnist-random-101`",
    ],
)
def test_what_there_is_not_is_noticed_even_if_its_last_word_is_known(span: str) -> None:
    assert list(wrong(f"See {span}."))


@pytest.mark.parametrize(
    "span",
    [
        "`core/distiller.py`: `Distiller.step`, `Distiller.config`",
        "`Steps.learning_rates`",
        "`datadistill.core.random.stream`",
        "`torch.func.vmap`",
        "`clip_norm`",
        "`--engine plain`",
        "`DATADISTILL_ENGINE=plain`",
    ],
)
def test_what_there_is_is_found(span: str) -> None:
    assert not list(wrong(f"See {span}."))


def test_the_figures_of_the_walk_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    config = read_recipe("mnist-random-100").config
    assert (
        f"LeNet, {config.steps} steps × {config.epochs} epochs, so T = "
        f"{config.steps * config.epochs} updates, J = {config.networks} networks, a minibatch of "
        f"{config.batch_size}."
    ) in text
    assert f"{KEPT_BYTES // 2**20} MiB" in text
    assert REJECTIONS_ALLOWED == 5
    assert "Five rejections in a row" in text


def test_the_preset_of_the_paper_is_what_the_page_says() -> None:
    assert PAPER["outer_lr"] == Outer().outer_lr == 0.01
    assert (PAPER["betas"], PAPER["batch_size"], PAPER["clip_norm"]) == ((0.5, 0.999), 1024, None)
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    assert "`--preset paper` uses 0.01" in text
