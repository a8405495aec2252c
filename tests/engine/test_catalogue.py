"""Both engines differentiate every distillation exactly: networks × objectives × rules × the rest.

Everything goes through ``Distiller.gradient``, as users' runs do. Every pair of choices occurs in
some case: all combinations would be many thousands.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill.core.adjoint import Adjoint, BackGradient, RidgeHead, StoredGraph, Truncated
from datadistill.core.adjoint.adjoint import OuterLoss
from datadistill.core.distilled import Step, Steps, positive, raw_of, zeros_like
from datadistill.core.distiller import Batch, Distiller, DistillerState
from datadistill.core.engine import Engine, PlainEngine
from datadistill.core.initialization import RandomInit
from datadistill.core.learner import Learner
from datadistill.core.network import Network, Weights
from datadistill.core.objective import (
    Classification,
    Objective,
    OwnObjective,
    Poisoning,
    Regression,
)
from datadistill.core.parametrisation import (
    RATES,
    RULE,
    Bases,
    LowResolution,
    Parameters,
    Parametrisation,
    Plain,
    SoftLabels,
    WithRule,
)
from datadistill.core.settings import DistillerConfig
from datadistill.core.update import (
    Adam,
    GradientDescent,
    LearnedRule,
    Momentum,
    Nesterov,
    UpdateRule,
    WeightDecay,
)
from datadistill.core.update.layer_rates import layers_of
from datadistill.core.update.loop import updated
from datadistill.core.variety import Training, Variety
from datadistill.core.view import (
    Brightness,
    Combined,
    Contrast,
    Cutout,
    Flip,
    Rotate,
    Saturation,
    Scale,
    Shift,
    View,
)
from datadistill.engine import FastEngine
from datadistill.engine.frozen_prefix import FrozenFeatures, split_frozen
from tests.covering import combinations, covering, parts
from tests.helpers import AWKWARD, NETWORKS, Branches, relative_error

Tree = dict[str, Tensor]

WHOLE = 10**6
DISTANCE = 5e-6  # of finite differences: few kinks of ReLU lie within it
EXAMPLES = 7


@dataclass(frozen=True)
class Saturating(UpdateRule):
    """A user's own rule, which writes ``update`` alone; not linear in the gradient."""

    decay: float = 0.1

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        return Learner(
            {
                name: w - step.rate_for(w) * (torch.tanh(3 * g) + self.decay * w**3)
                for (name, w), g in zip(learner.weights.items(), gradient.values(), strict=True)
            }
        )


@dataclass(frozen=True)
class LowRank(Parametrisation):
    """A user's own parametrisation: images are mixtures of a few learned ones."""

    rank: int = 3

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        images = steps.inputs.flatten(0, 1)
        u, s, v = torch.linalg.svd(images.flatten(1), full_matrices=False)
        basis = v[: self.rank].unflatten(1, images.shape[1:])
        mixture = (u * s)[:, : self.rank].unflatten(0, steps.inputs.shape[:2])
        raw = raw_of(steps.learning_rates).to(steps.inputs)
        return Parameters(
            {"basis": basis, "mixture": mixture, RATES: raw}, {"labels": steps.labels}
        )

    def steps(self, parameters: Parameters) -> Steps:
        tensors = parameters.all
        inputs = torch.einsum("sik,k...->si...", tensors["mixture"], torch.sin(tensors["basis"]))
        return Steps(inputs, tensors["labels"], positive(tensors[RATES]))


class RootMeanSquare(Regression):
    """A user's own outer loss, which is no mean over examples."""

    def outer_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return super().outer_loss(outputs, labels).sqrt()


def weighted(logits: Tensor, labels: Tensor) -> Tensor:
    """Divided by the sum of the batch's weights: no mean over examples either."""
    return F.cross_entropy(logits, labels, weight=torch.tensor([1.0, 2.0, 9.0]).to(logits))


@dataclass(frozen=True)
class Nothing(Adjoint):
    """Differentiates nothing: it finds the losses in a fraction of the time."""

    def taped(self, updates: int) -> int:
        return 0

    def __call__(
        self,
        rule: UpdateRule,
        engine: Engine,
        learner: Learner,
        steps: Steps,
        outer_loss: OuterLoss,
        generator: torch.Generator,
    ) -> tuple[Tensor, Steps]:
        with torch.no_grad():
            losses = outer_loss(updated(rule, engine, learner, steps).weights)
        return losses, zeros_like(steps)


OBJECTIVES: dict[str, tuple[Objective, int]] = {
    "classification": (Classification(), 3),
    "single output": (Classification(), 1),
    "regression": (Regression(), 2),
    "poisoning": (Poisoning(0, 1), 3),
    "own loss": (OwnObjective.of(weighted), 3),
    "own class": (RootMeanSquare(), 2),
}
RULES: dict[str, UpdateRule] = {
    "gradient descent": GradientDescent(),
    "momentum": Momentum(0.8),
    "nesterov": Nesterov(0.8),
    "adam": Adam(eps=0.05),  # with less it is the sign of the gradient at first, which jumps
    "weight decay": WeightDecay(0.1, Momentum(0.5)),
    "own rule": Saturating(),
    "learned momentum": LearnedRule(WeightDecay(0.1, Nesterov(0.6)), ("momentum",)),
    "learned by layer": LearnedRule(Momentum(0.6), ("momentum",), ("each",)),
}
PARAMETRISATIONS: dict[str, Parametrisation] = {
    "plain": Plain(),
    "soft labels": SoftLabels(),
    "logits": Plain(labels="logits"),
    "clipped": Plain(labels="clipped"),
    "low resolution": LowResolution(),
    "bases": Bases(bases=2, downscale=3, labels="soft"),
    "own parametrisation": LowRank(),
}
ADJOINTS: dict[str, Adjoint] = {
    "back-gradient": BackGradient(),
    "segments": BackGradient(segments=2),
    "stored graph": StoredGraph(),
    "truncated, all": Truncated(WHOLE),
    "truncated": Truncated(2),
    "ridge head": RidgeHead(ridge=0.01, pool=4, updates=3),
}
SCHEDULES: dict[str, dict[str, Any]] = {
    "1 step": {"steps": 1, "epochs": 1},
    "3 steps": {"steps": 3, "epochs": 1},
    "2 steps, 3 epochs": {"steps": 2, "epochs": 3},
    "inner minibatches": {"steps": 2, "epochs": 2, "inner_batch": 3},
    "shuffled": {"steps": 2, "epochs": 2, "shuffle": True},
}
VIEWS: dict[str, View | None] = {
    "no view": None,
    "moved": Combined((Shift(0.4), Scale(), Rotate(), Flip())),
    "coloured": Combined((Brightness(), Contrast(), Saturation(), Cutout(0.3))),
}
NETWORK_COUNTS = {"J=1": 1, "J=3": 3}
CHOICES: list[Mapping[str, Any]] = [
    {**NETWORKS, **AWKWARD},
    OBJECTIVES,
    RULES,
    PARAMETRISATIONS,
    ADJOINTS,
    SCHEDULES,
    NETWORK_COUNTS,
    VIEWS,
]

Case = tuple[str, ...]
CATALOGUE = list(covering(CHOICES))


def real_data(objective: Objective, outputs: int) -> Batch:
    random = torch.Generator().manual_seed(5)
    inputs = torch.randn(EXAMPLES, 1, 6, 6, generator=random).double()
    if isinstance(objective, Regression):
        return inputs, torch.randn(EXAMPLES, outputs, generator=random).double()
    return inputs, torch.arange(EXAMPLES) % max(outputs, 2)


def fitting(
    parametrisation: Parametrisation, objective: Objective, adjoint: Adjoint
) -> Parametrisation:
    """The same for an objective and an adjoint.

    One without classes has no logits to learn; one with a pool takes no negative labels.
    """
    if adjoint.pool and parametrisation.negative_labels(objective):
        assert isinstance(parametrisation, Plain)
        return replace(parametrisation, labels="clipped")
    kept = getattr(parametrisation, "labels", None)
    if kept is None or objective.has_classes:
        return parametrisation
    assert isinstance(parametrisation, Plain)
    return replace(parametrisation, labels="soft")


def of_layers(rule: UpdateRule, network: Network) -> UpdateRule:
    """The same for the layers of a network, where each has a learning rate of its own."""
    if not isinstance(rule, LearnedRule) or not rule.layers:
        return rule
    return replace(rule, layers=tuple(layers_of(network.weights)))


def prepare(case: Case) -> tuple[Distiller, DistillerState, Batch]:
    """A distillation in float64 by the plain engine."""
    network, objective, rule, parametrisation, adjoint, schedule, networks, view = case
    judge, outputs = OBJECTIVES[objective]
    batch = real_data(judge, outputs)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module: nn.Module = CHOICES[0][network](outputs)
    config = DistillerConfig(
        **SCHEDULES[schedule],
        networks=NETWORK_COUNTS[networks],
        images_per_class=2,
        learning_rate=0.2,
    )
    whole = Network(module, batch[0], dtype=torch.float64)
    update = of_layers(RULES[rule], whole)
    kept = fitting(PARAMETRISATIONS[parametrisation], judge, ADJOINTS[adjoint])
    made = Distiller(
        whole,
        RandomInit("module" if network == "batch normalised" else "xavier-normal"),
        judge,
        config,
        ADJOINTS[adjoint],
        update,
        kept if update.coefficients is None else WithRule(kept, update.coefficients),
        VIEWS[view],
    )
    return made, made.init(batch[0].shape[1:], batch[1]), batch


def slope(made: Distiller, state: DistillerState, batch: Batch, direction: Tree) -> float:
    """dL along a direction of what is learned, to fourth order in the distance."""

    def loss(times: int) -> float:
        moved = {n: state.parameters[n] + times * DISTANCE * d for n, d in direction.items()}
        parameters = {**state.parameters, **moved}
        return float(made.gradient(replace(state, parameters=parameters), batch)[0].mean())

    return (8 * (loss(1) - loss(-1)) - (loss(2) - loss(-2))) / (12 * DISTANCE)


def directions(gradient: Tree) -> Iterator[Tree]:
    """Along the gradient of each tensor alone, and anywhere in all of them together."""
    zeros = {name: torch.zeros_like(g) for name, g in gradient.items()}
    for name, g in gradient.items():
        # The derivative is ‖∇‖: every entry counts, none cancel.
        yield {**zeros, name: g / g.norm()}
    random = torch.Generator().manual_seed(1)
    anywhere = {n: torch.randn(g.shape, generator=random).double() for n, g in gradient.items()}
    yield {name: one / one.norm() for name, one in anywhere.items()}


def assert_exact(made: Distiller, state: DistillerState, batch: Batch, *gradients: Tree) -> None:
    """Compares gradients with finite differences of the losses."""
    if not made.adjoint.pool:
        losses = made.gradient(state, batch)[0]
        made = replace(made, adjoint=Nothing())
        assert relative_error(made.gradient(state, batch)[0], losses) < 1e-12
    for direction in directions(gradients[0]):
        expected = slope(made, state, batch, direction)
        for found in gradients:
            along = sum(float((found[n] * one).sum()) for n, one in direction.items())
            size = min(float(found[n].norm()) for n, one in direction.items() if one.any())
            assert abs(along - expected) < 2e-6 * size


def engines(made: Distiller) -> dict[str, Engine]:
    network, objective = made.network, made.objective
    return {"plain": PlainEngine(network, objective), "fast": FastEngine(network, objective)}


@pytest.mark.parametrize("case", CATALOGUE, ids=", ".join)
def test_both_engines_agree_with_each_other_and_with_finite_differences(case: Case) -> None:
    made, state, batch = prepare(case)
    by = {name: replace(made, own_engine=engine) for name, engine in engines(made).items()}
    losses, plain = by["plain"].gradient(state, batch)
    fast_losses, fast = by["fast"].gradient(state, batch)
    assert relative_error(fast_losses, losses) < 1e-12
    assert fast.keys() == plain.keys() == state.parameters.keys()
    if case[4] == "ridge head":  # which uses no learning rates
        for name in {RATES, RULE} & plain.keys():
            assert not fast.pop(name).any()
            assert not plain.pop(name).any()
    for name, expected in plain.items():
        assert float(expected.norm()) > 1e-6
        assert relative_error(fast[name], expected) < 1e-10, name
    if case[4] == "truncated":
        return  # no gradient of the losses: the updates before the window are held constant
    assert_exact(by["fast"], state, batch, fast, plain)


@pytest.mark.parametrize(
    ("rule", "parametrisation"), combinations(RULES, PARAMETRISATIONS, together=1)
)
def test_frozen_layers_that_are_not_unrolled_have_the_gradient_of_the_whole_network(
    rule: str, parametrisation: str
) -> None:
    """By the plain engine of the whole, by the fast one of the head, and by finite differences."""
    case = ("branches", "classification", rule, parametrisation, "back-gradient")
    made, state, batch = prepare((*case, "2 steps, 3 epochs", "J=3", "no view"))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        frozen = Branches(6).requires_grad_(False)
    module = nn.Sequential(frozen, nn.Tanh(), nn.Linear(6, 3))
    network = Network(module, batch[0], dtype=torch.float64)
    split = split_frozen(network)
    assert split
    update = of_layers(RULES[rule], network)
    if update.coefficients is not None:
        kept = WithRule(PARAMETRISATIONS[parametrisation], update.coefficients)
        made = replace(made, rule=update, parametrisation=kept)
    made = replace(made, network=network)
    state = made.init(batch[0].shape[1:], batch[1])
    head = replace(
        made,
        network=split.head,
        parametrisation=FrozenFeatures(made.parametrisation, split.prefix),
        own_engine=FastEngine(split.head, made.objective),
    )
    features = split.prefix(batch[0]), batch[1]
    losses, plain = made.gradient(state, batch)
    fast_losses, fast = head.gradient(state, features)
    assert relative_error(fast_losses, losses) < 1e-12
    for name, expected in plain.items():
        assert relative_error(fast[name], expected) < 1e-10, name
    assert_exact(head, state, features, fast, plain)


def test_every_pair_of_choices_is_in_the_catalogue() -> None:
    pairs = {pair for case in CATALOGUE for pair in parts(dict(enumerate(case)))}
    for a, b in itertools.combinations(range(len(CHOICES)), 2):
        for x, y in itertools.product(CHOICES[a], CHOICES[b]):
            assert ((a, x), (b, y)) in pairs


def test_varied_outer_steps_have_exact_gradients() -> None:
    """Other architectures, ordinary training and jittered rates, drawn for each outer step."""
    case = ("mlp", "classification", "momentum", "soft labels", "back-gradient")
    made, state, batch = prepare((*case, "inner minibatches", "J=3", "no view"))
    other = Network(NETWORKS["convolutional"](3), batch[0], dtype=torch.float64)
    drawn: set[tuple[str, UpdateRule]] = set()
    for t in range(8):
        state = replace(state, outer_step=t)
        found: list[tuple[Distiller, Tree]] = []
        for kind in (PlainEngine, FastEngine):
            variety = Variety(
                (kind(other, made.objective),), (Training(Adam(eps=0.05), 0.1),), jitter=0.5
            )
            engine = kind(made.network, made.objective)
            one = replace(made, own_engine=engine, variety=variety).at(t)
            found.append((one, one.gradient(state, batch)[1]))
        (plain, expected), (fast, gradient) = found
        drawn.add((fast.network.name, fast.rule))
        assert 2 / 3 <= fast.pace.factor <= 1.5
        if fast.rule == Adam(eps=0.05):  # at its own learning rate
            assert not expected.pop(RATES).any()
            assert not gradient.pop(RATES).any()
        for name, g in expected.items():
            assert relative_error(gradient[name], g) < 1e-10, name
        assert_exact(fast, state, batch, gradient, expected)
        assert plain.rule == fast.rule
    assert len(drawn) == 4
