"""A defender's view: what simple measures do to an attack, and what they cost honest training.

For people who train online on data from others. Three measures are tried on the steps of an
attack: a cap on how far one update may move the weights, a smaller learning rate, and a check that
refuses a step whose loss or gradient is larger than those of honest batches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..core.distilled import Step, Steps
from ..core.engine import Engine
from ..core.learner import Learner
from ..core.network import Weights
from ..core.random import stream
from ..core.update import UpdateRule, trained
from ..core.values import one_line
from ..data import LabelledData
from ..errors import ConfigError
from .poisoning import Attacked, Victims

CAPS = (30.0, 10.0, 3.0, 1.0)
FACTORS = (0.5, 0.25, 0.1, 0.01)
FALSE_ALARMS = (0.01, 0.05)
HONEST_BATCHES = 200

STOPPED = "stopped"

Sign = Literal["loss", "gradient norm"]


@dataclass(frozen=True)
class Defence:
    """One measure.

    Attributes:
        kind: Which.
        strength: The cap on an update's norm, in medians of honest updates of the same network; the
            factor of the learning rates; or the share of honest batches that the check refuses.
    """

    kind: Literal["none", "cap", "factor", "loss", "gradient norm"] = "none"
    strength: float = 1.0

    def __str__(self) -> str:
        match self.kind:
            case "none":
                return "no defence"
            case "cap":
                return f"update at most {self.strength:g} × an honest one"
            case "factor":
                return f"learning rate × {self.strength:g}"
            case _:
                return f"{self.kind} above {100 * (1 - self.strength):g} % of honest batches"


@dataclass(frozen=True)
class Defended:
    """What an attack does to networks that are defended.

    Attributes:
        defence: How.
        figures: The networks after the steps.
        stopped: Share of the attack's steps that were refused, or made smaller by a cap.
        honest: The same share of honest batches: what the defence costs.
    """

    defence: Defence
    figures: Attacked
    stopped: float
    honest: float

    __repr__ = one_line


@dataclass(frozen=True)
class Honest:
    """What honest batches look like to J networks: losses and gradient norms, (J, batches)."""

    losses: Tensor
    norms: Tensor

    def of(self, sign: Sign) -> Tensor:
        """One of the two."""
        return self.losses if sign == "loss" else self.norms


def standard_defences(
    caps: Sequence[float] = CAPS,
    factors: Sequence[float] = FACTORS,
    false_alarms: Sequence[float] = FALSE_ALARMS,
) -> tuple[Defence, ...]:
    """None at first, then caps, factors and checks."""
    signs: tuple[Sign, ...] = ("loss", "gradient norm")
    return (
        Defence(),
        *(Defence("cap", cap) for cap in caps),
        *(Defence("factor", factor) for factor in factors),
        *(Defence(sign, share) for sign in signs for share in false_alarms),
    )


def defend(
    steps: Steps,
    victims: Victims,
    train: LabelledData,
    defences: Sequence[Defence] | None = None,
    *,
    honest_batches: int = HONEST_BATCHES,
) -> list[Defended]:
    """Measures an attack on networks under each defence.

    Args:
        steps: Poisonous distilled data.
        victims: The networks.
        train: Real training data: honest batches are drawn from them, with their true labels and as
            many images as an update takes.
        defences: Which; :func:`standard_defences` by default.
        honest_batches: How many honest batches each network knows, at its initial weights.
    """
    defences = standard_defences() if defences is None else defences
    _check(defences, honest_batches)
    network, images = victims.network, steps.images
    steps = steps.to(network.device, network.dtype)
    batches = [_honest_batch(train, victims, images, number) for number in range(honest_batches)]

    def work(theta0: Weights, numbers: range) -> list[tuple[Tensor, Tensor, Tensor]]:
        signs = [_signs(victims, theta0, batch) for batch in batches]
        honest = Honest(*(torch.stack(one, 1) for one in zip(*signs, strict=True)))
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for defence in defences:
            own = victims.own(steps, numbers)
            theta, stopped = defended(victims, theta0, own, defence, honest)
            found.append((victims.calls(theta), stopped, _cost(defence, honest)))
        return found

    groups = victims.each(images, work)
    results: list[Defended] = []
    for defence, parts in zip(defences, zip(*groups, strict=True), strict=True):
        calls, stopped, cost = (torch.cat(one) for one in zip(*parts, strict=True))
        figures = victims.figures(calls)
        results.append(Defended(defence, figures, float(stopped.mean()), float(cost.mean())))
    return results


def defended(
    victims: Victims, theta0: Weights, steps: Steps, defence: Defence, honest: Honest
) -> tuple[Weights, Tensor]:
    """θ_T of J networks under a defence, and the share (J,) of updates that it stopped."""
    rule = DefendedRule(victims.rule, victims.engine, defence, honest)
    learner = trained(rule, victims.engine, theta0, steps)
    return learner.weights, learner.memory[STOPPED][""] / len(steps.schedule)


@dataclass(frozen=True)
class DefendedRule:
    """An update rule whose updates a defence shortens or refuses.

    Its learners also carry how many of their updates were stopped.

    Attributes:
        rule: The rule.
        engine: Computes the losses on steps.
        defence: The defence.
        honest: What honest batches look like.
    """

    rule: UpdateRule
    engine: Engine
    defence: Defence
    honest: Honest

    def start(self, weights: Weights) -> Learner:
        """The rule's learner, with no update stopped."""
        none = torch.zeros(len(self.honest.norms), dtype=torch.float64)
        return _counting(self.rule.start(weights), none)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        """The rule's update, shortened to the share that the defence lets through."""
        factor = self.defence.strength if self.defence.kind == "factor" else 1
        weaker = step._replace(learning_rate=step.learning_rate * factor)
        updated = self.rule.update(learner, gradient, weaker)
        moved = {n: w - learner.weights[n] for n, w in updated.weights.items()}
        share = self._share(learner, gradient, weaker, moved)
        # Where the step was refused nothing moves, also if the update is not finite.
        weights = {
            n: learner.weights[n] + torch.where(_for(share, m) > 0, _for(share, m) * m, 0)
            for n, m in moved.items()
        }
        stopped = learner.memory[STOPPED][""] + (share < 1)
        return _counting(updated._replace(weights=weights), stopped)

    def _share(self, learner: Learner, gradient: Weights, step: Step, moved: Weights) -> Tensor:
        """The share (J,) of an update that is made: 1 for all of it, 0 if it is refused."""
        defence, honest = self.defence, self.honest
        match defence.kind:
            case "cap":
                # Honest updates have the length η̃‖∇ℓ‖, with this step's learning rate.
                rate = float(step.learning_rate)
                cap = defence.strength * rate * honest.norms.median(1).values
                return (cap / _norms(moved)).clamp_max(1).nan_to_num(0)
            case "loss":
                seen = self.engine.losses(learner.weights, step).double().cpu()
            case "gradient norm":
                seen = _norms(gradient)
            case _:
                return torch.ones_like(honest.norms[:, 0])
        return (seen <= _threshold(defence, honest)).double()


def _counting(learner: Learner, stopped: Tensor) -> Learner:
    return learner._replace(memory={**learner.memory, STOPPED: {"": stopped}})


def _cost(defence: Defence, honest: Honest) -> Tensor:
    """The share (J,) of honest batches that a defence stops."""
    if defence.kind == "cap":
        cap = defence.strength * honest.norms.median(1, keepdim=True).values
        return (honest.norms > cap).double().mean(1)
    if defence.kind in ("loss", "gradient norm"):
        return (honest.of(defence.kind) > _threshold(defence, honest)[:, None]).double().mean(1)
    return torch.zeros_like(honest.norms[:, 0])


def _threshold(defence: Defence, honest: Honest) -> Tensor:
    """What only a share of honest batches is above, for each network, (J,)."""
    sign = "loss" if defence.kind == "loss" else "gradient norm"
    return honest.of(sign).quantile(1 - defence.strength, dim=1)


def _signs(victims: Victims, weights: Weights, step: Step) -> tuple[Tensor, Tensor]:
    """The loss and the gradient's norm of each network on a step, (J,) each, in float64."""
    losses = victims.engine.losses(weights, step)
    return losses.double().cpu(), _norms(victims.engine.gradient(weights, step))


def _norms(tree: Weights) -> Tensor:
    """‖·‖ of all weights of each network together, (J,)."""
    squares = [w.double().flatten(1).square().sum(1) for w in tree.values()]
    return torch.stack(squares).sum(0).sqrt().cpu()


def _for(share: Tensor, w: Tensor) -> Tensor:
    """A number for each network as a factor of a weight (J, …)."""
    return share.to(w).reshape(-1, *[1] * (w.ndim - 1))


def _honest_batch(train: LabelledData, victims: Victims, images: int, number: int) -> Step:
    """Random training images with their true labels; the same for all networks."""
    random = stream(victims.seed, "honest batch", number)
    chosen = torch.randperm(len(train), generator=random)[:images]
    inputs, labels = train.batch(chosen, victims.network.device, victims.network.dtype)
    return Step(inputs, labels, inputs.new_ones(()))


def _check(defences: Sequence[Defence], honest_batches: int) -> None:
    for one in defences:
        most = 1 if one.kind in ("loss", "gradient norm") else math.inf
        if not 0 < one.strength < most:
            below = " below 1" if most == 1 else ""
            raise ConfigError(
                f"The strength of {one.kind} is {one.strength}.",
                f"Set it to a positive number{below}.",
            )
    checks = [one.strength for one in defences if one.kind in ("loss", "gradient norm")]
    if checks and honest_batches * min(checks) < 1:
        raise ConfigError(
            f"{100 * min(checks):g} % of {honest_batches} honest batches is less than one.",
            "Ask for more honest batches, or a higher rate of false alarms.",
        )
