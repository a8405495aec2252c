"""What an artefact's header says, and its validation."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..core.initialization import Scheme
from ..core.objectives import RECORD

Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Architecture(_Record):
    """The network that distilled data are for."""

    name: str
    """A built-in network's name, or where a user's own class was: ``package.module:Class``."""
    built_in: bool
    arguments: dict[str, Annotated[int, Field(ge=1, le=2**20)]] = {}
    """Constructor arguments of a built-in network."""
    weights: dict[str, Annotated[str, Field(pattern=r"^\w+\[[\d, ]*\]$")]]
    """Type and shape of every trainable weight, e.g. ``float32[6, 1, 5, 5]``."""


class InitializationRecord(_Record):
    """The distribution p(θ₀) of initial weights."""

    kind: Literal["random", "fixed"]
    scheme: Scheme
    seed: int = 0
    """Which network a fixed initialization is."""


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
