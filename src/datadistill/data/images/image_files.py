"""Images in files, decoded when a batch needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from .decode import Job
from .decoding_pool import DecodingPool

USUAL_MARGIN = 256 / 224


@dataclass(frozen=True, repr=False)
class ImageFiles:
    """Images of one shape that stay in their files; used like a tensor of bytes.

    ``files[indices]`` decodes images: the shorter side is resized to ``margin`` times the size and
    the centre is cropped. :meth:`crop` decodes random crops instead. Only the paths are kept here;
    the pool has a bounded cache.

    Attributes:
        paths: The files.
        size: Height and width of every image as decoded.
        channels: 1 for grey, 3 for colour.
        pool: The processes that decode, and their cache.
        margin: The shorter side is resized to ``margin × size`` before the centre is cropped; None
            stretches the whole image to a square instead.
        regions: Left, top, right and bottom of the part of each image to use, if not all of it.
    """

    paths: tuple[str, ...]
    size: int
    channels: int
    pool: DecodingPool = field(compare=False)
    margin: float | None = USUAL_MARGIN
    regions: tuple[tuple[float, float, float, float], ...] | None = None

    dtype = torch.uint8

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.shape[1:]))
        first = f", {self.paths[0]} …" if self.paths else ""
        return f"<ImageFiles: {len(self):,} images, {shape}{first}>"

    @property
    def shape(self) -> torch.Size:
        """The shape that all images would have as one tensor."""
        return torch.Size((len(self.paths), self.channels, self.size, self.size))

    @property
    def ndim(self) -> int:
        """The number of axes of :attr:`shape`."""
        return 4

    def __getitem__(self, indices: Tensor | slice | int) -> Tensor:
        """Decodes some images, or one, without augmentation."""
        chosen = torch.arange(len(self))[indices]
        pixels = self._decode(chosen.flatten(), None)
        return pixels.reshape(*chosen.shape, *self.shape[1:])

    def crop(self, indices: Tensor, draws: Tensor) -> Tensor:
        """Decodes a random crop of each image, half of them flipped.

        Args:
            indices: Which images.
            draws: (images, :data:`datadistill.data.images.decode.DRAWS`) uniform random numbers.
        """
        return self._decode(torch.arange(len(self))[indices], draws)

    def part(self, indices: Tensor) -> "ImageFiles":
        """Returns some of the images, still in their files; they share the pool."""
        chosen: list[int] = torch.arange(len(self))[indices].tolist()
        regions = self.regions and tuple(self.regions[i] for i in chosen)
        return replace(self, paths=tuple(self.paths[i] for i in chosen), regions=regions)

    def _decode(self, chosen: Tensor, draws: Tensor | None) -> Tensor:
        numbers: Sequence[int] = chosen.tolist()
        rows = [None] * len(numbers) if draws is None else [(*row,) for row in draws.tolist()]
        jobs = [
            Job(
                self.paths[i],
                self.size,
                self.channels,
                self.margin,
                self.regions[i] if self.regions else None,
                row,
            )
            for i, row in zip(numbers, rows, strict=True)
        ]
        pixels = torch.empty((len(jobs), *self.shape[1:]), dtype=torch.uint8)
        self.pool.decode(jobs, pixels.numpy())
        return pixels
