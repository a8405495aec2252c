"""AlexNet (Krizhevsky 2014) in torchvision's layout, whose ImageNet weights load."""

from torch import Tensor, nn

from ..names import register


@register("alexnet")
class AlexNet(nn.Module):
    """Five convolutions with max-pooling, then three fully connected layers, ReLU between.

    61,100,840 parameters with 3 channels and 1000 classes. Layers are named as torchvision's;
    its dropout layers are there, and off in distillation as all dropout is.

    Args:
        channels: Colours of an image.
        size: Height and width of an image: 63 at least, 224 as trained on ImageNet.
        classes: Number of outputs.
        width: Maps of the first convolution, with which all other layers scale.
    """

    def __init__(
        self, channels: int = 3, size: int = 224, classes: int = 1000, width: int = 64
    ) -> None:
        if size < 63:
            raise ValueError(f"AlexNet takes images of 63 px and more, not {size}.")
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "width": width,
        }
        hidden = 64 * width
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 11, stride=4, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(width, 3 * width, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(3 * width, 6 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(6 * width, 4 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(4 * width, 4 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(),
            nn.Linear(4 * width * 6 * 6, hidden),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))
