"""The record of an engine: what it says, and what counts as another engine."""

from collections.abc import Generator
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import datadistill as dd
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.engine import EngineName, EngineRecord, continued, engine_for, record_of, using
from datadistill.engine.kernels import kernels
from datadistill.engine.kernels.library import loaded
from datadistill.engine.stacked import stacked
from datadistill.errors import ConfigError
from datadistill.notices import warn_once

needs_compiler = pytest.mark.skipif(
    kernels(torch.float32).functions is None, reason="no C compiler"
)
IMAGES = torch.zeros(2, 1, 28, 28)
RECORD = EngineRecord(
    engine="fast",
    stacked=True,
    compiled=False,
    kernels="0" * 31 + "1",
    processor="x86_64 AVX2 12345678",
    threads=2,
    processes=1,
    torch="2.6.0",
)
WITHOUT = RECORD.model_copy(update={"kernels": "none: no C compiler"})


def made(name: EngineName, module: nn.Module) -> EngineRecord:
    network = Network(module, IMAGES)
    with using(name):
        return record_of(engine_for(network, Classification()), network, 1, 1)


@needs_compiler
def test_it_names_the_kernels_that_convolutions_use() -> None:
    found = made("fast", dd.models.LeNet())
    assert found == made("kernels", dd.models.LeNet())
    assert (found.engine, found.stacked, found.has_kernels) == ("fast", True, True)
    assert found.kernels == kernels(torch.float32).identity
    assert found.torch == torch.__version__
    assert torch.backends.cpu.get_cpu_capability() in found.processor
    other = Network(dd.models.LeNet(), IMAGES.double(), dtype=torch.float64)
    assert record_of(engine_for(other, Classification()), other, 1, 1).kernels != found.kernels


@needs_compiler
def test_it_names_the_kernels_that_normalisations_use() -> None:
    module = nn.Sequential(nn.Flatten(), nn.LayerNorm(784))
    found = made("fast", module)
    assert (found.stacked, found.traced) == (False, True)
    assert found.kernels == kernels(torch.float32).identity
    assert made("torch", module).kernels == "none: turned off"


@needs_compiler
def test_it_names_the_kernels_that_linear_layers_use() -> None:
    assert made("fast", dd.models.Linear()).kernels == kernels(torch.float32).identity
    assert made("torch", dd.models.Linear()).kernels == "none: turned off"


@pytest.mark.parametrize(
    ("name", "module", "expected"),
    [
        ("torch", dd.models.LeNet(), ("fast", True, "none: turned off")),
        ("plain", dd.models.LeNet(), ("plain", False, "none: turned off")),
        (
            "fast",
            nn.Sequential(nn.Flatten(), nn.Linear(784, 3), nn.Tanh()),
            ("fast", True, "none: not needed"),
        ),
        (
            "fast",
            nn.Sequential(nn.Unflatten(1, (1, 1)), nn.Flatten(3), nn.Linear(784, 3), nn.Flatten()),
            ("fast", False, "none: not needed"),
        ),
    ],
)
def test_it_says_why_there_are_no_kernels(
    name: EngineName, module: nn.Module, expected: tuple[str, bool, str]
) -> None:
    found = made(name, module)
    assert (found.engine, found.stacked, found.kernels) == expected


@needs_compiler
def test_one_network_is_computed_with_and_without_kernels() -> None:
    network = Network(dd.models.LeNet(), IMAGES)
    with_kernels = stacked(network)
    with using("torch"):
        without = stacked(network)
    assert with_kernels
    assert with_kernels is stacked(network)
    assert with_kernels.kernels
    assert without
    assert without.kernels is None


@dataclass
class Changed:
    name: str
    value: object
    text: str


@pytest.mark.parametrize(
    "changed",
    [
        Changed("threads", 1, "threads: 2 → 1"),
        Changed("processes", 3, "processes: 1 → 3"),
        Changed("stacked", False, "stacked: True → False"),
        Changed("compiled", True, "compiled: False → True"),
        Changed("traced", True, "traced: False → True"),
        Changed("torch", "2.7.0", "torch: 2.6.0 → 2.7.0"),
        Changed("kernels", "2" * 32, "kernels: 00000000 → 22222222"),
        Changed("kernels", "none: no C compiler", "kernels: 00000000 → none: no C compiler"),
    ],
)
def test_another_engine_is_told_and_continues_the_list(changed: Changed) -> None:
    other = RECORD.model_copy(update={changed.name: changed.value})
    assert RECORD.differences(other) == [changed.text]
    first = continued((), 1, RECORD)
    assert continued(first, 7, RECORD) == first
    assert [one.outer_step for one in continued(first, 7, other)] == [1, 7]


def test_why_there_are_no_kernels_changes_no_result() -> None:
    other = WITHOUT.model_copy(update={"kernels": "none: turned off"})
    assert WITHOUT.differences(other) == []
    assert continued((WITHOUT,), 7, other) == (WITHOUT,)


def test_settings_ask_for_it_again() -> None:
    assert RECORD.settings() == {"engine": "kernels", "threads": 2, "processes": 1}
    assert WITHOUT.settings() == {"engine": "torch", "threads": 2, "processes": 1}
    plain = WITHOUT.model_copy(update={"engine": "plain"})
    assert plain.settings()["engine"] == "plain"
    linear = WITHOUT.model_copy(update={"kernels": "none: not needed"})
    assert linear.settings()["engine"] == "fast"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    loaded.cache_clear()
    warn_once.cache_clear()
    yield
    loaded.cache_clear()


@pytest.mark.usefixtures("no_compiler")
def test_kernels_that_are_asked_for_and_cannot_be_had_are_an_error() -> None:
    with pytest.raises(ConfigError, match="there are none: no C compiler"):
        made("kernels", dd.models.LeNet())
    assert made("fast", dd.models.LeNet()).kernels == "none: no C compiler"


def test_there_are_no_kernels_for_other_types() -> None:
    network = Network(dd.models.LeNet(), IMAGES.bfloat16(), dtype=torch.bfloat16)
    with using("kernels"), pytest.raises(ConfigError, match="not for bfloat16"):
        engine_for(network, Classification())


@pytest.mark.parametrize("value", ["a\nb", "a\x1b[2J", "x" * 201])
def test_a_record_that_a_file_holds_is_checked(value: str) -> None:
    with pytest.raises(ValueError, match="kernels"):
        EngineRecord.model_validate({**RECORD.model_dump(), "kernels": value})
