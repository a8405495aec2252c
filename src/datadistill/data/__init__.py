"""Real data: data sets by name, and anybody's own."""

from collections.abc import Callable
from pathlib import Path

from ..errors import DataError, did_you_mean
from .digits import load_digits
from .folder import data_folder
from .labelled import LabelledData, Normalization, as_data
from .mnist import load_mnist

DATA_SETS: dict[str, Callable[[Path], tuple[LabelledData, LabelledData]]] = {
    "digits": load_digits,
    "mnist": load_mnist,
}


def load(name: str, data_dir: str | Path | None = None) -> tuple[LabelledData, LabelledData]:
    """Returns the training and the test split of a data set.

    Args:
        name: ``digits`` (always there) or ``mnist`` (from the data folder).
        data_dir: The data folder; ``$DATADISTILL_DATA`` or the user's cache by default.
    """
    if name not in DATA_SETS:
        raise DataError(
            f"There is no data set called {name!r}.{did_you_mean(name, DATA_SETS)}",
            f"Choose one of: {', '.join(DATA_SETS)}.",
        )
    return DATA_SETS[name](data_folder(data_dir))


__all__ = ["DATA_SETS", "LabelledData", "Normalization", "as_data", "data_folder", "load"]
