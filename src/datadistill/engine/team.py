"""Teams: the networks of one distillation, or the minibatch of one, divided among processes.

Random streams are numbered, so it does not matter which member draws a network: each takes its
share of the numbers, and one sum over all members gives everyone the same losses and gradient.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ConfigError


@dataclass(eq=False)
class Team:
    """The members that work on one distillation, seen from one of them.

    This one adds up nothing. Alone it does everything itself; as one of several it does only its
    share, which tells how long that takes.

    Attributes:
        rank: The number of this member.
        size: How many members there are.
    """

    rank: int = 0
    size: int = 1

    def sum(self, tensor: Tensor) -> Tensor:
        """Adds up the tensors of all members; all get the same bits."""
        return tensor

    def begin(self, content: Callable[[], bytes]) -> None:
        """Sends the other members what they need to begin, and waits until they are ready."""

    def ready(self) -> None:
        """Tells the member that leads that this one is ready to begin."""

    def finish(self) -> None:
        """Tells it that this one's work is finished, and stays until all is over."""

    def wait_until_finished(self) -> None:
        """Waits for the work of the others, however long it takes."""

    def share(self, numbers: range) -> range:
        """The part of some numbers that is this member's: one after the other, nearly equal."""
        count = len(numbers)
        return numbers[count * self.rank // self.size : count * (self.rank + 1) // self.size]

    def mean(
        self, numbers: range, losses: Tensor, gradient: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Combines what each member found for its share of networks.

        Args:
            numbers: The numbers of all J networks.
            losses: The losses of this member's share.
            gradient: The gradient of their mean.

        Returns:
            The losses (J,) in order of number, and the gradient of the mean of all: the same
            for every member.
        """
        if self.size == 1:
            return losses, dict(gradient)
        mine = self.share(numbers)
        weighted = [len(mine) / len(numbers) * g for g in gradient.values()]
        summed = self.total([self._in_place(numbers, losses), *weighted])
        return summed[0], dict(zip(gradient, summed[1:], strict=True))

    def total(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Adds up several tensors of all members; they travel as one, in at least float32."""
        wide = torch.promote_types(parts[0].dtype, torch.float32)
        total = self.sum(torch.cat([part.flatten().to(wide) for part in parts]))
        return [
            flat.view_as(part).to(part.dtype)
            for flat, part in zip(total.split([p.numel() for p in parts]), parts, strict=True)
        ]

    def gather(self, numbers: range, rows: Tensor) -> Tensor:
        """Puts the rows of all members together, one for each number, in order.

        Args:
            numbers: All numbers.
            rows: One row for each number of this member's share.
        """
        return rows if self.size == 1 else self.sum(self._in_place(numbers, rows))

    def _in_place(self, numbers: range, rows: Tensor) -> Tensor:
        """One row for each number: zeros for those of other members."""
        mine = self.share(numbers)
        before = mine.start - numbers.start
        every = rows.new_zeros(len(numbers), *rows.shape[1:])
        every[before : before + len(mine)] = rows
        return every


ALONE = Team()
"""One process that does everything itself."""


def check_division(networks: int, processes: int) -> None:
    """Refuses more processes than networks; those of a single network divide its minibatch."""
    if processes <= networks or networks == 1:
        return
    raise ConfigError(
        f"{networks} networks per outer step cannot be divided among {processes} processes.",
        f"Set networks to {processes} or more, or processes to {networks} or fewer.",
    )
