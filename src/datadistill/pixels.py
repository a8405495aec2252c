"""Inputs as pictures: bytes that can be looked at, and PNG files of them."""

import base64
import io

import torch
import torch.nn.functional as F
from torch import Tensor

GREY_OR_COLOUR = (1, 3)


def are_images(shape: tuple[int, ...]) -> bool:
    """Whether inputs of a shape are grey or colour images."""
    return len(shape) == 3 and shape[0] in GREY_OR_COLOUR


def as_images(inputs: Tensor) -> Tensor:
    """Inputs (steps, inputs, …) as images; what is none becomes a grey one, a row per vector."""
    shape = tuple(inputs.shape[2:])
    if are_images(shape):
        return inputs
    return inputs.reshape(*inputs.shape[:2], 1, -1, shape[-1] if shape else 1)


def pictures_of(images: Tensor) -> Tensor:
    """Images (…, channels, height, width) as bytes, each stretched to its own range.

    Distilled images go far beyond [0, 1].
    """
    images = images.detach().cpu().double()  # the range itself may be out of range
    low, high = images.amin((-3, -2, -1), keepdim=True), images.amax((-3, -2, -1), keepdim=True)
    return ((images - low) / (high - low).clamp_min(1e-12) * 255).round().to(torch.uint8)


def smaller(images: Tensor, most: int) -> Tensor:
    """Images (steps, images, …) at the largest whole fraction of their size that fits.

    Args:
        images: The images.
        most: Bytes that all of them may take, at one for each number.
    """
    factor, side = 1, min(images.shape[-2:])
    while images.numel() // factor**2 > most and factor < side:
        factor += 1
    if factor == 1:
        return images
    pooled = F.avg_pool2d(images.detach().flatten(0, 1).float(), factor)
    return pooled.unflatten(0, images.shape[:2])


def png(picture: Tensor) -> bytes:
    """A PNG file of a picture (channels, height, width) in bytes; the last may be opacity."""
    from PIL import Image  # slow to import

    pixels = picture.permute(1, 2, 0).squeeze(-1)
    file = io.BytesIO()
    Image.fromarray(pixels.contiguous().numpy()).save(file, "PNG")
    return file.getvalue()


def data_uri(picture: Tensor) -> str:
    """A picture as an address that holds the whole of it, for HTML."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()
