from pathlib import Path

import pytest
import torch
import yaml
from torch import nn

import datadistill as dd
from datadistill.cli.main import main
from datadistill.core.distilled import Step
from datadistill.core.network import Weights
from datadistill.engine.compiled import Functions
from datadistill.engine.team import ALONE
from datadistill.runs import RunConfig
from datadistill.runs.experiment import load
from datadistill.runs.planning.division import (
    Division,
    best,
    compiled_rightly,
    divisions,
    is_divided,
    may_be_compiled,
)
from datadistill.runs.preparation import computed_by, prepare

THREADS = Division(1, 2, 0.4)
THREAD = Division(1, 1, 0.5)
PROCESSES = Division(2, 1, 0.25)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("found", "iterations", "chosen"),
    [
        ([THREADS, THREAD, PROCESSES], 1000, PROCESSES),
        ([THREADS, THREAD, PROCESSES], 100, THREADS),  # saves less than it takes to start them
        ([THREADS, THREAD, Division(2, 1, 0.39)], 10**6, THREADS),  # not worth their memory
        ([THREADS, Division(1, 1, 0.1), PROCESSES], 10**6, Division(1, 1, 0.1)),
        ([THREADS], 10**6, THREADS),
    ],
)
def test_the_fastest_way_over_the_whole_run_is_chosen(
    found: list[Division], iterations: int, chosen: Division
) -> None:
    assert best(found, iterations) == chosen


@pytest.mark.usefixtures("two_threads")
def test_every_way_is_measured_and_the_threads_come_back() -> None:
    distillation = load(RunConfig(networks=8)).prepare()
    found = divisions(distillation)
    assert [(d.processes, d.threads) for d in found] == [(1, 2), (1, 1), (2, 1)]
    assert all(d.seconds > 0 for d in found)
    assert found[2].seconds < found[1].seconds  # four of eight networks
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_the_minibatch_of_a_single_network_may_be_divided_among_processes() -> None:
    distillation = load(RunConfig(initialization="fixed")).prepare()
    assert [(d.processes, d.threads) for d in divisions(distillation)] == [(1, 2), (1, 1), (2, 1)]


@pytest.mark.parametrize("said", [{"threads": 1}, {"processes": 2}])
def test_what_the_user_says_is_not_measured(said: dict[str, int]) -> None:
    assert is_divided(RunConfig(**said))  # pyright: ignore[reportArgumentType]
    assert not is_divided(RunConfig())


def test_what_torchrun_says_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "0"}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    assert is_divided(RunConfig())


@pytest.mark.usefixtures("two_threads")
def test_a_run_tells_what_was_measured_and_records_the_choice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    flags = ["--iterations", "2", "--networks", "2", "--test-networks", "2", "--steps", "1"]
    assert main(["distill", "--run", str(run), *flags]) == 0
    told = capsys.readouterr().err
    assert "2 threads: " in told
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert f"Chosen: --threads {config['threads']} --processes 1.\n" in told
    assert config["processes"] == 1  # so short a run is not worth the start of others
    assert config["threads"] in (1, 2)


@pytest.mark.parametrize(
    ("layer", "iterations", "expected"),
    [
        (nn.LayerNorm(10), 5000, True),
        (nn.LayerNorm(10), 1000, False),  # so short a run loses more than it can gain
        (nn.Tanh(), 5000, False),  # the engine knows all layers
    ],
)
def test_only_long_runs_of_unknown_networks_are_tried_with_compiled_updates(
    layer: nn.Module, iterations: int, expected: bool
) -> None:
    data = dd.LabelledData(torch.rand(20, 1, 2, 2), torch.arange(20) % 10)
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 10), layer)
    config = RunConfig(iterations=iterations, validation=0, device="cpu")
    distillation = prepare(config, data, module)
    assert may_be_compiled(distillation, THREADS) is expected


OWN = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        pairs = [(nn.Linear(32, 32), nn.LayerNorm(32)) for _ in range(4)]
        layers = [layer for pair in pairs for layer in pair]
        super().__init__(nn.Flatten(), nn.Linear(784, 32), *layers, nn.Linear(32, 10))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.usefixtures("two_threads")
def test_a_long_run_of_an_unknown_network_is_compiled_where_that_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("datadistill.runs.planning.division.COMPILED_RUN_SECONDS", 0)
    (tmp_path / "net.py").write_text(OWN)
    run = tmp_path / "run"
    flags = ["--model", f"{tmp_path / 'net.py'}:Net", "--initialization", "fixed", "--steps", "10"]
    assert main(["distill", "--run", str(run), "--iterations", "2", *flags]) == 0
    assert ", compiled: " in capsys.readouterr().err
    assert yaml.safe_load((run / "config.yaml").read_text())["compiled"] is True


def test_compiled_updates_with_another_gradient_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = dd.LabelledData(torch.rand(20, 1, 2, 2), torch.arange(20) % 10)
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 10), nn.LayerNorm(10))
    config = RunConfig(steps=1, batch_size=20, networks=1, validation=0, device="cpu")
    distillation = prepare(config, data, module)
    compiled = computed_by(distillation, ALONE, compiled=True)
    plain = computed_by(distillation, ALONE, compiled=False)
    functions = Functions(compiled.network, compiled.objective.inner_loss, backend="aot_eager")
    vars(compiled.engine)["functions"] = functions  # without inductor's minute of C++
    state, batch = distillation.like(), distillation.batch(0)
    assert compiled_rightly(compiled, plain, state, batch)
    gradient = Functions.gradient

    def wrong(self: Functions, weights: Weights, step: Step) -> Weights | None:
        found = gradient(self, weights, step)
        return found and {name: 1.2 * one for name, one in found.items()}

    monkeypatch.setattr(Functions, "gradient", wrong)
    assert not compiled_rightly(compiled, plain, state, batch)
    functions.failed = True
    assert not compiled_rightly(compiled, plain, state, batch)
    torch.compiler.reset()


def test_a_choice_that_changes_nothing_is_recorded_as_none() -> None:
    data = dd.LabelledData(torch.rand(20, 1, 2, 2), torch.arange(20) % 10)
    config = RunConfig(compiled=True, validation=0, device="cpu")
    for layer, recorded in ((nn.LayerNorm(10), True), (nn.Tanh(), False)):
        module = nn.Sequential(nn.Flatten(), nn.Linear(4, 10), layer)
        assert prepare(config, data, module).config.compiled is recorded
