"""Snapshots: small pictures of the distilled images along a run, for the report."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...core.values import one_line, same
from ...pixels import GREY_OR_COLOUR, are_images, pictures_of, smaller

MOST = 40
"""Snapshots that a run keeps, beside that of its start."""
BYTES = 2**19
"""Of one snapshot; larger pictures are made smaller."""


def _nothing() -> Tensor:
    return torch.zeros(0, 0, 0, 1, 0, 0, dtype=torch.uint8)


@dataclass(frozen=True)
class Snapshots:
    """Pictures of the distilled images after some outer steps, evenly spaced.

    The spacing doubles with the length of a run, and with it the snapshots are thinned: which ones
    there are depends on the number of outer steps alone, not on how often a run was resumed.

    Attributes:
        outer_steps: After which outer steps they were taken; 0 is the start.
        pictures: (snapshots, steps, images, channels, height, width) in bytes, each image
            stretched to its own range.
    """

    outer_steps: tuple[int, ...] = ()
    pictures: Tensor = field(default_factory=_nothing)

    __repr__ = one_line
    __eq__ = same

    def __post_init__(self) -> None:
        shape, steps = self.pictures.shape, self.outer_steps
        if not (
            self.pictures.dtype == torch.uint8
            and len(shape) == 6
            and shape[0] == len(steps) <= MOST + 2
            and shape[3] in GREY_OR_COLOUR
            and list(steps) == sorted(set(steps))
        ):
            raise ValueError(f"its {len(steps)} snapshots are not pictures")

    def taken(self, outer_step: int, images: Tensor) -> "Snapshots":
        """The same with a snapshot after an outer step, thinned if the spacing has doubled.

        Args:
            outer_step: The outer step.
            images: The distilled images as pixels, (steps, images, …).
        """
        spacing = spacing_at(outer_step)
        kept = [i for i, step in enumerate(self.outer_steps) if step % spacing == 0]
        new = pictures_of(shrunk(images))
        if not kept:
            return Snapshots((outer_step,), new[None])
        earlier = Snapshots(tuple(self.outer_steps[i] for i in kept), self.pictures[kept])
        return earlier.followed(outer_step, new)

    def followed(self, outer_step: int, picture: Tensor) -> "Snapshots":
        """The same with one more picture (steps, images, …) at the end."""
        steps = (*self.outer_steps, outer_step)
        return Snapshots(steps, torch.cat([self.pictures, picture[None]]))

    def are_of(self, images: Tensor) -> bool:
        """Whether these are pictures of such images, or there are none."""
        if not self.outer_steps:
            return True
        shape = images.shape[2:]
        return are_images(shape) and self.pictures.shape[1:] == shrunk(images).shape


def is_due(outer_step: int) -> bool:
    """Whether a snapshot is taken after an outer step."""
    return outer_step % spacing_at(outer_step) == 0


def spacing_at(outer_step: int) -> int:
    """Outer steps between two snapshots: the least power of 2 with at most ``MOST`` of them."""
    return 1 << (max(outer_step - 1, 0) // MOST).bit_length()


def shrunk(images: Tensor) -> Tensor:
    """Images (steps, images, …) at a size at which a snapshot of them is small enough."""
    return smaller(images, BYTES)
