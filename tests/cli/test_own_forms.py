"""The same real images in every form give the same artefact and the same figures."""

import csv
import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

import datadistill as dd
from tests.cli.helpers import run

NAME = "drawn"
SETTINGS: dict[str, Any] = {
    "initialization": "fixed",
    "iterations": 2,
    "batch_size": 16,
    "images_per_class": 1,
    "threads": 1,
}
FLAGS = [
    *("--model", "linear", "--processes", "1", "--quiet"),
    *(
        word
        for name, value in SETTINGS.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ),
]
CLASSES = [f"digit {number}" for number in range(10)]
Split = tuple[np.ndarray, np.ndarray]


def _digits(split: str, examples: int) -> Split:
    """Real digits (N, 28, 28) with labels, class by class as a folder has them."""
    train, test = dd.data.load("digits")
    data = train if split == "train" else test
    order = torch.cat([(data.labels == n).nonzero().flatten()[: examples // 10] for n in range(10)])
    return np.asarray(data.inputs)[order.numpy(), 0], data.labels[order].numpy()


def real_digits() -> dict[str, Split]:
    """Both splits."""
    return {"train": _digits("train", 200), "test": _digits("test", 100)}


@pytest.fixture(scope="module")
def digits() -> dict[str, Split]:
    return real_digits()


class Pictures(Dataset[tuple[Image.Image, int]]):
    """A data set of Pillow's images with names of classes, as torchvision has them."""

    def __init__(self, split: Split) -> None:
        self.images, self.labels = split
        self.classes = CLASSES

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(self.images[index]), int(self.labels[index])


def _names(labels: np.ndarray) -> list[str]:
    return [CLASSES[label] for label in labels]


def _hugging_face(split: Split) -> Any:
    datasets = importlib.import_module("datasets")
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)}
    )
    pictures = [Image.fromarray(image) for image in split[0]]
    columns = {"image": pictures, "label": split[1].tolist()}
    return datasets.Dataset.from_dict(columns, features=features)


FORMS: dict[str, Callable[[Split], Any]] = {
    "arrays": lambda split: (split[0], _names(split[1])),
    "arrays with channels": lambda split: (split[0][:, None], np.array(_names(split[1]))),
    "channels last": lambda split: (split[0][..., None], _names(split[1])),
    "list of pictures": lambda split: (
        [Image.fromarray(image) for image in split[0]],
        _names(split[1]),
    ),
    "torch data set of pictures": Pictures,
    "Hugging Face": _hugging_face,
}


def _write_npz(digits: dict[str, Split]) -> str:
    arrays: dict[str, Any] = {}
    for split, (images, labels) in digits.items():
        arrays |= {f"{split}_inputs": images, f"{split}_labels": labels}
    np.savez(f"{NAME}.npz", **arrays, class_names=np.array(CLASSES))
    return f"{NAME}.npz"


def _write_folder(digits: dict[str, Split]) -> str:
    for split, (images, labels) in digits.items():
        for number, (image, name) in enumerate(zip(images, _names(labels), strict=True)):
            path = Path(NAME, split, name, f"{number:04}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    return NAME


FILES: dict[str, Callable[[dict[str, Split]], str]] = {"npz": _write_npz, "folder": _write_folder}


def _sha(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def expected(digits: dict[str, Split], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The hash and the figure of the artefact, from LabelledData that say everything."""
    path = tmp_path_factory.mktemp("expected") / "expected.safetensors"
    train, test = (
        dd.LabelledData(
            torch.tensor(digits[split][0])[:, None],
            torch.tensor(digits[split][1]),
            dd.data.Normalization.measured(torch.tensor(digits["train"][0])[:, None]),
            tuple(CLASSES),
            NAME,
            split,
        )
        for split in ("train", "test")
    )
    distilled = dd.distill(train, "linear", test=test, **SETTINGS)
    distilled.save(path)
    assert distilled.normalization == train.normalization
    return _sha(str(path)), str(dd.evaluate(distilled, test))


@pytest.mark.parametrize("form", FORMS)
def test_forms_in_python_agree(
    form: str, digits: dict[str, Split], expected: tuple[str, str], here: Path
) -> None:
    if form == "Hugging Face":
        pytest.importorskip("datasets", reason="pip install datasets")
    train, test = (
        dd.data.as_data(FORMS[form](digits[split]), split, name=NAME) for split in ("train", "test")
    )
    distilled = dd.distill(train, "linear", test=test, **SETTINGS)
    distilled.save("python.safetensors")
    assert _sha("python.safetensors") == expected[0]
    assert str(dd.evaluate("python.safetensors", test)) == expected[1]
    few = FORMS[form]((digits["test"][0][::3], digits["test"][1][::3]))
    again = dd.evaluate("python.safetensors", few)
    named = FORMS["arrays"]((digits["test"][0][::3], digits["test"][1][::3]))
    assert str(again) == str(dd.evaluate("python.safetensors", named)), "its own statistics differ"


OWN_FILE = """
import datadistill as dd
from tests.cli.test_own_forms import FORMS, NAME, real_digits

def mine():
    splits = real_digits()
    return tuple(dd.data.as_data(FORMS[{form!r}](splits[s]), s, name=NAME) for s in splits)
"""


@pytest.mark.parametrize("form", FORMS)
def test_forms_in_memory_agree_on_the_command_line(
    form: str, expected: tuple[str, str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "Hugging Face":
        pytest.importorskip("datasets", reason="pip install datasets")
    (here / "forms.py").write_text(OWN_FILE.format(form=form))
    assert run("distill", "--data", "forms.py:mine", *FLAGS, "--run", "run") == 0
    assert _sha("run/distilled.safetensors") == expected[0]
    capsys.readouterr()
    assert run("evaluate", "run", "--data", "forms.py:mine", "--quiet") == 0
    assert capsys.readouterr().out.strip() == expected[1]


@pytest.mark.parametrize("form", FILES)
def test_files_in_python_and_on_the_command_line_agree(
    form: str,
    digits: dict[str, Split],
    expected: tuple[str, str],
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = FILES[form](digits)
    dd.distill(path, "linear", **SETTINGS).save("python.safetensors")
    assert _sha("python.safetensors") == expected[0]
    assert str(dd.evaluate("python.safetensors", path)) == expected[1]
    assert run("distill", "--data", path, *FLAGS, "--run", "run") == 0
    assert _sha("run/distilled.safetensors") == expected[0]
    capsys.readouterr()
    assert run("evaluate", "run", "--data", path) == 0
    assert capsys.readouterr().out.strip() == expected[1]
    assert run("verify", "run", "--data", path) == 0


def _columns(digits: dict[str, Split]) -> dict[str, Split]:
    """Each image as 16 floats, the means of its parts."""
    return {
        split: (images.reshape(-1, 4, 7, 4, 7).mean((2, 4)).reshape(-1, 16) / 255, labels)
        for split, (images, labels) in digits.items()
    }


def test_columns_agree_in_every_form(
    digits: dict[str, Split], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = _columns(digits)
    with Path(f"{NAME}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{n}" for n in range(16)), "label", "split"])
        for split, (inputs, labels) in columns.items():
            writer.writerows(
                [*map(repr, map(float, row)), label, split]
                for row, label in zip(inputs, _names(labels), strict=True)
            )
    arrays: dict[str, Any] = {}
    for split, (inputs, labels) in columns.items():
        arrays |= {f"{split}_inputs": inputs, f"{split}_labels": np.array(_names(labels))}
    Path("arrays").mkdir()
    np.savez(f"arrays/{NAME}.npz", **arrays)
    hashes: dict[str, str] = {}
    for model in ("linear", "mlp"):
        flags = [model if word == "linear" else word for word in FLAGS]
        figures: set[str] = set()
        for number, path in enumerate((f"{NAME}.csv", f"arrays/{NAME}.npz")):
            place = f"{model}-{number}"
            assert run("distill", "--data", path, *flags, "--run", place) == 0
            hashes[place] = _sha(f"{place}/distilled.safetensors")
            capsys.readouterr()
            assert run("evaluate", place, "--data", path) == 0
            figures.add(capsys.readouterr().out)
            dd.distill(path, model, **SETTINGS).save("python.safetensors")
            assert _sha("python.safetensors") == hashes[place]
        train, test = (
            dd.data.as_data((inputs, _names(labels)), split, name=NAME)
            for split, (inputs, labels) in columns.items()
        )
        distilled = dd.distill(train, model, test=test, **SETTINGS)
        distilled.save("python.safetensors")
        hashes[f"{model}-pair"] = _sha("python.safetensors")
        figures.add(f"{dd.evaluate(distilled, test)}\n")
        assert len(figures) == 1
        assert len({found for place, found in hashes.items() if place.startswith(model)}) == 1


def test_a_torch_data_set_of_tensors_is_the_pair_of_them(digits: dict[str, Split]) -> None:
    images, labels = torch.tensor(digits["train"][0]), torch.tensor(digits["train"][1])
    pair = dd.data.as_data((images[:, None], labels))
    assert dd.data.as_data(TensorDataset(images[:, None], labels)) == pair
