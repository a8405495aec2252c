"""Writing a whole folder so that a reader never sees half of it."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from .errors import FileError
from .files import (
    make,
    make_one,
    remove,
    remove_leftovers,
    rename,
    reporting,
    sync_folder,
    temporary_for,
)
from .flock import folder_in_use


@contextlib.contextmanager
def filling(folder: Path) -> Generator[Path]:
    """Lends a temporary folder; what is written there becomes ``folder``, all of it or nothing.

    What earlier calls for ``folder`` left behind when they were killed is removed. A folder that is
    there already must be empty. It stays the same folder, so its files appear one by one.
    """
    place = folder.absolute()
    temporary = temporary_for(place)
    with reporting(folder):
        make(place.parent)
        remove_leftovers(place)
        make_one(temporary)
        with folder_in_use(temporary):
            try:
                yield temporary
                if place.is_dir():
                    for one in sorted(temporary.iterdir()):
                        rename(one, place / one.name)
                    remove(temporary)
                    sync_folder(place)
                else:
                    rename(temporary, place)
            except BaseException:
                with contextlib.suppress(OSError, FileError):
                    remove(temporary)
                raise
        sync_folder(place.parent)
