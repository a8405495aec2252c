"""Training networks on real data, many side by side, each with an order of its own."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import torch
from torch import Tensor

from ..core.distilled import Step
from ..core.engine import Engine
from ..core.initialization import RandomInit, networks_for
from ..core.network import Network, Weights
from ..core.objective import Classification
from ..core.random import stream
from ..core.update import Momentum, training
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine import engine_for
from ..engine.groups import Groups
from ..engine.in_place import InPlaceAdam
from ..engine.side_by_side import DEFAULT_BYTES, SideBySide
from ..engine.testing import Tester
from ..errors import NonFiniteError
from .chunks import finite
from .index import Part
from .settings import PoolSettings

OBJECTIVE = Classification()


class Trained:
    """Networks after training, and their accuracies."""

    def __init__(
        self, weights: Weights, validation: list[float] | None, test: list[float] | None
    ) -> None:
        self.weights, self.validation, self.test = weights, validation, test

    @classmethod
    def together(cls, groups: list["Trained"]) -> "Trained":
        """Puts groups of networks together, in their order."""
        names = groups[0].weights
        return cls(
            {name: torch.cat([one.weights[name] for one in groups]) for name in names},
            _joined([one.validation for one in groups]),
            _joined([one.test for one in groups]),
        )


@dataclass(frozen=True)
class PoolTrainer:
    """What trains the networks of a pool.

    Which networks are side by side changes nothing but rounding: initial weights and orders are
    drawn from streams that are numbered by network.

    Attributes:
        network: The architecture.
        data: The real data to train on.
        validation: The real data held out of them, if there are.
        test: The test data, if there are. They choose nothing.
        settings: How to train.
        memory: Memory limit in bytes of the networks that are side by side.
    """

    network: Network
    data: LabelledData
    validation: LabelledData | None
    test: LabelledData | None
    settings: PoolSettings
    memory: int = DEFAULT_BYTES

    @property
    def updates(self) -> int:
        """How many updates a network is trained for."""
        return self.settings.epochs * self.settings.updates(len(self.data))

    def __call__(
        self,
        part: Part,
        numbers: range,
        progress: Callable[[int], None] = lambda _updates: None,
        limit: int | None = None,
    ) -> Trained:
        """Trains some networks of a part and measures them.

        Args:
            part: Which part of the pool.
            numbers: Which networks of it.
            progress: Called after every update with the number of networks updated.
            limit: Stop after so many updates, and measure nothing.
        """
        lock = Lock()

        def work(group: range, wanted: Callable[[], None]) -> Trained:
            own = numbers[group.start : group.stop]
            weights: Weights = {}
            for weights in itertools.islice(self.learn(part, own), limit):  # noqa: B007
                wanted()
                with lock:
                    progress(len(own))
            return Trained(weights, None, None) if limit else self._measured(part, own, weights)

        return Trained.together(self._groups(len(numbers)).each(work))

    def learn(self, part: Part, numbers: range) -> Iterator[Weights]:
        """Trains networks side by side with Adam; yields θ₁, θ₂, …, each in place of the last."""
        settings = self.settings
        generators = networks_for(settings.seed, f"pool, {part} network", numbers)
        theta0 = RandomInit(settings.scheme).sample(self.network, generators)
        learned = training(
            InPlaceAdam(settings.betas), self._engine, theta0, self._steps(part, numbers)
        )
        return itertools.islice(learned, 1, None)

    def _steps(self, part: Part, numbers: range) -> Iterator[Step]:
        """All minibatches with the learning rates of their updates."""
        for t, (epoch, inputs, labels) in enumerate(self._minibatches(part, numbers)):
            rate = torch.tensor(self.settings.rate(epoch, t / self.updates), dtype=torch.float64)
            yield Step(inputs, labels, rate.expand(len(numbers)))

    def _minibatches(self, part: Part, numbers: range) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Each epoch's minibatches: inputs (J, N, …) and labels, each network's in its order."""
        size, examples = min(self.settings.batch_size, len(self.data)), len(self.data)
        for epoch in range(self.settings.epochs):
            orders = torch.stack([self._order(part, number, epoch) for number in numbers])
            for begin in range(0, examples - size + 1, size):
                indices = orders[:, begin : begin + size]
                yield epoch, *self._examples(part, numbers, epoch, begin, indices)

    def _order(self, part: Part, number: int, epoch: int) -> Tensor:
        order = stream(self.settings.seed, f"pool, {part} order", number, epoch)
        return torch.randperm(len(self.data), generator=order)

    def _examples(
        self, part: Part, numbers: range, epoch: int, begin: int, indices: Tensor
    ) -> tuple[Tensor, Tensor]:
        device, dtype = self.network.device, self.network.dtype
        if self.data.augmentation is None:
            flat = self.data.batch(indices.flatten(), device, dtype)
            return flat[0].unflatten(0, indices.shape), flat[1].unflatten(0, indices.shape)
        views = [
            stream(self.settings.seed, f"pool, {part} views", number, epoch, begin)
            for number in numbers
        ]
        each = [
            self.data.batch(own, device, dtype, view)
            for own, view in zip(indices, views, strict=True)
        ]
        inputs, labels = zip(*each, strict=True)
        return torch.stack(inputs), torch.stack(labels)

    def _measured(self, part: Part, numbers: range, weights: Weights) -> Trained:
        sound = finite(weights)
        if not sound.all():
            number = numbers[int((~sound).nonzero()[0])]
            raise NonFiniteError(
                f"The {part} network {number} has diverged: its weights are not finite.",
                "Lower lr, with another --pool.",
            )

        statistics = Statistics.of_data(self.data, self.network)
        tested = statistics.added_to(weights, self.network)

        def accuracies(data: LabelledData | None) -> list[float] | None:
            if data is None:
                return None
            tester = Tester(self._architecture, data, OBJECTIVE)
            return tester(tested).metrics(len(data))

        return Trained(weights, accuracies(self.validation), accuracies(self.test))

    @cached_property
    def _engine(self) -> Engine:
        return engine_for(self.network, OBJECTIVE)

    @cached_property
    def _architecture(self) -> SideBySide:
        return SideBySide(self.network, self.data.example(), self.memory)

    def _groups(self, networks: int) -> Groups:
        """How networks are divided among threads; wide ones are faster one by one."""
        architecture = self._architecture
        each = architecture.bytes_in_training(self.settings.batch_size, Momentum())
        # Image files are decoded by processes of their own, for one thread.
        threads = architecture.threads if isinstance(self.data.inputs, Tensor) else 1
        groups = Groups.within(
            self.memory,
            networks,
            each=each,
            besides=architecture.bytes_in_testing(),
            threads=threads,
        )
        if not architecture.side_by_side:
            return Groups(networks, 1, groups.workers)
        if threads == 1 or groups.size < networks:
            return groups
        size = math.ceil(networks / threads)  # a few networks keep all threads busy too
        return Groups(networks, size, min(threads, math.ceil(networks / size)))


def _joined(lists: list[list[float] | None]) -> list[float] | None:
    return None if lists[0] is None else [value for one in lists if one for value in one]
