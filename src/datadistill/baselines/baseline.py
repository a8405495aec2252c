"""The seam for baselines: images that stand in for distilled data, made without distillation.

To add one, write a file in this package with a class that derives from :class:`Baseline` and has a
name: ``class Black(Baseline, name="black")``. To use your own from outside, pass an object to a
table, or name it ``file.py:Class`` on the command line.
"""

import functools
from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import torch

from ..core import random
from ..core.distilled import Steps
from ..core.seam import Seam
from ..data import LabelledData
from ..errors import ConfigError
from .layout import Layout


class Stream(Protocol):
    """The random streams of one set of images, e.g. ``stream("which", label)``."""

    def __call__(self, purpose: str, *counters: int) -> torch.Generator:
        """Returns the generator of a purpose; the same one for the same arguments."""
        ...


class Baseline(Seam, seam="baseline"):
    """Makes sets of images from real training data, laid out like distilled data.

    Attributes:
        title: The name of its row in a table; by default its name, or that of a user's class.
        deterministic: Whether all sets are equal, so that one is enough.
        selects_examples: Whether its images are examples of the data, unchanged. Such a baseline
            can select features of the examples just as well.
        neighbours: Whether the table has a row for K-NN classification with its images, too.
        candidates: If given, a table draws many sets of this baseline, and reports those that are
            best on held-out training data.
    """

    title: ClassVar[str]
    deterministic: ClassVar[bool] = False
    selects_examples: ClassVar[bool] = False
    neighbours: ClassVar[bool] = False
    candidates: "Baseline | None" = None

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if not hasattr(cls, "title"):
            cls.title = cls.name if cls.is_built_in() else cls.__name__

    @abstractmethod
    def steps(self, data: LabelledData, layout: Layout, stream: Stream) -> Steps:
        """Makes one set of images.

        Args:
            data: Real training data.
            layout: How many images to make; :meth:`Layout.arrange` puts them in order.
            stream: All random numbers; a set is a function of its stream.
        """

    def draw(self, data: LabelledData, layout: Layout, seed: int = 0) -> Steps:
        """Makes the set of a seed; sets of different seeds are drawn independently."""
        made = self.steps(data, layout, functools.partial(random.stream, seed))
        wanted = (layout.steps, layout.classes * layout.images_per_class)
        if made.inputs.shape != (*wanted, *data.input_shape) or made.labels.shape[:2] != wanted:
            raise ConfigError(
                f"The baseline {self.title!r} made inputs of shape {tuple(made.inputs.shape)} with "
                f"labels of shape {tuple(made.labels.shape)}.",
                f"It must make inputs of shape {(*wanted, *data.input_shape)} with labels of shape "
                f"{wanted}: use layout.arrange.",
            )
        return made.to(layout.device, layout.dtype)
