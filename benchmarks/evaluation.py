"""Speed and memory of evaluation: networks in groups against a loop over the networks.

Run: python benchmarks/evaluation.py [DATA_DIR]

LeNets are trained 30 steps (10 steps × 3 epochs of 10 images) on 100 images and tested on MNIST's
10,000. Ours takes all 200 networks; the loop takes the first 40, each alone, by plain PyTorch, and
its time per network is what counts. The loop first chooses between one thread and torch's default,
and between test batches. Then both sides take turns, in stretches of similar length so that load
hits both alike, and the best of each counts. Peak memory is what 48 networks add to that of a
process of its own, one for each bound. That both sides reach the same is checked first,
in float64.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F

import datadistill as dd
from datadistill.baselines import random_real
from datadistill.core.distilled import Steps
from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.network import Network
from datadistill.evaluation import curve

NETWORKS, LOOPED, TRIALS = 200, 40, 3
CHECKED = 24  # networks
BATCHES = (100, 500, 1000)


def problem(data_dir: Path) -> tuple[Network, Steps, dd.LabelledData]:
    """Random real images as 10 steps × 3 epochs, and MNIST's test images."""
    train, test = dd.data.load("mnist", data_dir)
    network = Network(dd.models.LeNet(), train.example())
    images = random_real(train, network, classes=10, steps=10)
    return network, Steps(images.inputs, images.labels, torch.full((3, 10), 0.02)), test


def in_groups(
    network: Network, steps: Steps, test: dd.LabelledData, networks: int, memory: int = 2**30
) -> tuple[float, ...]:
    """Networks by the library."""
    objective, sample = dd.Classification(), RandomInit()
    found = curve(
        steps,
        network,
        lambda generators: sample.sample(network, generators),
        test,
        objective,
        networks=networks,
        memory=memory,
    )
    return found[0].values


def alone(network: Network, steps: Steps, test: dd.LabelledData, number: int, batch: int) -> float:
    """One network by plain PyTorch."""
    theta0 = RandomInit().sample(network, networks_for(0, "held-out network", [number]))
    module = network.module({name: w[0] for name, w in theta0.items()})
    parameters = list(module.parameters())
    for step in steps:
        gradients = torch.autograd.grad(
            F.cross_entropy(module(step.inputs), step.labels), parameters
        )
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(step.learning_rate * gradient)
    right = 0
    with torch.no_grad():
        for begin in range(0, len(test), batch):
            inputs, labels = test.batch(slice(begin, begin + batch), network.device, network.dtype)
            right += int((module(inputs).argmax(1) == labels).sum())
    return right / len(test)


class Times(NamedTuple):
    """Seconds per network: on the clock, and of all processors."""

    wall: float
    cpu: float


def timed(work: Callable[[], object], networks: int) -> Times:
    """How long a call takes for each network."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Times((time.perf_counter() - wall) / networks, (time.process_time() - cpu) / networks)


def check(data_dir: Path) -> None:
    """Stops unless both sides reach exactly the same, in float64.

    In float32 they need not: training makes so much of the last bit that one network in twenty
    ends points apart, as it does between plain float32 and plain float64.
    """
    network, steps, test = problem(data_dir)
    network = Network(network.module().double(), steps.inputs[0])
    steps, test = steps.to(network.device, network.dtype), test.part(torch.arange(1000), "test")
    found = in_groups(network, steps, test, CHECKED)
    expected = tuple(alone(network, steps, test, number, 100) for number in range(CHECKED))
    if found != expected:
        raise SystemExit(f"Networks in groups reach {found}, alone they reach {expected}.")


def compare(data_dir: Path) -> float:
    """Prints the times of both sides; returns the ratio of the best ones."""
    network, steps, test = problem(data_dir)
    threads = torch.get_num_threads()

    def loop(count: int, way: tuple[int, int]) -> Times:
        def work() -> None:
            for number in range(count):
                alone(network, steps, test, number, way[1])

        torch.set_num_threads(way[0])
        times = timed(work, count)
        torch.set_num_threads(threads)
        return times

    ways = [(t, b) for t in sorted({1, threads}) for b in BATCHES]
    tried = {way: min(loop(1, way).wall for _ in range(3)) for way in ways}
    for (count, batch), wall in tried.items():
        print(f"  alone, {count} thread(s), test batch {batch}: {1e3 * wall:.0f} ms", flush=True)
    best = min(tried, key=lambda way: tried[way])
    ours, theirs = list[Times](), list[Times]()
    for _ in range(TRIALS):
        ours.append(timed(lambda: in_groups(network, steps, test, NETWORKS), NETWORKS))
        theirs.append(loop(LOOPED, best))
        pair = f"alone {1e3 * theirs[-1].wall:.0f} ms, in groups {1e3 * ours[-1].wall:.0f} ms"
        print(f"  {pair}; of processor time {theirs[-1].cpu / ours[-1].cpu:.2f} times", flush=True)
    return min(t.wall for t in theirs) / min(t.wall for t in ours)


def peak_growth(data_dir: Path, memory: int) -> int:
    """Growth of this process's peak memory in an evaluation. Call it once in a process."""
    network, steps, test = problem(data_dir)
    alone(network, steps, test, 0, 100)  # what libraries set up at first use
    before = _peak()
    in_groups(network, steps, test, 48, memory)
    return _peak() - before


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Prints the ratio, and the peak memory of several bounds."""
    if "--memory" in sys.argv:
        data_dir, memory = Path(sys.argv[1]), int(sys.argv[3])
        print(json.dumps(peak_growth(data_dir, memory)))
        return
    data_dir = dd.data.data_folder(sys.argv[1] if len(sys.argv) > 1 else None)
    too_much = False
    for memory in (2**26, 2**28, 2**30):
        command = [sys.executable, __file__, str(data_dir), "--memory", str(memory)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        growth = json.loads(done.stdout)
        too_much |= growth > memory
        print(f"memory bound {memory / 1e6:.0f} MB: peak memory grows by {growth / 1e6:.0f} MB")
    check(data_dir)
    ratio = compare(data_dir)
    print(f"{NETWORKS} networks in groups: {ratio:.1f} times as fast as each alone (at least 3)")
    sys.exit(too_much or ratio < 3)


if __name__ == "__main__":
    main()
