"""Folders in which only this user can write, and reading files from them.

Code from a cache runs as the user who loads it. That its file has the right name and hash says
nothing where others can write: they name their own file as well. So owners and modes are checked,
and the bytes that were checked are the bytes that are used.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
LARGEST_FILE = 2**26
"""Bytes; no compiled code of ours comes near."""
POSIX = os.name == "posix"  # elsewhere there are neither owners nor modes to check


class UntrustedError(Exception):
    """Others can write to a file or folder, or could have.

    Args:
        what: What is wrong, and where.
        remedy: What to do about it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} {remedy}")
        self.what, self.remedy = what, remedy


def make_private(folder: Path) -> None:
    """Makes a folder, and those above it that are missing, for this user alone.

    Raises:
        OSError: If it cannot be made.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay links
    for one in reversed((folder, *folder.parents)):
        if not one.is_dir():
            one.mkdir(mode=0o700, exist_ok=True)


def check_private(folder: Path) -> None:
    """Refuses a folder to which others can write, or that others could put in its place.

    It belongs to this user, is no link, and nobody else can write to it. Folders above it belong
    to this user or to root; others may write to them only where they cannot remove what is not
    theirs (as in ``/tmp``).

    Raises:
        UntrustedError: If there is such a way.
        OSError: If it cannot be found out.
    """
    if not POSIX:
        return
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links are to be seen
    _check_own(folder, os.lstat(folder), stat.S_ISDIR)
    for above in _above(folder):
        _check_above(above, above.stat())


def read_private(folder: Path, name: str) -> bytes:
    """The content of a file that this user alone can write; links are not followed.

    Args:
        folder: A folder that :func:`check_private` has passed.
        name: The file's name there.

    Raises:
        UntrustedError: If it is a link, no plain file, or others can write to it.
        OSError: If it cannot be read.
    """
    path = folder / name
    if not POSIX:
        return path.read_bytes()
    _check_own(path, os.lstat(path), stat.S_ISREG)
    # A pipe put there in the meantime would block; a link would lead elsewhere.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
        _check_own(path, os.fstat(descriptor), stat.S_ISREG)
        return file.read(LARGEST_FILE)


def _check_own(path: Path, found: os.stat_result, kind: Callable[[int], bool]) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UntrustedError(f"{path} is a link.", f"Remove it: rm {path}")
    if not kind(found.st_mode):
        raise UntrustedError(f"{path} is not what it should be.", f"Remove it: rm -r {path}")
    if found.st_uid != os.geteuid():
        raise UntrustedError(
            f"{path} belongs to another user (uid {found.st_uid}).", _another_cache()
        )
    if found.st_mode & OTHERS_WRITE:
        raise UntrustedError(
            f"{path} can be written by others.", f"If its content is yours: chmod go-w {path}"
        )


def _check_above(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise UntrustedError(
            f"{path} belongs to another user (uid {found.st_uid}).", _another_cache()
        )
    writable = found.st_mode & (stat.S_IWOTH if _is_own_group(found.st_gid) else OTHERS_WRITE)
    if writable and not found.st_mode & stat.S_ISVTX:
        raise UntrustedError(
            f"{path} can be written by others.", f"chmod go-w {path}, or: {_another_cache()}"
        )


def _above(folder: Path) -> Iterator[Path]:
    """All folders above one: those of its path, and those that links in it lead to."""
    yield from folder.parents
    if folder.resolve() != folder:
        yield from folder.resolve().parents


def _is_own_group(number: int) -> bool:
    """Whether a group is the private group of this user: many systems give everyone one."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and not group.gr_mem


def _another_cache() -> str:
    return "Set XDG_CACHE_HOME to a folder of your own."
