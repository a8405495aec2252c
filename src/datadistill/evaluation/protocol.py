"""How the field evaluates distilled images: fresh networks, ordinary training, many epochs."""

from dataclasses import dataclass

from .ordinary import OrdinaryTraining


@dataclass(frozen=True)
class Protocol:
    """A way to evaluate distilled images that does not keep their schedule.

    Attributes:
        training: How networks are trained on the images.
        networks: How many, with fresh random weights, unless told otherwise.
    """

    training: OrdinaryTraining
    networks: int


PROTOCOLS = {
    "field": Protocol(
        OrdinaryTraining("sgd", lr=0.01, epochs=1000, batch_size=256, weight_decay=5e-4), 5
    ),
    "vico": Protocol(
        OrdinaryTraining("sgd", lr=0.01, epochs=300, batch_size=256, weight_decay=5e-4, drop=0.1),
        20,
    ),
}
"""DD-Ranking's training, and that of VICO's code for DC, DSA and DM."""
