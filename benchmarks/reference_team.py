"""The reference over two processes: each computes half of the networks, on one thread.

Networks one after another leave a second core to torch's own threads, which wait for each other
in small operations. This is the better division where there are several networks.
"""

import contextlib
import itertools
import multiprocessing
from collections.abc import Generator, Iterable
from dataclasses import replace
from multiprocessing.connection import Connection

import torch
from torch import Tensor, nn

from benchmarks.reference import ReferenceRun, gradient, sampled
from datadistill.core.distilled import Steps
from datadistill.core.network import Weights
from datadistill.runs.config import RunConfig
from datadistill.runs.distillation import Distillation
from datadistill.runs.experiment import load


@contextlib.contextmanager
def reference_team(settings: RunConfig, distillation: Distillation) -> Generator[ReferenceRun]:
    """The reference of a distillation, whose second half of the networks another process computes.

    Args:
        settings: From which the other process makes the same distillation.
        distillation: This process's.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    other = context.Process(target=_second_half, args=(settings, there), daemon=True)
    other.start()
    try:
        here.recv()  # it has started
        yield _TeamRun(distillation, here)
    finally:
        here.close()
        other.kill()
        other.join()


class _TeamRun(ReferenceRun):
    def __init__(self, distillation: Distillation, other: Connection) -> None:
        super().__init__(distillation)
        self._other = other

    def gradient(
        self,
        module: nn.Module,
        networks: Iterable[Weights],
        steps: Steps,
        batch: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Steps]:
        """The mean over both halves; batch and networks of the other are its own."""
        self._other.send((self.outer_step, steps.inputs.numpy(), steps.learning_rates.numpy()))
        count = self._distillation.distiller.networks
        first = itertools.islice(networks, (count + 1) // 2)
        losses, found = gradient(module, first, steps, batch)
        others, inputs, rates = (torch.from_numpy(own) for own in self._other.recv())
        share = len(losses) / count
        mean = [
            share * own + (1 - share) * one
            for own, one in ((found.inputs, inputs), (found.learning_rates, rates))
        ]
        return torch.cat([losses, others]), Steps(mean[0], found.labels, mean[1])


def _second_half(settings: RunConfig, parent: Connection) -> None:
    torch.set_num_threads(1)
    distillation = load(replace(settings, threads=1)).prepare()
    whole, module = ReferenceRun(distillation), distillation.network.module()
    count = distillation.distiller.networks
    parent.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            outer_step, *own = parent.recv()
            inputs, rates = (torch.from_numpy(one) for one in own)
            steps = replace(whole.distilled, inputs=inputs, learning_rates=rates)
            second = itertools.islice(sampled(distillation, outer_step), (count + 1) // 2, None)
            losses, found = gradient(module, second, steps, distillation.batch(outer_step))
            parent.send([t.numpy() for t in (losses, found.inputs, found.learning_rates)])
