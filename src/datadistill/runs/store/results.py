"""``results.json``: the figures of a run or an artefact, in independent sections."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...files import write_atomically
from ...reading import open_regular, read_regular

LIMIT = 2**26  # bytes


def read_results(path: Path) -> dict[str, Any]:
    """Reads all sections of a ``results.json``.

    Returns:
        The sections by name; none if there is no file.

    Raises:
        RunError: The file is damaged. It is never taken as empty, so nobody overwrites it.
    """
    try:
        content = json.loads(read_regular(path, LIMIT))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is not JSON") from error
    if not isinstance(content, dict):
        raise _damaged(path, "it holds no JSON object")
    return content


def write_results(
    path: Path,
    sections: Mapping[str, object],
    *,
    indent: int | None = None,
    make_folder: bool = True,
) -> None:
    """Replaces some sections of a ``results.json``; the others stay.

    Args:
        path: The file; it is made if there is none.
        sections: The new sections by name, as JSON.
        indent: Spaces by which the levels of the JSON are indented; all on one line without it.
        make_folder: Whether to make the folder too.

    Raises:
        RunError: The file that is there is damaged. It stays as it is.
    """
    content = json.dumps({**read_results(path), **sections}, indent=indent) + "\n"
    write_atomically(path, content.encode(), make_folder=make_folder)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RunError(
            f"{path} cannot be read: {error.strerror or error}.", "Check the path."
        ) from error


def check_artefact(path: Path, results: Path) -> None:
    """Refuses an artefact in a run folder that is not the one the run wrote.

    Args:
        path: The artefact. Whether it is there and can be read is found out elsewhere.
        results: The run's ``results.json``, which holds its hash; not that of earlier versions.
    """
    section = read_results(results).get("run")
    written = section.get(path.stem) if isinstance(section, dict) else None
    known = written.get("sha256") if isinstance(written, dict) else None
    if known is not None and path.is_file() and file_hash(path) != known:
        raise RunError(
            f"{path} is not the artefact whose hash {results.name} holds: it was changed, or is "
            "of another run.",
            "Restore it; or remove it and resume the run, which makes it again.",
        )


def _damaged(path: Path, how: str) -> RunError:
    return RunError(
        f"{path} cannot be read: {how}.",
        "Restore it, or remove it: its figures are then computed again.",
    )
