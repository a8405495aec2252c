"""Distilled data as arrays: NumPy's ``.npz``, and the tensors that DD-Ranking reads."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..artefact import DistilledData
from ..files import write_atomically

NPZ = "distilled.npz"


def write_npz(distilled: DistilledData, folder: Path) -> list[str]:
    """Writes ``distilled.npz``: inputs, pixels, labels, learning rates, normalization, names."""
    norm = distilled.normalization
    arrays: dict[str, Any] = {
        "inputs": _array(distilled.inputs),
        "labels": _array(distilled.labels),
        "learning_rates": _array(distilled.learning_rates),
    }
    if norm:
        arrays |= {"images": _array(distilled.images), "mean": norm.mean, "std": norm.std}
    if distilled.class_names:
        arrays["class_names"] = np.array(distilled.class_names)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomically(folder / NPZ, buffer.getvalue())
    return ["numpy.load({npz}, allow_pickle=False) reads it."]


def _array(tensor: Tensor) -> np.ndarray:
    """A tensor as NumPy has it, which does not know bfloat16."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def write_dd_ranking(distilled: DistilledData, folder: Path) -> list[str]:
    """Writes ``images.pt`` (normalised), ``labels.pt`` and ``lr.pt``, the mean learning rate."""
    tensors = {
        "images.pt": distilled.inputs.flatten(0, 1).contiguous(),
        "labels.pt": distilled.labels.flatten(0, 1).contiguous(),
        "lr.pt": distilled.learning_rates.mean(),
    }
    for name, tensor in tensors.items():
        buffer = io.BytesIO()
        torch.save(tensor.clone(), buffer)
        write_atomically(folder / name, buffer.getvalue())
    return ["The order of the steps and their own learning rates are lost: lr.pt is their mean."]
