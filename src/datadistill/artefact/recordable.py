"""Whether an artefact can hold what is to be distilled, before anything is computed."""

from pydantic import ValidationError
from torch import nn

from ..core.network import Network
from ..data import LabelledData
from ..errors import ConfigError, DataError
from ..models.description import describe
from .bounds import CLASSES, LETTERS
from .checks import UPDATES
from .header import NormalizationRecord


def check_recordable(network: Network, module: nn.Module, data: LabelledData, updates: int) -> None:
    """Refuses a network, data or a schedule whose names or numbers no artefact can hold."""
    describe(network, module)
    if updates > UPDATES:
        raise ConfigError(
            f"The schedule has {updates:,} updates, more than {UPDATES:,}.",
            "Set steps × epochs lower.",
        )
    if len(data.class_names or ()) > CLASSES:
        raise DataError(
            f"{data.name} names {len(data.class_names or ()):,} classes, more than {CLASSES:,}.",
            "Merge some, or number them without names.",
        )
    classes = (f"class {number}" for number, _ in enumerate(data.class_names or ()))
    names = {"the data": data.name, **dict(zip(classes, data.class_names or (), strict=True))}
    for what, name in names.items():
        if len(name) > LETTERS:
            raise DataError(
                f"The name of {what} has {len(name):,} characters.",
                f"Names have at most {LETTERS:,}: give it a shorter one.",
            )
    norm = data.normalization
    try:
        if norm:
            NormalizationRecord(mean=[*norm.mean], std=[*norm.std])
    except ValidationError as error:
        raise DataError(
            f"{data.name} has an unusual normalization: {error.errors()[0]['msg']}.",
            "Scale the data, or pass normalised floats.",
        ) from error
