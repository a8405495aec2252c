"""What can be looked at: the page about a run, figures for papers, pictures of images."""

import sys
from types import ModuleType
from typing import Any

from .making import Report, Sources, report
from .picture import draw

__all__ = ["Report", "Sources", "draw", "report"]


class _Room(ModuleType):
    """This package, which bears the name of its function: ``dd.report(…)`` calls either."""

    def __call__(self, *arguments: Any, **settings: Any) -> Report:
        return report(*arguments, **settings)


sys.modules[__name__].__class__ = _Room
