"""The module's own scheme: weights as its class draws them when it is made."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

import torch
from torch import Tensor, nn

from ..errors import ModelError
from .network import Network, Weights

MADE_BY = "_datadistill_made_by"
"""The attribute of a module that holds the call which made it."""

Result = TypeVar("Result")

_repeatable: WeakSet[Network] = WeakSet()


def remember(module: nn.Module, make: Callable[[], Any]) -> None:
    """Notes how a module was made, so that another one can be."""
    setattr(module, MADE_BY, make)


def draw_module(network: Network, generator: torch.Generator) -> Weights:
    """Draws weights as the module's class does, and leaves the global random state as it was.

    The class is called again, as it was on the command line, or else without arguments. Where that
    gives no module of the same shapes, every layer's ``reset_parameters`` is called.
    """
    module = network.module().cpu()
    weights = _seeded(generator, lambda: _made_again(module, network))
    if weights is None:
        return _seeded(generator, lambda: _reset(module, network))
    if network not in _repeatable:
        again = _seeded(generator, lambda: _made_again(module, network)) or {}
        if not all(torch.equal(w, again[name]) for name, w in weights.items()):
            raise ModelError(
                f"{network.name}, made twice with one seed of torch, has two different weights.",
                "Draw them with torch alone, or choose another scheme such as xavier-normal.",
            )
        _repeatable.add(network)
    return weights


def _seeded(generator: torch.Generator, draw: Callable[[], Result]) -> Result:
    """What is drawn from the global random state, as constructors do, with a seed lent to it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(generator.initial_seed())
        return draw()


def _made_again(module: nn.Module, network: Network) -> Weights | None:
    """The weights of another module of the class, if one can be made."""
    make: Callable[[], Any] = getattr(module, MADE_BY, type(module))
    try:
        inspect.signature(make).bind()
        made = make()
    except Exception:  # a constructor raises what it likes
        return None
    if not isinstance(made, nn.Module):
        return None
    named = dict(made.named_parameters())
    if any(n not in named or named[n].shape != w.shape for n, w in network.weights.items()):
        return None
    return {name: named[name].detach().cpu() for name in network.weights}


def _reset(module: nn.Module, network: Network) -> dict[str, Tensor]:
    """The weights after every layer has drawn its own again."""
    for name, layer in module.named_modules():
        reset = getattr(layer, "reset_parameters", getattr(layer, "_reset_parameters", None))
        if callable(reset):
            reset()
        elif any(p.requires_grad for p in layer.parameters(recurse=False)):
            raise ModelError(
                f"The layer {name or type(layer).__name__!r} has parameters but no "
                f"reset_parameters(), and {network.name} cannot be made again without arguments.",
                "Give its constructor defaults, define reset_parameters(), or choose another "
                "scheme such as xavier-normal.",
            )
    return {n: p.detach() for n, p in module.named_parameters() if n in network.weights}
