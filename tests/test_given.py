"""Arguments of the wrong type: one error that says so, never what they would lead to."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import nn

import datadistill as dd
from datadistill.errors import ConfigError, DataDistillError, DataError, ModelError
from datadistill.given import check, typed

INPUTS = torch.randn(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
DATA = (INPUTS, torch.arange(30) % 3)
QUICK: dict[str, Any] = {"iterations": 1, "networks": 1, "batch_size": 6, "epochs": 1}
POOL: dict[str, Any] = {"networks": 1, "held_out": 1, "epochs": 1}
WRONG = ["text", -1, 1.5, None, [], {}, float("nan"), object(), (1, 2), b"x", INPUTS, np.zeros(3)]


def linear() -> dd.models.Linear:
    return dd.models.Linear(size=8, classes=3)


def distil(data: Any = DATA, module: nn.Module | None = None, **settings: Any) -> dd.DistilledData:
    every: dict[str, Any] = QUICK | settings
    return dd.distill(data, module or linear(), **every)


@pytest.fixture(scope="module")
def distilled() -> dd.DistilledData:
    return distil(test=DATA, test_networks=1)


def refused_or_used(call: Callable[[Any], object]) -> None:
    """Tries all wrong values; some may be right for the argument, but none ends in a raw error."""
    used = 0
    for value in WRONG:
        with contextlib.suppress(DataDistillError):
            call(value)
            used += 1
    assert used <= 4


@pytest.mark.parametrize(
    "name", ["device", "dtype", "preset", "steps", "betas", "adjoint", "pool", "view"]
)
def test_settings_of_distill(name: str) -> None:
    refused_or_used(lambda value: distil(**{name: value}))


def test_the_folder_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused_or_used(lambda value: distil(run=value))


@pytest.mark.parametrize("call", [dd.load, dd.resume, dd.Pool, dd.report])
def test_paths(call: Callable[[Any], object]) -> None:
    refused_or_used(call)


@pytest.mark.parametrize("name", ["networks", "architecture", "device", "memory", "statistics"])
def test_arguments_of_evaluate(distilled: dd.DistilledData, name: str) -> None:
    def evaluated(value: Any) -> None:
        given: dict[str, Any] = {"networks": 1, name: value}
        dd.evaluate(distilled, DATA, **given)

    refused_or_used(evaluated)


def test_data_and_artefacts(distilled: dd.DistilledData) -> None:
    refused_or_used(lambda value: dd.evaluate(value, DATA))
    refused_or_used(lambda value: dd.evaluate(distilled, value))
    refused_or_used(lambda value: dd.verify(value, DATA))
    refused_or_used(lambda value: dd.verify(distilled, DATA, most_networks=value))
    refused_or_used(lambda value: dd.learning_curve(distilled, DATA, after=value, networks=1))


def test_training(distilled: dd.DistilledData) -> None:
    refused_or_used(lambda value: distilled.train(value))
    refused_or_used(lambda value: distilled.train(device=value))
    refused_or_used(lambda value: dd.evaluate_ordinary(distilled, DATA, value, networks=1))
    for name in ("optimizer", "lr", "epochs", "batch_size", "weight_decay", "drop", "view"):
        refused_or_used(lambda value, name=name: dd.OrdinaryTraining(**{name: value}))


def test_exchange(
    distilled: dd.DistilledData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(INPUTS, "images.pt")
    real = dd.LabelledData(*DATA)
    refused_or_used(lambda value: distilled.save(value))
    refused_or_used(lambda value: dd.export(distilled, value, "npz"))
    refused_or_used(lambda value: dd.export(distilled, "new", value))
    refused_or_used(lambda value: dd.import_images(value, data=real, module=linear()))
    refused_or_used(lambda value: dd.import_images("images.pt", data=value, module=linear()))
    refused_or_used(lambda value: dd.import_images("images.pt", data=real, module=value))
    refused_or_used(lambda value: dd.reproduce(value, "new"))
    refused_or_used(lambda value: dd.reproduce("linear", "new", scale=value))


@pytest.mark.parametrize("name", ["networks", "held_out", "preset", "lr", "batch_size", "memory"])
def test_arguments_of_pretrain(tmp_path: Path, name: str) -> None:
    def pretrained(value: Any) -> None:
        given: dict[str, Any] = POOL | {name: value}
        dd.pretrain(DATA, linear(), tmp_path / str(id(value)), **given)

    refused_or_used(pretrained)


def test_the_data_network_and_folder_of_a_pool(tmp_path: Path) -> None:
    refused_or_used(lambda value: dd.pretrain(value, linear(), tmp_path / "1", **POOL))
    refused_or_used(lambda value: dd.pretrain(DATA, value, tmp_path / "2", **POOL))


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "remedy"),
    [
        (int, [1, np.int64(1)], [True, 1.0, "1"], "a whole number"),
        (float, [1, 1.5, np.float32(1)], [True, "1"], "a number"),
        (str | Path, ["a", Path("a")], [b"a", 1], "a text or a path"),
        (nn.Module | None, [None, nn.Linear(1, 1)], [nn.Linear], "an object of Module or None"),
        (Literal["a", "b"], ["a"], [0, None], "one of a, b"),
        (Sequence[int], [(1, 2), [], np.arange(2)], ["12", 1, ["1"]], "several, each a whole"),
        (bool | Callable[[], None], [True, print], ["yes"], "an object of bool or a function"),
        (Any, [1, None], [], ""),
    ],
)
def test_a_value_is_compared_with_an_annotation(
    kind: Any, right: list[Any], wrong: list[Any], remedy: str
) -> None:
    for value in right:
        check(value, kind, "it")
    for value in wrong:
        with pytest.raises(ConfigError, match=rf"^it is .*\nPass {remedy}"):
            check(value, kind, "it")


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(ConfigError, match=r"There is no kind 'pape'\. Did you mean 'paper'"):
        check("pape", Literal["fast", "paper"], "kind")


def test_defaults_and_missing_arguments_stay_as_python_has_them() -> None:
    @typed
    def call(one: int, *rest: str, two: float = "default", **more: int) -> object:  # pyright: ignore[reportArgumentType]
        return one, rest, two, more

    assert call(1, "a", x=2) == (1, ("a",), "default", {"x": 2})
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'one'"):
        call()  # pyright: ignore[reportCallIssue]


class Lazy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.LazyLinear(3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(images.flatten(1))


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_what_no_artefact_can_hold_is_refused_before_the_first_outer_step() -> None:
    many = 10**6
    with pytest.raises(ModelError, match="has no shape yet"):
        distil(module=Lazy(), iterations=many)
    long: Callable[..., nn.Module] = type("L" * 5000, (dd.models.Linear,), {})
    with pytest.raises(ModelError, match=r"L{40} cannot be recorded: name: .* 1000 characters"):
        distil(module=long(size=8, classes=3), iterations=many)
    unnamed: Callable[..., dd.LabelledData] = functools.partial(dd.LabelledData, *DATA)
    for data in (unnamed(name="n" * 5000), unnamed(class_names=("a", "b" * 5000, "c"))):
        with pytest.raises(DataError, match=r"name of (the data|class 1) has 5,000 characters"):
            distil(data, iterations=many)
    many_names = unnamed(class_names=tuple(map(str, range(100_001))))
    with pytest.raises(DataError, match="names 100,001 classes, more than 100,000"):
        distil(many_names, module=dd.models.Linear(size=8, classes=100_001), iterations=many)
    with pytest.raises(ConfigError, match="200,000 updates, more than 100,000"):
        distil(epochs=200_000, iterations=many)
    with pytest.raises(ConfigError, match=r"steps is 1000000000000\.\nSet steps to less than"):
        distil(steps=10**12, iterations=many)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: dd.Momentum("x"), "momentum is 'x'"),  # pyright: ignore[reportArgumentType]
        (lambda: dd.Nesterov("x"), "momentum is 'x'"),  # pyright: ignore[reportArgumentType]
        (lambda: dd.WeightDecay("x"), "decay is 'x'"),  # pyright: ignore[reportArgumentType]
        (lambda: dd.Truncated("x"), "window is 'x'"),  # pyright: ignore[reportArgumentType]
        (lambda: dd.RidgeHead(pool="x"), "pool is 'x'"),  # pyright: ignore[reportArgumentType]
        (lambda: dd.Poisoning("a", 1), "attacked is 'a'"),  # pyright: ignore[reportArgumentType]
        (lambda: dd.FixedInit.of(3), "module is 3"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_rules_adjoints_objectives_and_initializations(
    make: Callable[[], object], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        make()
