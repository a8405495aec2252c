"""``datadistill data`` as a user types it."""

import hashlib
import os
import signal
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from datadistill.data import DATA_SETS
from datadistill.data.sources import Download, Source
from tests.cli import helpers
from tests.processes import finished, python

from ..data.fetch.test_server import Site, fine, running_site


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the working directory and as the data folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATADISTILL_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def site() -> Generator[Site]:
    with running_site() as site:
        yield site


def run(*arguments: str) -> int:
    return helpers.run("data", *arguments)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("arguments", [(), ("list",), ("--quiet",)])
def test_the_bare_command_lists_the_data_sets(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    (here / "usps").mkdir()
    (here / "usps" / "usps").touch()
    (here / "svhn").mkdir()
    for name in "train", "test":
        (here / "svhn" / f"{name}_32x32.mat").touch()
    assert run(*arguments) == 0
    output, messages = capsys.readouterr()
    lines = [line.split() for line in output.splitlines() if line.strip()]
    rows = {words[0]: " ".join(words[1:]) for words in lines}
    assert f"data folder: {here}" in output
    assert rows["digits"].startswith("built in – ")
    assert rows["svhn"].startswith("yes svhn/ SVHN: ")
    assert rows["mnist"].startswith("no mnist/ MNIST: ")
    assert rows["usps"].startswith("no, 1 of 2 missing usps/ USPS: ")
    assert ("data fetch NAME" in messages) is ("--quiet" not in arguments)


def test_the_data_folder_can_be_given_before_and_after(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in ("--data-dir", "mine"), ("list", "--data-dir", "mine"):
        assert run(*arguments) == 0
        assert "data folder: mine\n" in capsys.readouterr().out


def test_check_shows_counts_and_balance_and_draws(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", "digits") == 0
    output, messages = capsys.readouterr()
    assert "digits: 1,437 training and 360 test examples, 1×28×28, 10 classes" in output
    assert ["0", "151", "10.5%", "27", "7.5%"] in [line.split() for line in output.splitlines()]
    assert "picture: digits-samples.png" in output
    assert "cannot be compared with published ones" in messages
    with Image.open(here / "digits-samples.png") as picture:
        assert picture.width > 1000
    assert run("check", "digits", "--output", "new/folder/mine.png", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert names(here / "new" / "folder") == ["mine.png"]


IMAGES = np.random.default_rng(0).integers(0, 255, (8, 3, 9, 7), np.uint8)
LABELS = np.array([0, 0, 0, 0, 0, 0, 2, 2])


def check_own(inputs: np.ndarray = IMAGES, labels: np.ndarray = LABELS, **more: Any) -> None:
    arrays: dict[str, Any] = {"train_inputs": inputs, "train_labels": labels}
    arrays |= {"test_inputs": inputs, "test_labels": labels} | more
    np.savez("mine.npz", **arrays)
    assert run("check", "mine.npz") == 0


def test_check_shows_names_as_they_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_own(class_names=["[red]cat[/red]", "none $x$", "a name that goes on and on and on"])
    output = capsys.readouterr().out
    assert "mine: 8 training and 8 test examples, 3×9×7, 3 classes" in output
    assert "[red]cat[/red]" in output
    assert "none $x$" in output
    assert names(here) == ["mine-samples.png", "mine.npz"]


def test_check_sums_up_very_many_classes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_own(labels=np.arange(8) * 10)
    output = capsys.readouterr().out
    assert "5 rarest and 5 most common of 71 classes" in output
    assert len(output.splitlines()) < 20


def test_check_knows_regression(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_own(labels=LABELS / 4)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["train", "0", "0.125", "0.5"] in lines
    assert names(here) == ["mine-samples.png", "mine.npz"]


def test_check_draws_images_only(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_own(inputs=np.ones((8, 5)))
    assert "no picture was drawn" in capsys.readouterr().err
    assert names(here) == ["mine.npz"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("check", "mnits"), 2, "Did you mean 'mnist'"),
        (("check", "mnist"), 2, "mnist was not found in"),
        (("check", "digits", "--output", "a.jpg"), 2, "Choose an --output that ends in .png."),
        (("check", "digits", "--output", "occupied/a.png"), 1, "cannot be written"),
        (("fetch", "mnits"), 2, "Did you mean 'mnist'"),
        (("fetch", "mnist", "--data-dir", "occupied"), 1, "data folder is not writable"),
        (("fetch",), 2, "NAME"),
        (("fetsh", "mnist"), 2, "fetsh"),
    ],
)
def test_mistakes_get_a_remedy_and_an_exit_code(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    (here / "occupied").touch()
    assert run(*arguments) == code
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors
    assert names(here) == ["occupied"]


def put_on(site: Site, monkeypatch: pytest.MonkeyPatch, checksum: str | None) -> bytes:
    """Makes mnist a set of one file on a server here."""
    content = os.urandom(100_000)
    url = site.serve("one", content)
    one = Download("one", Source((url,), checksum, len(content)))
    monkeypatch.setitem(
        DATA_SETS, "mnist", replace(DATA_SETS["mnist"], downloads=(one,), package=None)
    )
    return content


def test_fetch_downloads_once(
    here: Path, site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = put_on(site, monkeypatch, None)
    assert run("fetch", "mnist") == 0
    output, messages = capsys.readouterr()
    assert output == f"mnist: {here / 'mnist'}\n"
    assert "one was not verified" in messages
    assert "Licence: free for research." in messages
    assert (here / "mnist" / "one").read_bytes() == content

    assert run("fetch", "mnist", "--quiet") == 0
    assert capsys.readouterr() == (f"mnist: {here / 'mnist'}\n", "")
    assert len(site.requests) == 1


def test_fetch_refuses_other_bytes(
    here: Path, site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_on(site, monkeypatch, "md5:" + "0" * 32)
    assert run("fetch", "mnist") == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert "wrong checksum" in errors[0]
    assert f"put one into {here / 'mnist'}" in errors[1]
    assert names(here / "mnist") == []


INTERRUPTED = """
import sys
from dataclasses import replace
from datadistill.cli.main import main
from datadistill.data import DATA_SETS
from datadistill.data.sources import Download, Source

url, checksum, size = sys.argv[1:]
one = Download("one", Source((url,), checksum, int(size)))
DATA_SETS["mnist"] = replace(DATA_SETS["mnist"], downloads=(one,), package=None)
sys.exit(main(["data", "fetch", "mnist"]))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_control_c_in_a_fetch_keeps_what_has_arrived(here: Path, site: Site) -> None:
    content = os.urandom(1 << 20)
    checksum = f"md5:{hashlib.md5(content).hexdigest()}"
    url = site.serve("one", content, fine(pause=0.05), fine())
    part = here / "mnist" / "one.part"
    with python("-c", INTERRUPTED, url, checksum, str(len(content))) as process:
        while process.poll() is None and not (part.is_file() and part.stat().st_size > 50_000):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
    assert process.returncode == 130
    assert errors.splitlines() == ["Interrupted; run the same command to continue."]
    assert names(here / "mnist") == ["one.part", "one.part.from"]


def test_a_row_is_a_line_where_the_output_is_piped(here: Path) -> None:
    done = finished("-m", "datadistill", "data")
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    assert len(lines) == 3 + len(DATA_SETS)
    assert "\x1b" not in done.stdout
