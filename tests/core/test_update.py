"""Update rules: the usual optimisers, and exact vector-Jacobian products."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from datadistill.core.distilled import Position, Step
from datadistill.core.learner import Learner
from datadistill.core.network import Weights
from datadistill.core.update import (
    Adam,
    GradientDescent,
    LayerRates,
    Momentum,
    Nesterov,
    UpdateRule,
    WeightDecay,
    train,
    training,
)
from datadistill.core.update.layer_rates import layer_of, layers_of
from datadistill.engine.in_place import InPlaceAdam
from datadistill.errors import ConfigError
from tests.helpers import problem, relative_error

Optimizer = Callable[[list[Tensor]], torch.optim.Optimizer]
SGD: Any = torch.optim.SGD
RATE = 0.1

OPTIMIZERS: list[tuple[UpdateRule, Optimizer]] = [
    (GradientDescent(), lambda own: SGD(own, RATE)),
    (Momentum(0.8), lambda own: SGD(own, RATE, momentum=0.8)),
    (Nesterov(0.8), lambda own: SGD(own, RATE, momentum=0.8, nesterov=True)),
    (Adam((0.8, 0.95), 1e-3), lambda own: torch.optim.Adam(own, RATE, (0.8, 0.95), 1e-3)),
    (WeightDecay(0.3), lambda own: SGD(own, RATE, weight_decay=0.3)),
    (
        WeightDecay(0.3, Nesterov(0.7)),
        lambda own: SGD(own, RATE, momentum=0.7, nesterov=True, weight_decay=0.3),
    ),
    (WeightDecay(0.3, Adam()), lambda own: torch.optim.Adam(own, RATE, weight_decay=0.3)),
]


@pytest.mark.parametrize(
    ("rule", "optimizer"), OPTIMIZERS, ids=[repr(rule) for rule, _ in OPTIMIZERS]
)
def test_a_rule_is_the_optimizer_of_torch(rule: UpdateRule, optimizer: Optimizer) -> None:
    case = problem("shared weights", steps=3, epochs=4, networks=2)
    rates = torch.full_like(case.steps.learning_rates, RATE)
    steps = type(case.steps)(case.steps.inputs, case.steps.labels, rates)
    found = [*training(rule, case.engine, case.theta0, steps)]
    assert len(found) == 13
    for j in range(2):
        module = case.network.module({name: w[j] for name, w in case.theta0.items()})
        theirs = optimizer([p for p in module.parameters() if p.requires_grad])
        for t, step in enumerate(steps):
            for name, own in module.named_parameters():
                assert relative_error(found[t][name][j], own.detach()) < 1e-12, (t, name)
            theirs.zero_grad(set_to_none=False)
            case.objective.inner_loss(module(step.inputs), step.labels).backward()
            for own in module.parameters():
                own.grad = torch.zeros_like(own) if own.grad is None else own.grad
            theirs.step()
        for name, own in module.named_parameters():
            assert relative_error(found[-1][name][j], own.detach()) < 1e-12, name
    last = train(rule, case.engine, case.theta0, steps)
    assert all(torch.equal(w, found[-1][name]) for name, w in last.items())


def test_adam_in_place_is_the_update_rule() -> None:
    case = problem("convolutional", steps=3, epochs=2, networks=2)
    before = {name: w.clone() for name, w in case.theta0.items()}
    rates = torch.full_like(case.steps.learning_rates, RATE)
    steps = type(case.steps)(case.steps.inputs, case.steps.labels, rates)
    expected = train(Adam((0.8, 0.95)), case.engine, case.theta0, steps)
    found = train(InPlaceAdam((0.8, 0.95)), case.engine, case.theta0, steps)
    for name, w in found.items():
        assert relative_error(w, expected[name]) < 1e-12
        assert torch.equal(case.theta0[name], before[name])  # it works on a copy


HAND_WRITTEN: list[UpdateRule] = [
    GradientDescent(),
    Momentum(0.8),
    WeightDecay(0.3),
    WeightDecay(0.3, Momentum(0.8)),
    Adam(),
    Adam((0.0, 0.0), eps=0.1),
    WeightDecay(0.3, Adam(eps=0.01)),
    WeightDecay(0.2, WeightDecay(0.3, Nesterov(0.5))),
]


@pytest.mark.parametrize("own_steps", [False, True])
@pytest.mark.parametrize("rule", HAND_WRITTEN, ids=repr)
def test_a_product_written_by_hand_is_the_derived_one(rule: UpdateRule, own_steps: bool) -> None:
    case = problem("convolutional", steps=2, networks=3)
    step = (case.steps.for_each(3) if own_steps else case.steps)[Position(0, 1)]
    learner = learner_on_the_way(rule, case.theta0)
    v = learner.rebuild([noise(n, one) for n, one in enumerate(learner.leaves())])

    def pulled(pull_back: Callable[..., tuple[Learner, Step]]) -> list[Tensor]:
        g = case.engine.record(learner.weights, step)
        back, of_step = pull_back(rule, learner, g, step, v)
        assert of_step.learning_rate.shape == step.learning_rate.shape
        return [*back.leaves(), *of_step[:3]]

    found, expected = pulled(type(rule).pull_back), pulled(UpdateRule.pull_back)
    assert type(rule).pull_back is not UpdateRule.pull_back
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert relative_error(one.double(), other.double()) < 1e-12


def test_adam_pulls_nothing_back_through_weights_without_a_gradient() -> None:
    case, rule = problem("shared weights", networks=2), Adam()
    step, learner = case.steps[Position(0, 0)], rule.start(case.theta0)
    v = learner.rebuild([noise(n, one) for n, one in enumerate(learner.leaves())])
    g = case.engine.record(learner.weights, step).values
    assert any(not own.any() for own in g.values())
    found, _ = rule.pull_back(learner, case.engine.record(learner.weights, step), step, v)
    g = case.engine.record(learner.weights, step)
    expected, _ = UpdateRule.pull_back(rule, learner, g, step, v)
    for one, other in zip(found.leaves(), expected.leaves(), strict=True):
        assert one.isfinite().all()
        assert relative_error(one.double(), other.double()) < 1e-12


def learner_on_the_way(rule: UpdateRule, weights: Weights) -> Learner:
    """A learner whose memory is not empty."""
    start = rule.start(weights)
    leaves = enumerate(start.leaves())
    moments = [(noise(n, one).square() + 0.1).to(one.dtype) for n, one in leaves]
    return Learner(weights, start.rebuild(moments).memory)


def noise(number: int, like: Tensor) -> Tensor:
    random = torch.Generator().manual_seed(number)
    return torch.randn(like.shape, generator=random).abs().ceil().to(like) * 0.3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Momentum(1.0), "^momentum is 1.0.\nSet momentum"),
        (lambda: Momentum(0.0), "^momentum is 0.0.\nSet momentum"),
        (lambda: Nesterov(-0.5), "^momentum is -0.5.\nSet momentum"),
        (lambda: Adam((0.9, 1.0)), r"^betas is \(0.9, 1.0\).\nSet betas"),
        (lambda: WeightDecay(-1.0), "^weight_decay is -1.0.\nSet"),
        (lambda: WeightDecay(float("nan")), "^weight_decay is nan.\nSet"),
    ],
)
def test_values_out_of_range_are_refused(make: Callable[[], UpdateRule], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_layers_have_learning_rates_of_their_own() -> None:
    case = problem("convolutional", steps=2, epochs=2)
    factors = {name: 0.5 * (n + 1) for n, name in enumerate(layers_of(case.theta0))}
    rates = torch.full_like(case.steps.learning_rates, RATE)
    steps = type(case.steps)(case.steps.inputs, case.steps.labels, rates)
    found = train(LayerRates(factors, Momentum(0.8)), case.engine, case.theta0, steps)
    module = case.network.module({name: w[0] for name, w in case.theta0.items()})
    groups = [
        {"params": [own], "lr": RATE * factors[layer_of(name)]}
        for name, own in module.named_parameters()
    ]
    theirs = SGD(groups, RATE, momentum=0.8)
    for step in steps:
        theirs.zero_grad()
        case.objective.inner_loss(module(step.inputs), step.labels).backward()
        theirs.step()
    for name, own in module.named_parameters():
        assert relative_error(found[name][0], own.detach()) < 1e-10, name
    assert len(set(factors.values())) > 1


@pytest.mark.parametrize(
    ("layers", "message"),
    [({"a": 0.0}, "factor of layer a is 0"), ({"a": "1"}, "layers is"), ([1], "layers is")],
)
def test_factors_of_layers_are_positive_numbers(layers: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        UpdateRule.from_record(
            {"name": "layer-rates", "layers": layers, "rule": {"name": "gradient-descent"}}
        )
