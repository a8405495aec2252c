"""The commands that are killed: all that compute or write."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tests.data.makers import make_mnist

from datadistill.runs.store.folder import RunFolder

FLOATS, BYTES, IMAGES, DATA = "floats.npz", "bytes.npz", "images.pt", "data"

DISTILL = (
    *("--networks", "2", "--steps", "2", "--batch-size", "32", "--iterations", "24", "--quiet"),
    *("--validate-every", "6", "--threads", "1", "--engine", "fast"),
    *("--test-networks", "2", "--checkpoint-every", "2"),
)
LINEAR = ("--model", "linear")
MLP = ("--model", "mlp", "--model-args", "hidden=6")
BASES = (
    *LINEAR,
    *("--parametrisation", "bases", "--bases", "4", "--normalization", "zca", "--view", "shift"),
    *("--inner-batch", "1", "--labels", "soft", "--averaging", "0.9", "--clip-factor", "3"),
)
ROBUST = (
    *LINEAR,
    *("--robust", "--parametrisation", "low-resolution", "--architectures", "mlp(hidden=6)"),
)
RIDGE = (*MLP, "--adjoint", "ridge-head", "--shuffle", "--labels", "logits")
PLACED = (*LINEAR, "--adjoint", "truncated", "--window", "2", "--window-placement", "gradient")
POOL = (
    *(*MLP, "--epochs", "30", "--batch-size", "16", "--validation", "0.2", "--networks", "34"),
    *("--held-out", "16", "--pool", "pool", "--quiet", "--threads", "1"),
)
TRAIN = ("--output", "out/weights.safetensors", "--overwrite", "--quiet")


@dataclass(frozen=True)
class Work:
    """A command to kill.

    Attributes:
        command: What a user would type next in this folder.
        needs_run: Whether it works on a finished run.
    """

    command: Callable[[Path], Sequence[str]]
    needs_run: bool = False


def distilling(processes: int, *flags: str, data: str = FLOATS) -> Work:
    """A distillation, which is resumed from the moment that there is something to resume."""

    def command(folder: Path) -> Sequence[str]:
        if not RunFolder(folder / "run").is_new:
            return ["resume", "run", "--quiet"]
        given = ["--data", file_of(folder, data), "--processes", str(processes), "--run", "run"]
        return ["distill", *given, *DISTILL, *flags]

    return Work(command)


def extending(processes: int) -> Work:
    """More outer steps of a finished run."""
    flags = ("--iterations", "40", "--processes", str(processes), "--quiet")
    return Work(lambda _: ["resume", "run", *flags], needs_run=True)


def tuning() -> Work:
    """A search for settings, which the same command continues."""
    flags = (*DISTILL, *LINEAR, "--trials", "4", "--search", "learning_rate", "averaging")
    return Work(lambda folder: ["tune", "--data", file_of(folder, FLOATS), "--run", "run", *flags])


def reproducing(table: str, *flags: str) -> Work:
    """A table or figure of the paper, with the runs that it needs."""

    def words(folder: Path) -> Sequence[str]:
        data = ["--data-dir", file_of(folder, DATA), "--output", "out", "--quiet"]
        return ["reproduce", table, "--threads", "1", *data, *flags]

    return Work(words)


def pretraining(processes: int) -> Work:
    """A pool, which the same command continues."""
    shared = (*POOL, "--processes", str(processes))
    return Work(lambda folder: ["pretrain", file_of(folder, FLOATS), *shared])


def using(command: str, *flags: str) -> Work:
    """A command that uses a finished run and its data."""

    def words(folder: Path) -> Sequence[str]:
        return [command, "run", "--data", file_of(folder, FLOATS), *flags]

    return Work(words, needs_run=True)


def importing() -> Work:
    """An artefact of the images of another method."""

    def words(folder: Path) -> Sequence[str]:
        data = ["--data", file_of(folder, FLOATS), *LINEAR, "--overwrite", "--quiet"]
        return ["import", file_of(folder, IMAGES), *data, "--output", "out/made.safetensors"]

    return Work(words)


def exporting(form: str, *files: str) -> Work:
    """Distilled data for other software, in a folder that is there whole or not at all."""

    def words(folder: Path) -> Sequence[str]:
        made = folder / form
        if made.exists():  # it was killed after it had finished
            assert {path.name for path in made.iterdir()} == {*files}
            shutil.rmtree(made)
        return ["export", "run", "--format", form, "--output", form, "--quiet"]

    return Work(words, needs_run=True)


def file_of(folder: Path, name: str) -> str:
    """A file of all works: one path, since it is a part of the configuration."""
    return str(folder.parent / name)


WORKS = {
    "distill": distilling(1, *LINEAR),
    "distill, 2 processes": distilling(2, *LINEAR),
    "distill bases, zca, views": distilling(1, *BASES, data=BYTES),
    "distill bases, 2 processes": distilling(2, *BASES, data=BYTES),
    "distill robust": distilling(1, *ROBUST, data=BYTES),
    "distill ridge-head": distilling(1, *RIDGE),
    "distill ridge-head, 2 processes": distilling(2, *RIDGE),
    "distill placed windows": distilling(1, *PLACED),
    "resume --iterations": extending(1),
    "resume --iterations, 2 processes": extending(2),
    "tune": tuning(),
    "pretrain": pretraining(1),
    "pretrain, 2 processes": pretraining(2),
    "train": Work(lambda _: ["train", "run", *TRAIN], needs_run=True),
    "evaluate": using("evaluate", "--networks", "30", "--json"),
    "evaluate --baselines": using("evaluate", "--baselines", "--networks", "2", "--json"),
    "evaluate --protocol": using(
        "evaluate", "--protocol", "field", "--networks", "2", "--epochs", "50", "--json"
    ),
    "verify": using("verify", "--json"),
    "report": using("report", "--networks", "5", "--quiet"),
    "report --figures": using("report", "--networks", "5", "--figures", "figures", "--quiet"),
    "export": exporting("script", "train.py", "distilled.safetensors"),
    "export --format npz": exporting("npz", "distilled.npz"),
    "import": importing(),
    "reproduce linear": reproducing("linear", "--iterations", "5"),
    "reproduce one-vs-many": reproducing("one-vs-many"),
    "quickstart": Work(lambda _: ["quickstart", "--quiet"]),
}


def write_files(place: Path) -> None:
    """Small data sets, of floats, of grey bytes and as MNIST has them, and images to import."""
    draws, labels = np.random.default_rng(0), np.arange(60) % 10
    floats = draws.normal(size=(60, 2, 7, 7)).astype(np.float32)
    pixels = draws.integers(0, 256, size=(60, 8, 8, 1), dtype=np.uint8)
    names = ("train_inputs", "train_labels", "test_inputs", "test_labels")
    for name, inputs in ((FLOATS, floats), (BYTES, pixels)):
        np.savez(place / name, **dict(zip(names, (inputs, labels) * 2, strict=True)))
    make_mnist(place / DATA / "mnist", train=300, test=100)
    images = torch.from_numpy(floats[:20])
    torch.save({"data": [[images, torch.arange(20) % 10]]}, place / IMAGES)
