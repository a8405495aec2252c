"""From the words of a command line to a command."""

import contextlib
import io
import itertools
import os
import re
import shutil
from collections.abc import Generator
from dataclasses import replace
from typing import Any, cast

import tyro
from rich.box import ROUNDED
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from ..errors import ConfigError, did_you_mean
from ..runs.config import NAMES, RunConfig
from .bench import Bench
from .data import Data
from .distill import Distill
from .evaluate import Evaluate
from .export import Export
from .flags import REGISTRY, description, yes_no
from .import_images import Import
from .pretrain import Pretrain
from .published import Artefacts
from .quickstart import Quickstart
from .recipes import Recipes
from .report import Report
from .reproduce import Reproduce
from .resume import Resume
from .train import Train
from .tune import Tune
from .verify import Verify

Command = (
    Quickstart
    | Distill
    | Tune
    | Resume
    | Pretrain
    | Train
    | Evaluate
    | Verify
    | Report
    | Export
    | Import
    | Reproduce
    | Recipes
    | Artefacts
    | Data
    | Bench
)
COMMANDS: dict[str, type[Command]] = {
    "quickstart": Quickstart,
    "distill": Distill,
    "tune": Tune,
    "resume": Resume,
    "pretrain": Pretrain,
    "train": Train,
    "evaluate": Evaluate,
    "verify": Verify,
    "report": Report,
    "export": Export,
    "import": Import,
    "reproduce": Reproduce,
    "recipes": Recipes,
    "artefacts": Artefacts,
    "data": Data,
    "bench": Bench,
}
WIDEST = 100
"""Columns that help fills at most; tyro would put the groups side by side on wide terminals."""
RULE = re.compile("[─-]{3,}")
PLAIN = {
    r"'None', |, 'None'": "",
    r"^Error parsing (\S+): .*?('.*').*$": r"Invalid \1: \2",
    r"^invalid choice (.*) for argument '(.*)'\. Expected one of \((.*?),?\)$": (
        r"Invalid \2: \1. Choose one of \3"
    ),
    r"^Missing value for argument '(.*)'\. Expected 1 values$": r"\1 needs a value",
    r"^Missing value for argument '(.*)'\. Expected (\d+) values$": r"\1 needs \2 values",
    r"^Missing from .*?: ([A-Z]+|--[\w-]+) .*$": r"\1 is missing",
    r"^Missing from .*?: \{(.*?)\} .*$": r"Name one of: \1",
    r"^Unrecognized options: (--[^ ,]+).*$": r"There is no option \1",
    r"^Unrecognized options: (.*)$": r"Unexpected argument: \1",
}
"""Our words for what tyro says; what it may say in other versions stays as it is."""


def parse(arguments: list[str]) -> Command:
    """Reads a command and its flags; a recipe gives the defaults of ``distill``."""
    if not arguments:
        raise ConfigError("No command is given.", "datadistill --help lists the commands.")
    name, *words = arguments
    if name not in COMMANDS:
        raise ConfigError(
            f"There is no command {name!r}.{did_you_mean(name, COMMANDS)}",
            "" if did_you_mean(name, COMMANDS) else f"The commands are: {', '.join(COMMANDS)}.",
        )
    _check_yes_no(name, words)
    command = _parse_over(name, words, None)
    if not isinstance(command, Distill):
        return command
    command = replace(command, named=_named(words))
    recipe = command.with_recipe()
    parsed = _parse_over(name, words, recipe) if recipe else command
    return replace(cast(Distill, parsed), named=command.named)


def _named(words: list[str]) -> frozenset[str]:
    """The settings that a command line names."""
    flags = (word.partition("=")[0].replace("-", "_") for word in words if word.startswith("--"))
    names = (flag.removeprefix("__") for flag in flags)
    return frozenset({name.removeprefix("no_") for name in names} & {*NAMES})


def print_commands() -> None:
    """Prints the help of ``datadistill`` itself: what each command does, in one line."""
    table = Table.grid(padding=(0, 2))
    for name, command in COMMANDS.items():
        table.add_row(name, (command.__doc__ or "").partition("\n")[0])
    with _columns() as width:
        console = Console(highlight=False, width=width)
    console.print(
        "usage: datadistill COMMAND [OPTIONS]\n\n"
        "Learn a few synthetic images that train a network like the whole data set.\n",
        markup=False,
    )
    console.print(Panel(table, title="commands", title_align="left", box=ROUNDED))
    console.print(
        "datadistill COMMAND --help shows the options of a command; datadistill --version the "
        "version.\nNew here? Start with datadistill quickstart.",
        markup=False,
    )


def _parse_over(name: str, words: list[str], default: Command | None) -> Command:
    """Reads the flags; what they do not say is as in ``default``."""
    command, prog = COMMANDS[name], f"datadistill {name}"
    given: dict[str, Any] = {} if default is None else {"default": default}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), _columns() as width:
            parsed = tyro.cli(
                command,
                **given,
                prog=prog,
                description=description(command, width),
                args=words,
                config=(tyro.conf.OmitArgPrefixes,),
                registry=REGISTRY,
            )
    except SystemExit as end:
        if end.code:
            raise ConfigError(_told(said.getvalue()), f"See {prog} --help.") from None
        raise
    return cast(Command, parsed)


@contextlib.contextmanager
def _columns() -> Generator[int]:
    """The columns of the terminal, as far as help fills them."""
    width, before = min(shutil.get_terminal_size().columns, WIDEST), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    try:
        yield width
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def _told(text: str) -> str:
    """What tyro says in a box of many lines, in one; a box may have colours, or ASCII rules."""
    box = [line.strip("│╭╮╰╯ ") for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()]
    lines = [line for line in box[1:] if line]  # the first is a title
    start = next((i for i, line in enumerate(lines) if not RULE.fullmatch(line)), 0)
    first = itertools.takewhile(lambda line: not RULE.fullmatch(line), lines[start:])
    said = " ".join(" ".join(first).split()).rstrip(". ") or text.strip()
    for pattern, plain in PLAIN.items():
        said = re.sub(pattern, plain, said)
    for line, after in itertools.pairwise(lines):
        if line.startswith("Perhaps you meant"):
            return f"{said}. Did you mean {after.split()[0].rstrip(',')}?"
        if line.startswith("Argument helptext"):
            return f"{said}. Expected {after}."
    return f"{said}."


def _check_yes_no(name: str, words: list[str]) -> None:
    """Refuses ``--augment True``, the form that yes/no settings had before."""
    known = yes_no(COMMANDS[name]) | (
        yes_no(RunConfig) if issubclass(COMMANDS[name], Distill) else {}
    )
    for flag, value in itertools.pairwise("=".join(words).split("=")):
        yes = flag.replace("_", "-").replace("--no-", "--", 1)
        if yes in known and value in ("True", "False", "None"):
            no = f" or {yes.replace('--', '--no-', 1)}" if known[yes] else ""
            raise ConfigError(f"{flag} takes no value.", f"Write {yes}{no}.")
