"""Parametrisations: how the numbers that are learned become distilled data."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from ..distilled import Steps
from ..gradients import leaves, products
from ..objective import Objective
from ..seam import Seam
from ..values import different, one_line, same

Tree = dict[str, Tensor]

RATES = "raw_rates"
LABELS = "labels"
RULE = "rule"
"""Parameters of these names have outer learning rates of their own, ``rates_lr``, ``labels_lr``."""


class Parameters(NamedTuple):
    """The tensors behind distilled data.

    Attributes:
        learned: Those that are learned.
        constants: Those that are not.
    """

    learned: Tree
    constants: Tree

    __repr__ = one_line
    __eq__ = same
    __ne__ = different

    @property
    def all(self) -> Tree:
        """Both."""
        return {**self.constants, **self.learned}


class Parametrisation(Seam, seam="parametrisation"):
    """Parameters → distilled data.

    An implementation writes :meth:`start` and :meth:`steps`, a differentiable function of tensors
    that changes nothing. :meth:`pull_back` is derived, unless the same class writes it.

    Attributes:
        stores: The parameters that an artefact stores in place of the inputs, if they take less
            room. :meth:`inputs` makes the inputs of them again, :meth:`inputs_shape` tells their
            shape.
    """

    stores: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "steps" in vars(cls) and "pull_back" not in vars(cls):
            cls.pull_back = Parametrisation.pull_back  # never that of other steps

    @abstractmethod
    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        """The parameters of the distilled data that an optimisation starts from.

        Args:
            steps: Inputs, labels and learning rates to start from. The labels are class indices;
                class probabilities, if there are fewer images than classes; or the targets of a
                regression.
            objective: What the data are learned for.
            outputs: The shape of a network's output for one input.
        """

    @abstractmethod
    def steps(self, parameters: Parameters) -> Steps:
        """The distilled data: positive learning rates, labels, and inputs in normalised space."""

    def images(self, parameters: Parameters) -> Steps:
        """The distilled data as the entire network takes them, where :meth:`steps` are features."""
        return self.steps(parameters)

    @property
    def of_images(self) -> "Parametrisation":
        """The one of the distilled data as the entire network takes them."""
        return self

    def negative_labels(self, objective: Objective) -> bool:
        """Whether labels of classes are learned without bounds, so that they may be negative."""
        return False

    def stored(self, parameters: Parameters) -> Tree:
        """What an artefact stores in place of the inputs; empty if it stores the inputs."""
        return {name: parameters.all[name] for name in self.stores}

    def inputs(self, parameters: Tree) -> Tensor:
        """The inputs x̃ (steps, images, …), from the parameters that ``stores`` names."""
        raise NotImplementedError

    def inputs_shape(self, stored: Tree) -> torch.Size:
        """The shape of these inputs; refuses parameters from which none can be made."""
        raise NotImplementedError

    def project(self, learned: Tree) -> Tree:
        """What is learned after an outer step, moved to where it is allowed to be: anywhere."""
        return learned

    def pull_back(self, parameters: Parameters, gradient: Steps) -> Tree:
        """The gradient of what is learned, from that of the steps: derived by autograd."""
        learned = leaves(parameters.learned)
        with torch.enable_grad():
            made = self.steps(parameters._replace(learned=learned))
        outputs = [made.inputs, made.labels, made.learning_rates]
        v = [gradient.inputs, gradient.labels, gradient.learning_rates]
        found = products(outputs, [*learned.values()], v)
        return dict(zip(learned, found, strict=True))

    def pull_back_each(self, parameters: Parameters, gradient: Steps) -> Tree:
        """The gradients (J, …) of J networks, from those of the steps of each."""
        networks = gradient.learning_rates.shape[2]
        each = [self.pull_back(parameters, gradient.of_network(j)) for j in range(networks)]
        return {name: torch.stack([g[name] for g in each]) for name in parameters.learned}
