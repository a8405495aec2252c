"""Inputs in the forms that users have them in: arrays, tensors, pictures and tables of numbers."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ..errors import DataError, DataWarning
from .dense import check_dense, shared
from .images.decode import ImageError, as_pixels

WIDE = 10.0
"""Standard deviation above which a column of numbers is not scaled for a network."""


def as_inputs(values: Any, where: str) -> Tensor:
    """Turns inputs into bytes (examples, channels, height, width), floats or token ids.

    Bytes are pixels: (examples, height, width) are grey, and channels may come last. Floats stay
    as they are, and other integers are token ids.

    Args:
        values: A tensor, an array, a pandas DataFrame of numbers, or a list of arrays or pictures.
        where: Whose inputs, for error messages.
    """
    inputs = _tensor(values, where)
    if inputs.dtype == torch.bool:
        return inputs.float()
    if inputs.is_complex():
        raise DataError(f"{where} has complex inputs.", "Use their real and imaginary parts.")
    if inputs.dtype == torch.uint8:
        return channels_first(inputs, where)
    if inputs.is_floating_point():
        return inputs
    if inputs.ndim > 2:
        raise DataError(
            f"{where} has images of type {inputs.dtype}.",
            "Convert pixels from 0 to 255 to bytes: inputs.astype(numpy.uint8).",
        )
    return inputs.long()


def channels_first(pixels: Tensor, where: str) -> Tensor:
    """Bytes of images as (examples, channels, height, width); grey ones may have no channels."""
    if pixels.ndim == 3:
        return pixels[:, None]
    if pixels.ndim != 4 or pixels.shape[1] in (1, 3) or pixels.shape[3] not in (1, 3, 4):
        return pixels
    if pixels.shape[3] == 4:
        raise DataError(
            f"{where} has images of shape {tuple(pixels.shape[1:])}, which looks like RGBA.",
            "Convert them to RGB, or put the channels first: inputs.transpose(0, 3, 1, 2).",
        )
    return pixels.permute(0, 3, 1, 2).contiguous()


def warn_unscaled(inputs: Tensor, where: str) -> None:
    """Warns of floats that no network learns well from: pixels 0 to 255, or unscaled columns."""
    if not inputs.is_floating_point() or not inputs.numel():
        return
    sample = inputs[:1000].float()
    low, high = float(sample.min()), float(sample.max())
    if inputs.ndim > 2 and low >= 0 and 100 < high <= 255:
        _warn(
            f"{where} has floats from {low:g} to {high:g}, which look like pixels from 0 to 255. "
            "Floats are used unchanged. Pass bytes (uint8), or divide by 255 and normalise."
        )
    elif inputs.ndim == 2:
        spread = sample.std(0, correction=0)
        if float(spread.max()) > WIDE:
            _warn(
                f"{where} has columns with standard deviations from {float(spread.min()):.3g} to "
                f"{float(spread.max()):.3g}, which are used unchanged. Scale each column to mean "
                "0 and standard deviation 1."
            )


def _warn(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=4)


def _tensor(values: Any, where: str) -> Tensor:
    check_dense(values)
    if isinstance(values, Tensor):
        return values.detach()
    if values is None or isinstance(values, str | bytes):
        raise DataError(f"{where} has {values!r} for inputs.", "Provide an array of inputs.")
    if hasattr(values, "toarray"):
        raise DataError(
            f"{where} has sparse inputs ({type(values).__name__}).",
            "Convert them: inputs.toarray().",
        )
    if isinstance(values, Sequence) and len(values):
        return _stacked([*values], where)
    return _from_array(values, where)


def _stacked(values: list[Any], where: str) -> Tensor:
    """A list of inputs as one tensor: pictures, arrays, tensors or lists of numbers."""
    if all(isinstance(value, Image.Image) for value in values):
        values = pictures(values, where)
    if not all(isinstance(value, Tensor | np.ndarray) for value in values):
        return _from_array(values, where)
    tensors = [_from_array(value, where) for value in values]
    shapes = sorted({tuple(tensor.shape) for tensor in tensors})
    if len(shapes) > 1:
        raise DataError(
            f"The inputs have different shapes: {', '.join(map(str, shapes[:3]))}.",
            "Resize or crop them to one shape.",
        )
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) > 1:
        raise DataError(
            f"The inputs have different types: {', '.join(sorted(map(str, kinds)))}.",
            "Convert them to one type.",
        )
    return torch.stack(tensors)


def pictures(images: Sequence[Image.Image], where: str) -> list[np.ndarray]:
    """Pictures as bytes (channels, height, width): grey if all are, otherwise in colour."""
    channels = 1 if all(image.mode in GREY for image in images) else 3
    try:
        return [as_pixels(image, channels) for image in images]
    except ImageError as error:
        raise DataError(f"{where} has a picture that {error.what}.", error.remedy) from error


GREY = ("1", "L", "LA", "I;16", "I")
"""Pillow's modes of pictures without colour."""


def _from_array(value: Any, where: str) -> Tensor:
    check_dense(value)
    if isinstance(value, Tensor):
        return value.detach()
    if hasattr(value, "dtypes") and hasattr(value, "columns"):  # a pandas DataFrame
        value = _numbers(value, where)
    try:
        array = np.asarray(value)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        if array.dtype.kind in "USO":
            raise DataError(
                f"{where} has inputs that are not numbers, e.g. {_first(array)}.",
                "Convert them to numbers of one shape: encode categories, tokenise text.",
            )
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:
            array = array.astype(np.float64)
        if array.dtype.kind == "u" and array.dtype != np.uint8:
            array = array.astype(np.int64)
        return shared(array)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        raise DataError(
            f"The inputs of {where[0].lower()}{where[1:]} are not an array: {reason}.",
            "Provide numbers (examples, …), all inputs of one shape.",
        ) from error


def _numbers(table: Any, where: str) -> np.ndarray:
    """The columns of a DataFrame as floats."""
    for name, kind in zip(table.columns, table.dtypes, strict=True):
        if getattr(kind, "kind", "O") not in "biuf":
            raise DataError(
                f"{where} has a column {name!r} that is not numeric.",
                "Encode it as numbers, e.g. with pandas.get_dummies, or drop it.",
            )
    return table.to_numpy(dtype=np.float64, na_value=np.nan)


def _first(array: np.ndarray) -> str:
    text = repr(array.flat[0].item() if hasattr(array.flat[0], "item") else array.flat[0])
    return text if len(text) <= 40 else f"{text[:40]}…"
