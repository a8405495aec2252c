"""Speed of one outer gradient against thirty lines of plain PyTorch.

The loop takes networks one after the other, keeps the graphs of all updates, and has one
``autograd.grad`` go back through everything. Both sides have one thread, and their processor time
is measured alternately: other load on the machine changes it little. 10 steps × 3 epochs, an outer
step after the first ones, which wait for nothing to be traced. Shares of the peak are of the
operations that the loop makes, in our time, relative to a large matrix product on one thread.

The loop has a process of its own: what the library chooses for its process, such as which freed
memory is kept, is not plain PyTorch.
"""

import math
import multiprocessing
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.own_networks import OWN
from benchmarks.reference import sampled
from benchmarks.speed import prepare
from benchmarks.timing import Operations, alternately
from datadistill.core.distilled import Steps
from datadistill.core.network import Weights
from datadistill.models import VGG11, AlexCifarNet, ConvNet3, LargeNet, LeNet
from datadistill.runs.distillation import Distillation
from datadistill.runs.planning.speed import matmul_peak

OUTER_STEP = 500


def gradient(
    module: nn.Module, networks: Iterable[Weights], steps: Steps, batch: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """The losses (J,), and the gradients of their mean: of images and of learning rates."""

    def loss(theta: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(module, theta, (inputs,)), labels)

    inputs = steps.inputs.detach().requires_grad_()
    rates = steps.learning_rates.detach().requires_grad_()
    losses: list[Tensor] = []
    found: list[tuple[Tensor, ...]] = []
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no second derivative
        for theta in networks:
            theta = {name: w.detach().requires_grad_() for name, w in theta.items()}
            for e, s in steps.schedule:
                inner = loss(theta, inputs[s], steps.labels[s])
                g = torch.autograd.grad(inner, [*theta.values()], create_graph=True)
                pairs = zip(theta.items(), g, strict=True)
                theta = {name: w - rates[e, s] * own for (name, w), own in pairs}
            outer = loss(theta, *batch)
            found.append(torch.autograd.grad(outer, [inputs, rates]))
            losses.append(outer.detach())
    images, of_rates = (torch.stack(each).mean(0) for each in zip(*found, strict=True))
    return torch.stack(losses), images, of_rates


class Case(NamedTuple):
    """A network, its images and minibatch; what is promised for one and for four networks.

    Shares of the peak that are promised are in percent. Goals are ratios, which are only shown.
    """

    make: Callable[[], nn.Module]
    shape: tuple[int, int, int]
    minibatch: int
    at_least: dict[int, float]
    trials: int
    shares: Mapping[int, float] = MappingProxyType({})
    goals: Mapping[int, float] = MappingProxyType({})


OWN_AT_LEAST: dict[str, dict[int, float]] = {
    "residual, GroupNorm": {1: 1.1, 4: 1.1},
    "mixer, LayerNorm": {1: 1.3, 4: 2.0},
    "BatchNorm": {1: 1.2, 4: 1.15},
    "attention": {1: 1.3, 4: 1.9},
    "LSTM": {1: 1.6, 4: 1.6},
    "tied weights": {1: 1.2, 4: 1.5},
    "dropout MLP": {1: 1.2, 4: 1.1},
}
OWN_GOALS = {1: 1.2, 4: 2.0}
CASES = {
    "LeNet": Case(LeNet, (1, 28, 28), 1024, {1: 2.8, 4: 3.2}, 6, {4: 50}),
    **{
        name: Case(OWN[name], (1, 28, 28), 256, least, 6, goals=OWN_GOALS)
        for name, least in OWN_AT_LEAST.items()
    },
}
WIDE = {
    "AlexCifarNet": Case(AlexCifarNet, (3, 32, 32), 256, {1: 1.3}, 2, {1: 70}),
    "ConvNet-3": Case(ConvNet3, (3, 32, 32), 256, {1: 1.3}, 2, {1: 70}),
    "LargeNet": Case(LargeNet, (1, 28, 28), 1024, {1: 1.2}, 2),
    "VGG-11": Case(VGG11, (3, 32, 32), 256, {1: 1.2}, 2),
}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """All cases."""
    return {"threads": 1, "rows": rows_of(CASES, quick=quick)}


def rows_of(cases: Mapping[str, Case], *, quick: bool, **settings: Any) -> list[dict[str, Any]]:
    """A row for each case and number of networks."""
    return [
        compare(name, case, networks, _trials(case, networks, quick=quick), settings)
        for name, case in cases.items()
        for networks in case.at_least
    ]


def _trials(case: Case, networks: int, *, quick: bool) -> int:
    """How often both sides are measured; one network takes little time, and varies most."""
    return math.ceil(case.trials / 3) if quick and networks > 1 else case.trials


def compare(
    name: str, case: Case, networks: int, trials: int, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """One row: the best processor times of both sides, and their ratio."""
    # Updates as small as at the start of a run: of no network do the weights leave all bounds.
    settings = {
        "batch_size": case.minibatch,
        "learning_rate": 0.02,
        "clip_norm": None,
        **settings,
    }
    threads = torch.get_num_threads()
    with in_own_process(case.make, case.shape, networks, settings) as (operations, loop):
        _, ours = sides(prepare(case.make(), case.shape, networks, **settings))
        torch.set_num_threads(1)
        try:
            best = alternately({"loop": loop, "ours": processor_time(ours)}, trials)
            peak = matmul_peak()
        finally:
            torch.set_num_threads(threads)
    return {
        "network": name,
        "minibatch": case.minibatch,
        "J": networks,
        "plain loop, s": best["loop"],
        "ours, s": best["ours"],
        "ratio": best["loop"] / best["ours"],
        "at least": case.at_least[networks],
        "share of peak, %": 100 * operations / peak / best["ours"],
        **({"goal": case.goals[networks]} if networks in case.goals else {}),
        **({"share at least": case.shares[networks]} if networks in case.shares else {}),
    }


def sides(distillation: Distillation) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The gradient of the same outer step by the loop, and by the library."""
    batch = distillation.batch(OUTER_STEP)
    state = replace(distillation.start().distiller, outer_step=OUTER_STEP)
    steps, module = distillation.images(state), distillation.network.module()

    def loop() -> tuple[Tensor, Tensor, Tensor]:
        return gradient(module, sampled(distillation, OUTER_STEP), steps, batch)

    def ours() -> tuple[Tensor, dict[str, Tensor]]:
        return distillation.distiller.gradient(state, batch)

    return loop, ours


@contextmanager
def in_own_process(
    make: Callable[[], nn.Module],
    shape: tuple[int, ...],
    networks: int,
    settings: Mapping[str, Any],
) -> Generator[tuple[int, Callable[[], float]]]:
    """The loop in another process: its operations, and a call that returns its processor time."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    work = (make, shape, networks, dict(settings), there)
    other = context.Process(target=_loop_on_call, args=work, daemon=True)
    other.start()
    there.close()

    def loop() -> float:
        here.send("once more")
        return here.recv()

    try:
        yield here.recv(), loop
    finally:
        here.close()
        other.join()


def _loop_on_call(
    make: Callable[[], nn.Module],
    shape: tuple[int, ...],
    networks: int,
    settings: Mapping[str, Any],
    parent: Connection,
) -> None:
    loop, _ = sides(prepare(make(), shape, networks, **settings, engine="plain"))
    torch.set_num_threads(1)
    with Operations() as counted:
        loop()
    parent.send(counted.total)
    timed = processor_time(loop)
    with suppress(EOFError):
        while parent.recv():
            parent.send(timed())


def processor_time(work: Callable[[], object]) -> Callable[[], float]:
    """Work that returns the processor time that it takes."""

    def timed() -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    return timed
