"""Times as people write and read them."""

import re

from .errors import ConfigError


def parse_time(text: str) -> float:
    """Seconds of a time such as ``90s``, ``30m``, ``1h30m`` or ``2d``."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    if not re.fullmatch(r"(\d+(\.\d+)?[dhms])+", text):
        raise ConfigError(f"{text!r} is no time.", "Write it like 30m, 90s or 1h30m.")
    seconds = sum(float(n) * units[u] for n, u in re.findall(r"(\d+(?:\.\d+)?)([dhms])", text))
    if not seconds:
        raise ConfigError(f"{text!r} is no time at all.", "Give a longer one, e.g. 30m.")
    return seconds


def time_text(seconds: float) -> str:
    """A time as a person says it: ``45 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
