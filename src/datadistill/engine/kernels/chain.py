"""Layers one after the other in C: their gradient and its products, in one call each."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .convolution import Convolution

_Whole, _Address = ctypes.c_int64, ctypes.c_void_p

Tensors = Sequence[Tensor | None]
"""Weights and biases of the layers in turn, or gradients of them; None where there are none."""


class Part(NamedTuple):
    """A layer with weights.

    Attributes:
        convolution: What computes it; None for a linear layer.
        kernel: The shape of its weights.
        inputs: Numbers of an example that it takes.
        relu: Whether ReLU follows that the convolution does not contain.
    """

    convolution: Convolution | None
    kernel: tuple[int, ...]
    inputs: int
    relu: bool

    @property
    def outputs(self) -> int:
        """Numbers of an example that it gives."""
        if self.convolution is None:
            return self.kernel[0]
        maps, rows, columns = self.convolution.result
        return maps * rows * columns

    @property
    def pools(self) -> bool:
        """Whether it selects pixels."""
        return self.convolution is not None and self.convolution.pooling is not None


@dataclass
class Kept:
    """What a pass keeps for the next one.

    Attributes:
        x: The inputs (J, N, …).
        weights: Weights and biases of the layers, in turn; all tensors of them lie in one piece.
        results: Of all layers.
        index: Which pixels were selected.
        deltas: The gradients of the results.
    """

    x: Tensor
    weights: Tensors
    results: Tensor
    index: Tensor
    deltas: Tensor


class ChainKernel:
    """Layers one after the other, for J networks side by side.

    Args:
        functions: The library for their dtype.
        parts: The layers.
    """

    def __init__(self, functions: ctypes.CDLL, parts: Sequence[Part]) -> None:
        self._functions, self._parts = functions, parts
        rows = [
            (p.convolution.shape if p.convolution else None, p.inputs, p.outputs, p.pools, p.relu)
            for p in parts
        ]
        self._layers = (_Layer * len(parts))(*rows)
        self._numbers = sum(part.outputs for part in parts)
        """Of all results for one example."""

    def forward(self, x: Tensor, weights: Tensors) -> tuple[Tensor, Kept]:
        """The outputs (J, N, classes) for inputs (J, N, …), and what :meth:`back` needs."""
        kept, batch = self._kept(x, weights), self._batch(x)
        w, b = _halves(kept.weights)
        self._call("chain_forward", batch, w, b, kept.results, kept.index)
        return self._last(kept.results, x), kept

    def back(self, kept: Kept, g: Tensor, to: Tensors) -> None:
        """Adds the gradients of weights and biases, where g is that of the outputs."""
        batch, (w, _), (gw, gb) = self._batch(kept.x), _halves(kept.weights), _halves(to)
        self._last(kept.deltas, kept.x).copy_(g)
        self._call("chain_back", batch, w, kept.results, kept.index, kept.deltas, gw, gb)

    def gradient(self, x: Tensor, labels: Tensor, weights: Tensors, to: Tensors) -> Kept:
        """Adds the gradient of the mean cross-entropy; returns what :meth:`products` needs."""
        if labels.shape not in (x.shape[:2], (*x.shape[:2], self._parts[-1].outputs)):
            raise ValueError(f"Inputs {tuple(x.shape)} have labels {tuple(labels.shape)}.")
        kept, batch = self._kept(x, weights), self._batch(x)
        (w, b), (gw, gb), y = _halves(kept.weights), _halves(to), _labels(labels)
        given = (w, b, y, kept.results, kept.index, kept.deltas, gw, gb)
        self._call("chain_gradient", batch, *given)
        return kept

    def products(
        self, kept: Kept, labels: Tensor, u: Tensors, to: Tensors
    ) -> tuple[Tensor, Tensor]:
        """Adds the gradients of ⟨u, ∇ℓ⟩ with respect to weights; returns those of x and labels."""
        inputs = kept.x.new_empty(kept.x.shape)
        of_labels = torch.zeros_like(labels)
        soft = of_labels if labels.is_floating_point() else None
        batch, (w, _), y = self._batch(kept.x), _halves(kept.weights), _labels(labels)
        given = (w, y, kept.results, kept.index, kept.deltas, *_halves(u), *_halves(to))
        self._call("chain_products", batch, *given, inputs, soft)
        return inputs, of_labels

    def bytes_for(self, x: Tensor) -> int:
        """What a gradient keeps for its products besides inputs and weights."""
        numbers = self._numbers * len(x) * x.shape[1]
        return numbers * (2 * x.element_size() + 1)

    def _kept(self, x: Tensor, weights: Tensors) -> Kept:
        """Room for what is kept; refuses tensors that would be read beyond their ends."""
        networks, images = x.shape[:2]
        shapes = [shape for p in self._parts for shape in (p.kernel, p.kernel[:1])]
        pairs = zip(weights, shapes, strict=True)
        fits = [own is None or own.shape == (networks, *one) for own, one in pairs]
        if not all(fits) or x[0, 0].numel() != self._parts[0].inputs:
            raise ValueError(f"A chain of {shapes} got inputs {tuple(x.shape)} or other weights.")
        size = self._numbers * networks * images
        room = x.new_empty(2 * size)
        index = torch.empty(size, dtype=torch.uint8)
        x = x if x[0, 0].is_contiguous() else x.contiguous()
        return Kept(x, weights, room[:size], index, room[size:])

    def _batch(self, x: Tensor) -> "_Batch":
        places = (ctypes.addressof(self._layers), x.data_ptr(), x.stride(0), x.stride(1))
        return _Batch(len(self._parts), *x.shape[:2], *places)

    def _last(self, kept: Tensor, x: Tensor) -> Tensor:
        """The part of the last layer."""
        networks, images, classes = *x.shape[:2], self._parts[-1].outputs
        return kept[-networks * images * classes :].view(networks, images, classes)

    def _call(self, name: str, batch: "_Batch", *given: object) -> None:
        places = (one.data_ptr() if isinstance(one, Tensor) else one for one in given)
        if getattr(self._functions, name)(ctypes.byref(batch), *places):
            raise MemoryError


class _Layer(ctypes.Structure):
    _fields_ = (
        ("shape", _Address),
        *((name, _Whole) for name in ("inputs", "outputs", "pools", "relu")),
    )


class _Batch(ctypes.Structure):
    _fields_ = (
        *((name, _Whole) for name in ("layers", "networks", "images")),
        *((name, _Address) for name in ("layer", "x")),
        *((name, _Whole) for name in ("of_network", "of_image")),
    )


class _Labels(ctypes.Structure):
    _fields_ = (("soft", _Address), ("hard", _Address))


def _labels(labels: Tensor) -> object:
    """The labels as C reads them; they must outlive the call and lie one after the other."""
    place = labels.data_ptr()
    soft = labels.is_floating_point()
    return ctypes.byref(_Labels(place, None) if soft else _Labels(None, place))


def _halves(tensors: Tensors) -> tuple[object, object]:
    """The addresses of weights, and those of biases."""
    count = len(tensors) // 2
    places = [None if one is None else one.data_ptr() for one in tensors]
    kind = _Address * count
    return kind(*places[::2]), kind(*places[1::2])
