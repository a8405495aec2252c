"""Networks as people write them: modules that the library has never seen, on images of 28 px.

Each is small, and of one kind: what is measured is how the library treats a kind of layer.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Residual(nn.Module):
    """Convolutions with group normalisation and residual sums."""

    def __init__(self, width: int = 16, blocks: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.ModuleList(_ResidualBlock(width) for _ in range(blocks))
        self.out = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        maps = F.avg_pool2d(self.stem(images), 2)
        for block in self.blocks:
            maps = block(maps)
        return self.out(F.adaptive_avg_pool2d(maps, 1).flatten(1))


class _ResidualBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(4, width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(4, width)

    def forward(self, maps: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(maps)))
        return F.relu(maps + self.norm2(self.conv2(inner)))


class Mixer(nn.Module):
    """An MLP-mixer: patches of 7 px, layer normalisation, GELU."""

    def __init__(self, width: int = 32, blocks: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 7, stride=7)
        self.blocks = nn.ModuleList(_MixerBlock(16, width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return self.out(self.norm(tokens).mean(1))


class _MixerBlock(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_tokens = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.over_channels = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, tokens: Tensor) -> Tensor:
        mixed = self.over_tokens(self.norm1(tokens).transpose(1, 2)).transpose(1, 2)
        tokens = tokens + mixed
        return tokens + self.over_channels(self.norm2(tokens))


class Attention(nn.Module):
    """A small vision transformer: patches of 7 px, two encoder layers."""

    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 7, stride=7)
        self.places = nn.Parameter(torch.zeros(1, 16, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.out = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            tokens = layer(tokens)
        return self.out(tokens.mean(1))


class Recurrent(nn.Module):
    """An LSTM over the rows of an image."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layer = nn.LSTM(28, width, batch_first=True)
        self.out = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.out(self.layer(images[:, 0])[0][:, -1])


class Tied(nn.Module):
    """An MLP whose hidden layers share one matrix."""

    def __init__(self, width: int = 64, times: int = 3) -> None:
        super().__init__()
        self.into = nn.Linear(784, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(times))
        for layer in self.hidden:
            layer.weight = self.hidden[0].weight
        self.out = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        features = torch.tanh(self.into(images.flatten(1)))
        for layer in self.hidden:
            features = features + F.silu(layer(features))
        return self.out(features)


def batch_normalised() -> nn.Module:
    """Convolutions with batch normalisation, strided and depthwise."""
    layers: list[nn.Module] = [nn.Conv2d(1, 16, 3, stride=2, padding=1)]
    layers += [nn.BatchNorm2d(16), nn.ReLU()]
    layers += [nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 32, 1)]
    layers += [nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))


def with_dropout() -> nn.Module:
    """An MLP with dropout, which is off in distillation."""
    layers: list[nn.Module] = [nn.Flatten()]
    for before, width in ((784, 128), (128, 64)):
        layers += [nn.Linear(before, width), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(64, 10))


OWN: dict[str, Callable[[], nn.Module]] = {
    "residual, GroupNorm": Residual,
    "mixer, LayerNorm": Mixer,
    "BatchNorm": batch_normalised,
    "attention": Attention,
    "LSTM": Recurrent,
    "tied weights": Tied,
    "dropout MLP": with_dropout,
}
