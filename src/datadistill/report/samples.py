"""A picture of real data: some examples of every class."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..data import LabelledData
from ..errors import DataError, printable
from ..pixels import are_images
from .style import drawing, save

DPI = 150
SIDE = 96  # pixels of an image, roughly
GAP = 6  # pixels between images
ROWS = 30  # classes that get a row each; of more classes one example each is shown
COLUMNS = 12
LETTER = 0.07  # inches
LETTERS = 24  # of a name, at most


def draw_samples(data: LabelledData, path: Path) -> None:
    """Writes a picture of examples: a row per class, or one example of each of many classes."""
    if not are_images(data.input_shape):
        raise DataError(
            f"{data.name} has inputs of shape {tuple(data.input_shape)}, which are not images.",
            "Only grey or colour images can be drawn.",
        )
    title, names, table = _choose(data)
    title, names = printable(title), [printable(name) for name in names]
    pixels = _tile(data, table)
    margin = 0.3 + LETTER * max(map(len, names))
    head, foot = 0.45, 0.15
    width = max(margin + pixels.shape[1] / DPI + foot, 0.3 + LETTER * len(title))
    height = head + pixels.shape[0] / DPI + foot
    with drawing(width, height) as figure:
        place: dict[str, Any] = {"va": "center"}
        figure.text(0.15 / width, 1 - 0.22 / height, title, fontsize=9, **place)
        for row, name in enumerate(names):
            middle = head + (row + 0.5) * (pixels.shape[0] + GAP) / len(names) / DPI
            figure.text((margin - 0.1) / width, 1 - middle / height, name, ha="right", **place)
        box = (margin / width, foot / height)
        axes = figure.add_axes(
            (*box, pixels.shape[1] / DPI / width, pixels.shape[0] / DPI / height)
        )
        axes.axis("off")
        axes.imshow(pixels, interpolation="nearest")
        save(figure, path, dpi=DPI)


def _choose(data: LabelledData) -> tuple[str, list[str], list[list[int]]]:
    """Returns a title, and for each row its name and which examples it shows."""
    what = f"{data.name}, {data.split}: "
    if data.labels.is_floating_point():
        first = list(range(min(len(data), COLUMNS * 8)))
        rows = _rows(first, COLUMNS)
        return f"{what}the first {len(first)} examples", [f"{r[0]}–{r[-1]}" for r in rows], rows
    order = data.labels.argsort(stable=True)
    counts = data.labels.bincount(minlength=data.classes)
    groups: list[list[int]] = [group.tolist() for group in order.split(counts.tolist())]
    if data.classes <= ROWS:
        names = list(data.class_names or map(str, range(data.classes)))
        names = [name if len(name) <= LETTERS else f"{name[:LETTERS]}…" for name in names]
        return f"{what}examples of every class", names, [group[:COLUMNS] for group in groups]
    rows = _rows([group[0] if group else -1 for group in groups], 20)
    names = [f"{20 * n}–{20 * n + len(row) - 1}" for n, row in enumerate(rows)]
    return f"{what}one example of each of {data.classes} classes", names, rows


def _rows(items: list[int], columns: int) -> list[list[int]]:
    return [items[start : start + columns] for start in range(0, len(items), columns)]


def _tile(data: LabelledData, table: list[list[int]]) -> np.ndarray:
    """All images side by side on white: (height, width, 3) of numbers in [0, 1]."""
    shown = [index for row in table for index in row if index >= 0]
    images = dict(zip(shown, _images(data, torch.tensor(shown)), strict=True))
    height, width = images[shown[0]].shape[1:]
    columns = max(map(len, table))
    canvas = torch.ones(3, len(table) * (height + GAP) - GAP, columns * (width + GAP) - GAP)
    for r, row in enumerate(table):
        for c, index in enumerate(row):
            if index >= 0:
                top, left = r * (height + GAP), c * (width + GAP)
                canvas[:, top : top + height, left : left + width] = images[index]
    return canvas.permute(1, 2, 0).numpy()


def _images(data: LabelledData, indices: Tensor) -> Tensor:
    """Some images as pixels in [0, 1], near ``SIDE`` in size; small ones stay sharp."""
    inputs = data.inputs[indices]
    if inputs.dtype == torch.uint8:
        images = inputs.float() / 255
    else:  # normalised in a way that is not known
        low, high = inputs.float().aminmax()
        images = (inputs.float() - low) / (high - low).clamp_min(1e-12)
    side = max(images.shape[2:])
    if side > SIDE:
        size = [max(1, round(n * SIDE / side)) for n in images.shape[2:]]
        return F.interpolate(images, size, mode="bilinear", antialias=True).clamp(0, 1)
    return images.repeat_interleave(SIDE // side, 2).repeat_interleave(SIDE // side, 3)
