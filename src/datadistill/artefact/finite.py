"""Trained networks are finite."""

import torch
from torch import nn

from ..errors import NonFiniteError


def checked(module: nn.Module) -> nn.Module:
    """Returns a trained module; refuses one that has diverged."""
    sound = {name: torch.isfinite(weight) for name, weight in module.named_parameters()}
    # A mask, which is a buffer, may be infinite.
    sound |= {name: ~torch.isnan(value) for name, value in module.named_buffers()}
    for name, everywhere in sound.items():
        if not everywhere.all():
            raise NonFiniteError(
                f"The network has diverged: {name!r} is not finite after training.",
                "Choose another seed, or make the distilled data with lower learning rates.",
            )
    return module
