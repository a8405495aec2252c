"""How much the baseline table computes, and on what it chooses."""

from dataclasses import dataclass
from typing import Literal

Select = Literal["train", "test"]
"""What chooses learning rates and epochs: held-out training data, or as in the paper the test."""


@dataclass(frozen=True)
class Counts:
    """How many sets and networks the figures are counted over, and how many choose.

    Attributes:
        sets: Sets of random real images, and runs of k-means.
        drawn: Sets of which the optimised ones are picked.
        kept: How many are picked.
        picking_networks: Networks that pick them.
        choosing_sets: Sets on which learning rate and epochs are chosen.
        choosing_networks: Networks that choose them.
        examples: Real examples to choose and pick on.
        full_networks: Networks that are trained on all real data.
        few_shot_networks: Networks that are adapted by few-shot adversarial adaptation.
        few_shot_choosing: Networks that choose its settings.
        few_shot_updates: Numbers of its updates to choose from.
    """

    sets: int = 10
    drawn: int = 50
    kept: int = 10
    picking_networks: int = 20
    choosing_sets: int = 4
    choosing_networks: int = 20
    examples: int = 1024
    full_networks: int = 3
    few_shot_networks: int = 20
    few_shot_choosing: int = 4
    few_shot_updates: tuple[int, ...] = (100, 200, 400)
