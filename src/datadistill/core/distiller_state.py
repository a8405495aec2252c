"""What changes from one outer step to the next, and what is logged of it."""

from dataclasses import dataclass, field, replace

from torch import Tensor

from .optimizer import AdamState
from .parametrisation import Parameters
from .values import one_line, same

Tree = dict[str, Tensor]


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
    parameters: Tree
    constants: Tree
    adam: AdamState
    average: Tree = field(default_factory=dict[str, Tensor])
    rejected: int = 0
    rejected_in_a_row: int = 0
    pool: Tree = field(default_factory=dict[str, Tensor])
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

    def after_rejection(self) -> "DistillerState":
        """After an outer step that was rejected: nothing is learned."""
        return replace(
            self,
            outer_step=self.outer_step + 1,
            rejected=self.rejected + 1,
            rejected_in_a_row=self.rejected_in_a_row + 1,
        )

    def after(
        self,
        parameters: Tree,
        moments: AdamState,
        old: float,
        pool: Tree,
        norm: float | None,
    ) -> "DistillerState":
        """After an outer step.

        Args:
            parameters: What is learned.
            moments: The outer optimiser's state.
            old: The share of earlier outer steps in the running mean.
            pool: The networks that train along.
            norm: The running mean of the gradient's norm.
        """
        return replace(
            self,
            outer_step=self.outer_step + 1,
            parameters=parameters,
            adam=moments,
            average={n: old * a + (1 - old) * parameters[n] for n, a in self.average.items()},
            rejected_in_a_row=0,
            pool=pool,
            norm=norm,
        )


@dataclass(frozen=True)
class Metrics:
    """What is logged of one outer step."""

    loss: float
    gradient_norm: float
    outer_lr: float
    accepted: bool
