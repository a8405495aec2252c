"""A multi-layer perceptron."""

import torch.nn.functional as F
from torch import Tensor, nn

from ..names import register


@register("mlp")
class MLP(nn.Module):
    """Two hidden layers with ReLU on the pixels, or on columns of numbers.

    For 14 columns it is ``MLP(channels=14, size=1)``.

    Args:
        channels: Colours of an image.
        size: Height and width of an image.
        classes: Number of outputs.
        hidden: Units of each hidden layer.
    """

    flattens = True

    def __init__(
        self, channels: int = 1, size: int = 28, classes: int = 10, hidden: int = 128
    ) -> None:
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "hidden": hidden,
        }
        self.fc1 = nn.Linear(channels * size * size, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        features = F.relu(self.fc1(images.flatten(1)))
        return self.fc3(F.relu(self.fc2(features)))
