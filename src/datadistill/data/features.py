"""Features: the output of a network's frozen layers for real images, computed once."""

from dataclasses import replace

import torch
from torch import Tensor

from ..engine.frozen_prefix import FrozenPrefix
from ..progress import Progress, ProgressCallback, silent
from .labelled import LabelledData

CACHE_BYTES = 2**31
"""Most bytes to cache the features of a data set in; larger ones are computed each time."""
CHUNK = 16  # images computed together, always the same ones, so that results are bit-identical


class Features:
    """The features of real data, cached once computed.

    Those of augmented images are not cached, because every view is different.

    Args:
        data: The real data.
        prefix: The frozen layers.
        device: The device to compute on.
        dtype: The floating-point type to compute in.
        cache_bytes: Most bytes to cache them in.
    """

    def __init__(
        self,
        data: LabelledData,
        prefix: FrozenPrefix,
        device: torch.device,
        dtype: torch.dtype,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._data, self._prefix, self._device, self._dtype = data, prefix, device, dtype
        self.fit = len(data) * prefix.shape.numel() * dtype.itemsize <= cache_bytes
        self._kept: Tensor | None = None
        self._there = torch.zeros(-(-len(data) // CHUNK), dtype=torch.bool)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self._prefix.shape))
        return f"<Features: {shape} of {len(self._data):,} examples of {self._data.name}>"

    def batch(self, indices: Tensor, views: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Returns the features and the labels of some examples.

        Args:
            indices: Which examples.
            views: Draws the random views of the augmentation.
        """
        if not self.fit or (self._data.augmentation and views):
            inputs, labels = self._data.batch(indices, self._device, self._dtype, views)
            return self._prefix(inputs), labels
        chunks = (indices // CHUNK).unique()
        for chunk in chunks[~self._there[chunks]].tolist():
            self._compute(chunk)
        assert self._kept is not None
        labels = self._data.labels[indices].to(self._device)
        return self._kept[indices], labels.to(self._dtype) if labels.is_floating_point() else labels

    def whole(self, progress: ProgressCallback = silent) -> LabelledData:
        """The data, with features as inputs."""
        for chunk in (~self._there).nonzero().flatten().tolist():
            self._compute(chunk)
            progress(Progress("features", chunk + 1, len(self._there)))
        assert self._kept is not None
        return replace(self._data, inputs=self._kept, normalization=None, augmentation=None)

    def _compute(self, chunk: int) -> None:
        if self._kept is None:
            shape = (len(self._data), *self._prefix.shape)
            self._kept = torch.empty(shape, device=self._device, dtype=self._dtype)
        numbers = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        inputs, _ = self._data.batch(numbers, self._device, self._dtype)
        self._kept[numbers] = self._prefix(inputs)
        self._there[chunk] = True
