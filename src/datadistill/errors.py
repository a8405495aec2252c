"""Every error that datadistill raises on purpose.

One base class; each message says what is wrong, where, and what to do about it. The
command line prints the message alone and exits with ``exit_code``.
"""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A question to append to a message about an unknown name; empty if nothing is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


class DataDistillError(Exception):
    """Base of all errors of this package.

    Args:
        what: What is wrong, and where.
        remedy: What to do about it; empty if ``what`` says it.
    """

    exit_code = 2

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}\n{remedy}".rstrip("\n"))
        self.what = what
        self.remedy = remedy

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
