"""The distilled images as a page shows them: a row per step, a column per class."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..artefact import DistilledData
from ..pixels import as_images, data_uri, pictures_of, smaller
from ..runs.store.snapshots import Snapshots
from .sentences import class_names

COLUMNS = 20
"""Images in a line at most."""
MOST = 2400
"""Images that a page shows; of more, those of the first steps."""
BARS = 40
"""Classes up to which all weights of a soft label are drawn."""
TOP = 5
"""Classes of a soft label that are named."""


@dataclass(frozen=True)
class Cell:
    """One distilled image.

    Attributes:
        uri: The image itself.
        label: Its class or target.
        alt: What it is, in words.
        detail: Where it stands in the schedule and what its pixels are.
        soft: The largest weights of a soft label, its class first; none for a hard one.
        bars: A drawing of all its weights, 1 wide and high for each class; empty for a hard one.
    """

    uri: str
    label: str
    alt: str
    detail: str
    soft: tuple[tuple[str, float], ...] = ()
    bars: str = ""


@dataclass(frozen=True)
class StepRow:
    """The images of one step, and its learning rate in every epoch."""

    number: int
    rates: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Grid:
    """All distilled images.

    Attributes:
        rows: The steps, in the order in which they are applied.
        columns: Images in a line.
        left_out: Steps that are not shown.
        pixelated: Whether the images are so small that their pixels are to be seen.
        flat: Whether they are so flat that they are shown higher than they are.
        classes: The classes of soft labels, of which all weights are drawn; 0 if none are.
    """

    rows: tuple[StepRow, ...]
    columns: int
    left_out: int
    pixelated: bool
    flat: bool
    classes: int

    @property
    def soft(self) -> bool:
        """Whether the weights of soft labels are drawn."""
        return self.classes > 0


@dataclass(frozen=True)
class Frames:
    """How the images came to be: one picture of all of them after each of some outer steps."""

    uris: tuple[str, ...]
    outer_steps: tuple[int, ...]
    width: int
    height: int


def grid_of(distilled: DistilledData, most_bytes: int) -> Grid:
    """The grid of distilled images.

    Args:
        distilled: The distilled data.
        most_bytes: Bytes that the pixels of all images may take.
    """
    images = as_images(distilled.images.detach().cpu())
    steps = max(1, min(len(images), MOST // images.shape[1]))
    pictures = pictures_of(smaller(images[:steps], most_bytes))
    order = lines_of(distilled.labels)
    rows = tuple(
        StepRow(
            step + 1,
            tuple(f"{rate:#.3g}" for rate in distilled.learning_rates[:, step].tolist()),
            tuple(
                tuple(_cell(distilled, pictures, images, step, number) for number in line)
                for line in order
            ),
        )
        for step in range(steps)
    )
    height, width = pictures.shape[-2:]
    drawn = bool(rows[0].lines[0][0].bars)
    return Grid(
        rows,
        max(map(len, order)),
        len(images) - steps,
        max(height, width) <= 64,
        6 * height < width,
        distilled.labels.shape[-1] if drawn else 0,
    )


def frames_of(snapshots: Snapshots, labels: Tensor | None, most_bytes: int) -> Frames | None:
    """The pictures of the slider.

    Args:
        snapshots: The images along a run.
        labels: The labels of the images, by which they are arranged as in the grid.
        most_bytes: Bytes that the pixels of all pictures may take.
    """
    count = len(snapshots.outer_steps)
    if count < 2:
        return None
    pictures = snapshots.pictures
    fit = max(8, min(count, most_bytes // max(pictures[0].numel(), 1)))
    chosen = sorted({round(place * (count - 1) / (fit - 1)) for place in range(min(fit, count))})
    if fit >= count:
        chosen = list(range(count))
    order = lines_of(labels) if labels is not None else _lines(list(range(pictures.shape[2])))
    each = max(most_bytes // len(chosen), 1)
    tiled = [_tile(smaller(pictures[i].float(), each).byte(), order) for i in chosen]
    uris = tuple(data_uri(picture) for picture in tiled)
    height, width = tiled[0].shape[-2:]
    return Frames(uris, tuple(snapshots.outer_steps[i] for i in chosen), width, height)


def strip(distilled: DistilledData, most_bytes: int = 2**18) -> str:
    """One small picture of the images of the first step."""
    images = smaller(as_images(distilled.images.detach().cpu())[:1], most_bytes)
    return data_uri(_tile(pictures_of(images), lines_of(distilled.labels)[:4]))


def _tile(pictures: Tensor, order: Sequence[Sequence[int]]) -> Tensor:
    """All images (steps, images, …) in one picture, with a gap between them."""
    channels, height, width = pictures.shape[2:]
    gap, columns = max(1, width // 14), max(map(len, order))
    lines = len(pictures) * len(order)
    size = (channels + 1, lines * (height + gap) - gap, columns * (width + gap) - gap)
    canvas = torch.zeros(size, dtype=torch.uint8)  # the last channel is opacity
    opaque = torch.full((1, height, width), 255, dtype=torch.uint8)
    for step, images in enumerate(pictures):
        for place, line in enumerate(order):
            top = (step * len(order) + place) * (height + gap)
            for column, number in enumerate(line):
                left = column * (width + gap)
                there = canvas[:, top : top + height, left : left + width]
                there.copy_(torch.cat([images[number], opaque]))
    return canvas


def lines_of(labels: Tensor) -> list[list[int]]:
    """Which images stand in each line of a step: a column per class, where there are classes."""
    first = labels[0]
    if first.ndim > 1:  # soft labels: by their largest share, if that gives columns
        first = first.argmax(-1)
    if first.is_floating_point():
        return _lines(list(range(len(first))))
    classes = sorted(set(first.tolist()))
    groups = [(first == one).nonzero().flatten().tolist() for one in classes]
    if len({len(group) for group in groups}) != 1 or len(groups) == 1:
        return _lines(list(range(len(first))))
    return [part for line in zip(*groups, strict=True) for part in _lines(list(line))]


def _lines(numbers: list[int]) -> list[list[int]]:
    """Numbers in lines of about the same length."""
    lines = math.ceil(len(numbers) / COLUMNS)
    length = math.ceil(len(numbers) / lines)
    return [numbers[start : start + length] for start in range(0, len(numbers), length)]


def _cell(
    distilled: DistilledData, pictures: Tensor, images: Tensor, step: int, number: int
) -> Cell:
    label = distilled.labels[step, number]
    name, soft = label_of(distilled, label), _weights(distilled, label)
    low, high = images[step, number].aminmax()
    return Cell(
        data_uri(pictures[step, number]),
        name,
        f"Distilled image for {name}, step {step + 1}",
        f"step {step + 1}, image {number + 1}; pixels from {float(low):.3g} to {float(high):.3g}",
        soft,
        _bars(label) if soft and len(label) <= BARS else "",
    )


def label_of(distilled: DistilledData, label: Tensor) -> str:
    """What an image is labelled: a class, the likeliest of a soft label, or a target."""
    if not label.is_floating_point():
        number = int(label)
        return class_names(distilled, max(len(distilled.class_names or ()), number + 1))[number]
    if label.numel() == 1:
        return f"{float(label):.3g}"
    if not distilled.objective.has_classes:
        return ", ".join(f"{value:.3g}" for value in label.flatten().tolist()[:TOP])
    return class_names(distilled, len(label))[int(label.argmax())]


def _weights(distilled: DistilledData, label: Tensor) -> tuple[tuple[str, float], ...]:
    """The largest weights of a soft label, from its class downwards; none of other labels."""
    if not label.is_floating_point() or label.numel() == 1 or not distilled.objective.has_classes:
        return ()
    names, weights = class_names(distilled, len(label)), list[float](label.double().tolist())
    likeliest = int(label.argmax())
    by_size = sorted(range(len(weights)), key=lambda c: (c != likeliest, -abs(weights[c])))
    shown = sorted(by_size[:TOP], key=lambda c: -weights[c])
    return tuple((names[c], weights[c]) for c in shown)


def _bars(label: Tensor) -> str:
    """The path of a bar for each class, up from 0 or down, in a drawing of height 1."""
    weights: list[float] = label.double().tolist()
    low, high = min(*weights, 0.0), max(*weights, 0.0)
    scale = 1 / ((high - low) or 1.0)
    return "".join(
        f"M{number + 0.1:g} {high * scale:.3g}v{-weight * scale:.3g}h.8v{weight * scale:.3g}z"
        for number, weight in enumerate(weights)
    )
