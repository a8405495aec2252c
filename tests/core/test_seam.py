"""Seams: implementations are found by name, and make themselves again from their records."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Self

import pytest
import torch
from torch import Tensor

from datadistill.core.adjoint import Adjoint, BackGradient, Truncated
from datadistill.core.distilled import Step
from datadistill.core.initialization import FixedInit, Initialization, RandomInit
from datadistill.core.learner import Learner
from datadistill.core.network import Weights
from datadistill.core.objective import Objective, OwnObjective, Poisoning
from datadistill.core.parametrisation import Parametrisation, Plain
from datadistill.core.seam import Seam, parse
from datadistill.core.update import (
    Adam,
    GradientDescent,
    LayerRates,
    Momentum,
    UpdateRule,
    WeightDecay,
)
from datadistill.core.view import Combined, Rotate, Shift, View
from datadistill.errors import ConfigError

SEAMS: list[type[Seam]] = [UpdateRule, Adjoint, Objective, Initialization, Parametrisation, View]


def loss(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.exp().mean()


EXAMPLES: dict[str, Seam] = {
    "momentum": Momentum(0.25),
    "adam": Adam((0.5, 0.75), 1e-3),
    "weight-decay": WeightDecay(0.1, WeightDecay(0.2, Momentum(0.25))),
    "layer-rates": LayerRates({"conv1": 0.5, "fc": 2.0}, Momentum(0.25)),
    "truncated": Truncated(7, random=False),
    "poisoning": Poisoning(3, 2),
    "random": RandomInit("orthogonal"),
    "fixed": FixedInit(7, "he-normal"),
    "fixed-pretrained": FixedInit(source="net.pth"),
    "plain": Plain(learn_rates=False, learn_labels=True),
    "own-loss": OwnObjective.of(loss),
    "combined": Combined((Shift(0.25), Rotate(20.0))),
}
"""Implementations that depend on something; the others are made of nothing."""

BUILT_IN = [
    (seam, name)
    for seam in SEAMS
    for name, kind in seam.known().items()
    if ":" not in name and kind.__module__.startswith("datadistill.core.")
]


@pytest.mark.parametrize(("seam", "name"), BUILT_IN, ids=str)
def test_every_implementation_is_the_same_after_a_file(seam: type[Seam], name: str) -> None:
    made = EXAMPLES.get(name) or seam.implementation(name)()
    assert isinstance(made, seam)
    record = made.record()
    assert record["name"] == name
    again = seam.from_record(json.loads(json.dumps(record)))
    assert type(again) is type(made)
    assert json.dumps(again.record()) == json.dumps(record)
    if name != "own-loss":  # the function of one stays behind: no file imports code
        assert again == made
    made.check_recordable()


def test_every_seam_has_its_built_in_implementations() -> None:
    found = {seam.seam: {name for other, name in BUILT_IN if other is seam} for seam in SEAMS}
    wrapping = {name for seam, name in BUILT_IN if name not in seam.names()}
    assert wrapping == {
        "weight-decay",
        "layer-rates",
        "own-loss",
        "combined",
    }  # no setting names them alone
    assert found == {
        "update rule": {
            *("gradient-descent", "momentum", "nesterov", "adam", "weight-decay", "layer-rates")
        },
        "adjoint": {"back-gradient", "ridge-head", "stored-graph", "truncated"},
        "objective": {"classification", "regression", "poisoning", "own-loss"},
        "initialization": {"random", "fixed", "fixed-pretrained"},
        "parametrisation": {"plain", "soft-labels", "low-resolution", "bases"},
        "view": {
            *("shift", "scale", "rotate", "flip", "cutout", "brightness", "contrast", "saturation"),
            *("dsa", "digits", "combined"),
        },
    }


@dataclass(frozen=True)
class Own(UpdateRule):
    """A user's own rule."""

    power: float = 2.0
    place: tuple[int, int] = (1, 2)

    def update(self, learner: Learner, gradient: Weights, step: Step) -> Learner:
        return learner


def test_a_users_own_is_called_by_where_it_is_defined() -> None:
    own = Own(3.0)
    assert own.record() == {"name": f"{__name__}:Own", "power": 3.0, "place": (1, 2)}
    assert UpdateRule.from_record(json.loads(json.dumps(own.record()))) == own
    assert own.text == f"{__name__}:Own(power=3.0, place=(1, 2))"
    assert own.as_settings() == {"update_rule": own.text}
    assert UpdateRule.implementation(f"{__name__}:Own") is Own
    assert f"{__name__}:Own" not in UpdateRule.names()
    own.check_recordable()
    name, values = parse(own.text)
    assert UpdateRule.implementation(name).from_values(values) == own


@pytest.mark.parametrize(("seam", "name"), BUILT_IN, ids=str)
def test_a_class_derived_from_a_built_in_one_is_never_recorded_as_that_one(
    seam: type[Seam], name: str
) -> None:
    example: Any = EXAMPLES.get(name) or seam.implementation(name)()
    kind: Any = type("Derived", (type(example),), {"__module__": __name__})
    given = fields(example) if is_dataclass(example) else ()
    own = kind(**{f.name: getattr(example, f.name) for f in given if f.init})
    if name in ("layer-rates", "own-loss", "combined"):  # no setting can name what these wrap
        with pytest.raises(ConfigError):
            own.check_recordable()
        return
    own.check_recordable()
    text, values = parse(own.as_settings()[seam.setting()])
    assert text == own.record()["name"] == f"{__name__}:Derived"
    assert type(seam.from_record(own.record())) is kind
    assert kind.from_values(values).record() == own.record()


@dataclass(frozen=True)
class OwnDecay(WeightDecay):
    factor: float = 1.0


@dataclass(frozen=True)
class OwnFixed(FixedInit):
    factor: float = 1.0


@pytest.mark.parametrize(
    "own", [OwnDecay(0.1, Momentum(0.25), factor=3.0), OwnFixed(7, source="net.pth", factor=3.0)]
)
def test_a_derived_class_keeps_the_fields_that_it_adds(own: Seam) -> None:
    own.check_recordable()
    name, values = parse(own.as_settings()[own.setting()])
    assert type(own).implementation(name).from_values(values) == own


class BecomesAnother(Own):
    def as_settings(self) -> dict[str, Any]:
        return {"update_rule": "momentum"}


def test_a_class_that_would_become_another_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot be recorded: it would become momentum\."):
        BecomesAnother().check_recordable()


def test_own_views_cannot_be_combined_with_others() -> None:
    class Upright(Rotate):
        pass

    with pytest.raises(ConfigError, match=r"test_seam:.*Upright is a view of your own"):
        Combined((Shift(), Upright())).check_recordable()


def test_settings_name_a_built_in_implementation_and_its_fields() -> None:
    assert Momentum(0.25).as_settings() == {"update_rule": "momentum", "momentum": 0.25}
    assert GradientDescent().as_settings()["update_rule"] == "gradient-descent"
    assert Truncated(7).as_settings() == {
        "adjoint": "truncated",
        "window": 7,
        "random_window": True,
        "window_placement": None,
    }
    assert FixedInit(7, source="net.pth").as_settings()["initialization"] == "fixed-pretrained"
    both = WeightDecay(0.1, Momentum(0.25)).as_settings()
    assert both == {"update_rule": "momentum", "momentum": 0.25, "weight_decay": 0.1}


def test_fields_that_change_no_result_are_not_recorded() -> None:
    assert BackGradient(segments=4).record() == {"name": "back-gradient"}
    assert "weights" not in FixedInit(weights={"w": torch.zeros(1)}).record()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("momentum", ("momentum", {})),
        ("mine.py:Rule", ("mine.py:Rule", {})),
        ("mine.py:Rule()", ("mine.py:Rule", {})),
        ("a.b:C(x=1, y='z', z=(0.5, None))", ("a.b:C", {"x": 1, "y": "z", "z": (0.5, None)})),
    ],
)
def test_a_text_is_a_name_with_values(text: str, expected: tuple[str, dict[str, Any]]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a:B(",
        "a:B(1)",
        "a:B(x=1",
        "a:B(x=print(1))",
        "a:B(x=1)(y=2)",
        "a:B(**{'x': 1})",
        "a:B(x={[]: 1})",
    ],
)
def test_a_text_that_is_no_list_of_values_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read.\nWrite file.py:Class"):
        parse(text)


@pytest.mark.parametrize(
    ("seam", "name", "near"),
    [
        (UpdateRule, "momentun", "momentum"),
        (Adjoint, "backgradient", "back-gradient"),
        (Objective, "Regresion", "regression"),
        (Initialization, "fix", "fixed"),
        (Parametrisation, "soft labels", "soft-labels"),
    ],
)
def test_an_unknown_name_is_refused_with_what_is_near(
    seam: type[Seam], name: str, near: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        seam.from_record({"name": name})
    what, remedy = str(caught.value).split("\n")
    assert what == f"There is no {seam.seam} {name!r}. Did you mean {near!r}?"
    assert remedy.startswith("Choose one of: ")
    assert near in remedy
    with pytest.raises(ConfigError, match="There is no"):
        seam.from_record({})


def test_a_reference_that_was_never_imported_is_refused_and_runs_no_code() -> None:
    with pytest.raises(ConfigError, match="no_such_module_at_all:Rule") as caught:
        UpdateRule.from_record({"name": "no_such_module_at_all:Rule", "power": 1})
    assert "--update-rule no_such_module_at_all:Rule" in caught.value.remedy
    assert str(caught.value).count("\n") == 1


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="has no field 'momentun'"):
        UpdateRule.from_record({"name": "momentum", "momentun": 0.5})
    with pytest.raises(ConfigError, match="cannot be made of"):
        Adjoint.from_record({"name": "truncated"})


@dataclass(frozen=True)
class WithTensor(Own):
    factors: Tensor = field(default_factory=lambda: torch.ones(2))


@dataclass(frozen=True)
class Forgetful(Own):
    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls()


class NoDataclass(Own):
    def __init__(self, power: float) -> None:
        super().__init__(power)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(values["strength"])


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (WithTensor(), "Tensor is not JSON serializable"),
        (Forgetful(5.0), r"from_record\(\) gives .*2.0.* for .*5.0"),
        (NoDataclass(5.0), "strength"),
        (Own(power=float), "not JSON serializable"),  # pyright: ignore[reportArgumentType]
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_cannot_be_made_again_is_refused(made: UpdateRule, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        made.check_recordable()
    assert f"{__name__}:{type(made).__name__} cannot be recorded" in caught.value.what
    assert "frozen dataclass of plain values" in caught.value.remedy
    assert str(caught.value).count("\n") == 1


def test_what_is_recorded_by_hand_may_be_anything() -> None:
    @dataclass(frozen=True)
    class ByHand(WithTensor):
        def record(self) -> dict[str, Any]:
            return {"name": self.name, "factors": self.factors.tolist()}

        @classmethod
        def from_values(cls, values: Mapping[str, Any]) -> Self:
            return cls(factors=torch.tensor(values["factors"]))

    made = ByHand(factors=torch.tensor([1.0, 3.0]))
    made.check_recordable()
    again = UpdateRule.from_record(made.record())
    assert isinstance(again, ByHand)
    assert torch.equal(again.factors, made.factors)
