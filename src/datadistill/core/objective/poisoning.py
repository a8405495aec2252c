"""The poisoning objective: to make trained networks take one class for another."""

from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from ...errors import ConfigError, DataError
from ...given import typed
from .classification import Classification


@typed
@dataclass(frozen=True)
class Poisoning(Classification, name="poisoning"):
    """Cross-entropy with the attacked class K relabelled as the target T.

    Only the labels of real data are modified: distilled labels stay one per class, and the learner
    descends the plain cross-entropy on them, as it would on honest data.

    Attributes:
        attacked: K, the class that is to be misclassified.
        target: T, the class that it is to be classified as.
    """

    attacked: int = 0
    target: int = 1

    settings = MappingProxyType({"attacked": "attacked", "target": "target"})
    metric = "accuracy on modified labels"
    attacks = True
    is_mean = True

    def __post_init__(self) -> None:
        if min(self.attacked, self.target) < 0:
            raise ConfigError(
                f"attacked is {self.attacked} and target is {self.target}.",
                "Classes are numbered from 0.",
            )
        if self.attacked == self.target:
            raise ConfigError(
                f"Both the attacked class and the target are {self.attacked}.",
                "Choose two classes.",
            )

    @property
    def text(self) -> str:
        if not self.is_built_in():
            return super().text
        return f"{self.name} {self.attacked}→{self.target}"

    def modified(self, labels: Tensor) -> Tensor:
        """The labels with K → T."""
        return torch.where(labels == self.attacked, self.target, labels)

    def outer_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return self.inner_loss(outputs, self.modified(labels))

    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return super().score(outputs, self.modified(labels))

    def check(self, outputs: torch.Size, labels: Tensor, complete: bool) -> None:
        super().check(outputs, labels, complete)
        classes = self.classes(outputs)
        if max(self.attacked, self.target) >= classes:
            raise ConfigError(
                f"There is no class {max(self.attacked, self.target)}: the network tells {classes} "
                "classes apart.",
                f"Set attacked and target from 0 to {classes - 1}.",
            )

    def check_attacked(self, labels: Tensor) -> None:
        """Refuses real data without an example of the attacked class."""
        if not (labels == self.attacked).any():
            raise DataError(
                f"The data hold no example of the attacked class {self.attacked}.",
                "Without one, nothing can be said of the attack.",
            )
