"""How fast real data are ready, each figure a ratio measured in one run.

Each is of the best of several alternating trials:

- reading MNIST, against unpacking its four files with gzip and numpy alone (at most 2);
- making augmented minibatches of 1024, of CIFAR-10 and of digits, against one forward pass of LeNet
  (below 1).
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import torch

import datadistill as dd
from benchmarks.timing import alternately
from datadistill.core.random import minibatch, stream

TRIALS = 7
EXAMPLES, BATCH = 50_000, 1024


def measure(*, data_dir: Path | None = None) -> dict[str, Any]:
    """All ratios."""
    torch.set_num_threads(1)
    cases = {
        "reading MNIST against gzip and numpy": reading_mnist(dd.data.data_folder(data_dir)),
        f"augmented CIFAR-10 minibatch of {BATCH} against LeNet's forward pass": augmented_batch(
            dd.data.PadCropFlip(4), channels=3, size=32
        ),
        f"augmented minibatch of {BATCH} digits against LeNet's forward pass": augmented_batch(
            dd.data.Affine(), channels=1, size=28
        ),
    }
    rows = [
        {
            "what": what,
            "ours, ms": 1e3 * best["ours"],
            "against, ms": 1e3 * best["theirs"],
            "ratio": best["ours"] / best["theirs"],
            "at most": limit,
        }
        for (what, best), limit in zip(cases.items(), (2, 1, 1), strict=True)
    ]
    return {"rows": rows}


def reading_mnist(data_dir: Path) -> dict[str, float]:
    """Reading MNIST against the least that has to be done."""

    def least() -> list[np.ndarray]:
        files = sorted((data_dir / "mnist").glob("*.gz"))
        return [np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8) for file in files]

    sides = {"ours": lambda: dd.data.load("mnist", data_dir), "theirs": least}
    return alternately(sides, TRIALS)


def augmented_batch(
    augmentation: dd.data.Augmentation, *, channels: int, size: int
) -> dict[str, float]:
    """An augmented minibatch against a forward pass; what the pixels are is no matter."""
    shape, pixels = (EXAMPLES, channels, size, size), stream(0, "x")
    data = dd.LabelledData(
        torch.randint(0, 256, shape, dtype=torch.uint8, generator=pixels),
        torch.randint(0, 10, (EXAMPLES,), generator=stream(0, "y")),
        dd.data.Normalization((0.5,) * channels, (0.25,) * channels),
        augmentation=augmentation,
    )
    network, device = dd.models.LeNet(channels=channels, size=size), torch.device("cpu")

    def batch() -> torch.Tensor:
        indices = minibatch(0, 0, BATCH, EXAMPLES)
        return data.batch(indices, device, torch.float32, stream(0, "views"))[0]

    images = batch()
    with torch.no_grad():
        return alternately({"ours": batch, "theirs": lambda: network(images)}, TRIALS)
