"""Speed of pre-training: networks side by side against one after the other.

LeNets are trained on MNIST by the quick setting: the same minibatches, the same Adam. The loop
trains a plain module after the other, with torch's own Adam and all threads or one, whichever is
faster; both take only the first updates of an epoch, and times are for one network and update.
That both end in the same weights is checked first, in float64.

    python -m benchmarks.pretraining [--quick]
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import datadistill as dd
from benchmarks.timing import THREADS, alternately
from datadistill.core.initialization import networks_for
from datadistill.core.network import Network, Weights
from datadistill.core.random import stream
from datadistill.pools.settings import PoolSettings
from datadistill.pools.training import PoolTrainer

NETWORKS, LOOPED = 16, 2
UPDATES = 40
CHECKED = 3  # networks, and updates
AT_LEAST = 2


def measure(*, quick: bool = False, data_dir: Path | None = None) -> dict[str, Any]:
    """The ratio of times of one network and update."""
    data = dd.data.load("mnist", dd.data.data_folder(data_dir))[0]
    settings = PoolSettings.preset("quick", data.name, len(data))
    trainer = PoolTrainer(Network(dd.models.LeNet(), data.example()), data, None, None, settings)
    check(trainer)
    updates, trials = (10, 2) if quick else (UPDATES, 5)

    def ours() -> None:
        torch.set_num_threads(THREADS)
        trainer("train", range(NETWORKS), limit=updates)

    def loop(threads: int) -> None:
        torch.set_num_threads(threads)
        for number in range(LOOPED):
            one_by_one(trainer, number, updates)

    loops = {f"loop, {n} threads": lambda n=n: loop(n) for n in {1, THREADS}}
    best = alternately({"ours": ours, **loops}, trials)
    torch.set_num_threads(THREADS)
    each = {
        name: s / updates / (NETWORKS if name == "ours" else LOOPED) for name, s in best.items()
    }
    fastest = min((name for name in each if name != "ours"), key=each.__getitem__)
    row = {
        "what": f"LeNet on MNIST, batch {settings.batch_size}: one network and update, {fastest}",
        "ours, ms": 1e3 * each["ours"],
        "against, ms": 1e3 * each[fastest],
        "ratio": each[fastest] / each["ours"],
        "at least": AT_LEAST,
    }
    return {"rows": [row]}


def one_by_one(trainer: PoolTrainer, number: int, updates: int) -> Weights:
    """Trains one network in plain PyTorch, as a loop over networks would."""
    settings, data, network = trainer.settings, trainer.data, trainer.network
    drawn = networks_for(settings.seed, "pool, train network", [number])
    theta0 = dd.RandomInit(settings.scheme).sample(network, drawn)
    module = network.module({name: w[0] for name, w in theta0.items()})
    optimizer = torch.optim.Adam(module.parameters(), lr=settings.lr, betas=settings.betas)
    for t, batch in enumerate(minibatches(trainer, number, updates)):
        optimizer.param_groups[0]["lr"] = settings.rate(0, t / trainer.updates)
        inputs, labels = data.batch(batch, network.device, network.dtype)
        optimizer.zero_grad()
        F.cross_entropy(module(inputs), labels).backward()
        optimizer.step()
    return {name: p.detach() for name, p in module.named_parameters()}


def minibatches(trainer: PoolTrainer, number: int, updates: int) -> Iterator[torch.Tensor]:
    """The first minibatches of a network's first epoch."""
    order = stream(trainer.settings.seed, "pool, train order", number, 0)
    indices = torch.randperm(len(trainer.data), generator=order)
    yield from indices.split(trainer.settings.batch_size)[:updates]


def check(trainer: PoolTrainer) -> None:
    """Refuses to measure two sides that do not end in the same weights."""
    module = dd.models.LeNet().double()
    wide = replace(trainer, network=Network(module, trainer.data.example()))
    ours = wide("train", range(CHECKED), limit=CHECKED).weights
    for number in range(CHECKED):
        for name, w in one_by_one(wide, number, CHECKED).items():
            torch.testing.assert_close(ours[name][number], w, rtol=1e-7, atol=1e-9)


if __name__ == "__main__":
    print(json.dumps(measure(quick="--quick" in sys.argv), indent=1))
