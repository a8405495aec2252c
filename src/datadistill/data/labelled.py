"""Real data: inputs with labels, normalised batch by batch."""

import operator
from dataclasses import dataclass, fields, replace
from typing import SupportsIndex

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ..core.random import stream
from ..errors import DataError
from .dense import check_dense
from .images.augmentation import Augmentation, select
from .images.image_files import ImageFiles
from .normalization import Normalization

CPU = torch.device("cpu")
MANY_CLASSES = 2**16


@dataclass(frozen=True, eq=False, repr=False)
class LabelledData(Dataset[tuple[Tensor, Tensor]]):
    """Inputs and their labels, in memory or in image files.

    It is a torch ``Dataset`` of (input, label) pairs, normalised but not augmented.

    Example::

        train, test = dd.data.load("digits")
        image, label = train[0]
        images, labels = train.tensors()
        loader = torch.utils.data.DataLoader(train, batch_size=64, shuffle=True)

    Attributes:
        inputs: (examples, …). Bytes are pixels 0 to 255; floats are used unchanged; integers
            (int64) are token ids, which reach the network as integers. Image files are decoded
            batch by batch.
        labels: (examples,) class indices, or float regression targets (examples, …).
        normalization: Applied to each batch; None if the inputs are normalised.
        class_names: The names of the classes, if they have any.
        name: The name of the data set in results.
        split: Which split this is, e.g. ``train``.
        augmentation: Random views for training; used only in batches that are given a generator.
        present: (examples, classes): all classes in each example, if the label is only one of
            them.
    """

    inputs: Tensor | ImageFiles
    labels: Tensor
    normalization: Normalization | None = None
    class_names: tuple[str, ...] | None = None
    name: str = "own data"
    split: str = "train"
    augmentation: Augmentation | None = None
    present: Tensor | None = None

    def __post_init__(self) -> None:
        where = f"The {self.split} split of {self.name}"
        if not isinstance(self.inputs, Tensor | ImageFiles) or not isinstance(self.labels, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            kinds = f"{type(self.inputs).__name__} and {type(self.labels).__name__}"
            raise DataError(
                f"{where} has inputs and labels of the types {kinds}, not tensors.",
                "Convert arrays and lists: dd.data.as_data((inputs, labels)).",
            )
        for tensor in (self.inputs, self.labels):
            if isinstance(tensor, Tensor):
                check_dense(tensor)
        if self.inputs.ndim and len(self.inputs) == 0:
            raise DataError(f"{where} is empty.", "Provide at least one example of every class.")
        if self.inputs.ndim < 2:
            raise DataError(
                f"{where} has inputs of shape {tuple(self.inputs.shape)}.",
                "The shape must be (examples, …), e.g. (examples, channels, height, width).",
            )
        if self.labels.ndim == 0:
            raise DataError(f"{where} has one label.", "Provide one label for every input.")
        if len(self.inputs) != len(self.labels):
            raise DataError(
                f"{where} has {len(self.inputs)} inputs but {len(self.labels)} labels.",
                "Provide exactly one label for every input.",
            )
        self._check_labels(where)
        self._check_channels(where)
        if isinstance(self.inputs, Tensor) and self.inputs.is_floating_point():
            finite = torch.isfinite(self.inputs.float()).flatten(1).all(1)  # as batches have them
            if not finite.all():
                bad = int((~finite).nonzero()[0])
                raise DataError(
                    f"{where} has inputs that are NaN or infinite, first in example {bad}.",
                    "Remove or correct those examples.",
                )
        elif self.inputs.dtype not in (torch.uint8, torch.int64):
            raise DataError(
                f"{where} has inputs of type {self.inputs.dtype}.",
                "Use bytes (uint8, 0 to 255), floating-point numbers, or int64 for token ids.",
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: SupportsIndex) -> tuple[Tensor, Tensor]:
        """Returns one normalised input and its label."""
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"{number} is not one of {len(self)} examples")
        inputs, labels = self.batch(torch.tensor([number % len(self)]), CPU, torch.float32)
        return inputs[0], labels[0]

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, Tensor]]:
        """Returns several examples; a torch ``DataLoader`` asks for them in this way."""
        return [*zip(*self.batch(torch.tensor(indices), CPU, torch.float32), strict=True)]

    def __eq__(self, other: object) -> bool:
        """Whether all attributes are equal; image files are compared by their paths."""
        if not isinstance(other, LabelledData):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.name, self.split, tuple(self.inputs.shape)))

    def __repr__(self) -> str:
        shape, norm = "×".join(map(str, self.input_shape)), self.normalization
        kind = str(self.inputs.dtype).removeprefix("torch.")
        what = "targets" if self.labels.is_floating_point() else f"{self.classes} classes"
        stats = f", mean {_shown(norm.mean)}, std {_shown(norm.std)}" if norm else ""
        return (
            f"<LabelledData: {len(self):,} examples of {self.name} ({self.split}), {shape} {kind}, "
            f"{what}{stats}>"
        )

    @property
    def input_shape(self) -> torch.Size:
        """The shape of one input."""
        return self.inputs.shape[1:]

    @property
    def classes(self) -> int:
        """The number of classes: of class names, or else of labels; of targets in regression."""
        if self.class_names:
            return len(self.class_names)
        floats = self.labels.is_floating_point()
        return self.labels[0].numel() if floats else int(self.labels.max()) + 1

    def tensors(self, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """Returns all normalised inputs and all labels, in memory.

        Args:
            dtype: The floating-point type of the inputs.
        """
        return self.batch(slice(None), CPU, dtype)

    def batch(
        self,
        indices: Tensor | slice,
        device: torch.device,
        dtype: torch.dtype,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Returns the normalised inputs and the labels of some examples; token ids as they are.

        Args:
            indices: Which examples.
            device: The device of the result.
            dtype: The floating-point type of the result.
            generator: Draws the random views of the augmentation; without one, inputs are not
                augmented.
        """
        inputs = self._views(indices, generator).to(device)
        labels = self.labels[indices].to(device)
        if inputs.dtype == torch.uint8:
            inputs = inputs.to(dtype).div_(255)
            inputs = self.normalization.apply_(inputs) if self.normalization else inputs
        elif self.normalization is not None:
            inputs = self.normalization.apply(inputs)
        if labels.is_floating_point():
            labels = labels.to(dtype)
        return (inputs if inputs.dtype == torch.int64 else inputs.to(dtype)), labels

    def example(self) -> Tensor:
        """Two normalised inputs, to try a network on."""
        return self.batch(slice(2), CPU, torch.float32)[0]

    def part(self, indices: Tensor, split: str) -> "LabelledData":
        """Returns some of the examples as a split."""
        inputs = self.inputs
        files = isinstance(inputs, ImageFiles)
        return replace(
            self,
            inputs=inputs.part(indices) if files else select(inputs, indices),
            labels=self.labels[indices],
            present=None if self.present is None else self.present[indices],
            split=split,
        )

    def sample(self, examples: int, purpose: str) -> "LabelledData":
        """Returns a random sample of the examples, or all if there are fewer.

        Args:
            examples: How many.
            purpose: Names the random stream.
        """
        order = torch.randperm(len(self), generator=stream(0, purpose))
        return self.part(order[:examples], self.split)

    def hold_out(self, fraction: float, seed: int) -> tuple["LabelledData", "LabelledData"]:
        """Splits at random into training data and held-out validation data.

        The split is stratified by class; every class keeps at least one training example.
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
                f"Holding out {fraction:.0%} of {len(self)} examples leaves none for validation.",
                "Provide more examples, or set validation to 0.",
            )
        keep = torch.ones(len(self), dtype=torch.bool)
        keep[held_out] = False
        return self.part(order[keep[order]], self.split), self.part(held_out, "validation")

    def _views(self, indices: Tensor | slice, generator: torch.Generator | None) -> Tensor:
        if self.augmentation is not None and generator is not None:
            chosen = torch.arange(len(self))[indices]
            return self.augmentation(self.inputs, chosen, generator)
        return select(self.inputs, indices)

    def _check_channels(self, where: str) -> None:
        norm, shape = self.normalization, self.input_shape
        if norm is not None and (len(shape) != 3 or len(norm.mean) not in (1, shape[0])):
            raise DataError(
                f"{where} has inputs of shape {tuple(shape)}, but a normalization for "
                f"{len(norm.mean)} channel(s).",
                "Give one mean and standard deviation for every channel.",
            )
        if norm is not None and norm.whitening and norm.whitening.size != shape.numel():
            raise DataError(
                f"{where} has inputs of shape {tuple(shape)}, but a whitening for images of "
                f"{norm.whitening.size} numbers.",
                "Load images of the size that was whitened.",
            )

    def _check_labels(self, where: str) -> None:
        if self.labels.is_floating_point():
            if not torch.isfinite(self.labels.float()).all():
                raise DataError(
                    f"{where} has targets that are NaN or infinite.", "Remove those examples."
                )
            return
        low, high = int(self.labels.min()), int(self.labels.max())
        if not self.class_names:
            if high >= max(MANY_CLASSES, len(self.labels)):  # outputs that a network would have
                raise DataError(
                    f"{where} has {len(self.labels)} examples with labels up to {high}.",
                    "Number the classes from 0.",
                )
            return
        classes = len(self.class_names)
        if low < 0 or high >= classes:
            raise DataError(
                f"{where} has labels from {low} to {high}, but {classes} class names.",
                f"Number the classes from 0 to {classes - 1}.",
            )


def _equal(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and one == other


def _shown(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:.4g}" for value in values)
