"""k-means: the centroids of each class's images."""

import warnings

import numpy as np
import torch

from ..core.distilled import Steps
from ..data import LabelledData
from .baseline import Baseline, Stream
from .layout import Layout, chunks, members


class KMeans(Baseline, name="k-means"):
    """The centroids of each class: as many as the class has images in all steps.

    Each class is clustered by scikit-learn's ``KMeans`` with one k-means++ initialization. All
    images of a class are in memory at once, in float32. If the data are augmented, each image is a
    random view, as networks see it in training.
    """

    neighbours = True

    def steps(self, data: LabelledData, layout: Layout, stream: Stream) -> Steps:
        """Clusters class after class."""
        centroids: list[torch.Tensor] = []
        for label in range(layout.classes):
            found = members(data, label, layout.per_class)
            read = chunks(data, found, torch.float32, stream("views of k-means", label))
            images = torch.cat([part.flatten(1) for part in read])
            centroids.append(cluster(images, layout.per_class, random_state(stream, label)))
        return layout.arrange(torch.stack(centroids).unflatten(-1, data.input_shape))


def cluster(images: torch.Tensor, count: int, state: int) -> torch.Tensor:
    """The centroids (count, pixels) of images (images, pixels)."""
    from sklearn import cluster  # slow to import
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    clustering = cluster.KMeans(
        count,
        n_init=1,  # pyright: ignore[reportArgumentType] (a number or "auto")
        random_state=state,
    )
    # As many threads as torch has: others would wait for each other on a busy machine.
    with warnings.catch_warnings(), threadpool_limits(torch.get_num_threads()):
        # Fewer different images than centroids: some centroids are then the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        clustering.fit(images.numpy())
    return torch.from_numpy(np.asarray(clustering.cluster_centers_))


def random_state(stream: Stream, label: int) -> int:
    """The ``random_state`` of scikit-learn with which a class is clustered."""
    return int(torch.randint(2**31 - 1, (), generator=stream("k-means", label)))
