"""What poisoning does to held-out networks: before and after the steps, class by class."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..artefact import DistilledData
from ..core.device import DeviceLike
from ..core.distilled import Steps
from ..core.initialization import networks_for
from ..core.network import Weights
from ..core.objective import Poisoning
from ..core.update import GradientDescent, UpdateRule, train
from ..core.values import one_line
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine import engine_for
from ..engine.groups import Groups
from ..engine.side_by_side import DEFAULT_BYTES, SideBySide
from ..errors import ConfigError
from ..progress import Progress, ProgressCallback, silent
from .confusion import calls
from .held_out import HeldOut, Sample
from .learners import Learners
from .result import ClassScore

PLAIN, NONE = GradientDescent(), Statistics()
Result = TypeVar("Result")


@dataclass(frozen=True)
class Attacked:
    """Figures of networks under an attack; each has a value per network, a mean and a deviation.

    Attributes:
        success: Share of the attacked class that is called the target.
        modified: Accuracy on the modified labels, K → T.
        others: Accuracy on the classes that are not attacked.
        by_class: Accuracy on the true labels of every class.
    """

    success: ClassScore
    modified: ClassScore
    others: ClassScore
    by_class: tuple[ClassScore, ...]

    __repr__ = one_line

    @classmethod
    def of(
        cls, calls: Tensor, objective: Poisoning, class_names: list[str] | None = None
    ) -> "Attacked":
        """From calls (J, C, C): how many examples of class c network j calls k."""
        k, t = objective.attacked, objective.target
        right, examples = calls.diagonal(dim1=1, dim2=2), calls.sum(2)
        turned = calls[:, k, t]
        others = torch.arange(calls.shape[1]) != k
        names = class_names or [str(c) for c in range(calls.shape[1])]
        return cls(
            _score(f"{names[k]} called {names[t]}", turned, examples[:, k]),
            _score("modified labels", right[:, others].sum(1) + turned, examples.sum(1)),
            _score("other classes", right[:, others].sum(1), examples[:, others].sum(1)),
            tuple(
                _score(names[c], right[:, c], examples[:, c])
                for c in range(calls.shape[1])
                if examples[0, c]
            ),
        )


@dataclass(frozen=True)
class Attack:
    """What distilled data for poisoning do.

    Attributes:
        before: The networks as they were.
        after: The same networks after the steps.
        objective: The attacked class and the target class.
        data: What the data set is called.
        split: Which part of it was used.
        examples: How many examples that were.
        seed: Which held-out networks.
        statistics: What their running statistics were measured on, where they keep some.
    """

    before: Attacked
    after: Attacked
    objective: Poisoning
    data: str
    split: str
    examples: int
    seed: int
    statistics: str | None = None

    __repr__ = one_line


class Victims:
    """Held-out networks that an attack meets, and the real data they are tested on.

    Args:
        held_out: The networks: numbers 0 to ``networks`` − 1 of a seed.
        data: The real data to test on.
        objective: Which class is attacked.
        rule: The update rule.
        progress: Called after every group of networks.
        others: Draws networks to choose with, where the next seed does not give others.
        statistics: What the running statistics of the networks are measured on. Those that keep
            none need none.
    """

    def __init__(
        self,
        held_out: HeldOut,
        data: LabelledData,
        objective: Poisoning,
        *,
        rule: UpdateRule = PLAIN,
        progress: ProgressCallback = silent,
        others: Sample | None = None,
        statistics: Statistics = NONE,
    ) -> None:
        network = held_out.network
        objective.check(network.outputs, data.labels, complete=False)
        objective.check_attacked(data.labels)
        self.held_out, self.data, self.objective, self.rule = held_out, data, objective, rule
        self.network, self.networks, self.seed = network, held_out.networks, held_out.seed
        self._others, self.progress = others or held_out.sample, progress
        self.statistics = statistics
        self.engine = engine_for(network, objective)
        self._architecture = SideBySide(network, data.example(), held_out.memory)
        self._drawing, self._classes = Lock(), objective.classes(network.outputs)

    def __repr__(self) -> str:
        where = f"{len(self.data):,} examples of {self.data.name} ({self.data.split})"
        return f"<Victims: {self.networks} of {self.network.name} on {where}, {self.objective}>"

    def others(self, data: LabelledData, networks: int) -> "Victims":
        """Other held-out networks, of the next seed, on other data: to choose with."""
        held_out = replace(
            self.held_out, sample=self._others, networks=networks, seed=self.seed + 1
        )
        return Victims(held_out, data, self.objective, rule=self.rule, statistics=self.statistics)

    def sample(self, numbers: range) -> Weights:
        """The initial weights of some of the networks."""
        return self.held_out.sample(networks_for(self.seed, "held-out network", numbers))

    def each(self, images: int, work: Callable[[Weights, range], Result]) -> list[Result]:
        """Returns what ``work`` gives for the initial weights and numbers of each group.

        Args:
            images: How many images an update takes.
            work: Trains and tests some networks.
        """
        architecture = self._architecture
        done = 0

        def group(numbers: range, wanted: Callable[[], None]) -> Result:
            nonlocal done
            with self._drawing:  # what draws the weights may not be made for several threads
                theta0 = self.sample(numbers)
            wanted()
            with torch.no_grad():
                found = work(theta0, numbers)
            with self._drawing:
                done += len(numbers)
                self.progress(Progress("attacking", done, self.networks))
            return found

        return Groups.within(
            self.held_out.memory,
            self.networks,
            each=architecture.bytes_in_training(images, self.rule),
            besides=architecture.bytes_in_testing(),
            # Image files are decoded by processes of their own, for one thread.
            threads=architecture.threads if isinstance(self.data.inputs, Tensor) else 1,
        ).each(group)

    def after(self, theta0: Weights, steps: Steps, numbers: range) -> Weights:
        """θ_T: the networks of some numbers after all updates."""
        return train(self.rule, self.engine, theta0, self.own(steps, numbers))

    def own(self, steps: Steps, numbers: range) -> Steps:
        """What the networks of some numbers train on."""
        return steps.for_networks(self.seed, "held-out network", numbers)

    def calls(self, weights: Weights) -> Tensor:
        """(J, C, C): how many examples of class c network j calls k."""
        weights = self.statistics.added_to(weights, self.network)
        return calls(self._architecture, weights, self.data, self._classes)

    def figures(self, calls: Tensor) -> Attacked:
        """The figures of all networks."""
        names = self.data.class_names
        return Attacked.of(calls, self.objective, list(names) if names else None)


def attack(steps: Steps, victims: Victims) -> Attack:
    """Measures networks before and after all updates on poisonous steps."""
    steps = steps.to(victims.network.device, victims.network.dtype)

    def work(theta0: Weights, numbers: range) -> tuple[Tensor, Tensor]:
        return victims.calls(theta0), victims.calls(victims.after(theta0, steps, numbers))

    groups = victims.each(steps.images, work)
    before, after = (torch.cat(parts) for parts in zip(*groups, strict=True))
    data = victims.data
    return Attack(
        victims.figures(before),
        victims.figures(after),
        victims.objective,
        data.name,
        data.split,
        len(data),
        victims.seed,
        victims.statistics.name,
    )


def victims_of(
    distilled: DistilledData | str | Path,
    data: Any,
    *,
    networks: int | None = None,
    module: nn.Module | None = None,
    seed: int = 0,
    statistics: Any = None,
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    progress: ProgressCallback = silent,
) -> Victims:
    """The networks that poisonous distilled data are for, held out from distillation.

    Args:
        distilled: Distilled data of the poisoning objective, or the path of an artefact.
        data: The real data to test on.
        networks: How many; 1 for a fixed initialization, 200 for others, or all that a pool has.
        module: The network, where it is not built in.
        seed: Which held-out networks.
        statistics: What batch normalisation uses, as for :func:`evaluate`.
        device: Where to compute.
        memory: Memory limit in bytes.
        progress: Called after every group of networks.
    """
    learners = Learners.of(distilled, data, networks, module, None, device)
    objective = learners.distilled.objective
    if not isinstance(objective, Poisoning):
        raise ConfigError(
            f"These distilled data are for {objective.text}, not for poisoning.",
            "Distil with --objective poisoning, or evaluate them as they are.",
        )
    return Victims(
        HeldOut(learners.network, learners.sample, learners.networks, seed, memory),
        learners.data,
        objective,
        rule=learners.distilled.rule,
        progress=progress,
        others=_choosing(learners),
        statistics=learners.statistics(statistics),
    )


def _choosing(learners: Learners) -> Sample | None:
    """Draws networks to choose with, where the next seed does not give others."""
    choosing = learners.distilled.initialization.choosing
    return choosing and functools.partial(choosing.sample, learners.network)


def _score(name: str, right: Tensor, examples: Tensor) -> ClassScore:
    return ClassScore(name, int(examples[0]), tuple((right.double() / examples).tolist()))
