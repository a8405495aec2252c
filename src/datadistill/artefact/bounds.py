"""How long, how large and how deep the parts of a header may be."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import Field

DEPTH = 32
"""How deep the objects and lists of a header may be nested."""
VALUES = 2**17
"""How many values a header may have: each may cost a message of a kilobyte if it is wrong."""
CLASSES = 100_000
"""How many classes may have names."""
WHOLE = 2**63
"""Whole numbers are smaller, positive or negative."""

LETTERS = 4096

Text = Annotated[str, Field(max_length=LETTERS)]
Whole = Annotated[int, Field(gt=-WHOLE, lt=WHOLE)]
Count = Annotated[int, Field(ge=1, lt=WHOLE)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Moderate = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
"""A mean of pixels, whatever their unit."""
Scale = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
"""A standard deviation of pixels."""


def is_deep(value: object) -> bool:
    """Whether plain data are nested deeper than ``DEPTH``; no recursion."""
    layer: list[Any] = [value]
    for _ in range(DEPTH):
        layer = [part for one in layer for part in _parts(one)]
        if not layer:
            return False
    return True


def is_large(value: object) -> bool:
    """Whether plain data have more than ``VALUES`` values; no recursion."""
    left: list[Any] = [value]
    found = 0
    while left and found <= VALUES:
        parts = _parts(left.pop())
        found += len(parts)
        left.extend(part for part in parts if isinstance(part, dict | list))
    return found > VALUES


def check_plain(record: Mapping[str, Any]) -> None:
    """Refuses values of a record that are far too large, too long or not finite."""
    layer: list[Any] = [record]
    while layer:
        for value in layer:
            long = isinstance(value, str) and len(value) > LETTERS
            if long or (isinstance(value, int | float) and not abs(value) < WHOLE):
                raise ValueError(f"the value {str(value)[:20]} is out of range")
        layer = [part for one in layer for part in _parts(one)]


def _parts(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
