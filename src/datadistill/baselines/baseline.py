"""The seam for baselines: images that stand in for distilled data, made without distillation.

To add one, write a file in this package with a class that derives from :class:`Baseline`, and put
``@register`` above it. To use your own from outside, pass an object to a table, or name it
``file.py:Class`` on the command line.
"""

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import torch

from ..core import random
from ..core.distilled import Steps
from ..data import LabelledData
from ..errors import ConfigError, did_you_mean
from ..importing import Wanted
from .layout import Layout


class Stream(Protocol):
    """The random streams of one set of images, e.g. ``stream("which", label)``."""

    def __call__(self, purpose: str, *counters: int) -> torch.Generator:
        """Returns the generator of a purpose; the same one for the same arguments."""
        ...


class Baseline(ABC):
    """Makes sets of images from real training data, laid out like distilled data.

    Attributes:
        name: The name of its row in a table; the name of the class by default.
        deterministic: Whether all sets are equal, so that one is enough.
        selects_examples: Whether its images are examples of the data, unchanged. Such a baseline
            can select features of the examples just as well.
        neighbours: Whether the table has a row for K-NN classification with its images, too.
        candidates: If given, a table draws many sets of this baseline, and reports those that are
            best on held-out training data.
    """

    name: ClassVar[str]
    deterministic: ClassVar[bool] = False
    selects_examples: ClassVar[bool] = False
    neighbours: ClassVar[bool] = False
    candidates: "Baseline | None" = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # dataclasses write one of their own, with their fields

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
                f"The baseline {self.name!r} made inputs of shape {tuple(made.inputs.shape)} with "
                f"labels of shape {tuple(made.labels.shape)}.",
                f"It must make inputs of shape {(*wanted, *data.input_shape)} with labels of shape "
                f"{wanted}: use layout.arrange.",
            )
        return made.to(layout.device, layout.dtype)

    def record(self) -> dict[str, Any]:
        """Plain data from which :func:`from_record` makes the same baseline.

        A baseline with settings is best a dataclass: its fields are recorded.
        """
        own = {} if is_built_in(self) else {"class": _reference(type(self))}
        fields = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        return {"name": self.name, **own, **{f.name: getattr(self, f.name) for f in fields}}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Baseline":
        """Makes the baseline that :meth:`record` describes."""
        return cls(**{key: value for key, value in record.items() if key not in ("name", "class")})


BASELINES: dict[str, type[Baseline]] = {}
"""All baselines of this package, by the names of their rows."""

B = TypeVar("B", bound=type[Baseline])


def register(kind: B) -> B:
    """Class decorator: makes a baseline known by its name, and a row of every table."""
    BASELINES[kind.name] = kind
    return kind


def is_built_in(baseline: Baseline) -> bool:
    """Whether a baseline is one of this package's."""
    return type(baseline).__module__.startswith(f"{__package__}.")


def from_record(record: Mapping[str, Any]) -> Baseline:
    """Makes the baseline of a record: a built-in one by its name, a user's own by its class."""
    kind = _class_at(record["class"]) if "class" in record else _class_named(record.get("name", ""))
    return kind.from_record(record)


def find(reference: str) -> Baseline:
    """Makes a baseline with its default settings.

    Args:
        reference: The name of a built-in baseline; or the class of your own, as
            ``package.module:Class`` or ``path/to/file.py:Class``.
    """
    kind = _class_at(reference) if ":" in reference else _class_named(reference)
    try:
        return kind()
    except TypeError as error:
        raise ConfigError(
            f"The baseline {reference} cannot be made without arguments: {error}",
            "Give its arguments default values, or pass an object from Python.",
        ) from error


def find_all(baselines: Iterable[Baseline | str]) -> list[Baseline]:
    """Makes those baselines that are given as references."""
    return [find(one) if isinstance(one, str) else one for one in baselines]


def _class_named(name: str) -> type[Baseline]:
    if name not in BASELINES:
        raise ConfigError(
            f"There is no baseline called {name!r}.{did_you_mean(name, BASELINES)}",
            f"Choose one of: {', '.join(sorted(BASELINES))}; or your own as file.py:Class.",
        )
    return BASELINES[name]


def _class_at(reference: str) -> type[Baseline]:
    found = Wanted("baseline", "Class", _baselines_in, ConfigError).import_from(reference)
    if not (isinstance(found, type) and issubclass(found, Baseline)):
        raise ConfigError(
            f"{reference!r} is not a baseline.",
            "Name a class that derives from datadistill.baselines.Baseline.",
        )
    return found


def _baselines_in(place: object) -> list[str]:
    members = getattr(place, "__dict__", {}).items()
    kinds = [(name, kind) for name, kind in members if isinstance(kind, type)]
    return [n for n, kind in kinds if issubclass(kind, Baseline) and kind is not Baseline]


def _reference(kind: type[Baseline]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
