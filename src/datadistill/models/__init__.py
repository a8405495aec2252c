"""Networks: one file each, all made with (channels, size, classes)."""

from .lenet import LeNet
from .linear import Linear
from .mlp import MLP
from .registry import MODELS, arguments_for, build, built_in_name, find

__all__ = ["MLP", "MODELS", "LeNet", "Linear", "arguments_for", "build", "built_in_name", "find"]
