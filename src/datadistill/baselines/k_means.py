"""k-means: the centroids of each class's images."""

import warnings

import numpy as np
import torch

from ..core.distilled import Steps
from ..core.network import Network
from ..core.random import stream
from ..data import LabelledData
from .layout import chunks, lay_out, members


def k_means(
    data: LabelledData,
    network: Network,
    *,
    classes: int,
    steps: int = 1,
    images_per_class: int = 1,
    seed: int = 0,
) -> Steps:
    """Makes steps of centroids: for each class as many as it has images in all steps.

    Each class is clustered by scikit-learn's ``KMeans`` from one start drawn by k-means++. All
    images of a class are in memory at once, as float32. Where the data are augmented, each
    image is a random view, as networks see it in training.

    Args:
        data: Real training data.
        network: The network they are for: its device and dtype.
        classes: How many classes there are.
        steps: Steps to make.
        images_per_class: Centroids of each class in every step.
        seed: Which run.
    """
    from sklearn.cluster import KMeans  # slow to import
    from sklearn.exceptions import ConvergenceWarning

    wanted = steps * images_per_class
    centroids: list[torch.Tensor] = []
    for label in range(classes):
        found = members(data, label, wanted)
        views = stream(seed, "views of k-means", label)
        read = chunks(data, found, torch.float32, views)
        images = torch.cat([part.flatten(1) for part in read])
        clustering = KMeans(
            wanted,
            n_init=1,  # pyright: ignore[reportArgumentType] (a number or "auto")
            random_state=start_of(seed, label),
        )
        with warnings.catch_warnings():
            # Fewer different images than centroids: some centroids are then the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            clustering.fit(images.numpy())
        centroids.append(torch.from_numpy(np.asarray(clustering.cluster_centers_)))
    images = torch.stack(centroids).reshape(classes, wanted, *data.input_shape)
    return lay_out(images, network, steps)


def start_of(seed: int, label: int) -> int:
    """The ``random_state`` of scikit-learn with which a class is clustered."""
    return int(torch.randint(2**31 - 1, (), generator=stream(seed, "k-means", label)))
