"""Networks by name, and a user's own by ``package.module:Class`` or ``file.py:Class``."""

from collections.abc import Mapping, Sequence
from functools import partial

from torch import nn

from ..core.own_scheme import remember
from ..core.seam import split_arguments
from ..errors import ModelError, did_you_mean
from . import networks as networks  # where the built-in ones register
from .arguments import Value, check_arguments, parse_arguments
from .names import MODELS
from .own import locate


def build(name: str, arguments: Mapping[str, Value]) -> nn.Module:
    """Makes the built-in network called ``name``."""
    if name not in MODELS:
        raise ModelError(
            f"There is no network called {name!r}.{did_you_mean(name, MODELS)}",
            f"Choose one of: {', '.join(MODELS)}; or your own as package.module:Class or "
            "path/to/file.py:Class.",
        )
    check_arguments(MODELS[name], f"The network {name!r}", arguments)
    for argument, value in arguments.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ModelError(
                f"The argument {argument!r} of the network {name!r} is {value!r}.",
                "Give a whole number of at least 1.",
            )
    try:
        module = MODELS[name](**arguments)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"The network {name!r} cannot be made with {dict(arguments)}: {error}",
            "Choose another network, or data of a size that it takes.",
        ) from error
    remember(module, partial(MODELS[name], **arguments))
    return module


def arguments_for(input_shape: Sequence[int], classes: int) -> dict[str, int]:
    """Constructor arguments of built-in networks for square images of a shape."""
    if len(input_shape) != 3 or input_shape[1] != input_shape[2]:
        match tuple(input_shape):
            case (_,):
                remedy = "Choose mlp or linear for columns of numbers"
            case (height, width) if height == width:
                remedy = "If they are grey images, set channels to 1 or pass inputs[:, None]"
            case (height, width, 1 | 3) if height == width:
                remedy = "Put the channels first: inputs.transpose(0, 3, 1, 2)"
            case _:
                remedy = "Resize the images"
        raise ModelError(
            f"The built-in networks take square images, not inputs of shape {tuple(input_shape)}.",
            f"{remedy}, or give your own network as package.module:Class.",
        )
    return {"channels": input_shape[0], "size": input_shape[1], "classes": classes}


def find_for(
    reference: str, input_shape: Sequence[int], classes: int, own_arguments: Sequence[str] = ()
) -> nn.Module:
    """Makes a network for data: a built-in one that fits them, or the user's own as it is.

    Args:
        reference: As for :func:`find`.
        input_shape: The shape of one input.
        classes: How many classes there are.
        own_arguments: The user's constructor arguments, each as ``name=value``.
    """
    reference, given = split_arguments(reference, own_arguments)
    own = parse_arguments(given)
    if ":" in reference:
        return find(reference, {}, own)
    kind = MODELS.get(reference)
    if fitting := getattr(kind, "fitting", None):  # of a network that is not for square images
        arguments = fitting(input_shape, classes)
        if arguments is None:
            raise ModelError(
                f"The network {reference!r} does not take inputs of shape {tuple(input_shape)}.",
                "Choose another network.",
            )
        return find(reference, arguments, own)
    columns = len(input_shape) == 1 and getattr(kind, "flattens", False)
    # A row of numbers is to a network that flattens its inputs an image of one pixel.
    shape = (input_shape[0], 1, 1) if columns else input_shape
    return find(reference, arguments_for(shape, classes), own)


def built_in_name(module: nn.Module) -> str | None:
    """The name of a built-in network; None for a user's own module."""
    return next((name for name, kind in MODELS.items() if type(module) is kind), None)


def find(
    reference: str,
    arguments: Mapping[str, int],
    own_arguments: Mapping[str, Value] | None = None,
) -> nn.Module:
    """Makes a network from its name or from where its class is.

    Args:
        reference: ``lenet``, ``convnet3(width=16)``, ``package.module:Class`` or
            ``path/to/file.py:Class``.
        arguments: Constructor arguments of built-in networks that follow from the data. A class
            of the user's own gets none of them.
        own_arguments: The user's constructor arguments, which go before those of the data.
    """
    reference, given = split_arguments(reference)
    own_arguments = {**parse_arguments(given), **(own_arguments or {})}
    if ":" not in reference:
        return build(reference, {**arguments, **own_arguments})
    make = locate(reference)
    check_arguments(make, reference, own_arguments)
    try:
        module = make(**own_arguments)
    except Exception as error:
        raise ModelError(
            f"{reference} cannot be made with {dict(own_arguments)}: "
            f"{type(error).__name__}: {error}",
            "Correct its constructor, or give it other arguments.",
        ) from error
    if not isinstance(module, nn.Module):
        raise ModelError(
            f"{reference} gives a {type(module).__name__}, not a torch.nn.Module.",
            "Name a class that derives from torch.nn.Module.",
        )
    remember(module, partial(make, **own_arguments))
    return module
