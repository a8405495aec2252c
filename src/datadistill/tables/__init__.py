"""Experiments beside each other: the tables of the paper, with a cache of finished parts."""

from typing import TYPE_CHECKING

from ..exports import on_first_use

if TYPE_CHECKING:
    from .baseline import baseline_table
    from .comparison import Comparison, compare
    from .context import TableSettings
    from .image_sets import Counts
    from .linear import LinearBound, linear_bound
    from .poisoning import PoisoningRow, poisoning_table
    from .robustness import Robustness, measure_robustness
    from .rows import BaselineTable, TableRow
else:
    __getattr__, __dir__ = on_first_use(__name__)

__all__ = [
    "BaselineTable",
    "Comparison",
    "Counts",
    "LinearBound",
    "PoisoningRow",
    "Robustness",
    "TableRow",
    "TableSettings",
    "baseline_table",
    "compare",
    "linear_bound",
    "measure_robustness",
    "poisoning_table",
]
