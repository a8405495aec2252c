"""Losses whose gradients are computed together with them."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class PrecomputedGradient(Function):
    """A function of weights whose losses (J,) and gradients are computed together, at once."""

    @staticmethod
    def forward(
        ctx: Any, both: Callable[[Sequence[Tensor]], list[Tensor]], *weights: Tensor
    ) -> Tensor:
        """Computes both; keeps the gradients."""
        losses, *gradients = both(weights)
        ctx.save_for_backward(*gradients)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *v: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradients that were kept, each network's times its own v."""
        each = (g * v[0].to(g.dtype).view(-1, *[1] * (g.ndim - 1)) for g in ctx.saved_tensors)
        return None, *each
