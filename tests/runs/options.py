"""Every option beyond the paper, as a small run: for tests that all of them have to pass."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

import datadistill as dd
from tests.runs.helpers import DATA, SETTINGS, TEST

OPTIONS: dict[str, dict[str, Any]] = {
    "soft": {"labels": "soft", "labels_lr": 0.1},
    "logits": {"labels": "logits"},
    "clipped": {"labels": "clipped"},
    "few images": {"labels": "soft", "images_per_step": 4, "steps": 1},
    "few k-means": {"labels": "logits", "images_per_step": 3, "start": "k-means"},
    "low resolution": {"parametrisation": "low-resolution", "downscale": 4},
    "bases": {"parametrisation": "bases", "bases": 3, "downscale": 2, "start": "k-means"},
    "all at once": {
        **{"parametrisation": "bases", "bases": 3, "labels": "logits", "view": "digits"},
        **{"images_per_step": 4, "rates_factor": 1.5, "keep": "best"},
    },
    "view": {"view": "shift+rotate"},
    "dsa": {"view": "dsa"},
    "whitened": {"validation": 0.1},
    "inner minibatches": {"inner_batch": 1, "images_per_class": 2},
    "shuffled": {"shuffle": True},
    "placed window": {"adjoint": "truncated", "window": 2, "window_placement": "gradient"},
    "random window": {"adjoint": "truncated", "window": 2},
    "running clipping": {"clip_norm": None, "clip_factor": 0.5},
    "robust": {"robust": True, "images_per_class": 2, "architectures": ("mlp(hidden=4)",)},
    "jitter": {"jitter": 0.5},
    "ordinary": {"ordinary": ("sgd", "adam")},
    "momentum": {"update_rule": "momentum", "momentum": 0.5},
    "nesterov": {"update_rule": "nesterov", "momentum": 0.5, "weight_decay": 0.01},
    "adam": {"update_rule": "adam", "weight_decay": 0.01, "learning_rate": 0.01},
    "ridge head": {"adjoint": "ridge-head(pool=3, updates=4)", "update_rule": "adam"},
    "learned momentum": {"learn_momentum": True},
    "layer rates": {"learn_layer_rates": True},
    "learned by layer": {
        **{"learn_momentum": True, "learn_layer_rates": True, "update_rule": "nesterov"},
        **{"momentum": 0.5, "weight_decay": 0.01, "inner_batch": 1, "images_per_class": 2},
    },
    "preset best": {"preset": "best", "epochs": 4, "window": 3},
}


def real_data(option: str) -> tuple[dd.LabelledData, Any, nn.Module]:
    """Training and test data, and a network."""
    if option != "whitened":
        return DATA, TEST, dd.models.Linear()
    train, test = dd.data.load("digits", size=8, normalization="zca")
    few = torch.arange(60)
    return train.part(few, "train"), test.part(few, "test"), dd.models.Linear(size=8)


def distil(option: str, run: Path | None, **settings: Any) -> dd.DistilledData:
    """A run with an option, in this process."""
    train, test, module = real_data(option)
    given: dict[str, Any] = {**SETTINGS, "iterations": 8, "threads": 1}
    return dd.distill(train, module, test=test, run=run, **given | OPTIONS[option] | settings)
