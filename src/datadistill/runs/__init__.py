"""One experiment: its configuration, its run folder, the processes that make it."""

from ..pools.pretraining import pretrain
from .config import RunConfig
from .distill import distill
from .resume import resume

__all__ = ["RunConfig", "distill", "pretrain", "resume"]
