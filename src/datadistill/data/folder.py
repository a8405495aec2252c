"""The data folder, where data sets are stored."""

import os
from pathlib import Path

from ..errors import DataError
from ..files import cache_folder


def data_folder(given: str | Path | None = None) -> Path:
    """The data folder: as given, else ``$DATADISTILL_DATA``, else the user's cache folder."""
    if given or (given := os.environ.get("DATADISTILL_DATA")):
        return Path(os.path.expanduser(given))  # noqa: PTH111 - of no known home it stays as it is
    return cache_folder()


def find_file(folder: Path, *names: str) -> Path:
    """Returns the first of several names for a file that exists, e.g. compressed or not."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(
        f"{folder / names[0]} is missing.",
        f"Put {' or '.join(names)} into {folder}, or set --data-dir (or $DATADISTILL_DATA) to "
        "the parent of the folder that contains it.",
    )
