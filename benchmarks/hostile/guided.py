"""Changes that are guided by coverage, without another tool: slower than atheris, but always there.

Inputs that reach new lines of datadistill are kept, and changed further.
"""

import contextlib
import random
import sys
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import datadistill

from .counts import Counts
from .mutation import changed
from .trial import Place

Line = tuple[CodeType, int]
PACKAGE = str(Path(datadistill.__file__).parent)
LARGEST = 10**6  # bytes


class Guided:
    """Tries one changed file after the other.

    Args:
        place: Where they are tried.
        draw: Draws the changes.
        code: Lines of files below this path count.
    """

    def __init__(self, place: Place, draw: random.Random, code: str = PACKAGE) -> None:
        self._place, self._draw, self._code = place, draw, code
        self._reached: set[Line] = set()
        self.corpus: list[bytes] = []
        self._try(place.content)

    def try_next(self) -> Counts:
        """Changes one of the files that reached new lines, and tries it."""
        content = self._draw.choice(self.corpus)
        try:
            other = self._place.kind.change(content, self._draw)
        except Exception:  # it is no longer what its own mutations know
            other = changed(content, self._draw)
        return self._try(other)

    def _try(self, content: bytes) -> Counts:
        with _lines(self._code) as reached:
            counts = self._place.judge(content)
        if not reached <= self._reached and len(content) <= LARGEST:
            self.corpus.append(content)
        self._reached |= reached
        return counts


@contextlib.contextmanager
def _lines(code: str) -> Generator[set[Line]]:
    """Collects the lines that are run meanwhile."""
    reached: set[Line] = set()

    def step(frame: FrameType, _event: str, _argument: Any) -> Any:
        reached.add((frame.f_code, frame.f_lineno))
        return step

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        return step if frame.f_code.co_filename.startswith(code) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield reached
    finally:
        sys.settrace(before)
