"""Every pair of data set and network that the paper uses distils end to end."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main
from tests.data import makers

MADE: dict[str, Callable[[Path], object]] = {
    "mnist": makers.make_mnist,
    "usps": makers.make_usps,
    "svhn": makers.make_svhn,
    "cifar10": makers.make_cifar10,
    "cub200": makers.make_cub200,
    "voc2007": lambda folder: _tested_on_training_images(makers.make_voc2007(folder)),
}
# Data set, how it is loaded, network, and how it is made: in full size, except that the largest
# networks are narrow.
PAIRS: list[tuple[str, dict[str, Any], str, dict[str, int]]] = [
    ("mnist", {}, "lenet", {}),
    ("mnist", {}, "largenet", {}),
    ("mnist", {"channels": 3}, "lenet", {}),
    ("usps", {}, "lenet", {}),
    ("svhn", {"size": 28}, "lenet", {}),
    ("svhn", {}, "lenet", {}),
    ("cifar10", {}, "alexcifarnet", {}),
    ("cifar10", {}, "vgg11", {"width": 8}),
    ("cifar10", {}, "convnet3", {}),
    ("voc2007", {}, "alexnet", {"width": 8}),
    ("cub200", {}, "alexnet", {"width": 8}),
    ("cub200", {}, "squeezenet", {"width": 8}),
]


def _tested_on_training_images(folder: Path) -> None:
    """The made-up test images show other classes than those to train on."""
    lists = folder / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main"
    (lists / "test.txt").write_text((lists / "trainval.txt").read_text())


def subset(data: dd.LabelledData, classes: list[int], each: int) -> dd.LabelledData:
    """A few examples of some classes, as a data set of its own."""
    chosen = [(data.labels == label).nonzero().flatten()[:each] for label in classes]
    part = data.part(torch.cat(chosen), data.split)
    labels = torch.cat([torch.full((len(c),), n) for n, c in enumerate(chosen)])
    names = tuple(map(str, classes))
    return dataclasses.replace(part, labels=labels, class_names=names, present=None)


def distil(
    train: dd.LabelledData, test: dd.LabelledData, model: str, width: dict[str, int]
) -> None:
    shape = train.input_shape
    arguments = dd.models.arguments_for(shape, train.classes)
    made = dd.distill(
        train,
        dd.models.build(model, {**arguments, **width}),
        initialization=dd.FixedInit(),
        steps=1,
        epochs=2,
        iterations=2,
        batch_size=16,
        learning_rate=0.001,
        validation=0,
    )
    assert made.inputs.shape == (1, train.classes, *shape)
    assert torch.isfinite(made.inputs).all()
    assert not torch.allclose(made.learning_rates, torch.tensor(0.001), rtol=1e-4)
    result = dd.evaluate(made, test)
    assert 0 <= result.mean <= 1
    assert (result.data, result.split) == (test.name, "test")


@pytest.mark.parametrize(("data", "options", "model", "width"), PAIRS)
def test_made_up_files_of_the_exact_format_are_distilled(
    tmp_path: Path, data: str, options: dict[str, Any], model: str, width: dict[str, int]
) -> None:
    MADE[data](tmp_path / dd.data.DATA_SETS[data].folder)
    train, test = dd.data.load(data, tmp_path, workers=0, **options)
    classes = train.labels.unique().tolist()
    distil(subset(train, classes, 3), subset(test, classes, 3), model, width)


@pytest.mark.parametrize(
    ("data", "options", "model", "width", "classes"),
    [
        ("mnist", {}, "lenet", {}, 10),
        ("usps", {}, "lenet", {}, 10),
        ("svhn-gray", {"size": 28}, "lenet", {}, 10),
        ("cub200", {}, "alexnet", {"width": 8}, 4),
        ("caltech20", {}, "squeezenet", {"width": 8}, 3),
    ],
)
def test_the_real_files_are_distilled(
    data_dir: Path,
    data: str,
    options: dict[str, Any],
    model: str,
    width: dict[str, int],
    classes: int,
) -> None:
    missing = dd.data.DATA_SETS[data].missing(data_dir)
    if missing:
        pytest.skip(f"needs {missing[0]}")
    train, test = dd.data.load(data, data_dir, workers=0, **options)
    chosen = list(range(classes))
    distil(subset(train, chosen, 4), subset(test, chosen, 2), model, width)


def test_an_own_folder_and_an_own_network_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    makers.make_image_folder(tmp_path / "photos")
    classes = len(list((tmp_path / "photos" / "train").iterdir()))
    (tmp_path / "pairs_net.py").write_text(
        "import torch.nn as nn\n\n\n"
        "class Mine(nn.Sequential):\n"
        "    def __init__(self, hidden, classes):\n"
        "        super().__init__(nn.Flatten(), nn.Linear(3 * 16 * 16, hidden), nn.Tanh(),\n"
        "                         nn.Linear(hidden, classes))\n"
    )
    own = ["--model", "pairs_net.py:Mine", "--model-args", "hidden=5", f"classes={classes}"]
    quick = ["--iterations", "2", "--validation", "0", "--initialization", "fixed"]
    assert main(["distill", "--data", "photos", "--size", "16", *own, *quick]) == 0
    assert main(["evaluate", "runs/photos-mine-fixed", "--data", "photos", *own]) == 0
    assert "% on photos test" in capsys.readouterr().out
