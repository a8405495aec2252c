"""Whatever is kept on the way forward, and whatever is computed again, the gradient is the same."""

import gc

import pytest
import torch
from torch import Tensor

from datadistill.core.adjoint import Adjoint, BackGradient, StoredGraph, Truncated
from datadistill.core.distilled import Position, Step, Steps
from datadistill.core.engine import Gradient
from datadistill.core.learner import Learner
from datadistill.core.network import Weights
from datadistill.core.update import Adam, GradientDescent, Momentum, UpdateRule
from datadistill.engine import FastEngine
from datadistill.engine.graph_budget import GraphBudget
from datadistill.engine.tape import WeightStore, segments_of
from tests.helpers import NETWORKS, Problem, leaves, problem, relative_error

RULES: list[UpdateRule] = [GradientDescent(), Momentum(0.8), Adam()]
FORWARD, RECORDED = 2, 1


class Counted(FastEngine):
    """Tells what it computed: a gradient of the way forward, or one that is recorded."""

    def __init__(self, case: Problem, budget: GraphBudget | None) -> None:
        super().__init__(case.network, case.objective)
        self.made: list[int] = []
        self._budget = budget

    def gradient(self, weights: Weights, step: Step) -> Weights:
        self.made.append(FORWARD)
        return super().gradient(weights, step)

    def record(self, weights: Weights, step: Step) -> Gradient:
        self.made.append(RECORDED)
        return super().record(weights, step)


def assert_equal(found: Steps, expected: Steps) -> None:
    for name, gradient in leaves(found).items():
        assert torch.equal(gradient, leaves(expected)[name]), name


def budget_of(engine: FastEngine) -> GraphBudget:
    found = engine._budget  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    return found


def sizes_of(budget: GraphBudget) -> dict[tuple[torch.Size, ...], int]:
    return budget._sizes  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("network", NETWORKS)
def test_segments_change_no_bit_of_the_gradient(network: str, rule: UpdateRule) -> None:
    case = problem(network, steps=3, epochs=3, networks=3, rule=rule, dtype=torch.float32)
    engine = Counted(case, None)  # graphs that are kept would be used once, whatever the segments
    losses, whole = case.differentiate(BackGradient(segments=1), engine=engine)
    for segments in (2, 4, 99):
        found_losses, found = case.differentiate(BackGradient(segments), engine=engine)
        assert torch.equal(found_losses, losses)
        assert_equal(found, whole)


@pytest.mark.parametrize("adjoint", [BackGradient(), Truncated(17, random=False)])
def test_weights_beyond_the_bound_are_kept_in_segments_with_the_same_gradient(
    adjoint: Adjoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = problem(steps=4, epochs=5, networks=2)
    updates = 20 if adjoint == BackGradient() else 17
    engine = Counted(case, GraphBudget(0, 0))  # one graph at a time

    def differentiate() -> tuple[int, Steps]:
        engine.made.clear()
        _, gradient = case.differentiate(adjoint, engine=engine)
        return engine.made.count(FORWARD), gradient

    few, all_kept = differentiate()
    assert few == 20  # each once forward; the graph is built of its gradient alone
    monkeypatch.setattr("datadistill.engine.tape.KEPT_BYTES", 0)
    many, segmented = differentiate()
    assert updates / 2 < many - few < updates  # all but the last segment a second time
    assert_equal(segmented, all_kept)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("network", [name for name in NETWORKS if name != "shared weights"])
def test_small_graphs_are_kept_and_change_no_bit_of_the_gradient(
    network: str, rule: UpdateRule
) -> None:
    case = problem(network, steps=3, epochs=2, networks=2, rule=rule)
    budget = budget_of(FastEngine(case.network, case.objective))
    engine = Counted(case, budget)
    assert sizes_of(budget) == {}

    def differentiate(adjoint: Adjoint, engine: Counted) -> Steps:
        engine.made.clear()
        return case.differentiate(adjoint, engine=engine)[1]

    differentiate(BackGradient(), engine)
    in_c = network == "linear"  # of which it is known what a graph takes
    assert engine.made == (6 if in_c else 7) * [RECORDED]  # the first one is measured
    kept = differentiate(BackGradient(), engine)
    assert engine.made == 6 * [RECORDED]  # each update once
    windowed = differentiate(Truncated(4, random=False), engine)
    assert engine.made == 2 * [FORWARD] + 4 * [RECORDED]
    (size,) = sizes_of(budget).values()
    assert size > sum(w.nbytes for w in case.theta0.values())  # the gradient itself, and more
    _, alone = case.differentiate(StoredGraph())
    for graphs, expected in [
        (1, 6 * [FORWARD] + 6 * [RECORDED]),  # once to make it, once to pull back through it
        (2, 4 * [FORWARD] + 6 * [RECORDED]),  # the last two are recorded at once
        (4, 4 * [FORWARD] + 6 * [RECORDED]),  # four, and the two that are left
        (5, 5 * [FORWARD] + 6 * [RECORDED]),
    ]:
        less = GraphBudget(6 * size - 1, window=(graphs + 1) * size - 1)
        sizes_of(less).update(sizes_of(budget))
        other = Counted(case, less)
        rebuilt = differentiate(BackGradient(), other)
        assert other.made == expected
        assert_equal(rebuilt, kept)
        for name, gradient in leaves(rebuilt).items():
            assert relative_error(gradient, leaves(alone)[name]) < 1e-12
    _, alone = case.differentiate(Truncated(4, random=False))
    for name, gradient in leaves(windowed).items():
        assert relative_error(gradient, leaves(alone)[name]) < 1e-12


def test_a_graph_that_was_measured_is_gone_afterwards() -> None:
    case = problem("convolutional")
    engine = FastEngine(case.network, case.objective)
    budget = budget_of(engine)

    def measured() -> int:
        """The tensors that are left."""
        sizes_of(budget).clear()
        learner = case.rule.start(case.theta0)
        assert budget.graphs(engine, learner, case.steps[Position(0, 0)], 1) == 1
        assert sizes_of(budget)
        gc.collect()
        return sum(issubclass(type(one), Tensor) for one in gc.get_objects())

    first = measured()
    assert max(measured() for _ in range(3)) <= first


def test_segments_are_as_few_as_keep_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner({"w": torch.zeros(2, 3)}, {"velocity": {"w": torch.zeros(2, 3)}})
    for kept, expected in [(101, 1), (100, 2), (52, 2), (51, 3), (20, 10), (19, 10), (0, 10)]:
        monkeypatch.setattr("datadistill.engine.tape.KEPT_BYTES", 48 * kept)
        assert segments_of(100, learner) == expected
        assert segments_of(500, learner, graphs=5) == expected
    assert segments_of(1, learner) == 1


def test_learners_of_several_dtypes_are_kept_as_they_are() -> None:
    def learner(t: int) -> Learner:
        memory = {"first": {"w": torch.full((2, 3), t + 0.5).double()}}
        return Learner(
            {"w": torch.full((2, 3), float(t)), "b": torch.full((2, 1), t).bfloat16()},
            {**memory, "count": {"": torch.tensor(t)}},
        )

    store = WeightStore(learner(0), 3)
    for t in range(3):
        store.keep(t, learner(t))
    for t in range(3):
        for found, expected in zip(store[t].leaves(), learner(t).leaves(), strict=True):
            assert found.dtype == expected.dtype
            assert torch.equal(found, expected)
            assert found.data_ptr() % 64 == 0
