"""One experiment: its configuration, its run folder, the processes that make it."""

from .config import RunConfig
from .distill import distill
from .pretrain import pretrain
from .resume import resume

__all__ = ["RunConfig", "distill", "pretrain", "resume"]
