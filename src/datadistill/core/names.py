"""What settings may name: devices, types, how weights are drawn and so on. Without torch."""

from typing import Literal, get_args

from ..errors import ConfigError

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
DtypeName = Literal["float32", "float64", "bfloat16", "float16"]
Scheme = Literal[
    "xavier-normal", "xavier-uniform", "he-normal", "he-uniform", "orthogonal", "module"
]
LabelKind = Literal["hard", "soft", "logits", "clipped"]
"""``hard``: not learned. ``soft``: learned as they are. ``logits``: the softmax of what is learned.
``clipped``: learned as they are, and set to 0 where an outer step makes them negative."""

Placement = Literal["uniform", "gradient"]
"""Where the window of a truncated adjoint falls: anywhere, or by the size of the gradient."""
OrdinaryName = Literal["sgd", "adam"]
"""Ordinary training to distil for."""

FIXED_NAMES = ("fixed", "fixed-pretrained")
PRETRAINED_NAMES = ("random-pretrained", "fixed-pretrained")
"""Initializations by name, of one network and of trained ones. A user's own, such as
``fixed.py:Mine``, is neither: it is asked itself."""


def check_scheme(name: str) -> None:
    """Refuses the name of a scheme that there is not."""
    if name not in get_args(Scheme):
        raise ConfigError(
            f"There is no initialization scheme {name!r}.",
            f"Choose one of: {', '.join(get_args(Scheme))}.",
        )
