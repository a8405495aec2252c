"""How fast real data are ready, each figure a ratio measured in one run.

Run: python benchmarks/data.py [DATA_DIR]
Prints two ratios, each of the best of several alternating trials, and fails if one is too high:

- reading MNIST, against unpacking its four files with gzip and numpy alone (at most 2);
- making an augmented CIFAR-10 minibatch of 1024, against one forward pass of LeNet (below 1).
"""

import gzip
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import datadistill as dd
from datadistill.core.random import minibatch, stream

TRIALS = 7
EXAMPLES, BATCH = 50_000, 1024


def ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """The best time of ours over the best of theirs; both take turns, so load hits both."""
    best = [float("inf"), float("inf")]
    for _ in range(TRIALS):
        for which, run in enumerate((ours, theirs)):
            begin = time.perf_counter()
            run()
            best[which] = min(best[which], time.perf_counter() - begin)
    print(f"  {best[0] * 1e3:.1f} ms against {best[1] * 1e3:.1f} ms")
    return best[0] / best[1]


def reading_mnist(data_dir: Path) -> float:
    """Reading MNIST against the least that has to be done."""

    def least() -> list[np.ndarray]:
        files = sorted((data_dir / "mnist").glob("*.gz"))
        return [np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8) for file in files]

    return ratio(lambda: dd.data.load("mnist", data_dir), least)


def augmented_batch() -> float:
    """An augmented CIFAR-10 minibatch against a forward pass; what the pixels are is no matter."""
    data = dd.LabelledData(
        torch.randint(0, 256, (EXAMPLES, 3, 32, 32), dtype=torch.uint8, generator=stream(0, "x")),
        torch.randint(0, 10, (EXAMPLES,), generator=stream(0, "y")),
        dd.data.Normalization((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),
        augmentation=dd.data.PadCropFlip(4),
    )
    network, device = dd.models.LeNet(channels=3, size=32), torch.device("cpu")

    def batch() -> torch.Tensor:
        indices = minibatch(0, 0, BATCH, EXAMPLES)
        return data.batch(indices, device, torch.float32, stream(0, "views"))[0]

    images = batch()
    with torch.no_grad():
        return ratio(batch, lambda: network(images))


def main() -> None:
    """Prints both ratios with their limits."""
    torch.set_num_threads(1)
    data_dir = dd.data.data_folder(sys.argv[1] if len(sys.argv) > 1 else None)
    mnist, cifar = reading_mnist(data_dir), augmented_batch()
    print(f"reading MNIST / gzip + numpy: {mnist:.2f} (at most 2)")
    print(f"augmented CIFAR-10 minibatch of {BATCH} / LeNet forward: {cifar:.2f} (below 1)")
    sys.exit(mnist > 2 or cifar >= 1)


if __name__ == "__main__":
    main()
