"""Where the data sets are: the data folder."""

import os
import sys
from pathlib import Path

from ..errors import DataError


def data_folder(given: str | Path | None = None) -> Path:
    """The data folder: as given, else ``$DATADISTILL_DATA``, else in the user's cache."""
    if given or (given := os.environ.get("DATADISTILL_DATA")):
        return Path(given).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        cache = home / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return cache / "datadistill"


def find_file(folder: Path, *names: str) -> Path:
    """Returns the first of several names for a file that is there, e.g. packed or not."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(
        f"{folder / names[0]} is missing.",
        f"Put {' or '.join(names)} into {folder}, or point --data-dir (or $DATADISTILL_DATA) at "
        "the folder above the one that holds it.",
    )
