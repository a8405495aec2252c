"""Parametrisations: what is learned, and its gradient."""

from dataclasses import dataclass

import pytest
import torch

from datadistill.core.distilled import Steps
from datadistill.core.objective import Classification, Objective, Regression
from datadistill.core.parametrisation import (
    LABELS,
    RATES,
    Bases,
    LabelKind,
    LowResolution,
    Parameters,
    Parametrisation,
    Plain,
    SoftLabels,
)
from datadistill.errors import ConfigError
from tests.helpers import leaves, relative_error

THREE = torch.Size([3])


def steps(objective: Objective) -> Steps:
    random = torch.Generator().manual_seed(0)
    hard = torch.arange(3).expand(2, 3)
    soft = torch.randn(2, 3, 3, generator=random, dtype=torch.float64)
    return Steps(
        torch.randn(2, 3, 1, 4, 4, generator=random, dtype=torch.float64),
        soft if isinstance(objective, Regression) else hard,
        0.01 + torch.rand(4, 2, generator=random, dtype=torch.float64),
    )


@pytest.mark.parametrize(
    "parametrisation",
    [
        Plain(),
        Plain(learn_rates=False),
        Plain(learn_labels=True),
        SoftLabels(),
        Plain(labels="clipped"),
        SoftLabels(labels="logits"),
        LowResolution(downscale=4, labels="logits"),
        Bases(bases=3, downscale=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("objective", [Classification(), Regression()], ids=lambda o: o.name)
def test_the_gradient_written_by_hand_is_the_derived_one(
    parametrisation: Plain, objective: Objective
) -> None:
    if not objective.has_classes and parametrisation.labels:
        with pytest.raises(ConfigError, match=r"no classes\.\nSet labels to soft"):
            parametrisation.start(steps(objective), objective, THREE)
        return
    parameters = parametrisation.start(steps(objective), objective, THREE)
    made = parametrisation.steps(parameters)
    gradient = Steps(*(torch.randn(t.shape, dtype=torch.float64) for t in leaves(made).values()))
    found = parametrisation.pull_back(parameters, gradient)
    expected = Parametrisation.pull_back(parametrisation, parameters, gradient)
    assert found.keys() == expected.keys() == parameters.learned.keys()
    for name, one in found.items():
        assert relative_error(one, expected[name]) < 1e-14, name


def test_what_is_learned_is_as_asked() -> None:
    given = steps(Classification())

    def learned(parametrisation: Parametrisation, objective: Objective) -> set[str]:
        return {*parametrisation.start(steps(objective), objective, THREE).learned}

    assert learned(Plain(), Classification()) == {"inputs", RATES}
    assert learned(Plain(), Regression()) == {"inputs", "labels", RATES}
    assert learned(Plain(learn_labels=False), Regression()) == {"inputs", RATES}
    assert learned(Plain(learn_rates=False), Classification()) == {"inputs"}
    assert learned(SoftLabels(), Classification()) == {"inputs", "labels", RATES}
    soft = SoftLabels()
    made = soft.steps(soft.start(given, Classification(), THREE))
    assert torch.equal(made.labels, torch.eye(3).double()[given.labels])
    torch.testing.assert_close(made.learning_rates, given.learning_rates, rtol=1e-6, atol=0)


@pytest.mark.parametrize("outputs", [1, 3])
def test_logits_start_close_to_one_hot_and_stay_probabilities(outputs: int) -> None:
    given, judge = steps(Classification()), Classification()
    hard = given.labels % max(outputs, 2)
    logits = Plain(labels="logits")
    parameters = logits.start(
        Steps(given.inputs, hard, given.learning_rates), judge, torch.Size([outputs])
    )
    soft = logits.steps(parameters).labels
    expected = judge.soft_labels(torch.Size([outputs]), hard)
    assert (soft - expected).abs().max() < 0.1
    assert torch.equal(soft.argmax(-1) if outputs > 1 else soft.round(), hard.to(soft.dtype))
    moved = parameters.learned | {LABELS: 5 * torch.randn_like(parameters.learned[LABELS])}
    made = logits.steps(parameters._replace(learned=moved)).labels
    assert ((made > 0) & (made < 1)).all()
    if outputs > 1:
        torch.testing.assert_close(made.sum(-1), torch.ones(2, 3).double())


def test_clipped_labels_are_never_negative_and_come_back() -> None:
    clipped, free = Plain(labels="clipped"), Plain(labels="soft")
    learned = {LABELS: torch.tensor([-1.0, 0.5]), "inputs": torch.tensor([-1.0])}
    assert clipped.project(learned)[LABELS].tolist() == [0.0, 0.5]
    assert clipped.project(learned)["inputs"].tolist() == [-1.0]
    assert free.project(learned) == learned
    # A label at 0 keeps its whole gradient.
    parameters = clipped.start(steps(Classification()), Classification(), THREE)
    gradient = clipped.steps(parameters)
    assert torch.equal(clipped.pull_back(parameters, gradient)[LABELS], gradient.labels)


@pytest.mark.parametrize(("kind", "learn"), [("hard", True), ("soft", False)])
def test_labels_that_are_learned_and_not_learned_are_refused(kind: LabelKind, learn: bool) -> None:
    with pytest.raises(ConfigError, match="Leave learn_labels out"):
        Plain(labels=kind, learn_labels=learn)
    with pytest.raises(ConfigError, match="Soft labels are not hard"):
        SoftLabels(labels="hard")


def test_images_start_as_close_as_few_numbers_can_be() -> None:
    given = steps(Classification())
    low = LowResolution(downscale=2)
    small = low.start(given, Classification(), THREE).learned["inputs"]
    assert small.shape == (2, 3, 1, 2, 2)
    torch.testing.assert_close(small[0, 0, 0, 0, 0], given.inputs[0, 0, 0, :2, :2].mean())
    whole = Bases(bases=6)  # as many as images: nothing is lost
    parameters = whole.start(given, Classification(), THREE)
    torch.testing.assert_close(whole.steps(parameters).inputs, given.inputs)
    few = Bases(bases=3)
    off = few.steps(few.start(given, Classification(), THREE)).inputs - given.inputs
    values = torch.linalg.svdvals(given.inputs.flatten(0, 1).flatten(1))
    torch.testing.assert_close(off.square().sum(), values[3:].square().sum())


@pytest.mark.parametrize(
    ("parametrisation", "message"),
    [
        (LowResolution(downscale=3), r"\(1, 4, 4\) cannot be stored at 1/3"),
        (Bases(bases=7), "bases is 7, but there are 6 images of 16 numbers"),
        (Bases(bases=5, downscale=2), "Set bases to at most 4"),
    ],
)
def test_more_numbers_than_there_are_and_uneven_parts_are_refused(
    parametrisation: Plain, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        parametrisation.start(steps(Classification()), Classification(), THREE)


def test_counts_below_1_are_refused() -> None:
    with pytest.raises(ConfigError, match="bases is 0"):
        Bases(bases=0)
    with pytest.raises(ConfigError, match="downscale is 0"):
        Bases(downscale=0)
    with pytest.raises(ConfigError, match="downscale is 65"):
        LowResolution(downscale=65)


@dataclass(frozen=True)
class Doubled(Parametrisation):
    """A user's own, with a parameter that the steps do not depend on."""

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        idle = {"idle": torch.ones(2).double()}
        return Parameters({"half": steps.inputs / 2, **idle}, leaves(steps))

    def steps(self, parameters: Parameters) -> Steps:
        tensors = parameters.all
        return Steps(2 * tensors["half"], tensors["labels"], tensors["learning_rates"])


def test_a_users_own_needs_no_gradient() -> None:
    own, given = Doubled(), steps(Classification())
    parameters = own.start(given, Classification(), THREE)
    assert torch.equal(own.steps(parameters).inputs, given.inputs)
    found = own.pull_back(parameters, given)
    assert torch.equal(found["half"], 2 * given.inputs)
    assert torch.equal(found["idle"], torch.zeros(2).double())
