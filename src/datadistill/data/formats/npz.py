"""NumPy arrays in an .npz file."""

import io
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...errors import DataError
from ...reading import FREE_BYTES, MOST_EXPANSION, open_regular
from ..images.augmentation import PadCropFlip
from ..images.conversion import apply_options
from ..inputs import channels_first, warn_unscaled
from ..labelled import LabelledData
from ..labels import encode
from ..normalization import Normalization
from ..options import Options

REQUIRED = ("train_inputs", "train_labels", "test_inputs", "test_labels")
LARGEST = 1e9
"""Of means and of 1 / std, as in artefacts: normalised pixels are finite in float32."""
OPTIONAL = ("class_names", "mean", "std")
KINDS = "biufUS"  # numbers and strings; never objects, which are pickles
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADER_BYTES = 10_000


def load_arrays(path: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads a file written by ``numpy.savez`` or ``numpy.savez_compressed``.

    Its arrays are:

    - ``train_inputs``, ``test_inputs``: (examples, …). Bytes are pixels, (examples, channels,
      height, width), (examples, height, width, channels) or (examples, height, width). Floats are
      assumed to be normalised unless ``mean`` and ``std`` are given. Floats (examples, height,
      width) are treated as grey images only with ``channels=1``, or if ``mean`` has one value.
      Integers (examples, length) are token ids.
    - ``train_labels``, ``test_labels``: (examples,) integers, strings or one-hot rows for classes,
      or floats for regression.
    - ``class_names`` (optional): strings, one for each class.
    - ``mean`` and ``std`` (optional): one for each channel, for pixels in [0, 1]. By default,
      bytes are normalised with those of the training inputs.

    Pickled objects are refused. Images are augmented, by reflection padding, crop and flip, only
    with ``augment=True``.
    """
    arrays = _read(path)
    grey = options.channels == 1 or ("mean" in arrays and arrays["mean"].size == 1)
    train_inputs, test_inputs = (
        _inputs(path, arrays[f"{split}_inputs"], grey=grey) for split in ("train", "test")
    )
    if train_inputs.shape[1:] != test_inputs.shape[1:]:
        raise _bad(
            path,
            f"has training inputs of shape {train_inputs.shape[1:]} but test inputs of shape "
            f"{test_inputs.shape[1:]}",
        )
    normalization = _normalization(path, arrays, train_inputs)
    names = arrays.get("class_names")
    class_names = None if names is None else tuple(_text(name) for name in names.flatten().tolist())
    splits: list[LabelledData] = []
    for split, inputs in (("train", train_inputs), ("test", test_inputs)):
        where, values = f"The {split} split of {path}", _labels(path, arrays[f"{split}_labels"])
        labels, class_names = encode(values, where, class_names)
        data = torch.from_numpy(inputs)
        warn_unscaled(data if normalization is None else data[:0], where)
        splits.append(LabelledData(data, labels, normalization, class_names, path.stem, split))
    train, test = splits
    images = train_inputs.dtype == np.uint8 and train_inputs.ndim == 4
    known = PadCropFlip() if images else None
    return apply_options(train, test, options, known, by_default=False)


def _bad(path: Path, what: str) -> DataError:
    return DataError(
        f"{path} {what}.",
        f"Write it with numpy.savez: {', '.join(REQUIRED)}, and optionally {', '.join(OPTIONAL)}.",
    )


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with open_regular(path) as raw, zipfile.ZipFile(raw) as file:
            stored = os.fstat(raw.fileno()).st_size
            members = {member.filename: member for member in file.infolist()}
            missing = [name for name in REQUIRED if f"{name}.npy" not in members]
            if missing:
                raise _bad(path, f"has no array called {missing[0]}")
            wanted = [name for name in (*REQUIRED, *OPTIONAL) if f"{name}.npy" in members]
            return {name: _member(path, stored, file, members[f"{name}.npy"]) for name in wanted}
    except DataError:
        raise
    except Exception as error:  # a damaged zip file can raise nearly anything
        why = getattr(error, "strerror", None) or error or type(error).__name__
        raise _bad(path, f"cannot be read: {why}") from error


def _member(path: Path, stored: int, file: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Reads one array, if the file has as many bytes as its header says."""
    size, packed = member.file_size, min(member.compress_size, stored)
    if size > FREE_BYTES and size > MOST_EXPANSION * packed:
        raise _bad(path, f"would expand {member.filename} from {packed:,} to {size:,} bytes")
    if member.compress_type not in METHODS:
        raise _bad(path, f"compresses {member.filename} with a method that NumPy does not use")
    with file.open(member) as stream:
        content = io.BytesIO(stream.read(size))  # no more, whatever follows
    version = np.lib.format.read_magic(content)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, fortran, dtype = read_header(content, max_header_size=HEADER_BYTES)
    if dtype.kind not in KINDS:
        raise _bad(path, f"has {member.filename} of type {dtype}, which is not numeric")
    wanted, held = math.prod(shape) * dtype.itemsize, size - content.tell()
    if min(shape, default=0) < 0 or wanted != held:
        raise _bad(path, f"should have {wanted:,} bytes of {member.filename} but has {held:,}")
    array = np.frombuffer(content.getbuffer()[content.tell() :], dtype)
    array = array.reshape(shape, order="F" if fortran else "C")
    return np.array(array, dtype.newbyteorder("="), order="C")


def _inputs(path: Path, inputs: np.ndarray, *, grey: bool) -> np.ndarray:
    if inputs.dtype == np.uint8:
        return channels_first(torch.from_numpy(inputs), str(path)).numpy()
    if inputs.dtype.kind == "f" and inputs.dtype.itemsize in (2, 4, 8):
        return inputs[:, None] if grey and inputs.ndim == 3 else inputs
    if inputs.dtype.kind in "iu" and inputs.ndim == 2:
        return inputs.astype(np.int64)  # token ids
    raise _bad(path, f"has inputs of type {inputs.dtype}, not uint8 or floats")


def _labels(path: Path, labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind == "f" and labels.dtype.itemsize <= 8:
        if not np.isfinite(labels).all():
            raise _bad(path, "has labels that are NaN or infinite")
        return labels
    if labels.dtype.kind not in "biuUS" or labels.ndim not in (1, 2):
        raise _bad(path, f"has labels of {labels.dtype} {labels.shape}, not a vector of integers")
    if labels.dtype.kind not in "iu" or not labels.size:
        return labels
    if labels.min() < 0 or labels.max() > np.iinfo(np.int32).max:
        raise _bad(path, f"has labels from {labels.min()} to {labels.max()}")
    return labels.astype(np.int64)


def _normalization(
    path: Path, arrays: dict[str, np.ndarray], inputs: np.ndarray
) -> Normalization | None:
    if ("mean" in arrays) != ("std" in arrays):
        raise _bad(path, "has only one of mean and std")
    if "mean" not in arrays:
        images = inputs.dtype == np.uint8 and inputs.ndim == 4
        return Normalization.measured(torch.from_numpy(inputs)) if images else None
    channels = inputs.shape[1] if inputs.ndim == 4 else 0
    values: list[tuple[float, ...]] = []
    for name in ("mean", "std"):
        numbers = arrays[name].flatten()
        if numbers.dtype.kind not in "iuf" or len(numbers) != channels:
            raise _bad(path, f"has a {name} that is not one number for each of {channels} channels")
        values.append(tuple(map(float, numbers)))
    if not all(map(math.isfinite, (*values[0], *values[1]))) or min(values[1], default=1) <= 0:
        raise _bad(path, "has a mean that is not finite or a std that is not positive")
    if max(map(abs, values[0]), default=0) > LARGEST or min(values[1], default=1) < 1 / LARGEST:
        raise _bad(path, "has a mean or std that no pixels can have")
    return Normalization(values[0], values[1])


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
