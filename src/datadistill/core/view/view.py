"""Views: random transformations of a batch of images, the same for real and distilled ones."""

import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from ...errors import ConfigError
from ..distilled import Steps
from ..objective import Objective
from ..parametrisation import Parameters, Parametrisation
from ..seam import Seam

Function = Callable[[Tensor], Tensor]
"""Images (N, channels, height, width) → as many of the same shape; differentiable."""


LONGEST = 4096


class View(Seam, seam="view"):
    """A random transformation of images, drawn once for a whole outer step.

    The real minibatch and every batch of distilled images are transformed alike (Zhao and Bilen
    2021). Distilled images are learned through the transformation; those in the artefact are
    without it.
    """

    @abstractmethod
    def draw(self, stream: torch.Generator) -> Function:
        """Draws a transformation, which then changes every image in the same way."""

    @classmethod
    def parts(cls, text: str) -> list[str]:
        """The views of ``shift+rotate(degrees=20)``; a user's own is always one."""
        if len(text) > LONGEST:
            raise ConfigError(
                f"The view {text[:40]}… has {len(text):,} letters.", f"Use at most {LONGEST:,}."
            )
        return [text] if ":" in text else re.split(r"\+(?![^(]*\))", text)

    @property
    def text(self) -> str:
        """As the setting names it: ``name``, or ``name(field=value)`` for other than defaults."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if _changed(self, f)}  # pyright: ignore[reportArgumentType]
        inside = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{self.name}({inside})" if inside else self.name

    def as_settings(self) -> dict[str, Any]:
        return {self.setting(): self.text}

    def check(self, shape: torch.Size) -> None:
        """Refuses inputs that are no images."""
        if len(shape) != 3:
            raise ConfigError(
                f"The view {self.text} is for images; these inputs have the shape {tuple(shape)}.",
                "Leave view out, or write one of your own.",
            )


def _changed(view: View, field: Any) -> bool:
    return getattr(view, field.name) != field.default


@dataclass(frozen=True)
class Viewed(Parametrisation):
    """Distilled images as they are seen in one outer step.

    Attributes:
        inner: The parametrisation of the images.
        look: How they are seen.
    """

    inner: Parametrisation
    look: Function

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        """That of the images."""
        return self.inner.start(steps, objective, outputs)

    def steps(self, parameters: Parameters) -> Steps:
        """The distilled data with transformed images."""
        steps = self.inner.steps(parameters)
        seen = self.look(steps.inputs.flatten(0, 1))
        return replace(steps, inputs=seen.unflatten(0, steps.inputs.shape[:2]))

    def pull_back_each(self, parameters: Parameters, gradient: Steps) -> dict[str, Tensor]:
        """Back through the transformation, then to what is learned of the images."""
        images = self.inner.steps(parameters).inputs
        leaf = images.detach().flatten(0, 1).requires_grad_()
        with torch.enable_grad():
            seen = self.look(leaf)
        v = gradient.inputs.transpose(0, 1).flatten(1, 2)  # (J, steps × images, …)
        each = [torch.autograd.grad(seen, leaf, one, retain_graph=True)[0] for one in v]
        pulled = torch.stack(each, 1).unflatten(0, images.shape[:2])
        # (steps, images, J, …) → (steps, J, images, …)
        inputs = pulled.transpose(1, 2)
        return self.inner.pull_back_each(parameters, replace(gradient, inputs=inputs))
