"""One experiment: its configuration, its run folder, the processes that make it."""

from ..pools.pretraining import pretrain
from .config import RunConfig
from .distilling import distill
from .resuming import resume

__all__ = ["RunConfig", "distill", "pretrain", "resume"]
