"""Pictures of distilled images with their labels and learning rates."""

import itertools
import math
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from ..artefact import DistilledData
from ..errors import DataError, printable
from ..pixels import are_images
from .style import drawing, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGE = 0.8  # inches a side
LABEL = 0.2  # inches above an image
BARS = 0.3  # inches below an image, for labels that are learned
MARGIN = 1.1  # inches left of the images, for the step and its learning rates
TITLE = 0.45  # inches above them
LINE = 0.17  # inches for each line of the title after the first
SHOWN = 5  # learning rates that fit beside an image
COLUMNS = 20  # images in a row at most
MOST = 400  # images that are drawn, each of which takes a while
LETTERS = 200  # of a title
NAMED = 3  # classes of a learned label that are named


def draw(distilled: DistilledData, path: Path) -> None:
    """Writes a picture: the images of every step, with its learning rate in every epoch."""
    images = distilled.images.detach().cpu()
    if not are_images(images.shape[2:]):
        raise DataError(
            f"Distilled data of shape {tuple(images.shape[2:])} are not images.",
            "Only grey or colour images can be drawn.",
        )
    steps, count = images.shape[0], min(images.shape[1], MOST)
    steps = min(steps, max(1, MOST // count))
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)  # of one step
    soft = is_soft(distilled.labels)
    # Labels stand above the first step alone, unless a step takes several rows or has its own.
    every = rows > 1 or soft
    pitch = IMAGE + (LABEL if every else 0) + (BARS if soft else 0)
    width = MARGIN + columns * IMAGE + 0.15
    title = printable(_cut(_title(distilled, steps * count), LETTERS))
    lines = textwrap.wrap(title, max(20, int((width - MARGIN) * 72 / (0.55 * 9))))
    top = TITLE + LINE * (len(lines) - 1) + LABEL * (not every)
    labels = [printable(_label(distilled, 0, number)) for number in range(count)]
    size = 9 if rows == 1 and max(map(len, labels)) <= _letters(9) else 6
    height = top + steps * rows * pitch + 0.15
    with drawing(width, height) as figure:
        for line, text in enumerate(lines):
            above = 1 - (0.22 + LINE * line) / height
            figure.text(MARGIN / width, above, text, va="center", fontsize=9)
        for step, number in itertools.product(range(steps), range(count)):
            row, column = divmod(number, columns)
            bottom = height - top - (step * rows + row + 1) * pitch + (BARS if soft else 0)
            if number == 0:
                middle = (bottom + IMAGE / 2) / height
                rates = _rates(distilled, step)
                figure.text(0.12 / width, middle, rates, va="center", fontsize=7)
            left = MARGIN + column * IMAGE
            box = (left / width, bottom / height, 0.94 * IMAGE / width, 0.94 * IMAGE / height)
            axes = figure.add_axes(box)
            axes.axis("off")
            axes.imshow(_pixels(images[step, number]), cmap="gray", interpolation="nearest")
            label = printable(_label(distilled, step, number)) if soft else labels[number]
            label = _cut(label, _letters(size)) if step == 0 or every else ""
            # At its place: to look for one takes matplotlib longer than all of the rest.
            axes.set_title(label, fontsize=size, pad=3, y=1.0)
            if soft:
                below = (left / width, (bottom - BARS) / height, box[2], 0.8 * BARS / height)
                _draw_bars(figure.add_axes(below), distilled.labels[step, number])
        save(figure, path, dpi=150)


def _pixels(image: Tensor) -> np.ndarray:
    """One image stretched to its own range, as distilled images go far beyond [0, 1]."""
    low, high = image.double().aminmax()  # the range itself may be out of range
    stretched = (image - low) / (high - low).clamp_min(1e-12)
    return stretched.permute(1, 2, 0).squeeze(-1).float().numpy()


def is_soft(labels: Tensor) -> bool:
    """Whether labels are numbers for every class."""
    return labels.is_floating_point() and labels.ndim == 3 and labels.shape[2] > 1


def _draw_bars(axes: "Axes", label: Tensor) -> None:
    """One bar for each class, from 0 up or down."""
    values = label.detach().double().cpu()
    axes.bar(range(len(values)), (values / values.abs().max().clamp_min(1e-12)).tolist(), width=0.8)
    axes.axhline(0, color="black", linewidth=0.4)
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.axis("off")


def _label(distilled: DistilledData, step: int, column: int) -> str:
    """The class of an image; of labels that are learned, those that count most."""
    label = distilled.labels[step, column]
    if not label.is_floating_point():
        return _class_name(distilled, int(label))
    if not label.ndim:
        return f"{float(label):.2f}"
    if not is_soft(distilled.labels) or not distilled.objective.has_classes:
        return ""
    order = label.argsort(descending=True, stable=True).tolist()
    most = float(label[order[0]])
    named = [number for number in order[:NAMED] if float(label[number]) > most / 2]
    return " ".join(_class_name(distilled, number) for number in named)


def _class_name(distilled: DistilledData, number: int) -> str:
    names = distilled.class_names or []
    if not 0 <= number < len(names):
        return str(number)
    # Folders are named 001.Black_footed_Albatross and the like.
    return re.sub(r"^\d+\.(?=\D)", "", names[number]).replace("_", " ")


def _letters(size: int) -> int:
    """How many letters of a size in points fit above an image."""
    return int(IMAGE * 72 / (0.62 * size))


def _cut(label: str, letters: int) -> str:
    return label if len(label) <= letters else label[: letters - 1].rstrip() + "…"


def _rates(distilled: DistilledData, step: int) -> str:
    rates = distilled.learning_rates[:, step].tolist()
    shown = [f"η{_subscript(e + 1)} = {rate:.3g}" for e, rate in enumerate(rates[:SHOWN])]
    more = [f"… {len(rates)} epochs"] if len(rates) > SHOWN else []
    return "\n".join([f"step {step + 1}", *shown, *more])


def _subscript(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def _title(distilled: DistilledData, drawn: int) -> str:
    header = distilled.header
    first = f"the first {drawn} of " if drawn < len(distilled) else ""
    count = f"{first}{len(distilled)} distilled images of {header.data}"
    kind = f"for {header.architecture.name}, {header.initialization.kind} initialization"
    return f"{count} {kind}" + (f": {distilled.claim}" if distilled.claim else "")
