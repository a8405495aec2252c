"""What the one sum of an outer step costs: measured here, and estimated for other machines.

    python -m benchmarks --only communication

The bytes do not depend on the network: the gradient of the distilled data, J losses and two votes.
A ring adds them up in 2 (N − 1) messages of 1/N of the bytes: 2 (N − 1) α + 2 (N − 1)/N · bytes/β
with latency α and bandwidth β. Both are fitted to what two processes take here; those of other
machines are assumptions, named in the table.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch

from datadistill.runs.team.handover import Named
from datadistill.runs.team.launch import launched
from datadistill.runs.team.link import Link
from datadistill.runs.team.processes import Processes
from datadistill.runs.team.worker import run_worker

MOST_REPEATS, LEAST_REPEATS = 40, 4
VOTES = 2
NETWORKS = 8


@dataclass(frozen=True)
class Case:
    """Distilled data: so many images of so many numbers, in steps × epochs with learning rates."""

    name: str
    images: int
    pixels: int
    rates: int

    @property
    def numbers(self) -> int:
        """Numbers in the one sum of an outer step."""
        return self.images * self.pixels + self.rates + NETWORKS + VOTES

    @property
    def repeats(self) -> int:
        """How often it is measured: less often where it takes long."""
        return max(LEAST_REPEATS, min(MOST_REPEATS, 10**7 // self.numbers))


@dataclass(frozen=True)
class Machine:
    """Assumed latency of a message (s) and bandwidth (bytes/s) between neighbours in the ring."""

    name: str
    processes: int
    latency: float
    bandwidth: float

    def seconds(self, size: int) -> float:
        """Of one sum."""
        n = self.processes
        return 2 * (n - 1) * self.latency + 2 * (n - 1) / n * size / self.bandwidth


CASES = [
    Case("MNIST, 10 images", 10, 784, 3),
    Case("MNIST, 100 images", 100, 784, 30),
    Case("CIFAR-10, 100 images", 100, 3072, 30),
    Case("CIFAR-10, 1000 images", 1000, 3072, 300),
    Case("224 × 224 × 3, 200 images", 200, 150528, 3),
]
MACHINES = [
    Machine("8 GPUs, NVLink", 8, 5e-6, 100e9),
    Machine("8 GPUs, PCIe", 8, 10e-6, 10e9),
    Machine("4 machines × 8 GPUs, 100 Gbit/s", 32, 20e-6, 10e9),
    Machine("32 machines of CPUs, 10 Gbit/s", 32, 50e-6, 1e9),
]


def measure(processes: tuple[int, ...] = (2, 4)) -> dict[str, Any]:
    """Milliseconds of one sum for every case: with processes here, and estimated elsewhere."""
    here = {size: _here(size) for size in processes}
    rows = [
        {
            "sum of an outer step": case.name,
            "bytes": 4 * case.numbers,
            **{f"{n} processes here, ms": 1e3 * times[number] for n, times in here.items()},
            **{f"{m.name}, ms (estimated)": 1e3 * m.seconds(4 * case.numbers) for m in MACHINES},
        }
        for number, case in enumerate(CASES)
    ]
    latency, bandwidth = _fit([4 * case.numbers for case in CASES], here[processes[0]])
    return {"rows": rows, "latency_here": latency, "bandwidth_here": bandwidth}


def _here(processes: int) -> list[float]:
    """The fastest of many sums, for each case."""
    with launched(processes, worker, {}) as link:
        return [min(_times(link, case)) for case in CASES]


def worker(handover: bytes) -> None:
    """Takes part in the sums that are measured."""
    torch.set_num_threads(1)
    run_worker(_take_part, handover)


def _take_part(team: Processes, _named: Named) -> None:
    assert team.link is not None
    for case in CASES:
        _times(team.link, case)


def _times(link: Link, case: Case) -> list[float]:
    times: list[float] = []
    tensor = torch.zeros(case.numbers)
    for _ in range(case.repeats):
        begin = time.perf_counter()
        link.sum(tensor)
        times.append(time.perf_counter() - begin)
    return times


def _fit(sizes: list[int], times: list[float]) -> tuple[float, float]:
    """Latency and bandwidth of two processes: 2 α + bytes/β, from the least and the most bytes."""
    bandwidth = (sizes[-1] - sizes[0]) / (times[-1] - times[0])
    return (times[0] - sizes[0] / bandwidth) / 2, bandwidth
