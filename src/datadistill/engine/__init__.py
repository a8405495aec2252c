"""How distillation is computed fast: the same numbers as the plain engine of the core.

Networks side by side, layer by layer, in groups over threads and processes; C kernels; minibatches
in parts; graphs that are kept; compiled updates; frozen layers that are not unrolled.
"""

from typing import TYPE_CHECKING

from ..exports import on_first_use

if TYPE_CHECKING:
    from .choice import EngineName, chosen, using
    from .factory import engine_for
    from .fast import FastEngine
    from .record import EngineRecord, Engines, continued, record_of
    from .team import ALONE, Team
else:
    __getattr__, __dir__ = on_first_use(__name__)

__all__ = [
    "ALONE",
    "EngineName",
    "EngineRecord",
    "Engines",
    "FastEngine",
    "Team",
    "chosen",
    "continued",
    "engine_for",
    "record_of",
    "using",
]
