"""Baselines of a network whose first layers are frozen: all data pass through them once.

Whatever is trained, on distilled or on real images, sees only the features.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..artefact import DistilledData
from ..core.distilled import Steps
from ..core.network import Network
from ..data import LabelledData
from ..data.features import Features
from ..engine.frozen_prefix import Body, split, steps_through
from ..progress import ProgressCallback
from .context import Images

Make = Callable[[Network, LabelledData], Images]
"""Makes the images of baselines of real data, for a network."""


@dataclass(frozen=True)
class Entering:
    """What enters the layers that learn: features, or images where no layer is frozen.

    Attributes:
        distilled: The distilled data.
        network: The layers that learn.
        train: Real training data.
        test: Real test data.
        body: The frozen layers, if there are.
    """

    distilled: DistilledData
    network: Network
    train: LabelledData
    test: LabelledData
    body: Body | None = None

    @classmethod
    def of(
        cls,
        distilled: DistilledData,
        network: Network,
        train: LabelledData,
        test: LabelledData,
        progress: ProgressCallback,
    ) -> "Entering":
        """Passes all data through the frozen layers, if there are and if memory holds it."""
        found = split(network)
        if found is None or train.augmentation:
            return cls(distilled, network, train, test)
        place = network.device, network.dtype
        featured = [Features(data, found.body, *place) for data in (train, test)]
        if not all(features.fit for features in featured):
            return cls(distilled, network, train, test)
        train, test = (features.whole(progress) for features in featured)
        steps = steps_through(found.body, distilled.steps.to(*place))
        return cls(replace(distilled, steps=steps), found.head, train, test, found.body)

    def images(
        self, make: Make, network: Network, data: LabelledData, rest: LabelledData
    ) -> Images:
        """The images of each baseline, as they enter.

        Args:
            make: Makes them.
            network: The whole network.
            data: Real training data.
            rest: The same as they enter.
        """
        body, plain = self.body, make(network, data)
        if body is None:
            return plain
        drawn = make(self.network, rest)

        @functools.cache
        def averages(baseline: str, number: int) -> Steps:
            return steps_through(body, plain(baseline, number))

        def features(baseline: str, number: int) -> Steps:
            # The features of random real images are there already, those of averages are not.
            return (drawn if baseline == "random real" else averages)(baseline, number)

        return features
