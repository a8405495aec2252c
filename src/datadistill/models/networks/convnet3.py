"""ConvNet-3: the network on which later work on dataset distillation compares."""

from torch import Tensor, nn

from ..names import register


@register("convnet3")
class ConvNet3(nn.Module):
    """Three blocks of convolution, instance normalisation, ReLU and mean-pooling; one linear layer.

    320,010 parameters with 3 channels, 32 px and 10 classes. The first convolution pads images
    of 28 px to 32, as is usual.

    Args:
        channels: Colours of an image.
        size: Height and width of an image: 8 at least.
        classes: Number of outputs.
        width: Maps of each convolution.
    """

    def __init__(
        self, channels: int = 3, size: int = 32, classes: int = 10, width: int = 128
    ) -> None:
        if size < 8:
            raise ValueError(f"ConvNet-3 takes images of 8 px and more, not {size}.")
        super().__init__()
        self.arguments = {
            "channels": channels,
            "size": size,
            "classes": classes,
            "width": width,
        }
        padding = 3 if size == 28 else 1
        self.features = nn.Sequential(
            *_block(channels, width, padding), *_block(width, width), *_block(width, width)
        )
        side = (size + 2 * padding - 2) // 8
        self.classifier = nn.Linear(width * side * side, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.classifier(self.features(images).flatten(1))


def _block(channels: int, width: int, padding: int = 1) -> list[nn.Module]:
    # A group of its own for each map is instance normalisation, with a scale and a shift.
    return [
        nn.Conv2d(channels, width, 3, padding=padding),
        nn.GroupNorm(width, width),
        nn.ReLU(),
        nn.AvgPool2d(2),
    ]
