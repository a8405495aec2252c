"""Random real images: the same number of images of every class, unchanged."""

import torch

from ..core.distilled import Steps
from ..data import LabelledData
from .baseline import Baseline, Stream
from .layout import Layout, members


class RandomReal(Baseline, name="random real"):
    """Real training images, drawn without replacement.

    If the data are augmented, each image is a random view, as networks see it in training.
    """

    selects_examples = True
    neighbours = True

    def steps(self, data: LabelledData, layout: Layout, stream: Stream) -> Steps:
        """Draws the images of each class in a stream of its own."""
        drawn: list[torch.Tensor] = []
        for label in range(layout.classes):
            found = members(data, label, layout.per_class)
            order = torch.randperm(len(found), generator=stream("random real", label))
            drawn.append(found[order[: layout.per_class]])
        views = stream("views of random real")
        inputs, _ = data.batch(torch.cat(drawn), layout.device, layout.dtype, views)
        return layout.arrange(inputs.unflatten(0, (layout.classes, layout.per_class)))
