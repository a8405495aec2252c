"""One experiment: its configuration, its run folder, the processes that make it."""

from typing import TYPE_CHECKING

from ..exports import on_first_use

if TYPE_CHECKING:
    from ..pools.pretraining import pretrain
    from .config import RunConfig
    from .distilling import distill
    from .resuming import resume
    from .tuning.tuning import Tuned, tune
else:
    __getattr__, __dir__ = on_first_use(__name__)

__all__ = ["RunConfig", "Tuned", "distill", "pretrain", "resume", "tune"]
