"""Objects as values: shown in one short line, and compared with the tensors that they hold.

A dataclass or named tuple takes both in its body: ``__repr__ = one_line`` and ``__eq__ = same``.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from ..errors import printable

WIDTH = 190
"""Characters of the longest line."""


class _Short(reprlib.Repr):
    """Tensors by dtype and shape, modules by class, and of long values the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxtuple, self.maxlist, self.maxdict = 3, 3, 3, 3
        self.maxstring = self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        """Any value, which may be part of another."""
        from torch import Tensor, nn  # not before it is needed: settings are values too

        if isinstance(x, Tensor):
            return f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
        if isinstance(x, nn.Module):
            return type(x).__name__
        return super().repr1(x, level)


_SHORT = _Short()


def short(text: str) -> str:
    """A text in one line, cut where it is too long."""
    line = printable(" ".join(text.split()))  # it may come from a file
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def titled(self: object) -> str:
    """``<Claim: 92.10 % on mnist test>``: the repr of an object whose ``str`` says what it is."""
    return f"<{type(self).__name__}: {short(str(self))}>"


def one_line(self: object) -> str:
    """The repr of a dataclass or named tuple: the fields that differ from their defaults."""
    shown = [
        f"{name}={_SHORT.repr(own)}"
        for name, own, default in _fields(self, "repr")
        if not equal(own, default)
    ]
    return f"{type(self).__name__}({short(', '.join(shown))})"


def same(self: object, other: object) -> bool:
    """``==`` of dataclasses and named tuples that hold tensors."""
    if type(self) is not type(other):
        return NotImplemented
    mine, others = (_fields(one, "compare") for one in (self, other))
    return all(equal(a, b) for (_, a, _), (_, b, _) in zip(mine, others, strict=True))


def different(self: object, other: object) -> bool:
    """``!=`` of named tuples, which do not derive it from ``==``."""
    return NotImplemented if type(self) is not type(other) else not same(self, other)


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; tensors are if they have dtype, device and all values alike."""
    if one is other:
        return True
    import torch
    from torch import Tensor

    if isinstance(one, Tensor):
        alike = isinstance(other, Tensor) and (one.dtype, one.device) == (other.dtype, other.device)
        return alike and torch.equal(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if type(one) is type(other) and type(one) in (tuple, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return not isinstance(other, Tensor) and bool(one == other)


def _fields(value: Any, wanted: str) -> list[tuple[str, Any, Any]]:
    """(name, value, default) of the fields that are meant for ``repr`` or to ``compare``."""
    if not is_dataclass(value):
        defaults = value._field_defaults
        return [(n, own, defaults.get(n, MISSING)) for n, own in value._asdict().items()]
    chosen = [field for field in fields(value) if getattr(field, wanted)]
    return [(field.name, getattr(value, field.name), _default(field)) for field in chosen]


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
