"""Ten networks as users write them, on 1×8×8 images. The command line makes them from this file."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 10


class Residual(nn.Module):
    """A residual block with group normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.one, self.other = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.stem(images)
        maps = F.relu(maps + self.other(F.relu(self.norm(self.one(maps)))))
        return self.head(maps.flatten(1))


class Mixer(nn.Module):
    """Rows are mixed, then columns; with layer normalisation and a learned offset."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Parameter(0.1 * torch.randn(8, 8))
        self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
        self.rows, self.columns = nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        patches = images[:, 0] + self.offset
        patches = patches + F.gelu(self.rows(self.first(patches).mT)).mT
        patches = patches + F.gelu(self.columns(self.second(patches)))
        return self.head(patches.mean(1))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.layer(images[:, 0])[0][:, -1])


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(8, 8, num_layers=2, batch_first=True, dropout=0.3)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.layer(images[:, 0])[0].mean(1))


class Tied(nn.Module):
    """One matrix by two names, and a buffer."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.second.weight = self.first.weight
        self.head = nn.Linear(64, CLASSES)
        self.register_buffer("scale", torch.tensor(0.7))

    def forward(self, images: Tensor) -> Tensor:
        features = torch.tanh(self.first(self.scale * images.flatten(1)))
        return self.head(torch.tanh(self.second(features)))


class BatchNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(nn.Linear(36, 16), nn.BatchNorm1d(16, momentum=None), nn.ReLU())
        self.out = nn.Linear(16, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.head(self.body(images)))


class InstanceNorm(nn.Module):
    """Normalises each image by itself, but by running statistics in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.norm = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.head = nn.Linear(36, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(F.relu(self.norm(self.conv(images))).flatten(1))


class Attention(nn.Module):
    """The same attention twice over the rows, each of which has a learned place."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(0.1 * torch.randn(8, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        rows = images[:, 0] + self.places
        for _ in range(2):
            rows = rows + self.attention(rows, rows, rows, need_weights=False)[0]
        return self.head(rows.mean(1))


class Dropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.drop = nn.Linear(64, 16), nn.Dropout(0.5)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = self.drop(torch.relu(self.body(images.flatten(1))))
        return self.head(F.dropout(features, 0.2, training=self.training))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.encoder(images[:, 0]).mean(1))


NETWORKS: list[type[nn.Module]] = [
    Residual,
    Mixer,
    Lstm,
    Gru,
    Tied,
    BatchNorm,
    InstanceNorm,
    Attention,
    Dropout,
    Transformer,
]
