"""Whole distillations: their configuration, their folders, and what they are worth."""

from .comparison import Comparison, compare
from .config import RunConfig
from .distill import distill
from .named import resume
from .pretrain import pretrain

__all__ = ["Comparison", "RunConfig", "compare", "distill", "pretrain", "resume"]
