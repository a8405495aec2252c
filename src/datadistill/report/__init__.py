"""What can be looked at: the page about a run, figures for papers, pictures of images."""

import sys
from types import ModuleType
from typing import Any

from .making import Report, Sources, report
from .picture import draw

__all__ = ["Report", "Sources", "draw", "report"]


class _Callable(ModuleType):
    """This package, which bears the name of its function: ``dd.report(…)`` calls the function."""

    def __call__(self, *arguments: Any, **settings: Any) -> Report:
        return report(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
__wrapped__ = report  # whose signature editors show
