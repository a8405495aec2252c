"""Average real images: the mean image of every class."""

import torch

from ..core.distilled import Steps
from ..data import LabelledData
from .baseline import Baseline, Stream
from .layout import Layout, chunks, members


class AverageReal(Baseline, name="average real"):
    """The mean image of each class; the same images at every step.

    The means are summed in float64 from images that are read in chunks, so that they are exact up
    to rounding to the layout's dtype. Images are not augmented.
    """

    deterministic = True

    def steps(self, data: LabelledData, layout: Layout, stream: Stream) -> Steps:  # noqa: ARG002
        """Computes the means."""
        means: list[torch.Tensor] = []
        for label in range(layout.classes):
            found = members(data, label, 1)
            total = torch.zeros(data.input_shape, dtype=torch.float64)
            for inputs in chunks(data, found, torch.float64):
                total += inputs.sum(0)
            means.append(total / len(found))
        images = torch.stack(means)[:, None]
        return layout.arrange(images.expand(-1, layout.per_class, *data.input_shape))
