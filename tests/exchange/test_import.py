"""Images of other methods become artefacts; files of theirs run no code and take no room."""

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.errors import ConfigError, DataError
from datadistill.exchange import pt_files
from tests.cli.helpers import run

N, CLASSES = 20, 10
RANDOM = torch.Generator().manual_seed(0)
IMAGES = torch.randn(N, 1, 8, 8, generator=RANDOM)


def imported(path: Path, labels: Path | None = None, **more: Any) -> dd.DistilledData:
    train, _ = dd.data.load("digits", size=8)
    return dd.import_images(path, labels, data=train, module=dd.models.MLP(size=8), **more)


def saved(value: Any, path: Path) -> Path:
    torch.save(value, path)
    return path


@pytest.mark.parametrize("kind", ["dc", "dc with tuples", "mtt", "images alone"])
def test_files_of_other_methods(kind: str, tmp_path: Path) -> None:
    labels = torch.arange(CLASSES).repeat_interleave(2)
    file, other = tmp_path / "images_best.pt", None
    if kind.startswith("dc"):
        last = (IMAGES, labels) if "tuples" in kind else [IMAGES, labels]
        saved({"data": [[IMAGES * 0, labels], last], "accs_all_exps": {"ConvNet": [0.5]}}, file)
    else:
        saved(IMAGES, file)
        other = saved(labels, tmp_path / "labels_best.pt") if kind == "mtt" else None
    found = imported(file, other)
    assert torch.equal(found.inputs, IMAGES[None])
    assert torch.equal(found.labels, labels[None])
    assert found.normalization == dd.data.load("digits", size=8)[0].normalization


def test_an_imported_artefact_is_evaluated_beside_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(torch.nn.Parameter(IMAGES), tmp_path / "images.pt")
    saved(torch.tensor(0.05), tmp_path / "lr.pt")
    words = ["--data", "digits", "--size", "8", "--model", "mlp", "--mean", "0.5", "--std", "0.25"]
    assert run("import", str(file), *words, "--lr", str(tmp_path / "lr.pt")) == 0
    artefact = tmp_path / "images.safetensors"
    found = dd.load(artefact)
    assert found.normalization == dd.data.Normalization((0.5,), (0.25,))
    assert found.learning_rates.tolist() == [[pytest.approx(0.05)]]
    assert "evaluate" in capsys.readouterr().err
    ordinary = ["--ordinary", "--epochs", "2", "--networks", "2", "--json", "--quiet"]
    assert run("evaluate", str(artefact), *ordinary) == 0
    assert '"networks": 2' in capsys.readouterr().out
    assert run("import", str(file), *words) == 1  # it exists
    soft = torch.softmax(torch.randn(N, CLASSES, generator=RANDOM), 1)
    labels = saved(soft, tmp_path / "labels.pt")
    assert torch.equal(imported(file, labels).labels[0], soft)


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("pwned",)


@pytest.mark.parametrize("kind", ["zip", "bare pickle", "text", "cut short", "empty"])
def test_code_is_never_run(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "images.pt"
    if kind == "zip":
        saved({"data": [Evil()]}, file)
    elif kind == "cut short":
        saved(IMAGES, file)
        file.write_bytes(file.read_bytes()[:-500])
    else:
        file.write_bytes({"bare pickle": pickle.dumps(Evil()), "text": b"hello"}.get(kind, b""))
    with pytest.raises(DataError, match=r"torch\.save"):
        imported(file)
    assert not (tmp_path / "pwned").exists()


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (2, 2**20, 2**40):
        vast = torch.zeros(1).expand(count, 1, 8, 8)  # one number, said to be many
        with pytest.raises(DataError, match="not a plain tensor"):
            imported(saved(vast, tmp_path / "vast.pt"))
    file = tmp_path / "bomb.pt"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as entries:
        entries.writestr("archive/data.pkl", bytes(2**20))
    with pytest.raises(DataError, match="its content is compressed"):
        imported(file)
    monkeypatch.setattr(pt_files, "MOST_BYTES", 100)
    with pytest.raises(DataError, match="too large"):
        imported(file)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "holds a dict"),
        (IMAGES[:, :, :7], "shape"),
        (IMAGES.long(), "shape"),
        (IMAGES * float("nan"), "finite"),
        (IMAGES.to_sparse(), "plain tensor"),
        (IMAGES.to("meta"), "plain tensor"),
        (IMAGES[:7], "cannot be divided"),
        (IMAGES.to(torch.complex64), "plain tensor"),
        (IMAGES.to(torch.float8_e4m3fn), "plain tensor"),
        (1e300 * IMAGES.double(), "finite"),
    ],
)
def test_images_that_make_no_sense(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        imported(saved(value, tmp_path / "images.pt"))


@pytest.mark.parametrize(
    "labels",
    [
        *(torch.arange(N), torch.zeros(3).long(), torch.rand(N, 3), torch.zeros(N).bool()),
        *(torch.zeros(N, dtype=torch.uint16), torch.full((N, CLASSES), 1e300, dtype=torch.float64)),
    ],
)
def test_labels_that_make_no_sense(labels: torch.Tensor, tmp_path: Path) -> None:
    file = saved(IMAGES, tmp_path / "images.pt")
    with pytest.raises(DataError, match="labels"):
        imported(file, saved(labels, tmp_path / "labels.pt"))


def test_rates_and_normalization_that_make_no_sense(tmp_path: Path) -> None:
    file = saved(IMAGES, tmp_path / "images.pt")
    for rate in ("fast", "-1", "nan", 0.0, 1e-50, 1e50):
        with pytest.raises(ConfigError, match="learning rate"):
            imported(file, rate=rate)
    wrong: list[dict[str, Any]] = [
        {"mean": (0.1,)},
        {"mean": (0.1, 0.2), "std": (1, 1)},
        {"mean": (0,), "std": (0,)},
    ]
    for given in wrong:
        with pytest.raises(ConfigError, match="mean is"):
            imported(file, **given)
