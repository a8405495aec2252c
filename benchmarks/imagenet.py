"""Peak memory of one outer step at 224×224 with 200 classes, against 8 GiB.

Each figure is the high-water mark of a process of its own that makes one outer step of a recipe, as
a user's run makes it. The images are noise and the weights are random, which changes nothing in
what they take. ``python -m benchmarks.imagenet RECIPE`` prints the bytes of one recipe.
"""

import json
import sys
from dataclasses import replace
from typing import Any

import torch

from benchmarks.peak import growth_in_own_process, peak_memory
from benchmarks.processes import late
from datadistill import models
from datadistill.core.initialization import FixedInit
from datadistill.data import LabelledData
from datadistill.models.freezing import train_only
from datadistill.runs import preparation
from datadistill.runs.distillation import Distillation
from datadistill.runs.recipes import read_recipe
from datadistill.runs.seams import Given

GIB = 2**30
CLASSES = 200
EXAMPLES = 600
RECIPES = {"squeezenet-cub200": "the last layer learns"}


def measure(*, quick: bool = False) -> dict[str, Any]:  # noqa: ARG001 (all benchmarks take it)
    """The peak of the recipes for 200 classes; quick runs measure the same."""
    found = {name: growth_in_own_process("benchmarks.imagenet", name) for name in RECIPES}
    return {
        "rows": [
            {
                "what": f"{name}, 200 images of 224×224 in one step, {RECIPES[name]}",
                "peak, MB": round(peak / 1e6),
                "against, MB": round(8 * GIB / 1e6),
                "ratio": peak / (8 * GIB),
                "at most": 1.0,
            }
            for name, peak in found.items()
        ]
    }


def prepare(name: str) -> Distillation:
    """The distillation of a recipe, for noise and random weights."""
    config = read_recipe(name).config
    random = torch.Generator().manual_seed(0)
    shape = (EXAMPLES, 3, 224, 224)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)
    data = LabelledData(images, torch.arange(EXAMPLES) % CLASSES)
    module = models.build(config.model, {"classes": CLASSES})
    if config.trained:
        train_only(module, config.trained)
    return preparation.prepare(replace(config, validation=0.0), data, module, Given(FixedInit()))


def _peak(name: str) -> int:
    """The peak of this process after one outer step; call it once in a process."""
    distillation = prepare(name)
    distillation.distiller.step(late(distillation).distiller, distillation.batch(0))
    return peak_memory()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_peak(sys.argv[1])))
    else:
        for row in measure()["rows"]:
            print(f"{row['what']}: {row['peak, MB']:,} MB, at most {row['against, MB']:,} MB")
