"""The idx format of MNIST's files, gzipped or not."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError


def read_idx(path: Path) -> Tensor:
    """Reads a file of unsigned bytes: images (examples, height, width) or labels (examples,)."""
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {error}.", "Fetch the file again; this one is damaged."
        ) from error
    dimensions = raw[3] if len(raw) > 3 else 0
    header = 4 + 4 * dimensions
    if raw[:3] != b"\x00\x00\x08" or not 1 <= dimensions <= 3 or len(raw) < header:
        raise DataError(
            f"{path} is not an idx file of bytes.", "Fetch the file again from its source."
        )
    shape = [int(n) for n in np.frombuffer(raw, ">u4", dimensions, 4)]
    wanted = int(np.prod(shape, dtype=object))
    if len(raw) - header != wanted:
        raise DataError(
            f"{path} promises {wanted} bytes (shape {tuple(shape)}) but holds {len(raw) - header}.",
            "Fetch the file again; this one is damaged.",
        )
    # A bytearray is writable, as tensors must be; this is the only copy.
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)[header:].reshape(shape)
