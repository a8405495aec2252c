from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from PIL import Image

import datadistill as dd
from datadistill.errors import DataError
from datadistill.report import draw


def distilled(inputs: torch.Tensor, module: torch.nn.Module, **settings: int) -> dd.DistilledData:
    labels = torch.arange(len(inputs)) % 10
    every: dict[str, Any] = {"iterations": 1, "networks": 1, **settings}
    return dd.distill((inputs, labels), module, validation=0, **every)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_shows_every_image_of_every_step(tmp_path: Path, channels: int) -> None:
    images = torch.rand(20, channels, 28, 28)
    made = distilled(images, dd.models.LeNet(channels=channels), steps=3, epochs=2)
    draw(made, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(float)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    # Three rows of ten textured squares: noise has many changes of brightness along a row.
    textured = np.abs(np.diff(pixels.mean(-1), axis=1)) > 8
    assert (textured.mean(axis=1) > 0.15).sum() > 3 * 90
    coloured = np.ptp(pixels, axis=-1).max() > 30
    assert coloured == (channels == 3)


def test_the_title_above_few_images_is_wrapped(tmp_path: Path) -> None:
    draw(dd.load("mnist-fixed-5-best"), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        pixels = np.asarray(picture.convert("L"))
    assert (pixels[:, -8:] == 255).all(), "nothing is cut off at the right"
    assert (pixels[: pixels.shape[0] // 4] < 128).any(axis=1).sum() > 20, "two lines of text"


def test_many_classes_are_wrapped_into_rows(tmp_path: Path) -> None:
    labels = torch.arange(50)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 50))
    made = dd.distill(
        (torch.rand(50, 1, 8, 8), labels), module, iterations=1, networks=1, validation=0
    )
    draw(made, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width < 20 * 150
        assert picture.height > 3 * 120


def test_long_names_of_classes_are_cut_and_short_ones_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("001.Black_footed_Albatross", "002.Gull", "3.14")
    data = dd.LabelledData(torch.rand(6, 1, 8, 8), torch.arange(6) % 3, class_names=names)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    made = dd.distill(data, module, iterations=1, networks=1, validation=0)
    shown: list[str] = []

    def keep(_: Axes, label: str, **__: object) -> None:
        shown.append(label)

    monkeypatch.setattr(Axes, "set_title", keep)
    draw(made, tmp_path / "a.png")
    assert shown == ["Black footed A…", "Gull", "3.14"]


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    made = distilled(torch.rand(20, 7), torch.nn.Linear(7, 10))
    with pytest.raises(DataError, match="not images"):
        draw(made, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_learned_labels_are_shown_as_bars_below_their_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (torch.rand(20, 1, 28, 28), torch.arange(20) % 10)
    settings: dict[str, Any] = {"iterations": 1, "networks": 1, "validation": 0, "steps": 2}
    made = dd.distill(data, dd.models.LeNet(), labels="soft", images_per_step=4, **settings)
    heights: list[list[float]] = []
    titles: list[str] = []

    def bar(_: Axes, __: range, values: list[float], **___: object) -> None:
        heights.append(values)

    def title(_: Axes, label: str, **__: object) -> None:
        titles.append(label)

    monkeypatch.setattr(Axes, "bar", bar)
    monkeypatch.setattr(Axes, "set_title", title)
    draw(made, tmp_path / "a.png")
    assert len(heights) == len(made) == 8
    for label, bars in zip(made.labels.flatten(0, 1), heights, strict=True):
        torch.testing.assert_close(torch.tensor(bars), label / label.abs().max())
    # Two of eight images stand for two classes each.
    assert {frozenset(title.split()) for title in titles[:2]} == {
        frozenset("08"),
        frozenset("19"),
    }
    assert titles[2:] == [*"234567"]
