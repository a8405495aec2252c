"""What an artefact's header says, and its validation."""

import re
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ..core.initialization import Initialization
from ..core.inner_batches import InnerBatches
from ..core.names import Scheme
from ..core.objective import Objective
from ..core.parametrisation import Parametrisation
from ..core.seam import Record, Seam
from ..core.update import UpdateRule
from ..core.values import titled
from ..engine import Engines
from ..errors import ConfigError
from ..models.description import Architecture
from .bounds import Count, Moderate, Scale, Text, Whole, check_plain
from .claim import Claim as Claim

NAME = r"^([a-z][a-z0-9-]{0,99}|[^\n]{1,500}:[^\n:]{1,500})$"
"""What a record calls an implementation: a name, or where a user's own is."""


def _check(seam: type[Seam], record: Record) -> None:
    """Refuses a record of a built-in implementation from which it cannot be made."""
    name = record.get("name")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise ValueError(f"it calls its {seam.seam} {name!r}")
    if ":" not in name:
        try:
            seam.from_record(record)
        except ConfigError as error:
            raise ValueError(error.what.rstrip(".")) from None
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"its {seam.seam} {name} cannot be made: {error}") from None


def _checked(seam: type[Seam], record: Record) -> Record:
    check_plain(record)
    _check(seam, record)
    return record


def _restoring(record: Record) -> Record:
    """A record of a parametrisation that is built in and stores something in place of inputs."""
    check_plain(record)
    name = record.get("name")
    if name not in Parametrisation.names() or not Parametrisation.implementation(name).stores:
        raise ValueError(f"its parametrisation is {str(name)[:100]!r}, which stores inputs")
    _check(Parametrisation, record)
    return record


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolRecord(_Record):
    """The pool of networks that a random pre-trained initialization draws from."""

    name: Text
    identity: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of all that determines its networks."""
    networks: Count
    """How many of its training networks were drawn from."""
    seen: Annotated[str, Field(pattern=r"^([0-9a-f]{16})*$")]
    """The first 16 digits of the hash of each: networks that evaluation must not use."""

    def has_seen_any(self, hashes: Iterable[str]) -> bool:
        """Whether distillation drew from a network of which this is the hash."""
        seen = {self.seen[i : i + 16] for i in range(0, len(self.seen), 16)}
        return not seen.isdisjoint(one[:16] for one in hashes)


class InitializationRecord(BaseModel):
    """The distribution p(θ₀) of initial weights, as :meth:`Initialization.record` gives it.

    A user's own has fields of its own.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, Field(pattern=NAME)]
    scheme: Scheme | None = None
    seed: Whole | None = None
    """Which network a fixed initialization is."""
    source: Text | None = None
    """Where the weights of a fixed pre-trained initialization come from."""
    pool: PoolRecord | None = None

    @property
    def kind(self) -> str:
        """What it is called: random, fixed, random-pretrained, fixed-pretrained, or an own one."""
        return self.name

    @model_validator(mode="after")
    def _can_be_made_again(self) -> "InitializationRecord":
        if (self.name == "random-pretrained") != (self.pool is not None):
            raise ValueError("a pool belongs to a random pre-trained initialization alone")
        _check(Initialization, self.record())
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}

    def record(self) -> Record:
        """The record."""
        return self.model_dump(mode="json")


class InnerRecord(_Record):
    """Each update takes ``images`` images of each of ``classes`` classes, drawn at random."""

    images: Count
    classes: Count


class Schedule(_Record):
    """``steps`` batches of ``images`` images, applied in order, ``epochs`` times over."""

    steps: Count
    epochs: Count
    images: Count
    inner: InnerRecord | None = None
    """How updates draw their images; None: an update takes all images of its step."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}

    @model_validator(mode="after")
    def _can_be_drawn(self) -> "Schedule":
        if inner := self.inner_batches:
            total = self.steps * self.images
            if self.images % inner.classes or inner.images > total // inner.classes:
                raise ValueError(f"{inner} cannot be drawn from {total} images")
        return self

    @property
    def inner_batches(self) -> InnerBatches | None:
        """The same as an object that draws."""
        return self.inner and InnerBatches(self.inner.images, self.inner.classes)


class NormalizationRecord(_Record):
    """What was subtracted from and divided out of each channel of pixels in [0, 1]."""

    mean: list[Moderate]
    std: list[Scale]


class Header(_Record):
    """All that is needed to use distilled data again, beside the tensors."""

    schema_version: int
    architecture: Architecture
    initialization: InitializationRecord
    left_out: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The hash of initial weights and constants that were too large for the file."""
    objective: Annotated[Record, AfterValidator(partial(_checked, Objective))]
    update_rule: Annotated[Record, AfterValidator(partial(_checked, UpdateRule))]
    parametrisation: Annotated[Record, AfterValidator(_restoring)] | None = None
    """How the inputs are made of what is stored in place of them, if they are not stored."""
    schedule: Schedule
    normalization: NormalizationRecord | None
    class_names: list[Text] | None
    data: Text
    claim: Claim | None
    configuration: dict[str, Any]
    engines: Annotated[Engines, FailFast()] = ()
    """The engines that computed the data, in order; none if that is not known."""
    versions: dict[str, Text]

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Files without what came later are read by earlier versions too."""
        later = ("parametrisation",)
        return {n: v for n, v in dump(self).items() if n not in later or v is not None}

    def __str__(self) -> str:
        reaches = f": {self.claim}" if self.claim else ""
        return f"{self.data} for {self.architecture.name}, {self.initialization.kind}{reaches}"

    __repr__ = titled
