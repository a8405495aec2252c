"""What ``torch.compile`` would gain: one outer gradient by compiled functions, beside ours.

10 steps × 3 epochs, minibatch 1024. The functions are those of the back-gradient adjoint, written
with ``torch.func`` for one network and compiled by inductor: one update, its vector-Jacobian
product, and the gradient of the outer loss. Ours is without compiled updates. Both sides have
PyTorch's own number of threads in one process. Each network is compiled in a process of its own,
with an empty cache and then, in another, with the cache that the first has left; what the first
outer gradient takes more than a later one is the time to compile. It is paid back, with an empty
cache, after as many outer steps as save it.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, grad_and_value, vjp

from benchmarks.processes import late
from benchmarks.reference import sampled
from benchmarks.results import markdown
from benchmarks.speed import prepare
from benchmarks.timing import alternately
from datadistill.core.distilled import Step, Steps
from datadistill.core.network import Weights
from datadistill.models import LeNet
from datadistill.runs.distillation import Distillation

ROUNDING = 1e-2
"""The greatest relative difference of two gradients of 30 updates in float32, where max-pooling may
choose other pixels by rounding; in float64 they agree to 1e-10 (tests/benchmarks)."""
SETTINGS: dict[str, Any] = {"learning_rate": 0.001, "clip_norm": None}
"""Updates so small that rounding does not grow from one to the next."""
Batch = tuple[Tensor, Tensor]


def convolutional() -> nn.Module:
    """A user's own module, with layers that the engine does not know: time goes into numbers."""
    layers: list[nn.Module] = []
    for before, channels in ((1, 16), (16, 32)):
        layers += [nn.Conv2d(before, channels, 3, padding=1), nn.GroupNorm(4, channels)]
        layers += [nn.GELU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 7 * 7, 10))


def row_by_row() -> nn.Module:
    """Another, of many small operations on the rows of an image: time goes into calls."""
    layers: list[nn.Module] = [nn.Flatten(1, 2)]
    for before, width in ((28, 32), (32, 32), (32, 32)):
        layers += [nn.Linear(before, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(28 * 32, 10))


class Case(NamedTuple):
    """An architecture, the images it takes, how many networks, and how often to measure them."""

    make: Callable[[], nn.Module]
    shape: tuple[int, int, int]
    networks: tuple[int, ...]
    trials: int


CASES = {
    "LeNet": Case(LeNet, (1, 28, 28), (1, 4), 5),
    "own, GroupNorm": Case(convolutional, (1, 28, 28), (1, 4), 3),
    "own, LayerNorm": Case(row_by_row, (1, 28, 28), (1, 4), 5),
}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """All cases."""
    return {"rows": [row for name in CASES for row in compare(name, quick=quick)]}


def compare(name: str, *, quick: bool) -> list[dict[str, Any]]:
    """A row for each J: what both sides take, and when the time to compile is paid back."""
    trials = 1 if quick else CASES[name].trials
    with tempfile.TemporaryDirectory() as cache:
        to_compile, rows = _in_own_process(cache, name, trials, *CASES[name].networks)
        with_cache, _ = _in_own_process(cache, name, trials)
    return [
        {
            "network": name,
            "J": networks,
            "to compile, s": to_compile,
            "with cache, s": with_cache,
            "ours, s": ours,
            "compiled, s": compiled,
            "ratio": ours / compiled,
            "paid back after": math.ceil(to_compile / saved) if saved > 0 else "never",
        }
        for networks, ours, compiled in rows
        for saved in (ours - compiled,)
    ]


def _in_own_process(cache: str, *arguments: object) -> Any:
    command = [sys.executable, "-m", "benchmarks.compiled", *map(str, arguments)]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def _figures(name: str, trials: int, *several: int) -> tuple[float, list[tuple[int, float, float]]]:
    """In this process: seconds to compile, then for each J those of our side and the compiled."""
    module, shape = CASES[name].make(), CASES[name].shape
    one = prepare(module, shape, 1, **SETTINGS)
    compiled = Compiled(one)
    first, later = (_seconds(compiled.first_outer_step(one)) for _ in range(2))
    sides = (_sides(compiled, prepare(module, shape, j, **SETTINGS), trials) for j in several)
    return first - later, [(j, *both) for j, both in zip(several, sides, strict=True)]


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _sides(compiled: "Compiled", distillation: Distillation, trials: int) -> tuple[float, float]:
    """The best seconds of an outer gradient: ours, then compiled."""
    theirs = compiled.first_outer_step(distillation)
    difference = differ(distillation, theirs())
    assert difference < ROUNDING, f"the gradients differ by {difference:.1g}"
    state = late(distillation).distiller
    ours = partial(distillation.distiller.gradient, state, distillation.batch(0))
    best = alternately({"ours": ours, "compiled": theirs}, trials)
    return best["ours"], best["compiled"]


class Compiled:
    """The gradient of an outer step by compiled functions, one network after the other.

    Args:
        distillation: The network; its objective is classification, its updates have no momentum.
        compiler: What compiles a function.
    """

    def __init__(self, distillation: Distillation, compiler: Any = torch.compile) -> None:
        module = distillation.network.module()

        def loss(theta: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(functional_call(module, theta, (inputs,)), labels)

        def update(theta: Weights, inputs: Tensor, labels: Tensor, eta: Tensor) -> Weights:
            descent = grad(loss)(theta, inputs, labels)
            return {name: w - eta * descent[name] for name, w in theta.items()}

        def pull_back(theta: Weights, step: Step, v: Weights) -> tuple[Weights, Tensor, Tensor]:
            def own(theta: Weights, inputs: Tensor, eta: Tensor) -> Weights:
                return update(theta, inputs, step.labels, eta)

            return vjp(own, theta, step.inputs, step.learning_rate)[1](v)

        self._update = compiler(update, dynamic=False)
        self._pull_back = compiler(pull_back, dynamic=False)
        self._outer = compiler(grad_and_value(loss), dynamic=False)

    def first_outer_step(self, distillation: Distillation) -> Callable[[], Steps]:
        """What computes the gradient of a distillation's first outer step; that of labels is 0."""
        steps = distillation.images(distillation.start().distiller)
        batch = distillation.batch(0)
        return lambda: self._gradient(list(sampled(distillation, 0)), steps, batch)

    def _gradient(self, networks: list[Weights], steps: Steps, batch: Batch) -> Steps:
        leaves = (steps.inputs, steps.labels, steps.learning_rates)
        total = Steps(*(torch.zeros_like(own) for own in leaves))
        for theta in networks:
            trail: list[Weights] = []
            for step in steps:
                trail.append(theta)
                theta = self._update(theta, step.inputs, step.labels, step.learning_rate)
            v, _ = self._outer(theta, *batch)
            for position, theta in zip(reversed(steps.schedule), reversed(trail), strict=True):
                v, inputs, rate = self._pull_back(theta, steps[position], v)
                total.inputs[position.step] += inputs / len(networks)
                total.learning_rates[position.epoch, position.step] += rate / len(networks)
        return total


def differ(distillation: Distillation, found: Steps) -> float:
    """The relative difference of a gradient from the distiller's, of images or learning rates."""
    state = distillation.start().distiller
    _, expected = distillation.distiller.gradient(state, distillation.batch(0))
    raw = found.learning_rates * state.parameters["raw_rates"].sigmoid()
    pairs = ((found.inputs, expected["inputs"]), (raw, expected["raw_rates"]))
    return max(float((one - other).norm() / other.norm()) for one, other in pairs)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(markdown(measure()["rows"]))
    else:
        print(json.dumps(_figures(sys.argv[1], *map(int, sys.argv[2:]))))
