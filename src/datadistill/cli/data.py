"""``datadistill data``: which data sets are here, what is in them, and fetching more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich import box
from rich.progress import DownloadColumn
from rich.table import Table

from .. import hints
from ..errors import ConfigError
from ..files import check_writable
from .console import Common, going_on, out, print_table

if TYPE_CHECKING:
    from ..data import DataSet, LabelledData

MOST_CLASSES = 50
DECODED = 5  # examples that are written as text

Name = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class List:
    """List the data sets, their folders, and which are available."""

    def run(self, command: Data) -> None:
        """Prints a table."""
        from ..data import DATA_SETS, data_folder

        folder = data_folder(command.data_dir)
        table = Table(
            "data set", "available", "folder", "description", box=box.SIMPLE, pad_edge=False
        )
        for name, record in DATA_SETS.items():
            there, place = _state(record, folder), f"{record.folder}/" if record.files else "–"
            table.add_row(name, there, place, record.what, style="dim" if there == "no" else None)
        out.print(f"data folder: {folder}", markup=False)
        print_table(table)
        command.say(f"Inspect one:  {command.hint('check', 'NAME')}")
        command.say(f"Download one: {command.hint('fetch', 'NAME')}")


@dataclass(frozen=True)
class Check:
    """Read a data set, summarize it and draw some of its examples."""

    name: Name
    """Data set, or your own: a folder of images, an .npz or a .csv file."""
    size: int | None = None
    """Height and width to resize images to. By default the data set's own."""
    channels: Literal[1, 3] | None = None
    """1 for grey images, 3 for colour. By default the data set's own."""
    output: Path | None = None
    """Picture to write. By default NAME-samples.png."""

    def run(self, command: Data) -> None:
        """Prints counts, shape and balance of the classes, and writes the picture."""
        from ..data import DATA_SETS, decoder_of, load
        from ..pixels import are_images
        from ..report.samples import draw_samples

        if self.output is not None and self.output.suffix.lower() != ".png":
            raise ConfigError(
                f"{self.output} is not a PNG file.", "Choose an --output that ends in .png."
            )
        train, test = load(self.name, command.data_dir, size=self.size, channels=self.channels)
        output = self.output or Path(f"{train.name}-samples.png")
        out.print(_summary(train, test), markup=False)
        if self.name in DATA_SETS and not DATA_SETS[self.name].canonical:
            command.say("Results on it cannot be compared with published ones.")
        print_table(
            _targets(train, test) if train.labels.is_floating_point() else _balance(train, test)
        )
        if decoder := decoder_of(self.name, command.data_dir):
            for row in decoder.rows(train.inputs[:DECODED]):
                out.print("; ".join(row), markup=False)
            return
        if not are_images(train.input_shape):
            command.say("The inputs are not grey or colour images; no picture was drawn.")
            return
        check_writable(output)
        draw_samples(train, output)
        out.print(f"picture: {output}", markup=False)


@dataclass(frozen=True)
class Fetch:
    """Download a data set, or continue an interrupted download."""

    name: Name
    """Data set; datadistill data lists them."""

    def run(self, command: Data) -> None:
        """Fetches what is missing, and says where it is."""
        from ..data import DATA_SETS
        from ..data.fetch import fetch

        with going_on(), command.bars(count=DownloadColumn()) as progress:
            fetched = fetch(self.name, command.data_dir, progress=progress, tell=command.say)
        if not fetched.files:
            command.say(f"{self.name} is complete; nothing was downloaded.")
        for file in fetched.unchecked:
            command.say(f"{file} was not verified: its checksum is not known.")
        out.print(f"{self.name}: {fetched.folder}", markup=False)
        command.say(f"Licence: {DATA_SETS[self.name].licence}.")
        command.say(f"Inspect it: {command.hint('check', self.name)}")


@tyro.conf.configure(tyro.conf.CascadeSubcommandArgs)
@dataclass(frozen=True)
class Data(Common):
    """List, check and fetch data sets.

    Examples:
        datadistill data
        datadistill data fetch mnist
        datadistill data check mnist
    """

    action: (
        Annotated[List, tyro.conf.subcommand("list")]
        | Annotated[Check, tyro.conf.subcommand("check")]
        | Annotated[Fetch, tyro.conf.subcommand("fetch")]
    ) = field(default_factory=List)
    data_dir: Path | None = None
    """Data folder. By default $DATADISTILL_DATA, or the user's cache folder."""

    def hint(self, *words: str) -> str:
        """A command on the same data folder, to be shown."""
        folder = ("--data-dir", self.data_dir) if self.data_dir else ()
        return hints.command("data", *words, *folder)

    def run(self) -> None:
        """Runs what was chosen."""
        self.action.run(self)


def _state(record: DataSet, folder: Path) -> str:
    if not record.files:
        return "built in"
    missing = len(record.missing(folder))
    if missing in (0, len(record.files)):
        return "no" if missing else "yes"
    return f"no, {missing} of {len(record.files)} missing"


def _summary(train: LabelledData, test: LabelledData) -> str:
    shape = "×".join(map(str, train.input_shape))
    kind = "regression" if train.labels.is_floating_point() else f"{train.classes} classes"
    norm = train.normalization
    lines = [
        f"{train.name}: {len(train):,} training and {len(test):,} test examples, {shape}, {kind}",
        f"normalised with mean {_numbers(norm.mean)} and std {_numbers(norm.std)}"
        if norm
        else "used unchanged",
    ]
    return "\n".join(lines)


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _balance(train: LabelledData, test: LabelledData) -> Table:
    """Examples of each class; of very many classes only the rarest and the most common."""
    names = train.class_names or tuple(map(str, range(train.classes)))
    counts = [split.labels.bincount(minlength=len(names)) for split in (train, test)]
    shown, title = list(range(len(names))), "class"
    if len(shown) > MOST_CLASSES:
        by_count: list[int] = counts[0].argsort(stable=True).tolist()
        shown = by_count[:5] + by_count[-5:]
        title = f"5 rarest and 5 most common of {len(names)} classes"
    table = Table(title, box=box.SIMPLE, pad_edge=False)
    for split in train, test:
        table.add_column(split.split, justify="right")
        table.add_column("share", justify="right")
    for label in shown:
        cells = [f"{int(n[label]):,} {100 * n[label] / n.sum():.1f}%".split() for n in counts]
        table.add_row(names[label], *cells[0], *cells[1])
    return table


def _targets(train: LabelledData, test: LabelledData) -> Table:
    table = Table("targets", "least", "mean", "most", box=box.SIMPLE, pad_edge=False)
    for split in train, test:
        values = split.labels.double()
        figures = values.min(), values.mean(), values.max()
        table.add_row(split.split, *(f"{float(figure):.4g}" for figure in figures))
    return table
