"""What running statistics are measured on: the images of steps, or real data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..core.network import Network, Weights
from ..core.random import stream
from ..engine.testing import TEST_BATCH, TEST_BYTES
from ..errors import DataError
from .labelled import LabelledData
from .own import as_data

DISTILLED = "distilled images"
BATCH = "batch"


@dataclass(frozen=True)
class Statistics:
    """The inputs that running statistics are measured on.

    Attributes:
        name: What a claim calls them. None where no running statistics are used: the network
            keeps none, or normalises by the batch that it is tested on.
        batches: The inputs, batch by batch.
    """

    name: str | None = None
    batches: Iterable[Tensor] = ()

    @classmethod
    def of(cls, given: Any, inputs: Tensor, network: Network) -> "Statistics":
        """The statistics that a caller asks for.

        Args:
            given: None for those of the distilled images, real data, or ``"batch"``: none, so
                that the network normalises by the batch that it is tested on.
            inputs: The distilled inputs (steps, images, …): each step is a batch.
            network: The architecture.
        """
        if isinstance(given, str) and given == BATCH:
            return cls()
        if given is None:
            return cls.of_steps(inputs, network)
        data = as_data(given)
        if data.input_shape != inputs.shape[2:]:
            raise DataError(
                f"The statistics are to be those of {data.name}, whose inputs have the shape "
                f"{tuple(data.input_shape)}; the distilled ones have {tuple(inputs.shape[2:])}.",
                "Use data of the kind that was distilled, resized to the same shape.",
            )
        return cls.of_data(data, network)

    @classmethod
    def of_steps(cls, inputs: Tensor, network: Network, name: str = DISTILLED) -> "Statistics":
        """Those of the images that a network learned from (steps, images, …)."""
        batches = inputs.to(network.device, network.dtype)
        return cls(name, batches) if network.keeps_statistics else cls()

    @classmethod
    def of_data(cls, data: LabelledData, network: Network) -> "Statistics":
        """Those of real data, as a network has them that was trained on these."""
        return cls(name_of(data), _Real(data, network)) if network.keeps_statistics else cls()

    def added_to(self, weights: Weights, network: Network) -> Weights:
        """The weights of J networks with their running statistics."""
        return {**weights, **network.statistics(weights, self.batches)}


def name_of(data: LabelledData) -> str:
    """What a claim calls the statistics of real data."""
    return f"{data.name} {data.split}"


@dataclass(frozen=True)
class _Real:
    """Batches of real data, in an order that is always the same.

    They are shuffled, since many data are sorted by class. A last batch that is not full is left
    out, since every batch counts alike.
    """

    data: LabelledData
    network: Network

    def __iter__(self) -> Iterator[Tensor]:
        data, network = self.data, self.network
        size = max(2, TEST_BYTES // (network.dtype.itemsize * data.input_shape.numel()))
        order = torch.randperm(len(data), generator=stream(0, "running statistics"))
        size = min(TEST_BATCH, size, len(data))
        for indices in order.split(size):
            if len(indices) == size:
                yield data.batch(indices, network.device, network.dtype)[0]
