"""Noticing what cannot learn: losses that are not finite, inputs whose gradient is exactly 0."""

import torch
from torch import Tensor

from ..errors import NonFiniteError, ZeroGradientError
from .distiller import DistillerState
from .network import Network
from .parametrisation import LABELS, RATES, RULE

FIRST_STEPS, REJECTIONS_ALLOWED = 3, 5


def check_accepted(state: DistillerState, loss: float, rates: Tensor) -> None:
    """Refuses a distillation of which the last outer steps were all rejected.

    Args:
        state: The state after the last one.
        loss: Its loss.
        rates: The learning rates.
    """
    if state.rejected_in_a_row >= REJECTIONS_ALLOWED:
        raise NonFiniteError(
            f"The loss or its gradient was not finite in {REJECTIONS_ALLOWED} outer steps in a "
            f"row, up to outer step {state.outer_step} (loss {loss:.3g}, learning rates up to "
            f"{float(rates.max()):.3g}).",
            "Lower learning_rate or outer_lr, or set clip_norm.",
        )


def check_gradient(network: Network, state: DistillerState, loss: float) -> None:
    """Refuses a gradient of the distilled inputs that was exactly 0 in all outer steps.

    Args:
        network: The whole network.
        state: The state after the first outer steps.
        loss: The loss of the last one. At 0 there is nothing left to learn.
    """
    # The mean of all gradients so far: a single one that is not 0 shows in it.
    means = state.adam.first
    inputs = [mean for name, mean in means.items() if name not in (RATES, LABELS, RULE)]
    if loss == 0 or any(bool(mean.any()) for mean in inputs or means.values()):
        return
    cause = "" if _sees_inputs(network) else f" The outputs of {network.name} have no gradient."
    raise ZeroGradientError(
        "The gradient with respect to the distilled inputs is exactly 0 in the first "
        f"{state.adam.count} outer step(s).{cause}",
        "Look for sign(), round(), argmax(), detach() or .data in the forward pass."
        if cause
        else "Raise learning_rate, or check that the objective is differentiable.",
    )


def _sees_inputs(network: Network) -> bool:
    """Whether outputs have a gradient with respect to inputs."""
    inputs = network.example.clone().requires_grad_()
    outputs = network(network.stack([network.weights]), inputs)
    if not outputs.requires_grad:
        return False
    (gradient,) = torch.autograd.grad(outputs.square().sum(), inputs, materialize_grads=True)
    return bool(gradient.any())
