"""Distilled data in the formats of other software."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..artefact import DistilledData, load
from ..artefact.real_data import real_data
from ..core.grad_mode import with_gradients
from ..core.seam import split_arguments
from ..errors import ConfigError, FileError, did_you_mean
from ..files import reporting
from ..folders import filling
from ..given import typed
from .arrays import NPZ, write_dd_ranking, write_npz
from .hugging_face import write_hugging_face
from .images import write_folder, write_pictures
from .script import OwnNetwork, write_script

WRITERS: dict[str, Callable[[DistilledData, Path], list[str]]] = {
    "png": write_pictures,
    "folder": write_folder,
    "npz": write_npz,
    "dd-ranking": write_dd_ranking,
    "hugging-face": write_hugging_face,
}
SCRIPT = "script"
FORMATS = (SCRIPT, *WRITERS)
"""The formats of :func:`export`."""


@typed
@with_gradients
def export(
    distilled: DistilledData | str | Path,
    folder: str | Path,
    form: str = SCRIPT,
    *,
    test: Any = None,
    model: str | None = None,
    model_args: Sequence[str] = (),
) -> list[str]:
    """Writes distilled data for other software.

    Example::

        dd.export("runs/mnist-fixed-10", "mnist-10", test=test)  # then: python mnist-10/train.py

    Args:
        distilled: Distilled data, or the path of an artefact.
        folder: A new or empty folder for the files.
        form: ``script``: a ``train.py`` of plain PyTorch that reaches the artefact's figure;
            ``png``: pictures; ``folder``: an image folder, CLASS/….png; ``npz``: NumPy arrays;
            ``dd-ranking``: ``images.pt``, ``labels.pt`` and ``lr.pt``; ``hugging-face``: a Parquet
            file and a card.
        test: With ``script``: real data that it tests on, in any form of :func:`evaluate`. They
            are written beside it.
        model: With ``script``: the network, where it is not built in: ``file.py:Class``, whose
            file is copied, or ``package.module:Class``.
        model_args: Arguments of its constructor, each as ``name=value``.

    Returns:
        What there is to say about the files.
    """
    if form not in FORMATS:
        raise ConfigError(
            f"There is no format {form!r}.{did_you_mean(form, FORMATS)}",
            f"Choose one of: {', '.join(FORMATS)}.",
        )
    if form != SCRIPT and (test is not None or model is not None):
        raise ConfigError(
            f"Test data and a network do not belong to the format {form}.",
            "Leave them out, or choose script.",
        )
    if not isinstance(distilled, DistilledData):
        distilled = load(distilled)
    folder = Path(folder)
    check_empty(folder)
    if test is not None:
        shape = distilled.inputs.shape[2:]
        has_classes = distilled.objective.has_classes
        test = real_data(distilled, test, input_shape=shape, has_classes=has_classes)
    own = OwnNetwork(*split_arguments(model, model_args)) if model else None
    with filling(folder) as place:
        if form == SCRIPT:
            write_script(distilled, place, test, own)
            line = shlex.join(["python", str(folder / "train.py")])
            return [f"{line} trains the network; it needs torch and safetensors."]
        notes = WRITERS[form](distilled, place)
    names = {"folder": repr(str(folder)), "npz": repr(str(folder / NPZ))}
    return [note.format(**names) for note in notes]


def check_empty(folder: Path) -> None:
    """Refuses a folder that holds files, among which others would be lost."""
    with reporting(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileError(
                f"{folder} exists and is not an empty folder.", "Choose another one (--output)."
            )
