"""Compiled updates are the same updates, and where they cannot be had nothing is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from datadistill.core.adjoint import BackGradient
from datadistill.core.distilled import Steps
from datadistill.core.random import stream
from datadistill.core.update import update_of
from datadistill.engine.compiled import CompiledUpdate, Functions
from tests.helpers import Problem, leaves, problem, relative_error

pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"
)


@pytest.fixture(autouse=True)
def forget():
    yield
    torch.compiler.reset()


def differentiated(given: Problem, steps: Steps, functions: Functions) -> tuple[Tensor, Steps]:
    plain = update_of(given.network, given.objective.inner_loss, given.rule)
    update = CompiledUpdate(plain.rule, plain.loss, functions=functions)
    learner = given.rule.start(given.theta0)
    return BackGradient()(update, learner, steps, given.outer_loss, stream(0, "window", 0))


@pytest.mark.parametrize(
    ("network", "momentum", "classes"),
    [("shared weights", 0.5, False), ("convolutional", 0.0, True)],
)
def test_the_gradient_is_that_of_plain_updates(
    network: str, momentum: float, classes: bool
) -> None:
    given = problem(network, steps=2, epochs=2, networks=2, momentum=momentum)
    steps = given.steps.for_each(2)
    if classes:
        steps = Steps(steps.inputs, steps.labels.argmax(-1), steps.learning_rates)
    # The graphs that inductor would compile, without its minute of C++.
    functions = Functions(given.network, given.objective.inner_loss, backend="aot_eager")
    losses, found = differentiated(given, steps, functions)
    expected_losses, expected = given.differentiate(BackGradient(), steps)
    assert not functions.failed
    assert relative_error(losses, expected_losses) < 1e-12
    for name, one in leaves(found).items():
        assert relative_error(one.double(), leaves(expected)[name].double()) < 1e-10, name


def test_what_cannot_be_compiled_is_computed_without(caplog: pytest.LogCaptureFixture) -> None:
    given = problem("mlp", steps=2, epochs=2)
    steps = given.steps.for_each(1)

    def untraceable(outputs: Tensor, labels: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            raise RuntimeError("not in a graph")
        return given.objective.inner_loss(outputs, labels)

    with caplog.at_level("INFO", "datadistill"):
        functions = Functions(given.network, untraceable, backend="aot_eager")
        _, found = differentiated(given, steps, functions)
    _, expected = given.differentiate(BackGradient(), steps)
    assert functions.failed
    assert [record.message[:33] for record in caplog.records] == [
        "Updates could not be compiled, wh"
    ]
    for name, one in leaves(found).items():
        assert torch.equal(one, leaves(expected)[name]), name


WITHOUT_COMPILER = """
import json, logging, sys
from dataclasses import replace
import torch
from benchmarks.speed import prepare
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 10), torch.nn.LayerNorm(10))
plain = prepare(module, (1, 2, 2), 2, steps=1, batch_size=20)
state, batch = plain.start().distiller, plain.batch(0)
compiled = replace(plain.distiller, compiled=True)
found, expected = (one.gradient(state, batch)[1] for one in (compiled, plain.distiller))
same = all(torch.equal(found[name], expected[name]) for name in expected)
print(json.dumps([compiled.compilable, compiled.functions.failed, same]))
"""


def test_without_a_compiler_a_run_goes_on_and_says_so_once(tmp_path: Path) -> None:
    environment = {n: v for n, v in os.environ.items() if n not in ("CXX", "CC")}
    environment |= {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in (*sys.path, str(Path.cwd())) if p)
    command = [sys.executable, "-c", WITHOUT_COMPILER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, True, True]
    assert (
        done.stderr.count("datadistill.engine.kernels.library: Updates could not be compiled") == 1
    )
