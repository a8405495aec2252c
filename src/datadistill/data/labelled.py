"""Real data: inputs with labels, normalised by the batch."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ..core.random import stream
from ..errors import DataError


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of each channel, for pixels in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, images: Tensor) -> Tensor:
        """Pixels in [0, 1] → normalised space; images are (…, channels, height, width)."""
        mean, std = self._columns(images)
        return (images - mean) / std

    def undo(self, images: Tensor) -> Tensor:
        """Normalised space → pixels, mostly in [0, 1]."""
        mean, std = self._columns(images)
        return images * std + mean

    def _columns(self, images: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = images.new_tensor(self.mean), images.new_tensor(self.std)
        return mean[:, None, None], std[:, None, None]


@dataclass(frozen=True)
class LabelledData:
    """Inputs and their labels, in memory.

    Attributes:
        inputs: (examples, …). Bytes are pixels 0 to 255; floats are taken as they are.
        labels: (examples,) of class indices, or float regression targets (examples, …).
        normalization: Applied to each batch; None if the inputs are normalised already.
        class_names: What each class is called, if it has names.
        name: What the data set is called in results.
        split: Which part of it this is, e.g. ``train``.
    """

    inputs: Tensor
    labels: Tensor
    normalization: Normalization | None = None
    class_names: tuple[str, ...] | None = None
    name: str = "own data"
    split: str = "train"

    def __post_init__(self) -> None:
        where = f"The {self.split} split of {self.name}"
        if len(self.inputs) == 0:
            raise DataError(f"{where} is empty.", "Give it at least one example of every class.")
        if self.inputs.ndim < 2:
            raise DataError(
                f"{where} has inputs of shape {tuple(self.inputs.shape)}.",
                "Inputs need a shape of (examples, …), e.g. (examples, channels, height, width).",
            )
        if len(self.inputs) != len(self.labels):
            raise DataError(
                f"{where} has {len(self.inputs)} inputs but {len(self.labels)} labels.",
                "Give every input exactly one label.",
            )
        if self.inputs.is_floating_point():
            finite = torch.isfinite(self.inputs).flatten(1).all(1)
            if not finite.all():
                bad = int((~finite).nonzero()[0])
                raise DataError(
                    f"{where} has inputs that are NaN or infinite, first in example {bad}.",
                    "Remove or repair those examples.",
                )
        elif self.inputs.dtype != torch.uint8:
            raise DataError(
                f"{where} has inputs of type {self.inputs.dtype}.",
                "Use bytes (uint8, 0 to 255) or floating-point numbers.",
            )

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def input_shape(self) -> torch.Size:
        """The shape of one input."""
        return self.inputs.shape[1:]

    @property
    def classes(self) -> int:
        """How many classes there are: as many as have names, or as the labels show."""
        return len(self.class_names) if self.class_names else int(self.labels.max()) + 1

    def batch(
        self, indices: Tensor | slice, device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Returns the normalised inputs and the labels of some examples."""
        inputs = self.inputs[indices].to(device)
        labels = self.labels[indices].to(device)
        if inputs.dtype == torch.uint8:
            inputs = inputs.to(dtype) / 255
        if self.normalization is not None:
            inputs = self.normalization.apply(inputs)
        if labels.is_floating_point():
            labels = labels.to(dtype)
        return inputs.to(dtype), labels

    def example(self) -> Tensor:
        """Two normalised inputs on which to try a network."""
        return self.batch(slice(2), torch.device("cpu"), torch.float32)[0]

    def part(self, indices: Tensor, split: str) -> "LabelledData":
        """Returns some of the examples as a split of their own."""
        return replace(self, inputs=self.inputs[indices], labels=self.labels[indices], split=split)

    def hold_out(self, fraction: float, seed: int) -> tuple["LabelledData", "LabelledData"]:
        """Splits at random into the training data that remain and held-out validation data.

        Every class gives the same share, and keeps at least one example for training.
        """
        order = torch.randperm(len(self), generator=stream(seed, "hold out"))
        if self.labels.is_floating_point():
            groups = [order]
        else:
            labels = self.labels[order]
            groups = [order[labels == label] for label in labels.unique()]
        counts = [min(round(fraction * len(group)), len(group) - 1) for group in groups]
        held_out = torch.cat([group[:n] for group, n in zip(groups, counts, strict=True)])
        if not len(held_out):
            raise DataError(
                f"Holding out {fraction:.0%} of {len(self)} examples leaves none to validate on.",
                "Give more examples, or set validation to 0.",
            )
        keep = torch.ones(len(self), dtype=torch.bool)
        keep[held_out] = False
        return self.part(order[keep[order]], self.split), self.part(held_out, "validation")


def as_data(source: Any, split: str = "train") -> LabelledData:
    """Takes real data in any of the forms a user has them.

    Args:
        source: :class:`LabelledData`, a pair (inputs, labels) of tensors or arrays, or any
            torch ``Dataset`` of (input, label) pairs. Floats are taken to be normalised.
        split: What to call data that have no name.
    """
    if isinstance(source, LabelledData):
        return source
    if isinstance(source, tuple | list) and len(source) == 2:
        inputs, labels = source
        return LabelledData(_tensor(inputs), _tensor(labels), split=split)
    if isinstance(source, Dataset):
        return _from_items(source, split)  # pyright: ignore[reportArgumentType]
    raise DataError(
        f"{type(source).__name__} is not a data set.",
        "Pass a pair (inputs, labels) of tensors, or a torch Dataset of (input, label) pairs.",
    )


def _from_items(items: Iterable[tuple[Any, Any]], split: str) -> LabelledData:
    inputs: list[Tensor] = []
    labels: list[Tensor] = []
    # Datasets that only have __getitem__ and __len__ do not stop a plain for loop.
    length = len(items) if hasattr(items, "__len__") else None  # pyright: ignore[reportArgumentType]
    try:
        for item in items if length is None else (items[i] for i in range(length)):  # pyright: ignore[reportIndexIssue]
            pixels, label = item
            inputs.append(_tensor(pixels))
            labels.append(_tensor(label))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Item {len(inputs)} of the data set is not a pair (input, label): {error}",
            "Return tensors or arrays; images need a transform such as ToTensor().",
        ) from error
    shapes = {tuple(pixels.shape) for pixels in inputs}
    if len(shapes) > 1:
        raise DataError(
            f"The inputs have different shapes: {', '.join(map(str, sorted(shapes)[:3]))}.",
            "Resize or crop them to one shape.",
        )
    if not inputs:
        return LabelledData(torch.empty(0, 1), torch.empty(0), split=split)
    return LabelledData(torch.stack(inputs), torch.stack(labels), split=split)


def _tensor(value: Any) -> Tensor:
    tensor = value.detach() if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    whole = not tensor.is_floating_point() and tensor.dtype != torch.uint8
    return tensor.long() if whole else tensor
