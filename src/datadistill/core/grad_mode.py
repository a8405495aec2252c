"""Calls that need gradients, whatever mode their caller is in."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Call = TypeVar("Call", bound=Callable[..., Any])


def with_gradients(call: Call) -> Call:
    """Lets a function compute gradients also where its caller is in ``torch.no_grad()``.

    Training is what these functions do; evaluation code often calls them in such a block.
    """
    return torch.inference_mode(False)(torch.enable_grad()(call))  # pyright: ignore[reportReturnType]
