"""The curve of the paper's figures: held-out networks tested along their updates."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.distilled import Steps
from ..core.engine import Engine
from ..core.network import Weights
from ..core.objective import Objective
from ..core.update import GradientDescent, UpdateRule, training
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine import engine_for
from ..errors import ConfigError
from ..progress import ProgressCallback, silent
from .held_out import HeldOut, Learn
from .result import Evaluation

PLAIN = GradientDescent()


def train_and_score(
    steps: Steps,
    held_out: HeldOut,
    data: LabelledData,
    objective: Objective,
    *,
    rule: UpdateRule = PLAIN,
    after: Sequence[int] | None = None,
    statistics: Any = None,
    progress: ProgressCallback = silent,
) -> list[Evaluation]:
    """Trains held-out networks on steps of distilled data, and tests them along the way.

    They are trained in groups side by side; how large the groups are changes no result.

    Args:
        steps: Distilled data and their schedule.
        held_out: The networks.
        data: The real data to test on.
        objective: What is measured; its inner loss is descended.
        rule: The update rule.
        after: Numbers of updates after which to test; 0 is the untrained network. By default
            after the last update alone.
        statistics: What the running statistics of the networks are measured on: the distilled
            images by default, real data, or ``"batch"`` to normalise by the batch they test.
        progress: Called after every test of a group of networks, perhaps in another thread.

    Returns:
        One evaluation of all networks for each entry of ``after``.
    """
    network = held_out.network
    steps = steps.to(network.device, network.dtype)
    return held_out.train_and_test(
        _learning(engine_for(network, objective), steps, rule, held_out),
        data,
        objective,
        after=_checked(after, len(steps.schedule)),
        batch=steps.inputs.flatten(0, 1)[: steps.images],
        rule=rule,
        statistics=Statistics.of(statistics, steps.inputs, network),
        progress=progress,
    )


def _learning(engine: Engine, steps: Steps, rule: UpdateRule, held_out: HeldOut) -> Learn:
    """Training by the schedule of the steps: θ₀, θ₁, …, θ_T."""

    def learn(theta0: Weights, numbers: range) -> Iterator[Weights]:
        own = steps.for_networks(held_out.seed, held_out.purpose, numbers)
        return training(rule, engine, theta0, own)

    return learn


def _checked(after: Sequence[int] | None, total: int) -> Sequence[int]:
    """The numbers of updates after which to test, if the schedule has them."""
    after = [total] if after is None else after
    for t in after:
        if not 0 <= t <= total:
            raise ConfigError(
                f"There is no update {t} to test after: the schedule has {total} updates.",
                f"Choose numbers from 0 to {total}.",
            )
    return after
