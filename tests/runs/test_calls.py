"""dd.distill as it is called: names for objects, typed settings, a network that is checked."""

import inspect
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.errors import ConfigError, ModelError
from datadistill.runs.calls.keywords import Keywords
from datadistill.runs.config import NAMES

IMAGES = torch.randn(40, 1, 28, 28, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(40) % 10
TINY: dict[str, Any] = {"iterations": 2, "batch_size": 16, "networks": 1, "validation": 0.0}
BY_POSITION = {"data", "model"}
ROOT = Path(__file__).parents[2]


def tiny(**settings: Any) -> dd.DistilledData:
    return dd.distill((IMAGES, LABELS), dd.models.Linear(), **TINY | settings)


def widened(kind: Any) -> Any:
    """Paths may be strings and sequences lists, in Python."""
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(widened(part) for part in get_args(kind))]  # noqa: UP007
    return {Path: str | Path, tuple[str, ...]: tuple[str, ...] | list[str]}.get(kind, kind)


def test_the_typed_settings_are_those_of_a_run() -> None:
    arguments = {*inspect.signature(dd.distill).parameters} - {"settings"}
    typed, real = get_type_hints(Keywords), get_type_hints(dd.RunConfig)
    assert {*typed} == {*NAMES} - arguments - BY_POSITION
    assert {*NAMES} - {*typed} == arguments & {*NAMES} | BY_POSITION
    for name, kind in typed.items():
        assert kind == widened(real[name]), name


def test_a_type_checker_accepts_right_settings_and_refuses_wrong_ones(tmp_path: Path) -> None:
    checker = Path(sys.executable).with_name("pyright")
    if not checker.exists():
        pytest.skip("pyright is not installed")
    script = tmp_path / "calls.py"
    script.write_text(
        "from typing import Any\n"
        "import datadistill as dd\n"
        "def right(train: Any) -> None:\n"
        "    dd.distill(train, 'lenet', steps=3, pool='mine', trained=['fc'], scheme='module')\n"
        "    dd.distill(train, 'lenet', objective='regression', adjoint='truncated', window=3)\n"
        "    dd.distill(train, 'lenet', progress=True, update_rule=dd.Momentum(0.9))\n"
        "def wrong(train: Any) -> None:\n"
        "    dd.distill(train, 'lenet', step=3)\n"
        "    dd.distill(train, 'lenet', epochs='many')\n"
    )
    command = [str(checker), "--outputjson", "--pythonpath", sys.executable, str(script)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    problems = json.loads(found.stdout)["generalDiagnostics"]
    lines = [one["range"]["start"]["line"] + 1 for one in problems]
    assert lines == [8, 9], problems


PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"objective": "classification"}, {"objective": dd.Classification()}),
    ({"objective": "poisoning", "attacked": 3, "target": 5}, {"objective": dd.Poisoning(3, 5)}),
    ({"adjoint": "truncated", "window": 2}, {"adjoint": dd.Truncated(2)}),
    ({"adjoint": "stored-graph"}, {"adjoint": dd.StoredGraph()}),
    ({"update_rule": "momentum", "momentum": 0.5}, {"update_rule": dd.Momentum(0.5)}),
    ({"update_rule": "adam"}, {"update_rule": dd.Adam()}),
    ({"parametrisation": "soft-labels"}, {"parametrisation": dd.SoftLabels()}),
    ({"view": "flip+rotate"}, {"view": dd.views.Combined((dd.views.Flip(), dd.views.Rotate()))}),
    (
        {"parametrisation": "bases", "bases": 3, "downscale": 2},
        {"parametrisation": dd.Bases(bases=3, downscale=2)},
    ),
    ({"labels": "logits"}, {"parametrisation": dd.Plain(labels="logits")}),
    ({"initialization": "fixed", "init_seed": 4}, {"initialization": dd.FixedInit(seed=4)}),
]


@pytest.mark.parametrize(("named", "given"), PAIRS, ids=lambda one: ",".join(map(str, one)))
def test_names_do_the_same_as_objects(named: dict[str, Any], given: dict[str, Any]) -> None:
    by_name, by_object = tiny(**named), tiny(**given)
    assert by_name == by_object
    assert by_name.header.configuration == by_object.header.configuration


def test_regression_by_name_takes_targets() -> None:
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    made = dd.distill(
        (inputs, inputs.sum(1, keepdim=True)), nn.Linear(4, 1), objective="regression", **TINY
    )
    assert made.objective == dd.Regression()


def test_an_objective_in_a_file_says_whether_labels_are_classes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import datadistill as dd\nclass Mine(dd.Regression):\n    pass\n"
    )
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    made = dd.distill(
        (inputs, inputs.sum(1, keepdim=True)),
        nn.Linear(4, 1),
        objective=f"{tmp_path / 'mine.py'}:Mine",
        **TINY,
    )
    assert made.labels.is_floating_point()


class TooNarrow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.flatten(1))


def function(x: Tensor) -> Tensor:
    return x


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (dd.models.LeNet, "the class LeNet, not an object of nn.Module.\nPass an object of it"),
        (lambda x: x, "a lambda, not an object of nn.Module.\nMake it the forward"),  # pyright: ignore
        (function, "the function function, not an object of nn.Module"),
        (3, "of type int, not an object of nn.Module"),
        (None, "of type NoneType, not an object"),
    ],
)
def test_what_is_no_network_is_refused_before_any_data_are_read(module: Any, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        dd.distill("no such data", module)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


def test_a_network_that_fails_on_an_example_is_refused_before_a_run_is_begun(
    tmp_path: Path,
) -> None:
    with pytest.raises(ModelError, match=r"TooNarrow raised RuntimeError on inputs of shape"):
        dd.distill((IMAGES, LABELS), TooNarrow(), run=tmp_path / "run", progress=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjoint": dd.Truncated}, "adjoint is the class Truncated, not an object of dd.Adjoint"),
        ({"adjoint": 3}, "adjoint is of type int, not an object of dd.Adjoint.\nPass one, or a"),
        ({"update_rule": "momentun"}, "Did you mean 'momentum'?"),
        ({"objective": dd.Regression}, "objective is the class Regression"),
        ({"initialization": dd.Plain()}, "initialization is of type Plain, not an object of dd.In"),
        ({"adjoint": dd.Truncated(2), "window": 3}, "window is 3, but the object that was passed"),
    ],
)
def test_what_is_no_such_object_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tiny(**change)
    assert message in str(caught.value)
