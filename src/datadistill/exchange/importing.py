"""Distilled images of other methods, as an artefact that can be evaluated beside ours."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ..artefact import DistilledData
from ..artefact.make import make
from ..core.distilled import Steps
from ..core.grad_mode import with_gradients
from ..core.initialization import RandomInit
from ..core.network import Network
from ..core.objective import Classification
from ..core.update import GradientDescent
from ..data import LabelledData, Normalization
from ..errors import ConfigError, DataError
from ..given import typed
from .pt_files import checked_tensor, images_and_labels, read_pt

RATE = 0.01


@typed
@with_gradients
def import_images(
    images: str | Path,
    labels: str | Path | None = None,
    *,
    data: LabelledData,
    module: nn.Module,
    rate: float | str | Path = RATE,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> DistilledData:
    """Makes distilled data of tensors that another method saved with ``torch.save``.

    They become one step of gradient descent; :func:`evaluate_ordinary` and the protocols of the
    field train on them as on any data set.

    Args:
        images: A file of images (N, channels, height, width) in normalised space, such as
            ``images.pt`` of DD-Ranking or ``images_best.pt`` of MTT; or of DC, ``res_DC_….pt``,
            which holds the labels too.
        labels: A file of class indices (N,) or class probabilities (N, classes). By default those
            of the first file, or else every class equally often and in order, as all these
            methods have them.
        data: The real data that the images stand for: its name, class names and normalization.
        module: The network that they were made for. Its weights are not used.
        rate: A learning rate, or a file such as ``lr.pt``.
        mean: The mean that the images were normalised with, per channel; that of ``data`` by
            default.
        std: Their standard deviation, likewise.
    """
    source = Path(images)
    found, within = images_and_labels(source)
    inputs = _inputs(checked_tensor(found, source, "images"), source, data)
    if labels is not None:
        named = checked_tensor(read_pt(Path(labels)), Path(labels), "labels")
    elif within is not None:
        named = checked_tensor(within, source, "labels")
    else:
        named = _in_order(len(inputs), data.classes, source)
    data = _normalized(data, mean, std)
    network = Network(module, inputs[:2])
    classes = Classification().classes(network.outputs)
    steps = Steps(
        inputs[None],
        _labels(named, len(inputs), classes)[None],
        torch.full((1, 1), _rate(rate)),
    )
    return make(
        steps,
        network=network,
        module=module,
        initialization=RandomInit(),
        objective=Classification(),
        rule=GradientDescent(),
        data=data,
        configuration={"imported": source.name[:200]},
    )


def _inputs(images: Tensor, path: Path, data: LabelledData) -> Tensor:
    if images.shape[1:] != data.input_shape or not len(images) or not images.is_floating_point():
        raise DataError(
            f"The images of {path} are {images.dtype} of shape {tuple(images.shape)}; those of "
            f"{data.name} have the shape {tuple(data.input_shape)}.",
            "Give floating-point images (N, …) of that shape, or choose the data with --data, "
            "--size and --channels.",
        )
    return images.float()


def _labels(labels: Tensor, images: int, classes: int) -> Tensor:
    """Class indices, or class probabilities, one for each image."""
    if labels.is_floating_point():
        if labels.shape != (images, classes):
            raise DataError(
                f"The soft labels have the shape {tuple(labels.shape)}, not {(images, classes)}.",
                "Give one row of class probabilities for every image.",
            )
        return labels.float()
    if labels.shape != (images,) or labels.dtype == torch.bool:
        raise DataError(
            f"The labels are {labels.dtype} of shape {tuple(labels.shape)}, for {images} images.",
            "Give one class index for every image.",
        )
    if not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise DataError(
            f"The labels run from {int(labels.min())} to {int(labels.max())}, but there are "
            f"{classes} classes.",
            "Choose the data set that the images stand for.",
        )
    return labels.long()


def _in_order(images: int, classes: int, path: Path) -> Tensor:
    if images % classes:
        raise DataError(
            f"{path} has {images} images, which cannot be divided among {classes} classes.",
            "Name the file of their labels.",
        )
    return torch.arange(classes).repeat_interleave(images // classes)


def _rate(rate: float | str | Path) -> float:
    if isinstance(rate, str | Path) and Path(rate).suffix == ".pt":
        found = checked_tensor(read_pt(Path(rate)), Path(rate), "learning rate")
        if found.numel() != 1:
            raise DataError(f"{rate} holds {found.numel()} learning rates.", "Give one.")
        rate = float(found)
    try:
        value = float(rate)  # pyright: ignore[reportArgumentType]
    except ValueError:
        value = math.nan
    if not 0 < torch.tensor(value, dtype=torch.float32) < math.inf:
        raise ConfigError(f"The learning rate is {rate}.", "Give a positive number or a .pt file.")
    return value


def _normalized(
    data: LabelledData, mean: Sequence[float] | None, std: Sequence[float] | None
) -> LabelledData:
    """The data with the normalization of the images."""
    if mean is None and std is None:
        return data
    channels = data.input_shape[0]
    if mean is None or std is None or not len(mean) == len(std) == channels:
        raise ConfigError(
            f"mean is {mean} and std is {std}.", f"Give {channels} number(s) for each of them."
        )
    if not all(math.isfinite(m) for m in mean) or not all(0 < s < math.inf for s in std):
        raise ConfigError(f"mean is {mean} and std is {std}.", "Give finite numbers; std above 0.")
    return replace(data, normalization=Normalization((*mean,), (*std,)))
