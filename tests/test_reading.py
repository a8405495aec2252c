"""Every reader of a path takes regular files only: no waiting, no endless device, no hole."""

import os
import re
import signal
import socket
import tracemalloc
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType

import pytest

import datadistill as dd
from datadistill.data.fetch.npm import Tarball
from datadistill.data.fetch.partial import UnavailableError
from datadistill.data.fetch.unpacking import unpack_archive
from datadistill.data.formats.csv import load_csv
from datadistill.data.formats.idx import read_idx
from datadistill.data.formats.mat import read_mat
from datadistill.data.formats.npz import load_arrays
from datadistill.data.formats.safe_xml import read_xml
from datadistill.data.formats.svmlight import read_svmlight
from datadistill.data.formats.unpack import read_text
from datadistill.data.images.decode import ImageError, read_image
from datadistill.data.options import Options
from datadistill.data.sets.cifar10 import DATA_SET as CIFAR10
from datadistill.errors import DataDistillError
from datadistill.models import load_weights
from datadistill.pools.chunks import read_chunk
from datadistill.progress import silent
from datadistill.reading import FREE_BYTES, open_regular, read_regular
from datadistill.runs.recipes import read_recipe
from datadistill.runs.store.checkpoint import read_checkpoint
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.results import read_results
from datadistill.runs.store.yaml_files import read_config

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "artefact": ("distilled.safetensors", dd.load),
    "checkpoint": ("step-00000001.safetensors", read_checkpoint),
    "metrics": ("metrics.jsonl", read_metrics),
    "results": ("results.json", read_results),
    "config": ("config.yaml", read_config),
    "recipe": ("mine.yaml", lambda path: read_recipe(str(path))),
    "pool": ("index.json", lambda path: dd.Pool(path.parent)),
    "networks of a pool": ("train-00000-00001.safetensors", read_chunk),
    "weights": ("w.safetensors", lambda path: load_weights(dd.models.Linear(), path)),
    "weights of torch": ("w.pth", lambda path: load_weights(dd.models.Linear(), path)),
    "npz": ("own.npz", lambda path: load_arrays(path, Options())),
    "data": ("own.npz", dd.data.load),
    "csv": ("own.csv", lambda path: load_csv(path, Options())),
    "mat": ("test.mat", lambda path: read_mat(path, {"X": 2**50})),
    "idx": ("images", lambda path: read_idx(path, 2**50)),
    "svmlight": ("usps", lambda path: read_svmlight(path, 256, 2**40)),
    "text": ("images.txt", lambda path: read_text(path, 2**50)),
    "xml": ("1.xml", read_xml),
    "image": ("1.png", lambda path: read_image(str(path), 3)),
    "archive": ("a.tar", lambda path: unpack_archive(path, re.compile("x"), (), silent)),
    "package": ("a.tgz", lambda path: Tarball("a@1", path)),
    "CIFAR-10": (
        "cifar10/cifar-10-binary.tar.gz",
        lambda path: CIFAR10.load(path.parents[1], Options()),
    ),
}
TYPED = (DataDistillError, ImageError, UnavailableError)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def hidden_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.fixture(autouse=True)
def _alarm() -> Generator[None]:
    """Ends a test that waits for a FIFO."""

    def end(number: int, frame: FrameType | None) -> None:
        raise AssertionError("the reader waits")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("make", [fifo, device, sparse, hidden_socket])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_a_regular_file_is_refused_at_once(
    tmp_path: Path, reader: str, make: Callable[[Path], None]
) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    make(path)
    with pytest.raises(TYPED):
        read(path)


def test_a_fifo_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, regular = tmp_path / "fifo", tmp_path / "regular"
    os.mkfifo(path)
    regular.touch()
    seen = regular.stat()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", lambda _: seen)  # pyright: ignore[reportUnknownLambdaType]
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path)


def test_regular_files_are_read_up_to_their_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert read_regular(path) == read_regular(path, 3) == b"abc"
    with pytest.raises(OSError, match="larger than 2 bytes"):
        read_regular(path, 2)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
    assert read_regular(Path("/proc/self/comm"), 100)  # it shows no size


def test_a_file_with_a_hole_that_is_not_all_of_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(bytes(2**20))
        file.truncate(FREE_BYTES + 1)
    with open_regular(path) as file:
        assert file.read(1) == b"\0"


def test_reading_sets_aside_no_more_memory_than_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"1234")
    tracemalloc.start()
    try:
        assert read_regular(path, 2**40) == b"1234"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
