"""Unpacking a downloaded archive: only known members, and all of them or none."""

import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

from ...errors import DataError, FileError
from ...progress import Progress, ProgressCallback
from ...reading import open_regular
from .npm import BAD_ARCHIVE


def unpack_archive(
    archive: Path, members: re.Pattern[str], last: tuple[str, ...], progress: ProgressCallback
) -> None:
    """Unpacks an archive into its folder: first into a temporary one, then into place.

    Args:
        archive: The archive.
        members: Which members to unpack; only regular files are.
        last: Members that are moved into place last.
        progress: Told how much has been read.
    """
    folder, temporary = archive.parent, archive.with_name(f".{archive.name}.unpacked")
    size, names = archive.stat().st_size, set[str]()
    try:
        with open_regular(archive) as raw, tarfile.open(fileobj=raw) as tar:
            for member in tar:
                if member.isfile() and members.fullmatch(member.name):
                    _write_member(tar, member, temporary / member.name)
                    names.add(member.name)
                progress(Progress(f"unpacking {archive.name}", raw.tell(), size))
        if hasattr(os, "sync"):  # once: file by file it takes minutes
            os.sync()
        for name in sorted(names, key=last.__contains__):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).replace(folder / name)
    except BAD_ARCHIVE as error:
        raise DataError(f"{archive} is damaged: {error}.", "Remove it and try again.") from error
    except OSError as error:
        raise FileError(
            f"{archive} cannot be unpacked: {error.strerror or error}.",
            "Check free space and permissions, or choose another --data-dir.",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content: Any = tar.extractfile(member)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file)
