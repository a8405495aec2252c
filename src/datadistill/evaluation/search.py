"""The learning rate and number of epochs that serve real images best."""

import itertools
from collections.abc import Sequence

import torch

from ..core.distilled import Steps
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..core.update import GradientDescent, train, update_of
from ..data import LabelledData
from ..progress import Progress, ProgressCallback, silent
from .evaluate import test_networks

LEARNING_RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
EPOCHS = (1, 3, 5)
"""What the paper tries for its baselines, beside the learned learning rate."""


def with_rate(steps: Steps, rate: float, epochs: int) -> Steps:
    """Returns the same images with one learning rate for all updates."""
    rates = steps.inputs.new_full((epochs, len(steps.inputs)), rate)
    return Steps(steps.inputs, steps.labels, rates)


def metric_of(
    sets: Sequence[Steps],
    network: Network,
    theta0: Weights,
    data: LabelledData,
    objective: Objective,
) -> list[float]:
    """Trains the networks on each set of steps; returns the mean metric of each set."""
    rule = GradientDescent()
    update = update_of(network, objective.inner_loss, rule)
    return [
        test_networks(network, weights, data, objective).mean
        for weights in (train(update, rule.start(theta0), steps).weights for steps in sets)
    ]


def search(
    sets: Sequence[Steps],
    network: Network,
    theta0: Weights,
    data: LabelledData,
    objective: Objective,
    rates: Sequence[float] = LEARNING_RATES,
    progress: ProgressCallback = silent,
) -> tuple[float, int]:
    """Returns the (learning rate, epochs) that are best on average over the sets.

    Args:
        sets: Several sets of real images.
        network: The architecture.
        theta0: Stacked initial weights of the networks to train on each set.
        data: Held-out *training* data; the test set must choose nothing.
        objective: What is measured.
        rates: The learning rates to try.
        progress: Called after every combination.
    """
    choices = list(itertools.product(rates, EPOCHS))
    sign = 1 if objective.higher_is_better else -1
    means: list[float] = []
    for rate, epochs in choices:
        candidates = [with_rate(steps, rate, epochs) for steps in sets]
        values = torch.tensor(metric_of(candidates, network, theta0, data, objective))
        # A learning rate at which some network diverges is no good choice.
        means.append(float((sign * values.mean()).nan_to_num(-torch.inf)))
        progress(Progress("choosing a rate", len(means), len(choices)))
    return choices[means.index(max(means))]
