"""The C code as a library of this machine.

It comes with an installed package (:mod:`.shipped`), or else is compiled once, for the host CPU,
and kept in the user's cache folder (:mod:`.kept`).
Where that is not possible, e.g. without a compiler, torch computes everything: that takes
longer and rounds differently, so the user is told.
"""

import ctypes
import errno
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from ...notices import warn_once
from ..choice import chosen
from .kept import find, hash_of, keep, load
from .shipped import shipped
from .sources import FLAGS, HEADERS, SOURCES

REALS = {torch.float32: "float", torch.float64: "double"}
FOR_THIS_PROCESSOR = [["-march=native"], ["-mcpu=native"], []]  # compilers differ
SECONDS = 120
TURNED_OFF = "turned off"

_ADDRESS, _WHOLE = ctypes.c_void_p, ctypes.c_int64


@dataclass(frozen=True)
class Kernels:
    """The compiled functions for a floating-point type, or why there are none.

    Attributes:
        functions: The library.
        identity: The hash of its bytes.
        reason: Why there is none, in a few words that name no file.
        remedy: What to do about that.
        failed: Whether something is wrong, and they are not just turned off.
    """

    functions: ctypes.CDLL | None = None
    identity: str = ""
    reason: str = ""
    remedy: str = ""
    failed: bool = False

    def __str__(self) -> str:
        return self.identity or f"none: {self.reason}"


def kernels(dtype: torch.dtype) -> Kernels:
    """The functions for a floating-point type; if they cannot be had, the user is told once."""
    found = loaded(dtype)
    if found.failed and chosen() != "kernels":  # where it is an error
        warn_once(
            f"No C kernels ({found.reason}): torch computes convolutions, which takes longer and "
            f"changes the last bits of results. {found.remedy} "
            "To do without: DATADISTILL_ENGINE=torch."
        )
    return found


@lru_cache
def loaded(dtype: torch.dtype) -> Kernels:
    """The same, tried once in a process and not told."""
    if dtype not in REALS:
        return Kernels(reason=f"not for {str(dtype).removeprefix('torch.')}")
    if os.environ.get("DATADISTILL_KERNELS") == "0":
        return Kernels(reason=TURNED_OFF, remedy="Unset DATADISTILL_KERNELS.")
    return _made(REALS[dtype])


def functions_for(like: torch.Tensor) -> ctypes.CDLL | None:
    """The functions for tensors like the one given, if there are any."""
    return kernels(like.dtype).functions if like.device.type == "cpu" else None


def library(dtype: torch.dtype) -> ctypes.CDLL | None:
    """The functions for a floating-point type, if they are available on this machine."""
    return kernels(dtype).functions


def _made(real: str) -> Kernels:
    content = shipped(real)
    if content is not None:
        with suppress(OSError):  # e.g. for another C library: it is compiled here
            return Kernels(_typed(load(content)), hash_of(content))
    name = os.environ.get("CC", "cc")
    compiler = shutil.which(name)
    if compiler is None:
        return _lost("no C compiler", "Install one, or name it in CC.")
    failure = Kernels()
    for processor in FOR_THIS_PROCESSOR:
        try:
            content = _content(compiler, [*FLAGS, *processor, f"-DREAL={real}"])
            return Kernels(_typed(load(content)), hash_of(content))
        except (OSError, subprocess.SubprocessError) as error:
            failure = _failure(error, name)
            if isinstance(error, OSError):  # it would fail again
                break
    return failure


def _failure(error: Exception, compiler: str) -> Kernels:
    """What failed, in words that are the same on every machine, and what to do."""
    if not isinstance(error, OSError):
        check = f"Check that {compiler} -O3 -march=native -shared works."
        return _lost("the compiler failed", check)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return _lost("too many open files", "Raise the limit: ulimit -n 1024.")
    if error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.ENOENT):
        place = "Set TMPDIR to a folder with free space."
        return _lost("no temporary folder to compile in", place)
    what = error.strerror or str(error).rpartition(":")[2].strip() or type(error).__name__
    return _lost(f"they cannot be loaded: {what}"[:80], "Check the compiler.")


def _lost(reason: str, remedy: str) -> Kernels:
    return Kernels(reason=reason, remedy=remedy, failed=True)


def _content(compiler: str, flags: list[str]) -> bytes:
    """The bytes of the library: those that are kept, or else compiled now."""
    # What the compiler defines tells its version and the processor's abilities.
    macros = _run([compiler, *flags, "-dM", "-E", "-x", "c", os.devnull])
    key = hash_of(b"".join(source.read_bytes() for source in (*SOURCES, *HEADERS)) + macros)
    content = find(key)
    if content is None:
        with tempfile.TemporaryDirectory() as workplace:  # 0700
            made = Path(workplace, "made.so")
            _run([compiler, *flags, "-o", str(made), *map(str, SOURCES), "-lm"])
            content = made.read_bytes()
        keep(key, content)
    return content


def _run(command: list[str]) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=SECONDS).stdout


def _typed(made: ctypes.CDLL) -> ctypes.CDLL:
    """Tells ctypes what the functions take."""
    shape, sizes = _ADDRESS, [_WHOLE, _WHOLE]
    inputs = [_ADDRESS, _WHOLE, _WHOLE]
    made.forward.argtypes = [shape, *sizes, *inputs, *4 * [_ADDRESS], ctypes.c_int]
    made.images.argtypes = [shape, *sizes, *4 * [_ADDRESS]]
    made.weights.argtypes = [shape, *sizes, *inputs, *4 * [_ADDRESS]]
    made.average.argtypes = made.spread_out.argtypes = 3 * [_ADDRESS]
    made.norm_forward.argtypes = [*4 * [_ADDRESS], ctypes.c_double, *3 * [_ADDRESS]]
    made.norm_back.argtypes = 9 * [_ADDRESS]
    made.norm_twice.argtypes = 12 * [_ADDRESS]
    made.last_forward.argtypes = [*4 * [_ADDRESS], ctypes.c_double, *4 * [_ADDRESS]]
    made.last_back.argtypes, made.last_twice.argtypes = 10 * [_ADDRESS], 13 * [_ADDRESS]
    made.last_average.argtypes = made.last_spread_out.argtypes = 3 * [_ADDRESS]
    made.response_forward.argtypes = 5 * [_ADDRESS]
    made.response_back.argtypes, made.response_twice.argtypes = 6 * [_ADDRESS], 8 * [_ADDRESS]
    made.pool_choose.argtypes = made.pool_select.argtypes = 4 * [_ADDRESS]
    made.pool_put_back.argtypes = 4 * [_ADDRESS]
    made.gather_windows.argtypes = made.scatter_windows.argtypes = 4 * [_ADDRESS]
    made.direct_forward.argtypes, made.direct_weights.argtypes = 7 * [_ADDRESS], 6 * [_ADDRESS]
    made.chain_forward.argtypes = 5 * [_ADDRESS]
    made.chain_back.argtypes, made.chain_gradient.argtypes = 7 * [_ADDRESS], 9 * [_ADDRESS]
    made.chain_products.argtypes = 12 * [_ADDRESS]
    made.winograd_kernels.argtypes = [_ADDRESS, *3 * [_WHOLE], *2 * [_ADDRESS]]
    made.winograd_convolution.argtypes = [_ADDRESS, *4 * [_WHOLE], *5 * [_ADDRESS]]
    made.winograd_weights.argtypes = [_ADDRESS, *4 * [_WHOLE], *4 * [_ADDRESS]]
    return made
