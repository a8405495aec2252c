"""Data sets by name: what each one is, where its files belong, and who reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError
from ..hints import command
from .decoding import Decoder, ReadDecoder
from .folder import data_folder
from .labelled import LabelledData
from .options import Options
from .sources import Download, Package

Loader = Callable[[Path, Options], tuple[LabelledData, LabelledData]]

DATA_SETS: dict[str, "DataSet"] = {}
"""Every data set that can be loaded by name, in the order in which they are listed."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DataSet:
    """A data set that can be loaded by name, once it is registered.

    Attributes:
        name: The name to load it by.
        what: What it holds, in one line.
        input_shape: Shape of an input as loaded by default: channels, height, width of images.
        classes: The number of classes.
        loader: Reads the training and the test split from its folder.
        folder: Where its files belong, below the data folder.
        files: The files needed in that folder: for each, the accepted names.
        origin: Where it comes from.
        canonical: Whether it is the data set that the literature means by this name. Results on
            other data sets cannot be compared with published ones.
        pickled: Names of its pickled version, which is refused.
        downloads: Its files on the web; empty if it cannot be fetched.
        package: An npm package with the same files, used if no mirror is available.
        licence: What it may be used for.
        decoder: Shows its inputs as text, if they are not images.
        order: Its place in listings, lowest first.
    """

    name: str
    what: str
    input_shape: tuple[int, ...]
    classes: int
    loader: Loader
    folder: str = ""
    files: tuple[tuple[str, ...], ...] = ()
    origin: str = "its author"
    canonical: bool = False
    pickled: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    package: Package | None = None
    licence: str = "free for research"
    decoder: ReadDecoder | None = None
    order: int = 1000

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.input_shape))
        return f"<DataSet {self.name}: {self.what}; {shape}, {self.classes} classes>"

    def where(self, data_dir: Path) -> Path:
        """The folder in which its files are looked for."""
        return data_dir / self.folder

    def missing(self, data_dir: Path) -> list[Path]:
        """The missing files, each by its usual name; empty if the data set can be loaded."""
        folder = self.where(data_dir)
        return [
            folder / names[0]
            for names in self.files
            if not any((folder / name).exists() for name in names)
        ]

    def load(self, data_dir: Path, options: Options) -> tuple[LabelledData, LabelledData]:
        """Reads the training and the test split; raises a DataError if files are missing."""
        if missing := self.missing(data_dir):
            raise self._not_found(data_dir, missing)
        return self.loader(self.where(data_dir), options)

    def _not_found(self, data_dir: Path, missing: list[Path]) -> DataError:
        folder = self.where(data_dir)
        for name in self.pickled:
            if (folder / name).exists():
                return DataError(
                    f"{folder / name} contains pickles, which can run arbitrary code when loaded.",
                    f"Download the other version: {self.origin}.",
                )
        names = ", ".join(str(path.relative_to(folder)) for path in missing)
        there = () if data_dir == data_folder() else ("--data-dir", data_dir)
        fetch = command("data", "fetch", self.name, *there)
        put = f"Run {fetch}; or put" if self.downloads else "Put"
        return DataError(
            f"{self.name} was not found in {folder}. Missing: {names}.",
            f"{put} {'it' if len(missing) == 1 else 'them'} there (from {self.origin}), or "
            f"set --data-dir (or $DATADISTILL_DATA) to the folder that contains {self.folder}/.",
        )


def register(data_set: DataSet) -> DataSet:
    """Makes a data set known by its name, and returns it.

    Example::

        def read(folder, options):
            train = dd.LabelledData(images, labels, name="mine")
            return train, dd.LabelledData(test_images, test_labels, name="mine", split="test")


        dd.data.register(
            dd.data.DataSet(
                name="mine", what="Mine", input_shape=(1, 28, 28), classes=10, loader=read
            )
        )
        train, test = dd.data.load("mine")

    Registering it again, e.g. when a notebook cell runs twice, replaces it. Using the name of
    another data set raises a DataError.
    """
    known = DATA_SETS.get(data_set.name)
    if known is not None and _identity(known) != _identity(data_set):
        raise DataError(
            f"There is already a data set called {data_set.name!r}: {known.what}.",
            "Choose another name.",
        )
    DATA_SETS[data_set.name] = data_set
    for record in sorted(DATA_SETS.values(), key=lambda record: record.order):
        DATA_SETS[record.name] = DATA_SETS.pop(record.name)
    return data_set


def _identity(data_set: DataSet) -> tuple[object, object]:
    """What stays the same when the code that defines a data set runs again."""
    loader = data_set.loader
    return getattr(loader, "__module__", None), getattr(loader, "__qualname__", type(loader))


def decoder_of(name: str, data_dir: str | Path | None = None) -> Decoder | None:
    """What shows the inputs of a data set as text; None where they are images, or not known.

    Args:
        name: The data set.
        data_dir: The data folder, from which it is read.
    """
    known = DATA_SETS.get(name)
    if known is None or known.decoder is None:
        return None
    return known.decoder(known.where(data_folder(data_dir)))


def catalogue() -> list[DataSet]:
    """Returns a record of every data set that can be loaded by name."""
    return list(DATA_SETS.values())
