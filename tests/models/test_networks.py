"""The built-in networks are those of the paper and of torchvision."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from datadistill import models
from datadistill.core.network import Network
from datadistill.models import (
    MODELS,
    VGG11,
    AlexCifarNet,
    AlexNet,
    ConvNet3,
    LargeNet,
    LeNet,
    SqueezeNet,
)
from tests.models.helpers import BUILT_IN, CLASSES


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}


COUNTS = {
    "LeNet, grey": (lambda: LeNet(1, 28), 61_706),
    "LeNet, colour": (lambda: LeNet(3, 32), 62_006),
    "AlexCifarNet": (lambda: AlexCifarNet(), 1_756_426),
    "AlexNet": (lambda: AlexNet(), 61_100_840),
    "LargeNet": (lambda: LargeNet(3), 216_790),
    "VGG-11, CIFAR-10": (lambda: VGG11(), 9_750_922),
    "VGG-11, ImageNet": (lambda: VGG11(3, 224, 1000), 132_863_336),
    "SqueezeNet 1.1": (lambda: SqueezeNet(), 1_235_496),
    "ConvNet-3": (lambda: ConvNet3(), 320_010),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_network_has_as_many_parameters_as_it_says(name: str) -> None:
    make, count = COUNTS[name]
    with torch.device("meta"):  # shapes alone: nothing is drawn or kept
        module = make()
    assert parameters(module) == count
    assert f"{count:,}" in (type(module).__doc__ or "")


def test_all_networks_are_known_by_their_names() -> None:
    names = "alexcifarnet alexnet convnet3 largenet lenet linear mlp squeezenet textcnn vgg11"
    assert list(MODELS) == names.split() == sorted(BUILT_IN)


@pytest.mark.parametrize("name", MODELS)
def test_the_arguments_of_a_network_make_it_again(name: str) -> None:
    module = BUILT_IN[name].make()
    arguments = module.arguments
    assert isinstance(arguments, dict)
    assert all(type(value) is int and value >= 1 for value in arguments.values())
    assert models.built_in_name(module) == name
    assert shapes(models.build(name, arguments)) == shapes(module)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_runs_side_by_side_and_gives_one_logit_for_each_class(name: str) -> None:
    make, shape = BUILT_IN[name]
    network = Network(make().train(), torch.zeros(2, *shape))  # in training mode: dropout is on
    assert network.side_by_side
    assert network.outputs == (CLASSES,)
    assert not network.constants


SIZES = {
    "alexcifarnet": [1, 28, 31, 32, 224],
    "alexnet": [63, 64, 224],
    "largenet": [10, 11, 28, 32],
    "vgg11": [32, 64, 223, 224],
    "squeezenet": [17, 32, 224],
    "convnet3": [8, 28, 31, 32],
    "linear": [1, 28],
    "mlp": [1, 28],
    "lenet": [28, 32],
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_network_takes_every_size_of_image_that_it_says(name: str, channels: int) -> None:
    for size in SIZES[name]:
        with torch.device("meta"):
            module = MODELS[name](channels=channels, size=size, classes=7)
            assert module(torch.empty(2, channels, size, size)).shape == (2, 7)


@pytest.mark.parametrize("name", ["alexnet", "largenet", "vgg11", "squeezenet", "convnet3"])
def test_a_network_refuses_images_that_are_too_small(name: str) -> None:
    smallest = SIZES[name][0]
    with pytest.raises(ValueError, match=f"{smallest} px and more, not {smallest - 1}"):
        MODELS[name](size=smallest - 1)


def test_layers_of_alexnet_and_vgg_are_named_as_torchvision_names_them() -> None:
    with torch.device("meta"):
        alexnet, vgg = shapes(AlexNet()), shapes(VGG11(3, 224, 1000))
        small = shapes(VGG11())
    convolutions = {
        0: (64, 3, 11, 11),
        3: (192, 64, 5, 5),
        6: (384, 192, 3, 3),
        8: (256, 384, 3, 3),
        10: (256, 256, 3, 3),
    }
    linear = {1: (4096, 9216), 4: (4096, 4096), 6: (1000, 4096)}
    assert alexnet == named(convolutions, linear)
    maps = {0: 64, 3: 128, 6: 256, 8: 256, 11: 512, 13: 512, 16: 512, 18: 512}
    inputs = [3, *maps.values()]
    convolutions = {
        layer: (outputs, inputs[number], 3, 3)
        for number, (layer, outputs) in enumerate(maps.items())
    }
    assert vgg == named(convolutions, {0: (4096, 25088), 3: (4096, 4096), 6: (1000, 4096)})
    assert small == named(convolutions, {0: (512, 512), 3: (512, 512), 6: (10, 512)})


def named(
    features: dict[int, tuple[int, ...]], classifier: dict[int, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The shapes of weights and biases of two ``nn.Sequential``."""
    layers = {f"features.{n}": shape for n, shape in features.items()}
    layers |= {f"classifier.{n}": shape for n, shape in classifier.items()}
    weights = {f"{name}.weight": shape for name, shape in layers.items()}
    return weights | {f"{name}.bias": shape[:1] for name, shape in layers.items()}


def test_local_response_normalisation_divides_by_the_mean_of_four_squares() -> None:
    layer = AlexCifarNet().features[3]
    maps = 30 * torch.randn(2, 64, 3, 3, generator=torch.Generator().manual_seed(0))
    squares = F.pad(maps.square(), (0, 0, 0, 0, 2, 1))  # two maps before, one after
    total = sum(squares[:, n : n + 64] for n in range(4))
    expected = maps / (1 + 0.001 / 9 * total / 4) ** 0.75
    assert not torch.allclose(maps, expected, rtol=0.01)
    torch.testing.assert_close(layer(maps), expected)


def test_convnet3_normalises_every_map_of_every_image_by_itself() -> None:
    layer = ConvNet3(width=4).features[1]
    maps = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(0)) * 5 + 3
    torch.testing.assert_close(layer(maps), F.instance_norm(maps))


def test_the_residual_block_of_largenet_adds_its_input() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)  # of some draws so narrow a network is dead behind its ReLUs
        module = LargeNet(width=2)
    images = torch.rand(2, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    before = module(images)
    with torch.no_grad():
        for parameter in module.residual2.parameters():
            parameter.zero_()
    maps = F.relu(module.conv3(F.relu(module.conv2(F.relu(module.conv1(images))))))
    features = F.relu(module.conv4(maps)).flatten(1)
    skipped = module.fc3(F.relu(module.fc2(F.relu(module.fc1(features)))))
    torch.testing.assert_close(module(images), skipped)
    assert not torch.allclose(before, skipped)
