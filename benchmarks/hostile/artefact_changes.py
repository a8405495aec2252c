"""Changes that make an artefact hostile: to fields of its header, to tensors, to both alike."""

import contextlib
import copy
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from datadistill import models
from datadistill.errors import DataDistillError

from .artefact_bases import Base

Tensors = dict[str, Tensor]
Header = dict[str, Any]
Change = Callable[[random.Random, Tensors, Header], None]

NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 7, 2**20, 10**9, 2**31, 2**63, -(2**63), 10**30, True),
    *(0.5, 0.999, 1e-300, 1e308, -0.0, math.nan, math.inf, -math.inf),
]
TEXTS: list[Any] = [
    *("", "x", "x" * 5000, "9" * 3000, "\n", "$\\frac{$", "../../etc/passwd", "a:b", "\x1b[31m"),
    *("float32[3]", "float8_e4m3fn[3, 64]", "float16[3, 64]", "complex64[3]", "int64[3]"),
    *("fixed", "random", "module", "orthogonal", "classification", "regression", "own-loss"),
    *("adam", "nesterov", "weight-decay", "accuracy", "accuracy of all", "mean squared error"),
    *("validation", "train", "linear", "lenet", "vgg11", "mlp", "squeezenet", "\ud7ff"),
]
DTYPES = [
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16, torch.float32),
    *(torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.complex64, torch.uint16, torch.uint32),
]
IMPOSSIBLE = (DataDistillError, RuntimeError, ValueError, OverflowError, KeyError, IndexError)
VALUES = [math.nan, math.inf, -math.inf, 3e38, -3e38, 1e30, 1e10, 1e-45, 0.0, -1.0, 2.0, 5.0]


def hostile(bases: list[Base], seed: int, number: int) -> tuple[Tensors, Header, Base]:
    """The tensors and the header of hostile artefact ``number`` of a seed."""
    draw = random.Random(f"{seed}/{number}")
    base = draw.choice(bases)
    tensors, header = dict(base.tensors), copy.deepcopy(base.header)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        # A change may not be possible, or not after another.
        with contextlib.suppress(*IMPOSSIBLE):
            draw.choice(CHANGES)(draw, tensors, header)
    return tensors, header, base


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key inside plain data."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _any_value(draw: random.Random) -> Any:
    kind = draw.randrange(8)
    if kind < 3:
        return draw.choice(NUMBERS)
    if kind < 5:
        return draw.choice(TEXTS)
    if kind == 5:
        return draw.choice([None, [], {}, [1, 2], {"name": "x"}, {"name": draw.choice(TEXTS)}])
    if kind == 6:
        return [draw.choice(NUMBERS)] * draw.choice([1, 2, 3, 1000, 100_000])
    nested: Any = draw.choice(NUMBERS)
    for _ in range(draw.choice([3, 40, 200])):
        nested = draw.choice([[nested], {"rule": nested, "name": "weight-decay", "decay": 0.1}])
    return nested


def _field(draw: random.Random, _: Tensors, header: Header) -> None:
    """Another value, of any type, in any field."""
    place, key = draw.choice(list(_places(header)))
    place[key] = _any_value(draw)


def _like(draw: random.Random, _: Tensors, header: Header) -> None:
    """Another value of the same type in any field: what a check of types lets pass."""
    place, key = draw.choice(list(_places(header)))
    if isinstance(place[key], str):
        place[key] = draw.choice(TEXTS)
    elif isinstance(place[key], int | float):
        factors = [0, -1, 0.5, 2, 10, 1000, 1e9]
        scaled = place[key] * draw.choice(factors)
        place[key] = draw.choice([draw.choice(NUMBERS), int(scaled), scaled])
    elif isinstance(place[key], list):
        place[key] = place[key] * draw.choice([0, 2, 1000, 100_000 // max(len(place[key]), 1)])


def _missing(draw: random.Random, _: Tensors, header: Header) -> None:
    place, key = draw.choice(list(_places(header)))
    if draw.random() < 0.5:
        del place[key]
    elif isinstance(place, dict):
        place[draw.choice(["extra", "arguments", "weight", "a" * 5000])] = _any_value(draw)


def _claim(draw: random.Random, _: Tensors, header: Header) -> None:
    """A claim that is too good, with whatever could widen its bound."""
    claim = header.get("claim")
    if isinstance(claim, dict):
        claim["mean"] = draw.choice([0.999, 1.0, 0.6, 0.0, 1e-9])
        claim["std"] = draw.choice([0.0, 0.01, 0.1, 0.3, 0.5, 5.0])
        claim["networks"] = draw.choice([1, 2, 3, 5, 8, 10**9])
        claim["examples"] = draw.choice([1, 5, 20, 20, 20, 10**12])


def _values(draw: random.Random, tensors: Tensors, _: Header) -> None:
    name = draw.choice(list(tensors))
    tensor, value = tensors[name].clone(), draw.choice(VALUES)
    if not tensor.is_floating_point():
        value = draw.choice([-1, 1, 2, 3, 100, -(2**63), 2**63 - 1])
    if draw.random() < 0.5:
        tensor.fill_(value)
    elif tensor.numel():
        tensor.view(-1)[draw.randrange(tensor.numel())] = value
    tensors[name] = tensor


def _scale(draw: random.Random, tensors: Tensors, _: Header) -> None:
    name = draw.choice(list(tensors))
    if tensors[name].is_floating_point():
        tensors[name] = tensors[name] * draw.choice([1e3, 1e6, 1e20, 1e38, 1e-30, -1])


def _dtype(draw: random.Random, tensors: Tensors, _: Header) -> None:
    name = draw.choice(list(tensors))
    tensors[name] = tensors[name].to(draw.choice(DTYPES))


def _shape(draw: random.Random, tensors: Tensors, _: Header) -> None:
    name = draw.choice(list(tensors))
    tensor = tensors[name]
    changed: list[Callable[[], Tensor]] = [
        lambda: tensor.flatten(),
        lambda: tensor.unsqueeze(draw.randint(0, tensor.ndim)),
        lambda: tensor.squeeze(),
        lambda: tensor[:0],
        lambda: tensor[:1],
        lambda: torch.cat([tensor, tensor]),
        lambda: tensor.movedim(0, -1),
        lambda: tensor.reshape(-1)[0],
        lambda: tensor.new_zeros(
            tuple(draw.choice([0, 1, 2, 3]) for _ in range(draw.randint(0, 7)))
        ),
        lambda: tensor.new_zeros(tensor.numel(), 0, 2**40),
    ]
    if tensor.ndim:
        tensors[name] = draw.choice(changed)().contiguous()


def _name(draw: random.Random, tensors: Tensors, _: Header) -> None:
    name, other = draw.choice(list(tensors)), draw.choice(list(tensors))
    extra = draw.choice(["evil", "initial/", "constants/", "initial/x", "constants/fc.bias", "x/y"])
    match draw.randrange(4):
        case 0:
            del tensors[name]
        case 1:
            tensors[extra] = tensors[name]
        case 2:
            tensors[extra] = tensors.pop(name)
        case _:
            tensors[name], tensors[other] = tensors[other], tensors[name]


def _network(draw: random.Random, tensors: Tensors, header: Header) -> None:
    """Another network, in header and weights alike: what a check of shapes lets pass."""
    name = draw.choice(list(models.MODELS))
    sizes = [1, 2, 3, 4, 8, 10, 64, 1000, 2**14, 2**20]
    arguments = {"channels": 1, "size": draw.choice([8, 8, 8, 28, 32, 64, 224, 2**20])}
    arguments["classes"] = draw.choice([3, 3, *sizes])
    if name not in ("linear", "lenet"):
        arguments["hidden" if name == "mlp" else "width"] = draw.choice(sizes)
    with torch.device("meta"):
        module = models.build(name, arguments)
    kind = draw.choice(["float32", "float32", "float64", "float16", "bfloat16"])
    weights = {n: f"{kind}{list(p.shape)}" for n, p in module.named_parameters()}
    header["architecture"] = {
        **{"name": name, "built_in": True, "arguments": arguments, "weights": weights}
    }
    header["initialization"] = {"name": "random", "scheme": "xavier-normal"}
    side = draw.choice([8, arguments["size"]])
    if side <= 64:
        tensors["inputs"] = torch.zeros(*tensors["inputs"].shape[:2], 1, side, side)
    for carried in [n for n in tensors if "/" in n]:
        del tensors[carried]


def _schedule(draw: random.Random, tensors: Tensors, header: Header) -> None:
    """Another schedule, in header and tensors alike."""
    steps, images = draw.choice([1, 2, 50]), draw.choice([1, 3, 40])
    epochs = draw.choice([1, 2, 30, 5000, 200_000])
    for name in ("inputs", "labels"):
        if name in tensors and tensors[name].ndim > 1 and tensors[name].numel():
            one = tensors[name][:1, :1]
            tensors[name] = one.expand(steps, images, *one.shape[2:]).contiguous()
    tensors["learning_rates"] = torch.full((epochs, steps), draw.choice([1e-3, 1e3, 1e30]))
    schedule: Header = {"steps": steps, "epochs": epochs, "images": images}
    if draw.random() < 0.3:
        classes, drawn = draw.choice([1, 3, 40, 2**40]), draw.choice([1, 2, 40, 10**6])
        schedule["inner"] = {"images": drawn, "classes": classes}
    header["schedule"] = schedule


CHANGES: list[Change] = [
    *(_field, _field, _field, _like, _like, _missing, _claim, _values, _values, _scale),
    *(_dtype, _shape, _name, _network, _schedule),
]
