"""Networks that train along: a small pool, updated on the distilled data in every outer step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .distilled import Steps
from .engine import Engine
from .learner import Learner
from .network import Weights
from .update import UpdateRule, updated

Tree = dict[str, Tensor]
AGE = "age"


@dataclass(frozen=True)
class Along:
    """A pool of networks in training, each of which starts anew after some updates.

    Its state is tensors by name: the age of network m and its learner, ``m/age`` and ``m/0``, ….

    Attributes:
        size: How many networks.
        updates: After how many updates each of them starts anew.
        rule: How they are updated.
        sample: Draws the initial weights of a network by its number.
    """

    size: int
    updates: int
    rule: UpdateRule
    sample: Callable[[int], Weights]

    def start(self) -> Tree:
        """Networks at their initial weights. They start anew at different times."""
        pool: Tree = {}
        for m in range(self.size):
            age = m * self.updates // self.size
            pool |= self._named(m, self.rule.start(self.sample(m)), age)
        return pool

    def weights(self, pool: Tree, numbers: range) -> Weights:
        """The weights of the networks that stand for those of some numbers."""
        each = [self._learner(pool, number % self.size).weights for number in numbers]
        return {name: torch.cat([one[name] for one in each]) for name in each[0]}

    def advanced(self, pool: Tree, numbers: range, engine: Engine, steps: Steps) -> Tree:
        """The pool after an update of each of these networks; those that are old start anew.

        Args:
            pool: The state.
            numbers: The numbers of this outer step's networks, never used before.
            engine: What computes.
            steps: What one network trains on.
        """
        after = dict(pool)
        for number in numbers:
            m = number % self.size
            age, learner = int(pool[f"{m}/{AGE}"]), self._learner(pool, m)
            step = steps[steps.schedule[age % len(steps.schedule)]]
            with torch.no_grad():
                learner = updated(self.rule, engine, learner, [step])
            age += 1
            finite = all(bool(torch.isfinite(w).all()) for w in learner.weights.values())
            if age >= self.updates or not finite:
                age, learner = 0, self.rule.start(self.sample(self.size + number))
            after |= self._named(m, learner, age)
        return after

    def _named(self, m: int, learner: Learner, age: int) -> Tree:
        leaves = {f"{m}/{n}": own.clone() for n, own in enumerate(learner.leaves())}
        return {f"{m}/{AGE}": torch.tensor(age), **leaves}

    def _learner(self, pool: Tree, m: int) -> Learner:
        like = self._like
        return like.rebuild([pool[f"{m}/{n}"] for n in range(len(like.leaves()))])

    @cached_property
    def _like(self) -> Learner:
        return self.rule.start(self.sample(0))
