"""AlexCifarNet: the network of cuda-convnet (Krizhevsky 2012) that the paper uses on CIFAR-10."""

from torch import Tensor, nn

from ..names import register


@register("alexcifarnet")
class AlexCifarNet(nn.Module):
    """Two convolutions with local response normalisation, then three fully connected layers.

    1,756,426 parameters with 3 channels, 32 px and 10 classes.

    The normalisation has size 4, α = 0.001/9, β = 0.75 and k = 1 in the meaning of
    ``nn.LocalResponseNorm``, with which the paper's authors wrote it: each map is divided by
    (k + α · the mean of 4 neighbouring squares)^β, so that a single square counts α/4. (The
    numbers come from an older meaning, in which α multiplies the sum over 9 maps.)

    Args:
        channels: Colours of an image.
        size: Height and width of an image.
        classes: Number of outputs.
        width: Maps of each convolution; the fully connected layers have 6 and 3 times as many
            units.
    """

    def __init__(
        self, channels: int = 3, size: int = 32, classes: int = 10, width: int = 64
    ) -> None:
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "width": width,
        }
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.LocalResponseNorm(4, alpha=0.001 / 9, beta=0.75, k=1),
            nn.Conv2d(width, width, 5, padding=2),
            nn.ReLU(),
            nn.LocalResponseNorm(4, alpha=0.001 / 9, beta=0.75, k=1),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        side = (size + 3) // 4  # each pooling halves and rounds up
        self.classifier = nn.Sequential(
            nn.Linear(width * side * side, 6 * width),
            nn.ReLU(),
            nn.Linear(6 * width, 3 * width),
            nn.ReLU(),
            nn.Linear(3 * width, classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.classifier(self.features(images).flatten(1))
