"""usps-mixed: all of USPS, split at random."""

from dataclasses import replace
from pathlib import Path

import torch

from ...core.random import stream
from ..data_set import register
from ..labelled import LabelledData
from ..options import Options
from .usps import DATA_SET as USPS
from .usps import load_usps

TRAINING_SHARE = 0.8  # 7,438 of 9,298


def load_usps_mixed(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads USPS and splits all of it at random, into the numbers that the paper's authors had.

    The test images of USPS are harder than its training images; those of a random split are not.
    The authors' own split is not known.
    """
    parts = load_usps(folder, options)
    inputs, labels = (torch.cat([getattr(p, name) for p in parts]) for name in ("inputs", "labels"))
    everything = replace(parts[0], inputs=inputs, labels=labels, name="usps-mixed")
    order = torch.randperm(len(everything), generator=stream(0, "usps-mixed"))
    share = round(TRAINING_SHARE * len(everything))
    train, test = everything.part(order[:share], "train"), everything.part(order[share:], "test")
    return train, replace(test, augmentation=None)


DATA_SET = register(
    replace(
        USPS,
        name="usps-mixed",
        what="USPS split at random, as the paper's authors had it: 7,438 + 1,860 digits",
        canonical=False,
        loader=load_usps_mixed,
        downloads=(),
        order=50,
    )
)
