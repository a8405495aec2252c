"""One network, several processes: each takes its share of the minibatch of real data.

The outer loss is a mean over examples, so the loss and v = ∂L/∂θ_T are sums over shares. The
updates on distilled data, and the way back through them, are made by every process.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..core.network import Network, Weights
from ..core.objective import Objective
from ..errors import ConfigError, ModelError
from .micro_batches import Losses, mixes_examples
from .precomputed import PrecomputedGradient
from .team import Team


def losses_of_shares(
    losses: Losses, weights: Weights, inputs: Tensor, labels: Tensor, team: Team
) -> Tensor:
    """The mean losses (J,) on real data that a team divides; the same bits for every member.

    Args:
        losses: The mean losses on some examples.
        weights: θ_T.
        inputs: The real inputs of the whole minibatch.
        labels: Their labels.
        team: The members, which all call this.
    """
    mine = team.share(range(len(labels)))

    def both(leaves: Sequence[Tensor]) -> list[Tensor]:
        """The losses and their gradients, summed over all members as one flat tensor."""
        own = {n: w.detach().requires_grad_() for n, w in zip(weights, leaves, strict=True)}
        found = [leaves[0].new_zeros(len(leaves[0])), *map(torch.zeros_like, leaves)]
        if mine:
            chosen = slice(mine.start, mine.stop)
            with torch.enable_grad():
                each = losses(own, inputs[chosen], labels[chosen]) * (len(mine) / len(labels))
                g = torch.autograd.grad(each.sum(), [*own.values()], materialize_grads=True)
            found = [each.detach(), *g]
        return team.total(found)

    return PrecomputedGradient.apply(both, *weights.values())  # pyright: ignore[reportReturnType]


def check_shares(network: Network, objective: Objective) -> None:
    """Refuses a network or an objective whose minibatch cannot be divided among processes."""
    if mixes_examples(network):
        raise ModelError(
            f"{network.name} mixes the images of a batch, as batch normalisation does, so several "
            "processes cannot divide the minibatch of one network.",
            "Leave processes out, and use threads.",
        )
    if not objective.is_mean:
        raise ConfigError(
            "Several processes can divide one network's minibatch if the outer loss is a mean over "
            f"examples; {objective.text} does not say that it is.",
            "Write is_mean = True in its class if it is, or leave processes out.",
        )
