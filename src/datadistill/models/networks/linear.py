"""A linear classifier or regressor."""

from torch import Tensor, nn

from ..names import register


@register("linear")
class Linear(nn.Module):
    """One fully connected layer on the pixels, or on columns of numbers.

    For 14 columns it is ``Linear(channels=14, size=1)``.

    Args:
        channels: Colours of an image.
        size: Height and width of an image.
        classes: Number of outputs.
    """

    flattens = True

    def __init__(self, channels: int = 1, size: int = 28, classes: int = 10) -> None:
        super().__init__()
        self.arguments = {"channels": channels, "size": size, "classes": classes}
        self.fc = nn.Linear(channels * size * size, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits (images, classes)."""
        return self.fc(images.flatten(1))
