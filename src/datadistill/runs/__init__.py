"""One experiment: its configuration, its run folder, the processes that make it."""

from .config import RunConfig
from .distill import distill
from .experiment import resume
from .pretrain import pretrain

__all__ = ["RunConfig", "distill", "pretrain", "resume"]
