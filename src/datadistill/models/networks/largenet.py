"""LargeNet: the larger network of the paper's supplement for MNIST."""

import torch.nn.functional as F
from torch import Tensor, nn

from ..names import register


@register("largenet")
class LargeNet(nn.Module):
    """Six convolutions, two of them in a residual block, then three fully connected layers.

    216,790 parameters with 3 channels, 28 px and 10 classes. The supplement says 204,190, which
    its own table does not sum to. The table also gives the third convolution no padding, but
    the 750 features that follow need it padded by 2, as it is here. ReLU follows every layer
    but the last; in the residual block it follows the sum.

    Args:
        channels: Colours of an image.
        size: Height and width of an image: 10 at least.
        classes: Number of outputs.
        width: Maps of the first two convolutions, with which all other layers scale.
    """

    def __init__(
        self, channels: int = 1, size: int = 28, classes: int = 10, width: int = 10
    ) -> None:
        if size < 10:
            raise ValueError(f"LargeNet takes images of 10 px and more, not {size}.")
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "width": width,
        }
        self.conv1 = nn.Conv2d(channels, width, 5, padding=2)
        self.conv2 = nn.Conv2d(width, width, 2, stride=2)
        self.conv3 = nn.Conv2d(width, 2 * width, 5, padding=2)
        self.residual1 = nn.Conv2d(2 * width, 2 * width, 5, padding=2)
        self.residual2 = nn.Conv2d(2 * width, 2 * width, 5, padding=2)
        self.conv4 = nn.Conv2d(2 * width, 3 * width, 5, stride=2)
        side = (size // 2 - 5) // 2 + 1
        self.fc1 = nn.Linear(3 * width * side * side, 20 * width)
        self.fc2 = nn.Linear(20 * width, 12 * width)
        self.fc3 = nn.Linear(12 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        maps = F.relu(self.conv2(F.relu(self.conv1(images))))
        maps = F.relu(self.conv3(maps))
        maps = F.relu(maps + self.residual2(F.relu(self.residual1(maps))))
        maps = F.relu(self.conv4(maps))
        features = F.relu(self.fc1(maps.flatten(1)))
        return self.fc3(F.relu(self.fc2(features)))
