"""How well distilled data train networks: after the last update, or after every one."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from ..artefact import DistilledData
from ..artefact.real_data import statistics_data
from ..core.device import DeviceLike
from ..core.grad_mode import with_gradients
from ..engine.side_by_side import DEFAULT_BYTES
from ..engine.team import ALONE, Team
from ..errors import ConfigError
from ..given import typed
from ..progress import ProgressCallback
from ..showing import shown
from .held_out import HeldOut
from .learners import HELD_OUT_NETWORKS as HELD_OUT_NETWORKS
from .learners import Learners
from .learners import check_inputs as check_inputs
from .result import Evaluation as Evaluation
from .scoring import train_and_score
from .testing import test_networks as test_networks


@typed
@with_gradients
def evaluate(
    distilled: DistilledData | str | Path,
    data: Any,
    *,
    networks: int | None = None,
    module: nn.Module | None = None,
    architecture: nn.Module | None = None,
    seed: int = 0,
    statistics: Any = None,
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    team: Team = ALONE,
    progress: bool | ProgressCallback = False,
) -> Evaluation:
    """Trains networks on distilled data and tests them on real data.

    Args:
        distilled: Distilled data, or the path of an artefact.
        data: The real data: :class:`LabelledData`, a pair of tensors or a torch ``Dataset``.
        networks: How many networks to train; 1 for a fixed initialization, 200 for others.
            They are never networks that distillation saw.
        module: The network, where it is not built in.
        architecture: Another network than the one that was distilled for. Its weights are
            drawn at random by the same scheme, also where the initialization is fixed.
        seed: Which held-out networks.
        statistics: Real data whose statistics batch normalisation is to use; by default those of
            the distilled images, as in :meth:`DistilledData.train`. ``"batch"`` normalises by the
            batch of test data, as earlier versions did.
        device: Where to compute: auto, cpu, cuda or mps.
        memory: Memory limit in bytes of the networks that are trained side by side.
        team: The processes among which the networks are divided; this one alone by default.
        progress: Whether to show it: True for a bar; or a callback, called after every group of
            networks.
    """
    learners = Learners.of(distilled, data, networks, module, architecture, device)
    last = len(learners.distilled.steps.schedule)
    held_out = learners.held_out(seed, memory, team)
    with shown(progress) as show:
        return _curve(learners, held_out, [last], statistics, show)[0]


@typed
@with_gradients
def learning_curve(
    distilled: DistilledData | str | Path,
    data: Any,
    *,
    after: Sequence[int] | None = None,
    networks: int | None = None,
    module: nn.Module | None = None,
    architecture: nn.Module | None = None,
    seed: int = 0,
    statistics: Any = None,
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    team: Team = ALONE,
    progress: bool | ProgressCallback = False,
) -> list[Evaluation]:
    """Trains networks on distilled data and tests them after every update.

    Args:
        distilled: As for :func:`evaluate`, like all that is not explained here.
        data: The real data.
        after: Numbers of updates after which to test; by default 0, the untrained networks,
            and every update up to the last.
        networks: How many networks to train.
        module: The network, where it is not built in.
        architecture: Another network than the one that was distilled for.
        seed: Which held-out networks.
        statistics: What batch normalisation uses.
        device: Where to compute.
        memory: Memory limit in bytes.
        team: The processes among which the networks are divided.
        progress: True for a bar, or a callback, called after every test of a group of networks.

    Returns:
        One evaluation for each number of updates; ``updates`` says which.
    """
    learners = Learners.of(distilled, data, networks, module, architecture, device)
    last = len(learners.distilled.steps.schedule)
    after = range(last + 1) if after is None else after
    if not len(after):
        raise ConfigError("after names no update.", "Name one, e.g. after=[0], or leave it out.")
    held_out = learners.held_out(seed, memory, team)
    with shown(progress) as show:
        return _curve(learners, held_out, after, statistics, show)


def _curve(
    learners: Learners,
    held_out: HeldOut,
    after: Sequence[int],
    statistics: Any,
    progress: ProgressCallback,
) -> list[Evaluation]:
    distilled = learners.distilled
    statistics = statistics_data(distilled, statistics)
    found = train_and_score(
        distilled.steps,
        held_out,
        learners.data,
        learners.distilled.objective,
        rule=learners.distilled.rule,
        after=after,
        statistics=statistics,
        progress=progress,
    )
    objective = learners.distilled.objective
    return [replace(one, note=_note(learners.note, one, objective.has_loss)) for one in found]


def _note(note: str, found: Evaluation, known: bool) -> str:
    """What is unusual about the networks, and how many of them have diverged."""
    diverged = sum(not math.isfinite(loss) for loss in found.losses) if known else 0
    said = f"{diverged} of {len(found.losses)} network(s) diverged" if diverged else ""
    return "; ".join(filter(None, [note, said]))
