"""The C code as a library of this machine.

It is compiled once, for the very processor, and kept in the user's cache folder. Where that cannot
be done, for want of a compiler say, there is no library, and torch computes everything.
"""

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import torch

from ...files import cache_folder

log = logging.getLogger(__name__)


def tell_not_compiled(what: str, reason: str) -> None:
    """Logs that something is computed without being compiled."""
    log.info("%s could not be compiled, which takes longer: %s", what, reason)


SOURCE = Path(__file__).with_name("convolution.c")
REALS = {torch.float32: "float", torch.float64: "double"}
FLAGS = ["-O3", "-std=gnu11", "-shared", "-fPIC"]
FOR_THIS_PROCESSOR = [["-march=native"], ["-mcpu=native"], []]  # compilers differ
SECONDS = 120

_ADDRESS, _WHOLE = ctypes.c_void_p, ctypes.c_int64


@lru_cache
def library(dtype: torch.dtype) -> ctypes.CDLL | None:
    """The functions for a floating-point type, if they can be had on this machine."""
    if dtype not in REALS or os.environ.get("DATADISTILL_KERNELS") == "0":
        return None
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        log.info("There is no C compiler: torch computes convolutions, which takes longer.")
        return None
    for processor in FOR_THIS_PROCESSOR:
        try:
            return _loaded(compiler, [*FLAGS, *processor, f"-DREAL={REALS[dtype]}"])
        except (OSError, subprocess.SubprocessError) as error:
            log.info("Convolutions could not be compiled with %s: %s", processor, error)
    return None


def _loaded(compiler: str, flags: list[str]) -> ctypes.CDLL:
    """Compiles the code, unless that has been done, and loads it."""
    # What the compiler defines tells its version and the processor's abilities.
    macros = _run([compiler, *flags, "-dM", "-E", "-x", "c", os.devnull])
    key, folder = _hash(SOURCE.read_bytes() + macros), _folder()
    # The hash of a file is in its name: to load a damaged one would end the process.
    whole = (p for p in folder.glob(f"{key}-*.so") if p.stem == f"{key}-{_hash(p.read_bytes())}")
    path = next(whole, None)
    if path is None:
        with tempfile.TemporaryDirectory(dir=folder) as workplace:
            made = Path(workplace, "made.so")
            _run([compiler, *flags, "-o", str(made), str(SOURCE)])
            path = folder / f"{key}-{_hash(made.read_bytes())}.so"
            made.replace(path)  # at once: other processes see all of it or nothing
    return _typed(ctypes.CDLL(str(path)))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _run(command: list[str]) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=SECONDS).stdout


def _folder() -> Path:
    folder = cache_folder() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _typed(made: ctypes.CDLL) -> ctypes.CDLL:
    """Tells ctypes what the functions take."""
    shape, sizes = _ADDRESS, [_WHOLE, _WHOLE]
    inputs = [_ADDRESS, _WHOLE, _WHOLE]
    made.forward.argtypes = [shape, *sizes, *inputs, *4 * [_ADDRESS], ctypes.c_int]
    made.images.argtypes = [shape, *sizes, *4 * [_ADDRESS]]
    made.weights.argtypes = [shape, *sizes, *inputs, *4 * [_ADDRESS]]
    return made
