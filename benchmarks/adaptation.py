"""Speed of few-shot adversarial adaptation: known layers by our kernels, against the module itself.

A LeNet with MNIST as its source and 100 target images; one update of the network and one of the
discriminator, of the best of several alternating trials. That both sides end in the same weights
is checked first, in float64.

    python -m benchmarks.adaptation [--quick]
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

import datadistill as dd
from benchmarks.timing import alternately
from datadistill.baselines.adversarial import AdversarialSettings, FewShotAdversarial
from datadistill.core.network import Weights
from datadistill.core.random import stream

UPDATES = 20
CHECKED = 3
AT_LEAST = 1.5


class AsItIs(FewShotAdversarial):
    """The same, its network computed by PyTorch alone."""

    def encode(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits by the module's own forward pass."""
        logits = functional_call(self.module, weights, (inputs,))
        return self._features, logits


def measure(*, quick: bool = False, data_dir: Path | None = None) -> dict[str, Any]:
    """The ratio of times of an update."""
    data = dd.data.load("mnist", dd.data.data_folder(data_dir))[0]
    torch.set_num_threads(1)
    check(data)
    ours, plain = (adaptation(data, kind) for kind in (FewShotAdversarial, AsItIs))
    sides = {"ours": lambda: take(ours, UPDATES), "plain": lambda: take(plain, UPDATES)}
    best = alternately(sides, 2 if quick else 5)
    row = {
        "what": "LeNet, 100 target images: one update, one thread",
        "ours, ms": 1e3 * best["ours"] / UPDATES,
        "against, ms": 1e3 * best["plain"] / UPDATES,
        "ratio": best["plain"] / best["ours"],
        "at least": AT_LEAST,
    }
    return {"rows": [row]}


def adaptation(
    data: dd.LabelledData, kind: type[FewShotAdversarial], dtype: torch.dtype = torch.float32
) -> FewShotAdversarial:
    """An adaptation that has not begun."""
    module = dd.models.LeNet().to(dtype)
    with torch.no_grad():
        for number, p in enumerate(module.parameters()):
            p.copy_(0.1 * torch.randn(p.shape, generator=stream(0, "weights", number)))
    images = torch.randn(100, 1, 28, 28, generator=stream(0, "images")).to(dtype)
    return kind(module, data, images, torch.arange(100) % 10, AdversarialSettings(warm_up=0))


def take(adaptation: FewShotAdversarial, updates: int) -> None:
    """Takes some updates."""
    for _ in range(updates):
        adaptation.teach_network()
        adaptation.teach_discriminator()


def check(data: dd.LabelledData) -> None:
    """Refuses to measure two sides that do not end in the same weights."""
    sides = [adaptation(data, kind, torch.float64) for kind in (FewShotAdversarial, AsItIs)]
    for side in sides:
        take(side, CHECKED)
    ours, plain = (side.weights() for side in sides)
    for name, w in plain.items():
        torch.testing.assert_close(ours[name], w, rtol=1e-7, atol=1e-9)


if __name__ == "__main__":
    print(json.dumps(measure(quick="--quick" in sys.argv), indent=1))
