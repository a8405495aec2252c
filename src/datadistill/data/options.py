"""Options for loading a data set."""

from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError
from .images.augmentation import Augmentation
from .images.decoding_pool import CACHE_BYTES, DecodingPool
from .normalization import Normalization

LARGEST = 4096
KNOWN = ("data", "imagenet", "zca")
Statistics = Normalization | Literal["data", "imagenet", "zca"] | None
"""What pixels are normalised with; None for what the data set has by default."""


@dataclass(frozen=True)
class Options:
    """Size, channels and augmentation of a data set, and how image files are decoded.

    Attributes:
        size: Height and width of the images; the data set's own by default.
        channels: 1 for grey, 3 for colour; the data set's own by default.
        augment: Whether to augment training images; by default where the paper does.
        seed: Selects the split of a folder that has none.
        workers: Processes that decode image files; 0 for none, one per core by default.
        cache_bytes: How many bytes of decoded image files to keep.
        normalization: What pixels are normalised with: the statistics of the training ``data``,
            those of ``imagenet``, or others; ``zca`` whitens them, too; the data set's own by
            default.
    """

    size: int | None = None
    channels: Literal[1, 3] | None = None
    augment: bool | None = None
    seed: int = 0
    workers: int | None = None
    cache_bytes: int = CACHE_BYTES
    normalization: Statistics = None

    def __post_init__(self) -> None:
        for name in ("size", "seed", "workers", "cache_bytes"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise ConfigError(f"{name} is {value!r}.", "Set it to a whole number.")
        if self.size is not None and not 1 <= self.size <= LARGEST:
            raise ConfigError(f"size is {self.size}.", f"Set it to 1 to {LARGEST} pixels.")
        if self.channels not in (None, 1, 3):
            raise ConfigError(
                f"channels is {self.channels}.", "Set it to 1 for grey or 3 for colour."
            )
        if self.workers is not None and self.workers < 0:
            raise ConfigError(f"workers is {self.workers}.", "Set it to at least 0.")
        if isinstance(self.normalization, str) and self.normalization not in KNOWN:
            raise ConfigError(
                f"normalization is {self.normalization!r}.", "Set it to data, imagenet or zca."
            )
        if self.cache_bytes < 0:
            raise ConfigError(f"cache_bytes is {self.cache_bytes}.", "Set it to at least 0.")

    def pool(self) -> DecodingPool:
        """Returns a new pool of workers that decode image files; they start when first needed."""
        return DecodingPool(self.workers, self.cache_bytes)

    def augmentation(
        self, name: str, known: Augmentation | None, by_default: bool = True
    ) -> Augmentation | None:
        """Returns the augmentation of a data set's training images, or None."""
        if known is None and self.augment:
            raise ConfigError(
                f"There is no augmentation for {name}: its inputs are not images.",
                "Omit augment, or set it to False.",
            )
        wanted = by_default if self.augment is None else self.augment
        return known if wanted else None
