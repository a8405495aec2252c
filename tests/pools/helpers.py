"""Small pools of quickly trained networks."""

from pathlib import Path
from typing import Any

import torch

import datadistill as dd

_RANDOM = torch.Generator().manual_seed(3)
LABELS = torch.arange(80) % 4
_MEANS = torch.randn(4, 1, 8, 8, generator=_RANDOM)
IMAGES = torch.randn(80, 1, 8, 8, generator=_RANDOM) + 0.5 * _MEANS[LABELS]
DATA = dd.LabelledData(IMAGES, LABELS, name="clouds")
TEST = dd.LabelledData(IMAGES[:40] + 0.1, LABELS[:40], name="clouds", split="test")
SETTINGS: dict[str, Any] = {"epochs": 2, "batch_size": 16, "lr": 0.01, "validation": 0.2}


def module(hidden: int = 6) -> dd.models.MLP:
    return dd.models.MLP(channels=1, size=8, classes=4, hidden=hidden)


def make(folder: Path, networks: int = 20, held_out: int = 6, **settings: Any) -> dd.Pool:
    """A pool of networks that are hardly trained."""
    given: dict[str, Any] = {
        "networks": networks,
        "held_out": held_out,
        "test": TEST,
        **SETTINGS,
        **settings,
    }
    return dd.pretrain(DATA, module(), folder, **given)
