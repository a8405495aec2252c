"""What changes from one outer step to the next, and what is logged of it."""

from dataclasses import dataclass, field

from torch import Tensor

from .optimizer import AdamState
from .parametrisation import Parameters
from .values import one_line, same


@dataclass(frozen=True)
class DistillerState:
    """Everything that changes from one outer step to the next.

    Attributes:
        outer_step: How many outer steps are done, rejected ones included.
        parameters: What is learned, by the names that the parametrisation gives.
        constants: Tensors behind the distilled data that are not learned.
        adam: The outer optimiser's state.
        average: The running mean of the parameters; empty without averaging.
        rejected: How many outer steps were rejected.
        rejected_in_a_row: How many of the last outer steps were.
        pool: The networks that train along, where the adjoint wants some.
        norm: The running mean of the gradient's norm; None before the first outer step.
    """

    outer_step: int
    parameters: dict[str, Tensor]
    constants: dict[str, Tensor]
    adam: AdamState
    average: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    rejected: int = 0
    rejected_in_a_row: int = 0
    pool: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    norm: float | None = None

    __repr__ = one_line
    __eq__ = same

    @property
    def current(self) -> Parameters:
        """What the next outer step starts from."""
        return Parameters(self.parameters, self.constants)

    @property
    def kept(self) -> Parameters:
        """What becomes the distilled data: the running mean, if there is one."""
        return Parameters({**self.parameters, **self.average}, self.constants)


@dataclass(frozen=True)
class Metrics:
    """What is logged of one outer step."""

    loss: float
    gradient_norm: float
    outer_lr: float
    accepted: bool
