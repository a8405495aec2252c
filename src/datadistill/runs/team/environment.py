"""The environment variables by which ``torchrun`` tells a process of the others."""

import os

from ...errors import ConfigError

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def world_size() -> int:
    """How many processes torchrun, or whatever sets its variables, has started."""
    if not all(name in os.environ for name in VARIABLES):
        return 1
    return number("WORLD_SIZE", at_least=1)


def is_worker() -> bool:
    """Whether this process was started as a worker: any process but the first."""
    return all(name in os.environ for name in VARIABLES) and os.environ["RANK"] not in ("", "0")


def number(name: str, *, or_else: int | None = None, at_least: int = 0) -> int:
    """A variable that is a number.

    Args:
        name: Its name.
        or_else: What it is where it is not set; it must be set by default.
        at_least: The least that it may be.
    """
    text = os.environ.get(name, "" if or_else is None else str(or_else))
    if not text.isdecimal() or int(text) < at_least:
        raise ConfigError(
            f"The environment variable {name} is {text!r}.",
            f"torchrun sets it to a number; unset {', '.join(VARIABLES)} to use one process.",
        )
    return int(text)
