"""Features: what the frozen layers of a network make of real images, computed once."""

from dataclasses import replace

import torch
from torch import Tensor

from ..engine.frozen_prefix import Body
from ..progress import Progress, ProgressCallback, silent
from .labelled import LabelledData

CACHE_BYTES = 2**31
"""What the features of a data set may take; those of a larger one are computed each time."""
CHUNK = 16  # images that are always computed together, so that the last bit is always the same


class Features:
    """The features of real data, kept once they have been computed.

    Those of augmented images are not kept: no two views are the same.

    Args:
        data: The real data.
        body: The frozen layers.
        device: Where to compute.
        dtype: What to compute in.
        cache_bytes: What they may take.
    """

    def __init__(
        self,
        data: LabelledData,
        body: Body,
        device: torch.device,
        dtype: torch.dtype,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._data, self._body, self._device, self._dtype = data, body, device, dtype
        self.fit = len(data) * body.shape.numel() * dtype.itemsize <= cache_bytes
        self._kept: Tensor | None = None
        self._there = torch.zeros(-(-len(data) // CHUNK), dtype=torch.bool)

    def batch(self, indices: Tensor, views: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Returns the features and the labels of some examples.

        Args:
            indices: Which examples.
            views: Draws the random views of an augmentation.
        """
        if not self.fit or (self._data.augmentation and views):
            inputs, labels = self._data.batch(indices, self._device, self._dtype, views)
            return self._body(inputs), labels
        chunks = (indices // CHUNK).unique()
        for chunk in chunks[~self._there[chunks]].tolist():
            self._compute(chunk)
        assert self._kept is not None
        labels = self._data.labels[indices].to(self._device)
        return self._kept[indices], labels.to(self._dtype) if labels.is_floating_point() else labels

    def whole(self, progress: ProgressCallback = silent) -> LabelledData:
        """The data with features for inputs."""
        for chunk in (~self._there).nonzero().flatten().tolist():
            self._compute(chunk)
            progress(Progress("features", chunk + 1, len(self._there)))
        assert self._kept is not None
        return replace(self._data, inputs=self._kept, normalization=None, augmentation=None)

    def _compute(self, chunk: int) -> None:
        if self._kept is None:
            shape = (len(self._data), *self._body.shape)
            self._kept = torch.empty(shape, device=self._device, dtype=self._dtype)
        numbers = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        inputs, _ = self._data.batch(numbers, self._device, self._dtype)
        self._kept[numbers] = self._body(inputs)
        self._there[chunk] = True
