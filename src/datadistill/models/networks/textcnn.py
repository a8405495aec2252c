"""A convolutional network for texts: sequences of word vectors."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from ..names import register


@register("textcnn")
class TextCNN(nn.Module):
    """Three words at a time, the largest response over the text, then a linear layer.

    Args:
        words: Words of a text.
        dimensions: Numbers of a word vector.
        classes: Number of outputs.
        width: Patterns of three words.
    """

    def __init__(
        self, words: int = 30, dimensions: int = 50, classes: int = 8, width: int = 64
    ) -> None:
        super().__init__()
        self.arguments = {
            "words": words,
            "dimensions": dimensions,
            "classes": classes,
            "width": width,
        }
        self.conv = nn.Conv2d(1, width, (3, dimensions))
        self.fc = nn.Linear(width, classes)

    @staticmethod
    def fitting(input_shape: Sequence[int], classes: int) -> dict[str, int] | None:
        """Constructor arguments for texts (1, words, dimensions); None for other inputs."""
        if len(input_shape) != 3 or input_shape[0] != 1 or input_shape[1] < 3:
            return None
        return {"words": input_shape[1], "dimensions": input_shape[2], "classes": classes}

    def forward(self, texts: Tensor) -> Tensor:
        """Returns the logits (texts, classes)."""
        return self.fc(F.relu(self.conv(texts)).amax((2, 3)))
