"""Compiled code in the user's cache folder, which must be the user's own."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from ..files import cache_folder
from ..notices import warn_once
from ..private import UntrustedError, check_private, make_private

INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"


def trusted_folder(name: str) -> Path | None:
    """A folder of compiled code, made if it is missing; None, and a warning, if it is not safe."""
    folder = Path(name)
    try:
        folder = cache_folder() / name
        make_private(folder)
        check_private(folder)
    except UntrustedError as error:
        warn_once(f"{error.what} Nothing there is used; code is compiled anew. {error.remedy}")
        return None
    except OSError as error:
        tell_not_kept(folder, error)
        return None
    return folder


def tell_not_kept(folder: Path, error: OSError) -> None:
    """Warns that compiled code could not be kept."""
    warn_once(
        f"{folder} cannot be written ({error.strerror or error}): every process compiles its "
        "code anew. Check free space and permissions, or set XDG_CACHE_HOME."
    )


def use_own_inductor_folder() -> None:
    """Has torch.compile keep its code in a folder of this user, unless the user names one.

    Its default is a folder in ``/tmp`` whose name others can guess, and make before us.
    """
    if INDUCTOR not in os.environ:
        os.environ[INDUCTOR] = str(trusted_folder("inductor") or _temporary())


def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="datadistill-"))  # 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
