"""A hash of real data, by which figures and runs know what they were made of."""

import hashlib
import re

import torch
from torch import Tensor

from .image_files import ImageFiles
from .labelled import LabelledData


def data_hash(data: LabelledData) -> str:
    """SHA-256 of real data: name, shape, normalisation, labels, and pixels or names of files."""
    digest = hashlib.sha256(
        f"{data.name} {data.split} {tuple(data.inputs.shape)} {data.normalization} "
        f"{_name(data.augmentation)}".encode()
    )
    digest.update(_bytes(data.labels))
    if isinstance(data.inputs, ImageFiles):  # as many as may be: their names stand for them
        for path in data.inputs.paths:
            digest.update(path.rpartition("/")[2].encode())
    else:
        digest.update(_bytes(data.inputs))
    return digest.hexdigest()


def _name(augmentation: object) -> str:
    """What an augmentation is called, without where in memory it is."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(augmentation))


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
