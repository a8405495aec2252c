"""Weights from files: ``.safetensors``, and ``.pth`` or ``.pt`` without running what is in them."""

import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ..core.values import titled
from ..errors import ModelError
from ..reading import check_regular, check_stored


@dataclass(frozen=True)
class WeightsReport:
    """What became of the weights of a file and of a network.

    Attributes:
        matched: Weights that were loaded.
        missing: Weights of the network that the file does not have.
        unexpected: Weights of the file that the network does not have.
        mismatched: Weights that both have in different shapes or kinds, and the difference.
        reset: Weights of the last layer that were reset, whatever the file has for them.
    """

    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: Mapping[str, str]
    reset: tuple[str, ...]

    __repr__ = titled

    @property
    def complete(self) -> bool:
        """Whether file and network agree in every weight that was not reset."""
        return not (self.missing or self.unexpected or self.mismatched)

    def __str__(self) -> str:
        parts = [f"{len(self.matched)} weights match"]
        if self.missing:
            parts.append(f"missing in the file: {_some(self.missing)}")
        if self.unexpected:
            parts.append(f"unknown to the network: {_some(self.unexpected)}")
        if self.mismatched:
            parts.append(f"different: {_some(f'{n} {d}' for n, d in self.mismatched.items())}")
        if self.reset:
            parts.append(f"reset: {_some(self.reset)}")
        return "; ".join(parts)


def load_weights(
    module: nn.Module,
    path: str | Path,
    *,
    reset_head: bool | str = False,
    partial: bool = False,
) -> WeightsReport:
    """Loads weights into a module, in place; one that is refused stays as it was.

    Args:
        module: The network.
        path: A ``.safetensors`` file, or a ``.pth`` or ``.pt`` file that holds tensors by name
            (a ``state_dict``). Nothing in a file is ever run: other Python objects are refused.
        reset_head: Whether the last layer is reset instead of loaded, for other classes than
            the file's: its weight is 0, and so is its bias (or the module's ``head_bias``). The
            last layer is the last that the module defines; or give its name.
        partial: Whether to load what fits where file and network differ; else that is an error.

    Returns:
        What matched, what was missing, unexpected or different, and what was reset.
    """
    return place_weights(module, _read(Path(path)), path, reset_head=reset_head, partial=partial)


def place_weights(
    module: nn.Module,
    given: Mapping[str, Tensor],
    source: object,
    *,
    reset_head: bool | str = False,
    partial: bool = False,
) -> WeightsReport:
    """Puts given weights into a module, in place; see :func:`load_weights`.

    Args:
        module: The network.
        given: The weights, by name.
        source: Where they come from, for errors.
        reset_head: Whether the last layer is reset instead of loaded.
        partial: Whether to load what fits.
    """
    own = {n: t for n, t in module.state_dict(keep_vars=True).items() if isinstance(t, Tensor)}
    report = _compare(given, own, _head(module, reset_head))
    _check(report, source, module, partial)
    values = {name: given[name].to(own[name].dtype) for name in report.matched}
    for name, value in values.items():
        if not value.isfinite().all():
            raise ModelError(
                f"The weight {name!r} in {source} has values that are not finite.",
                "Take a file of a network whose training did not diverge.",
            )
        if name.rpartition(".")[2] == "running_var" and bool((value < 0).any()):
            raise ModelError(
                f"The weight {name!r} in {source} has a variance below 0.",
                "The file is damaged: get or make it again.",
            )
    with torch.no_grad():
        for name, value in values.items():
            own[name].copy_(value)
        for name in report.reset:
            bias = getattr(module, "head_bias", 0.0)
            own[name].fill_(bias if name.rpartition(".")[2] == "bias" else 0.0)
    return report


def last_layer(module: nn.Module) -> str:
    """The name of the layer that gives a module's outputs: the last it defines with a matrix."""
    name = _head(module, True)
    assert name is not None
    return name


def _compare(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], head: str | None
) -> WeightsReport:
    def of_head(name: str) -> bool:
        return name.rpartition(".")[0] == head

    reset = tuple(filter(of_head, own))
    common = [name for name in own if name in given and not of_head(name)]
    mismatched = {
        name: f"{_kind(given[name])} in the file, {_kind(own[name])} in the network"
        for name in common
        if given[name].shape != own[name].shape
        or given[name].is_floating_point() != own[name].is_floating_point()
    }
    known = {id(own[name]) for name in [*common, *reset]}  # a shared weight is there by any name
    return WeightsReport(
        tuple(name for name in common if name not in mismatched),
        tuple(name for name in own if id(own[name]) not in known),
        tuple(name for name in given if name not in own and not of_head(name)),
        mismatched,
        reset,
    )


def _check(report: WeightsReport, source: object, module: nn.Module, partial: bool) -> None:
    if report.complete or (partial and report.matched):
        return
    remedy = "Make the network as the file's was made"
    if report.matched:
        remedy += ", or load what fits with partial=True"
    if report.mismatched and not report.reset:
        remedy += "; for other classes, reset the last layer with reset_head=True"
    raise ModelError(f"{source} does not fit {type(module).__name__}: {report}.", f"{remedy}.")


def _head(module: nn.Module, reset_head: bool | str) -> str | None:
    if reset_head is False:
        return None
    layers = [n for n, layer in module.named_modules() if _has_matrix(layer)]
    if layers and reset_head is True:
        return layers[-1]
    if reset_head in layers:
        return str(reset_head)
    name = "" if reset_head is True else f" {reset_head!r}"
    raise ModelError(
        f"{type(module).__name__} has no layer{name} with a weight to reset.",
        f"Name one of its layers: {_some(reversed(layers))}." if layers else "Do not reset it.",
    )


def _has_matrix(layer: nn.Module) -> bool:
    weight = getattr(layer, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim > 1


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ModelError(f"There is no file {path}.", "Give the path of a file with weights.")
    try:
        check_regular(path)
    except OSError as error:
        raise ModelError(
            f"{path} cannot be read: {error.strerror or error}.", "Give a file with weights."
        ) from error
    match path.suffix.lower():
        case ".safetensors":
            return _read_safetensors(path)
        case ".pth" | ".pt":
            return _read_pickle(path)
        case other:
            raise ModelError(
                f"{path} has the suffix {other!r}, which no file of weights has.",
                "Give a .safetensors, .pth or .pt file.",
            )


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except Exception as error:
        raise ModelError(
            f"{path} cannot be read: {error}", "It is damaged: get or make it again."
        ) from error


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of archives that are refused all the same
            if zipfile.is_zipfile(path):
                check_stored(path)
            # weights_only: torch's own reader of pickles, which builds tensors and plain
            # containers and knows no other function that it could call.
            content: object = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        asked = re.search(r"GLOBAL (\S+)", str(error))
        raise ModelError(
            f"{path} asks for the Python object {asked[1]}, which is no tensor."
            if asked
            else f"{path} is damaged, or holds more than tensors ({type(error).__name__}).",
            "Nothing in a file of weights is run. Where it was made, save module.state_dict(), "
            "best as .safetensors.",
        ) from error
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]  # as many training programs save it
    if not isinstance(content, Mapping) or not all(
        isinstance(name, str) and _is_plain(value) for name, value in content.items()
    ):
        raise ModelError(
            f"{path} does not hold tensors by name.",
            "Where it was made, save module.state_dict(), best as .safetensors.",
        )
    return {name: value.detach() for name, value in cast(Mapping[str, Tensor], content).items()}


def _is_plain(value: object) -> bool:
    """Whether a value is a tensor with an element of its own for every index."""
    return (
        isinstance(value, Tensor)
        and value.layout is torch.strided
        and not value.is_meta
        and not value.is_quantized
    )


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _some(names: Iterable[str], count: int = 3) -> str:
    listed = list(names)
    more = f" and {len(listed) - count} more" if len(listed) > count else ""
    return ", ".join(listed[:count]) + more
