"""What an artefact's header says, and its validation."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ..core.initialization import Scheme
from ..core.objectives import RECORD
from ..models.description import Architecture

Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolRecord(_Record):
    """The pool of networks that a random pre-trained initialization draws from."""

    name: str
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


class InitializationRecord(_Record):
    """The distribution p(θ₀) of initial weights."""

    kind: Literal["random", "fixed", "random-pretrained", "fixed-pretrained"]
    scheme: Scheme
    seed: int = 0
    """Which network a fixed initialization is."""
    source: str | None = None
    """Where the weights of a fixed pre-trained initialization come from."""
    pool: PoolRecord | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As versions read it that know of no pre-trained networks."""
        there = {"source": self.source, "pool": self.pool}
        return {n: v for n, v in dump(self).items() if there.get(n, v) is not None}

    @model_validator(mode="after")
    def _has_its_pool(self) -> "InitializationRecord":
        if (self.kind == "random-pretrained") != (self.pool is not None):
            raise ValueError("a pool belongs to a random pre-trained initialization alone")
        return self


class UpdateRuleRecord(_Record):
    """How a learner changes its weights on a step."""

    name: Literal["gradient-descent"] = "gradient-descent"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Schedule(_Record):
    """``steps`` batches of ``images`` images, applied in order, ``epochs`` times over."""

    steps: Count
    epochs: Count
    images: Count


class NormalizationRecord(_Record):
    """What was subtracted from and divided out of each channel of pixels in [0, 1]."""

    mean: list[Finite]
    std: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class Claim(_Record):
    """A figure that the distilled data reach, and how it was measured."""

    metric: str
    mean: Finite
    std: Finite
    networks: Count
    data: str
    split: str
    examples: Count
    seed: int

    def __str__(self) -> str:
        percent = self.metric.startswith("accuracy")
        scale, form = (100, ".2f") if percent else (1, ".4g")
        unit = " %" if self.metric == "accuracy" else f" {'% ' * percent}{self.metric}"
        deviation = f" ± {scale * self.std:{form}}" if self.networks > 1 else ""
        over = f" over {self.networks} networks" if self.networks > 1 else ""
        return f"{scale * self.mean:{form}}{deviation}{unit} on {self.data} {self.split}{over}"


class Header(_Record):
    """All that is needed to use distilled data again, beside the tensors."""

    schema_version: int
    architecture: Architecture
    initialization: InitializationRecord
    left_out: str | None = None
    """The hash of initial weights and constants that were too large for the file."""
    objective: Annotated[str, Field(pattern=RECORD)]
    update_rule: UpdateRuleRecord
    schedule: Schedule
    normalization: NormalizationRecord | None
    class_names: list[str] | None
    data: str
    claim: Claim | None
    configuration: dict[str, Any]
    versions: dict[str, str]
