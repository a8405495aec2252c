"""Networks: one file each, all made with (channels, size, classes)."""

from .alexcifarnet import AlexCifarNet
from .alexnet import AlexNet
from .arguments import parse_arguments
from .convnet3 import ConvNet3
from .largenet import LargeNet
from .lenet import LeNet
from .linear import Linear
from .mlp import MLP
from .registry import MODELS, arguments_for, build, built_in_name, find, find_for
from .squeezenet import SqueezeNet
from .vgg11 import VGG11
from .weights import WeightsReport, load_weights

__all__ = [
    "MLP",
    "MODELS",
    "VGG11",
    "AlexCifarNet",
    "AlexNet",
    "ConvNet3",
    "LargeNet",
    "LeNet",
    "Linear",
    "SqueezeNet",
    "WeightsReport",
    "arguments_for",
    "build",
    "built_in_name",
    "find",
    "find_for",
    "load_weights",
    "parse_arguments",
]
