"""Every network at a size fit for finite differences, and a distillation with each."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill import models
from datadistill.core.distilled import Steps
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from tests.helpers import Problem, leaves

CLASSES = 3


class Reduced(NamedTuple):
    """A network made small, and the shape of its inputs."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]


def _built_in(name: str, channels: int, size: int, **arguments: int) -> Reduced:
    arguments |= {"channels": channels, "size": size, "classes": CLASSES}
    return Reduced(lambda: models.build(name, arguments), (channels, size, size))


class Layers(nn.Module):
    """What built-in networks are made of, each so strong that an error in it would show."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1),
            nn.LocalResponseNorm(4, alpha=2.0, beta=0.75, k=1.0),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.InstanceNorm2d(6, affine=True, track_running_stats=True),
            nn.ReLU(),
            nn.Dropout(),
            nn.Conv2d(6, 4, 3),
            nn.GroupNorm(4, 4),
            nn.AdaptiveAvgPool2d(3),
            nn.Dropout2d(),
            nn.Flatten(),
            nn.Linear(36, CLASSES),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images)


class Recurrent(nn.Module):
    """A recurrent layer over the rows of (N, rows, 4), and a linear layer on the mean."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer
        width = layer.proj_size or layer.hidden_size
        self.fc = nn.Linear(width * (1 + layer.bidirectional), CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        return self.fc(self.layer(rows)[0].mean(1))


class Encoder(nn.Module):
    """A transformer encoder over (N, rows, 8) that ignores the last row, with dropout."""

    def __init__(self, layers: int = 2, activation: str = "relu", norm_first: bool = False) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            8, 2, 12, activation=activation, norm_first=norm_first, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=not norm_first)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        padding = torch.zeros(rows.shape[:2], dtype=torch.bool)
        padding[:, -1] = True
        return self.fc(self.encoder(rows, src_key_padding_mask=padding)[:, :-1].mean(1))


class Attention(nn.Module):
    """Multi-head self-attention over (N, rows, 8), without the matrix that it looked by."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        return self.fc(self.attention(rows, rows, rows, need_weights=False)[0].mean(1))


class CausalAttention(nn.Module):
    """``scaled_dot_product_attention`` itself, over (N, rows, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(8, 24)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        query, key, value = self.into(rows).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.fc(heads.transpose(1, 2).flatten(2).mean(1))


BUILT_IN: dict[str, Reduced] = {
    "lenet": _built_in("lenet", 1, 28),
    "alexcifarnet": _built_in("alexcifarnet", 3, 8, width=4),
    "alexnet": _built_in("alexnet", 3, 63, width=2),
    "largenet": _built_in("largenet", 1, 12, width=2),
    "vgg11": _built_in("vgg11", 3, 32, width=4),
    "squeezenet": _built_in("squeezenet", 3, 33, width=8),
    "textcnn": Reduced(
        lambda: models.build("textcnn", {"words": 6, "dimensions": 4, "classes": CLASSES}),
        (1, 6, 4),
    ),
    "convnet3": _built_in("convnet3", 3, 8, width=5),
    "linear": _built_in("linear", 2, 4),
    "mlp": _built_in("mlp", 1, 6, hidden=8),
}

ATTENTION: dict[str, Reduced] = {
    "transformer encoder": Reduced(Encoder, (5, 8)),
    "transformer encoder, norm first, gelu": Reduced(
        lambda: Encoder(1, "gelu", norm_first=True), (5, 8)
    ),
    "multi-head attention": Reduced(Attention, (5, 8)),
    "scaled dot product, causal": Reduced(CausalAttention, (5, 8)),
}

RECURRENT: dict[str, Reduced] = {
    "lstm": Reduced(lambda: Recurrent(nn.LSTM(4, 5, batch_first=True)), (6, 4)),
    "lstm, two layers, two ways, projected": Reduced(
        lambda: Recurrent(
            nn.LSTM(4, 5, 2, batch_first=True, dropout=0.4, bidirectional=True, proj_size=3)
        ),
        (4, 4),
    ),
    "gru": Reduced(lambda: Recurrent(nn.GRU(4, 5, batch_first=True)), (6, 4)),
    "rnn": Reduced(lambda: Recurrent(nn.RNN(4, 5, batch_first=True)), (6, 4)),
}

NETWORKS = {**BUILT_IN, "layers": Reduced(Layers, (2, 9, 9)), **ATTENTION, **RECURRENT}


def problem(name: str, networks: int = 2, dtype: torch.dtype = torch.float64) -> Problem:
    """Two steps, twice over, of three inputs with soft labels."""
    make, shape = NETWORKS[name]
    random = torch.Generator().manual_seed(2)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(dtype)

    network = Network(make(), normal(2, *shape), dtype=dtype)

    def draw(name: str, weight: Tensor) -> Tensor:
        noise = normal(networks, *weight.shape)
        if "bias" in name:
            return 0.1 * noise
        if weight.ndim < 2:  # scales of normalisation layers
            return 1 + 0.1 * noise
        # As He et al. draw, so that even eleven layers of ReLU neither die out nor explode.
        return noise * (2 / weight[0].numel()) ** 0.5

    rates = 0.02 + 0.05 * torch.rand(2, 2, generator=random, dtype=torch.float64)
    return Problem(
        network,
        Classification(),
        Steps(normal(2, 3, *shape), normal(2, 3, CLASSES).softmax(-1), rates.to(dtype)),
        {n: draw(n, w) for n, w in network.weights.items()},
        (normal(4, *shape), torch.arange(4) % CLASSES),
    )


def slope(case: Problem, name: str, direction: Tensor, distance: float) -> float:
    """dL along a direction of one tensor, by differences to fourth order in the distance."""

    def loss(times: int) -> float:
        tensors = leaves(case.steps)
        tensors[name] = tensors[name] + times * distance * direction
        return float(case.loss(Steps(*tensors.values())))

    return (8 * (loss(1) - loss(-1)) - (loss(2) - loss(-2))) / (12 * distance)
