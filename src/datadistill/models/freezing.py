"""Freezing: which layers of a network learn."""

from collections.abc import Iterable, Sequence

from torch import nn

from ..errors import ModelError, did_you_mean


def train_only(module: nn.Module, layers: Sequence[str]) -> None:
    """Freezes all parameters of a module, in place, but those of some layers.

    Args:
        module: The network.
        layers: Names of layers or parameters, e.g. ``classifier`` or ``features.12``, with all
            that is inside them.
    """
    names = [name for name, _ in module.named_parameters()]
    for layer in layers:
        if not any(_inside(name, [layer]) for name in names):
            known = [name for name, _ in module.named_modules() if _holds(name, names)]
            raise ModelError(
                f"{type(module).__name__} has no layer {layer!r} with weights to train."
                f"{did_you_mean(layer, known)}",
                f"Its layers are: {', '.join(known)}.",
            )
    for name, parameter in module.named_parameters():
        if not _inside(name, layers):
            parameter.requires_grad_(False)


def _inside(name: str, layers: Iterable[str]) -> bool:
    return any(name == layer or name.startswith(f"{layer}.") for layer in layers)


def _holds(layer: str, names: Iterable[str]) -> bool:
    """Whether a layer has parameters."""
    return bool(layer) and any(_inside(name, [layer]) for name in names)
