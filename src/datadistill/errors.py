"""Every error that datadistill raises on purpose.

One base class; each message says what is wrong, where, and what to do about it. The
command line prints the message alone and exits with ``exit_code``.
"""

import difflib
import re
from collections.abc import Iterable

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, those that turn the direction of text, and bytes that are no text."""


def printable(text: str) -> str:
    """The text with control characters spelled out by their code points.

    What a file says must not move the cursor, recolour or rename the terminal that it is shown on.
    """
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A question to append to a message about an unknown name; empty if nothing is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def first_line(error: BaseException | None) -> str:
    """What an error says, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class DataDistillError(Exception):
    """Base of all errors of this package.

    Args:
        what: What is wrong, and where.
        remedy: What to do about it; empty if ``what`` says it.
    """

    exit_code = 2

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = printable(what), printable(remedy)
        super().__init__(f"{self.what}\n{self.remedy}".rstrip("\n"))

    def __reduce__(self) -> tuple[type["DataDistillError"], tuple[str, str]]:
        return type(self), (self.what, self.remedy)


class ConfigError(DataDistillError):
    """A setting is out of its range, or two settings contradict each other."""


class DataError(DataDistillError):
    """The real data are missing, damaged or not fit for the network."""


class ModelError(DataDistillError):
    """The network cannot be used as a pure, twice differentiable function."""


class ArtefactError(DataDistillError):
    """A file is not a valid artefact, or does not fit what it is used with."""


class PoolError(DataDistillError):
    """A pool of networks is damaged, or does not fit what it is used with."""


class RunError(DataDistillError):
    """A run folder is damaged, in use, or of another run than the one asked for."""


class FileError(DataDistillError):
    """A file could not be written."""

    exit_code = 1


class NonFiniteError(DataDistillError):
    """Too many outer steps in a row gave a loss or gradient that is not finite."""

    exit_code = 1


class ZeroGradientError(DataDistillError):
    """The gradient with respect to the distilled inputs is exactly 0: nothing can be learned."""


class TeamError(DataDistillError):
    """A process of a run that several make together has ended, or does not answer."""

    exit_code = 1


class DataWarning(UserWarning):
    """Real data can be used as they are, but probably not as they were meant."""
