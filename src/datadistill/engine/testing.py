"""Testing J trained networks on real data, in bounded memory."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ..core.network import Weights
from ..core.objective import Objective
from .side_by_side import SideBySide

TEST_BATCH = 1024  # examples
TEST_BYTES = 2**26  # of inputs, which bounds the batches of large images


class RealData(Protocol):
    """Real examples and their labels."""

    @property
    def inputs(self) -> object:
        """The examples: a tensor, or files that are read on demand."""
        ...

    @property
    def labels(self) -> Tensor:
        """Their labels."""
        ...

    @property
    def input_shape(self) -> torch.Size:
        """The shape of one example."""
        ...

    def __len__(self) -> int: ...

    def batch(
        self, indices: slice, device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Some examples, normalised, and their labels."""
        ...


class Sums(NamedTuple):
    """Sums over the test examples of J networks, in float64.

    Attributes:
        scores: (J, classes) of the metric, by class; a single column without classes.
        losses: (J,).
    """

    scores: Tensor
    losses: Tensor

    def metrics(self, examples: int) -> list[float]:
        """The metric of each network over all examples."""
        return (self.scores.sum(1) / examples).tolist()


class Tester:
    """Real data to test networks on.

    Args:
        networks: The architecture.
        data: The real data.
        objective: What is measured.

    Attributes:
        bytes: An estimate of what testing needs, however many networks there are.
        threads: How many groups of networks may be tested at the same time.
        examples: How many examples there are.
    """

    def __init__(self, networks: SideBySide, data: RealData, objective: Objective) -> None:
        self._networks, self._data, self._objective = networks, data, objective
        self.examples = len(data)
        self.has_classes = data.labels.ndim == 1 and not data.labels.is_floating_point()
        self._classes = data.labels.cpu() if self.has_classes else torch.zeros(len(data)).long()
        self.counts = torch.bincount(self._classes)
        size = networks.network.dtype.itemsize * data.input_shape.numel()
        self._together = networks.test_batch(max(1, min(TEST_BATCH, TEST_BYTES // size)))
        self.bytes = networks.bytes_in_testing() + 2 * self._together * size
        # Image files are decoded by processes of their own, for one thread.
        self.threads = networks.threads if isinstance(data.inputs, Tensor) else 1

    def __call__(self, weights: Weights, wanted: Callable[[], None] = lambda: None) -> Sums:
        """Tests J networks on all examples.

        Args:
            weights: Their stacked weights.
            wanted: Called now and then; may raise.
        """
        networks = len(next(iter(weights.values())))
        scores = torch.zeros(networks, len(self.counts), dtype=torch.float64)
        losses = torch.zeros(networks, dtype=torch.float64)
        device, dtype = self._networks.network.device, self._networks.network.dtype
        for begin in range(0, len(self._data), self._together):
            wanted()
            batch = slice(begin, begin + self._together)
            inputs, labels = self._data.batch(batch, device, dtype)
            outputs = self._networks.outputs(weights, inputs)
            each = self._objective.score(outputs, labels).cpu().double()
            scores.index_add_(1, self._classes[batch], each)
            loss = torch.stack([self._objective.outer_loss(one, labels) for one in outputs])
            losses += loss.cpu().double() * len(labels)
        return Sums(scores, losses)

    @property
    def nothing(self) -> Sums:
        """The sums of no networks at all."""
        scores = torch.zeros(0, len(self.counts), dtype=torch.float64)
        return Sums(scores, torch.zeros(0, dtype=torch.float64))
