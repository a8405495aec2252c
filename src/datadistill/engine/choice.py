"""Which engine computes: the fast one, with or without C kernels, or the plain one of the core."""

import contextlib
import os
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any, Literal, get_args

from ..errors import ConfigError

EngineName = Literal["fast", "kernels", "torch", "plain"]
"""``fast``: the fastest that this machine has. ``kernels``: the same, but never without C kernels.
``torch``: the same without C kernels. ``plain``: the code of the core alone."""
VARIABLE = "DATADISTILL_ENGINE"

_chosen: ContextVar[EngineName | None] = ContextVar("engine", default=None)


def chosen() -> EngineName:
    """The engine in use: that of :func:`using`, else ``$DATADISTILL_ENGINE``, else the fast one."""
    name: Any = _chosen.get() or os.environ.get(VARIABLE) or "fast"
    if name not in get_args(EngineName):
        raise ConfigError(
            f"There is no engine {name!r}.",
            f"Set {VARIABLE} to {', '.join(get_args(EngineName))}, or unset it.",
        )
    return name


def may_use_kernels() -> bool:
    """Whether the engine in use takes C kernels where there are any."""
    return chosen() in ("fast", "kernels")


@contextlib.contextmanager
def using(name: EngineName | None) -> Generator[None]:
    """Within it, an engine computes everything; None leaves the choice as it is."""
    before = _chosen.set(name or _chosen.get())
    try:
        yield
    finally:
        _chosen.reset(before)
