"""Networks by name, a user's own, and weights from files."""

from .arguments import parse_arguments
from .names import MODELS, register
from .networks.alexcifarnet import AlexCifarNet
from .networks.alexnet import AlexNet
from .networks.convnet3 import ConvNet3
from .networks.largenet import LargeNet
from .networks.lenet import LeNet
from .networks.linear import Linear
from .networks.mlp import MLP
from .networks.squeezenet import SqueezeNet
from .networks.textcnn import TextCNN
from .networks.vgg11 import VGG11
from .registry import arguments_for, build, built_in_name, find, find_for
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
    "TextCNN",
    "WeightsReport",
    "arguments_for",
    "build",
    "built_in_name",
    "find",
    "find_for",
    "load_weights",
    "parse_arguments",
    "register",
]
