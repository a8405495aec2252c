"""The idx format of MNIST, compressed with gzip or not."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .unpack import damaged, unpack


def read_idx(path: Path, at_most: int) -> Tensor:
    """Reads a file of unsigned bytes: images (examples, height, width) or labels (examples,).

    Args:
        path: The file, compressed or not.
        at_most: The most values that it can have.
    """
    raw = unpack(path, at_most + 16)
    dimensions = raw[3] if len(raw) > 3 else 0
    header = 4 + 4 * dimensions
    if not raw.startswith(b"\x00\x00\x08") or not 1 <= dimensions <= 3 or len(raw) < header:
        raise damaged(path, "is not an idx file of bytes")
    shape = [int(n) for n in np.frombuffer(raw, ">u4", dimensions, 4)]
    wanted = int(np.prod(shape, dtype=object))
    if len(raw) - header != wanted:
        held = len(raw) - header
        raise damaged(path, f"should have {wanted} bytes (shape {tuple(shape)}) but has {held}")
    return torch.frombuffer(raw, dtype=torch.uint8)[header:].reshape(shape)
