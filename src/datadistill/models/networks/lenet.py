"""LeNet (LeCun et al. 1998) as the paper uses it."""

import torch.nn.functional as F
from torch import Tensor, nn

from ..names import register


@register("lenet")
class LeNet(nn.Module):
    """Two convolutions with max-pooling, then three fully connected layers, ReLU between.

    61,706 parameters with 1 channel, 62,006 with 3. The first convolution is padded so that
    28 and 32 px images both give 16 maps of 5×5.

    Args:
        channels: Colours of an image: 1 or 3.
        size: Height and width of an image: 28 or 32.
        classes: Number of outputs.
    """

    def __init__(self, channels: int = 1, size: int = 28, classes: int = 10) -> None:
        if size not in (28, 32):
            raise ValueError(f"LeNet takes images of 28 or 32 px, not {size}.")
        super().__init__()
        self.arguments = {"channels": channels, "size": size, "classes": classes}
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2 if size == 28 else 0)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        maps = F.max_pool2d(F.relu(self.conv1(images)), 2)
        maps = F.max_pool2d(F.relu(self.conv2(maps)), 2)
        features = F.relu(self.fc1(maps.flatten(1)))
        return self.fc3(F.relu(self.fc2(features)))
