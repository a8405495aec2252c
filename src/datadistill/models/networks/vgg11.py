"""VGG-11 (Simonyan and Zisserman 2015), configuration A, without batch normalisation."""

from torch import Tensor, nn

from ..names import register

BLOCKS = [[1], [2], [4, 4], [8, 8], [8, 8]]
"""Maps of the convolutions between two poolings, in widths."""


@register("vgg11")
class VGG11(nn.Module):
    """Eight convolutions of 3×3 in five blocks, then three fully connected layers.

    Images of less than 224 px, such as CIFAR-10's, get the usual small classifier: the maps
    averaged to 512 features, and hidden layers of 512 units (9,750,922 parameters with
    3 channels and 10 classes). From 224 px on it is torchvision's network (132,863,336
    parameters with 1000 classes). Layers are named as torchvision's in both, so that its
    weights load: all of them, or those of ``features``. Its dropout layers are there, and off
    in distillation as all dropout is.

    Args:
        channels: Colours of an image.
        size: Height and width of an image: 32 at least.
        classes: Number of outputs.
        width: Maps of the first convolution, with which all other layers scale.
    """

    def __init__(
        self, channels: int = 3, size: int = 32, classes: int = 10, width: int = 64
    ) -> None:
        if size < 32:
            raise ValueError(f"VGG-11 takes images of 32 px and more, not {size}.")
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "width": width,
        }
        side, hidden = (7, 64 * width) if size >= 224 else (1, 8 * width)
        layers: list[nn.Module] = []
        maps = channels
        for block in BLOCKS:
            for times in block:
                layers += [nn.Conv2d(maps, times * width, 3, padding=1), nn.ReLU()]
                maps = times * width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(side)
        self.classifier = nn.Sequential(
            nn.Linear(maps * side * side, hidden),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))
