"""Distilled data as a data set of Hugging Face: a folder with a Parquet file and a card."""

import contextlib
import importlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

from PIL import Image

from ..artefact import DistilledData
from ..errors import ConfigError
from ..files import replacing, write_atomically
from .images import checked_images, hard_label, stretched

CARD = """---
pretty_name: {title}
task_categories:
- image-classification
tags:
- dataset-distillation
- synthetic
size_categories:
- {size}
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.parquet
---

# {heading}

{count} synthetic images, learned by dataset distillation (Wang et al. 2018) such that a few
gradient steps on them train a network almost as well as the whole data set. They are made for
networks, and need not look like real images.

| | |
|---|---|
| distilled from | {data} |
| made for | {network}, {initialization} initialization |
| schedule | steps: {steps}, epochs: {epochs} |
| measured | {claim} |

Columns: `image` is a picture of each image, stretched to its own range; `pixels` are its exact
values in normalised space, which networks train on; `label` is its class; `soft_label` its learned
class probabilities, if it has some; `step` is the batch to which it belongs; `learning_rates` are
those of its step, one for each epoch. To train as measured, take the steps in order, epoch after
epoch.

{normalization}
"""

SIZES = {"n<1K": 10**3, "1K<n<10K": 10**4, "10K<n<100K": 10**5, "100K<n<1M": 10**6}
"""What Hugging Face calls the number of examples, and the number that it stays below."""


def write_hugging_face(distilled: DistilledData, folder: Path) -> list[str]:
    """Writes ``data/train-00000-of-00001.parquet`` and the card, ``README.md``."""
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError:
        raise ConfigError(
            "The format hugging-face needs the package datasets.",
            "Install it: pip install 'datadistill[datasets]'",
        ) from None
    images = checked_images(distilled)
    steps, count, *shape = images.shape
    places = [(s, n) for s in range(steps) for n in range(count)]
    soft = distilled.labels.is_floating_point()
    columns: dict[str, list[Any]] = {
        "image": [Image.fromarray(stretched(images[place])) for place in places],
        "pixels": [distilled.inputs[place].float().numpy() for place in places],
        "label": [hard_label(distilled, *place) for place in places],
        "step": [step for step, _ in places],
        "learning_rates": [distilled.learning_rates[:, step].tolist() for step, _ in places],
    }
    features: dict[str, Any] = {
        "image": datasets.Image(),
        "pixels": datasets.Array3D(tuple(shape), "float32"),
        "label": _label_feature(datasets, distilled, max(columns["label"]) + 1),
        "step": datasets.Value("int32"),
        "learning_rates": datasets.List(datasets.Value("float32")),
    }
    if soft:
        columns["soft_label"] = [distilled.labels[place].reshape(-1).tolist() for place in places]
        features["soft_label"] = datasets.List(datasets.Value("float32"))
    made = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    with replacing(folder / "data" / "train-00000-of-00001.parquet") as temporary, _quiet(datasets):
        made.to_parquet(str(temporary))
    write_atomically(folder / "README.md", card(distilled).encode(errors="backslashreplace"))
    return ["datasets.load_dataset({folder}) reads it."]


def card(distilled: DistilledData) -> str:
    """The card of the data set."""
    header, norm = distilled.header, distilled.normalization
    plain = {
        "data": header.data,
        "network": header.architecture.name,
        "initialization": header.initialization.kind,
        "claim": str(distilled.claim or "not measured"),
        "heading": f"{header.data}, distilled",
    }
    how = "Real inputs are used unchanged, not normalised."
    if norm:
        how = f"Real pixels in [0, 1] are normalised with mean {norm.mean} and std {norm.std}."
        if norm.whitening:
            how += " They are then whitened: dd.load(…).normalization.apply(pixels)."
    return CARD.format(
        title=json.dumps(f"{header.data}, distilled"),  # a string of YAML, whatever the name holds
        count=len(distilled),
        size=next((size for size, most in SIZES.items() if len(distilled) < most), "n>1M"),
        steps=header.schedule.steps,
        epochs=header.schedule.epochs,
        normalization=how,
        **{name: _escaped(text) for name, text in plain.items()},
    )


@contextlib.contextmanager
def _quiet(datasets: Any) -> Generator[None]:
    """Without the bars of the package, which has one of its own for every file."""
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def _label_feature(datasets: Any, distilled: DistilledData, most: int) -> Any:
    names = distilled.class_names
    if names and len(set(names)) == len(names) >= most:
        return datasets.ClassLabel(names=names)
    return datasets.Value("int64")


def _escaped(text: str) -> str:
    """Text of a file in one line of Markdown that says nothing but itself."""
    line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#!&" else letter for letter in line)
