"""Soft labels: class probabilities that are learned with the inputs."""

from dataclasses import dataclass
from types import MappingProxyType

from ...errors import ConfigError
from .labels import LabelKind
from .plain import Plain


@dataclass(frozen=True)
class SoftLabels(Plain, name="soft-labels"):
    """The plain parametrisation with labels that are learned; they start one-hot."""

    learn_labels: bool | None = True
    labels: LabelKind | None = None

    settings = MappingProxyType({"learn_rates": "learn_rates", "labels": "labels"})

    def __post_init__(self) -> None:
        if self.labels == "hard":
            raise ConfigError("Soft labels are not hard.", "Leave labels out, or set it to soft.")
        super().__post_init__()
