"""Compiled updates are the same updates, and where they cannot be had nothing is lost."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from datadistill.core.adjoint import BackGradient
from datadistill.core.distilled import Steps
from datadistill.core.update import GradientDescent, Momentum, UpdateRule
from datadistill.engine import FastEngine
from datadistill.engine.compiled import Functions
from datadistill.notices import warn_once
from tests.helpers import Problem, leaves, problem, relative_error
from tests.processes import finished

pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"
)


@pytest.fixture(autouse=True)
def forget():
    yield
    torch.compiler.reset()


def differentiated(given: Problem, steps: Steps, functions: Functions) -> tuple[Tensor, Steps]:
    engine = FastEngine(given.network, given.objective)
    engine.functions = functions
    return given.differentiate(BackGradient(), steps, engine)


@pytest.mark.parametrize(
    ("network", "rule", "classes"),
    [("shared weights", Momentum(0.5), False), ("convolutional", GradientDescent(), True)],
)
def test_the_gradient_is_that_of_plain_updates(
    network: str, rule: UpdateRule, classes: bool
) -> None:
    given = problem(network, steps=2, epochs=2, networks=2, rule=rule)
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
    given = problem("shared weights", steps=2, epochs=2)
    steps = given.steps.for_each(1)
    warn_once.cache_clear()

    def untraceable(outputs: Tensor, labels: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            raise RuntimeError("not in a graph")
        return given.objective.inner_loss(outputs, labels)

    with caplog.at_level("INFO", "datadistill"):
        functions = Functions(given.network, untraceable, backend="aot_eager")
        _, found = differentiated(given, steps, functions)
    engine = FastEngine(given.network, given.objective)
    _, expected = given.differentiate(BackGradient(), steps, engine)
    assert engine.compilable
    assert functions.failed
    (said,) = caplog.messages
    assert said.startswith("Updates could not be compiled (")
    assert said.endswith("To do without: --no-compiled.")
    for name, one in leaves(found).items():
        assert torch.equal(one, leaves(expected)[name]), name


WITHOUT_COMPILER = """
import json, logging, sys
from dataclasses import replace
import torch
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.core.settings import DistillerConfig
from datadistill.engine import FastEngine
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 10), torch.nn.LayerNorm(10))
batch = torch.randn(20, 1, 2, 2), torch.arange(20) % 10
network, objective = Network(module, batch[0]), Classification()
engines = [FastEngine(network, objective, compiled=compiled) for compiled in (True, False)]
plain = Distiller(network, RandomInit(), objective, DistillerConfig(networks=2))
state = plain.init(batch[0].shape[1:], batch[1])
replace(plain, own_engine=engines[0]).gradient(state, batch)
found, expected = (replace(plain, own_engine=one).gradient(state, batch)[1] for one in engines)
same = all(torch.equal(found[name], expected[name]) for name in expected)
compiled = engines[0].functions
print(json.dumps([compiled is not None, compiled.failed, same]))
"""


def test_without_a_compiler_a_run_goes_on_and_says_so_once(tmp_path: Path) -> None:
    environment = {n: v for n, v in os.environ.items() if n not in ("CXX", "CC")}
    environment |= {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in (*sys.path, str(Path.cwd())) if p)
    done = finished("-c", WITHOUT_COMPILER, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True, True]
    assert done.stderr.count("datadistill: Updates could not be compiled (") == 1
