"""A user's own objective: any function of logits and labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.func import vmap

from ...errors import ConfigError, first_line
from ..network import Loss
from ..random import stream
from ..seam import Record
from .classification import Classification

REMEDY = "It must turn logits (N, classes) and labels (N,) into one differentiable number."
EXAMPLES = 64
"""Real labels with which a function is tried before it is used."""


@dataclass(frozen=True)
class OwnObjective(Classification, name="own-loss"):
    """Classification with an outer loss of the user's own.

    Only the outer loss is the user's: what distilled data are learned for. The learner goes on to
    descend the cross-entropy on them, and the metric is accuracy.

    Attributes:
        function: (logits (N, classes), labels (N,)) → a scalar, which need not be a mean over
            examples; None where only its name is known, as in an artefact.
        reference: What files call it: ``package.module:function``.
    """

    function: Loss | None
    reference: str

    is_mean = False
    wraps = True

    @classmethod
    def of(cls, function: Callable[[Tensor, Tensor], Tensor]) -> "OwnObjective":
        """The objective of a function, by the name under which it can be imported."""
        named: Any = function if hasattr(function, "__qualname__") else type(function)
        return cls(function, f"{named.__module__}:{named.__qualname__}")

    @property
    def has_loss(self) -> bool:
        return self.function is not None

    def record(self) -> Record:
        return {"name": self.name, "function": self.reference}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """The objective without its function: no file imports code."""
        return cls(None, str(values["function"]))

    def as_settings(self) -> dict[str, Any]:
        return {self.setting(): self.reference}

    @property
    def text(self) -> str:
        return self.reference

    def outer_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The user's loss; NaN if the function has not been given."""
        if self.function is None:
            return outputs.new_full((), torch.nan)
        return self.function(outputs, labels)

    def check(self, outputs: torch.Size, labels: Tensor, complete: bool) -> None:
        super().check(outputs, labels, complete)
        if self.function is not None and complete:
            self._try(outputs, labels[:EXAMPLES])

    def _try(self, outputs: torch.Size, labels: Tensor) -> None:
        """Refuses a function that is no loss, on logits of two networks."""
        random = stream(0, "logits to try an objective with")
        logits = torch.randn(2, len(labels), *outputs, generator=random).to(labels.device)
        logits.requires_grad_()
        try:
            loss = self.outer_loss(logits[0], labels)
        except Exception as error:
            raise self._wrong(f"raised {type(error).__name__}: {first_line(error)}") from error
        if not isinstance(loss, Tensor) or loss.ndim or not loss.is_floating_point():  # pyright: ignore[reportUnnecessaryIsInstance]
            shown = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong(f"returns {shown}, not a single floating-point number.")
        if not loss.requires_grad:
            raise self._wrong("does not depend on the logits in a way that can be differentiated.")
        (g,) = torch.autograd.grad(loss, logits)
        if not (torch.isfinite(loss) and torch.isfinite(g).all()):
            raise self._wrong("gives a loss or gradient that is not finite for random logits.")
        self._try_side_by_side(logits, labels)

    def _try_side_by_side(self, logits: Tensor, labels: Tensor) -> None:
        """Refuses a function that networks side by side, under vmap, cannot use."""

        def loss(one: Tensor) -> Tensor:
            return self.outer_loss(one, labels)

        try:
            together = vmap(loss)(logits.detach())
        except Exception as error:
            raise ConfigError(
                f"The objective {self.reference} cannot be computed for networks side by side "
                f"(torch.func.vmap): {first_line(error)}",
                "Write it without .item(), float() and if on values; torch.where instead.",
            ) from error
        alone = torch.stack([loss(one) for one in logits.detach()])
        if not torch.allclose(together, alone, rtol=1e-3, atol=1e-5):
            raise self._wrong("gives two different losses for the same logits and labels.")

    def _wrong(self, how: str) -> ConfigError:
        return ConfigError(f"The objective {self.reference} {how}", REMEDY)
