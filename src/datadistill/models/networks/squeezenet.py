"""SqueezeNet 1.1 (Iandola et al. 2016) in torchvision's layout, whose ImageNet weights load."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..names import register


@register("squeezenet")
class SqueezeNet(nn.Module):
    """One convolution, eight fire modules and a convolution with one map for each class.

    1,235,496 parameters with 3 channels and 1000 classes. Layers are named as torchvision's;
    its dropout layer is there, and off in distillation as all dropout is. As in the original,
    ReLU also follows the last convolution: logits are averages of what is left.

    Args:
        channels: Colours of an image.
        size: Height and width of an image: 17 at least, 224 as trained on ImageNet.
        classes: Number of outputs.
        width: Maps of the first convolution, with which all other layers scale: a multiple of 4.
    """

    head_bias = 1.0
    """The bias of a last layer that is reset: at 0 ReLU has no gradient, and would never open."""

    def __init__(
        self, channels: int = 3, size: int = 224, classes: int = 1000, width: int = 64
    ) -> None:
        if size < 17:
            raise ValueError(f"SqueezeNet takes images of 17 px and more, not {size}.")
        if width % 4:
            raise ValueError(f"The width of SqueezeNet is a multiple of 4, not {width}.")
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "width": width,
        }
        quarter = width // 4
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(width, quarter),
            Fire(2 * width, quarter),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(2 * width, 2 * quarter),
            Fire(4 * width, 2 * quarter),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            Fire(4 * width, 3 * quarter),
            Fire(6 * width, 3 * quarter),
            Fire(6 * width, 4 * quarter),
            Fire(8 * width, 4 * quarter),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(),
            nn.Conv2d(8 * width, classes, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.classifier(self.features(images)).flatten(1)


class Fire(nn.Module):
    """A squeeze to few maps by 1×1, then as many again by 1×1 and by 3×3, four times each.

    Args:
        channels: Maps that come in.
        squeezed: Maps between; eight times as many go out.
    """

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, 4 * squeezed, 1)
        self.expand3x3 = nn.Conv2d(squeezed, 4 * squeezed, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        """Returns the maps of both expansions."""
        maps = F.relu(self.squeeze(maps))
        return F.relu(torch.cat([self.expand1x1(maps), self.expand3x3(maps)], 1))
