"""Durations as people write and read them: ``30m``, ``3 h 20 min``."""

import re

from .errors import ConfigError

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse_time(text: str) -> float:
    """Seconds of a duration such as ``90s``, ``30m``, ``1h30m`` or ``2d``."""
    if not re.fullmatch(r"(\d+(\.\d+)?[dhms])+", text):
        raise ConfigError(f"{text!r} is not a duration.", "Write it like 30m, 90s or 1h30m.")
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text)
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if not seconds:
        raise ConfigError(f"{text!r} is not a duration above zero.", "Give a longer one, e.g. 30m.")
    return seconds


def time_text(seconds: float) -> str:
    """A duration in fitting units: ``45 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
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
