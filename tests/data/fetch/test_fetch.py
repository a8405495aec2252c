"""Fetching data sets from a server on loopback and from archives."""

import os
import tarfile
import time
from pathlib import Path

import pytest

from datadistill.data.fetch import Fetched, fetch
from datadistill.data.sources import Download, Source
from datadistill.errors import DataError, FileError
from tests.processes import python

from .made import NOWHERE, archive_of, data_set, link, md5, run, served, tar_of, tree
from .test_server import Site, fine

needs_posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")


def test_what_is_missing_is_fetched_and_nothing_else(site: Site, tmp_path: Path) -> None:
    wanted = served(site, one=b"1", two=b"22")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "one").write_bytes(b"mine")
    assert run(wanted, tmp_path) == Fetched(tmp_path / "set", ("two",))
    assert tree(tmp_path) == {"set/one": b"mine", "set/two": b"22"}
    assert run(wanted, tmp_path) == Fetched(tmp_path / "set")
    assert len(site.requests) == 1


def test_files_without_a_known_checksum_are_named(site: Site, tmp_path: Path) -> None:
    wanted = data_set(Download("one", Source((site.serve("one", b"1"),), None, None)))
    assert run(wanted, tmp_path).unchecked == ("one",)


def test_an_unpacked_file_counts_as_there(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for name in "a", "b":
        (tmp_path / "set" / name).touch()
    downloads = Download("a.gz", NOWHERE), Download("b.bz2", NOWHERE)
    assert run(data_set(*downloads), tmp_path).files == ()


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
    wanted = archive_of(site, content, "set/list.txt", members=r"set/(list\.txt|\d\.jpg)")
    run(wanted, tmp_path / "data")
    assert tree(tmp_path) == {"data/set/set/list.txt": b"list", "data/set/set/1.jpg": b"one"}


def test_an_archive_put_there_by_hand_is_unpacked(site: Site, tmp_path: Path) -> None:
    content = tar_of({"list.txt": b"list"})
    wanted = archive_of(site, content, "list.txt", members=r"list\.txt")
    (tmp_path / "set" / ".a.tgz.unpacked").mkdir(parents=True)  # as a killed process leaves it
    (tmp_path / "set" / ".a.tgz.unpacked" / "old").touch()
    (tmp_path / "set" / "a.tgz").write_bytes(content)
    run(wanted, tmp_path)
    assert tree(tmp_path) == {"set/list.txt": b"list"}
    assert site.requests == []


def test_another_archive_of_that_name_is_left_alone(site: Site, tmp_path: Path) -> None:
    wanted = archive_of(site, tar_of({}), "list.txt", members=r"list\.txt")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.tgz").write_bytes(b"another")
    with pytest.raises(DataError, match=r"a\.tgz is another file: its checksum is not md5:"):
        run(wanted, tmp_path)
    assert tree(tmp_path) == {"set/a.tgz": b"another"}


def test_a_damaged_archive_leaves_nothing_of_itself_in_place(site: Site, tmp_path: Path) -> None:
    content = tar_of({"1.jpg": os.urandom(5000), "2.jpg": os.urandom(5000)})[:8000]
    wanted = archive_of(site, content, "1.jpg", members=r"\d\.jpg")
    with pytest.raises(DataError, match=r"a\.tgz is damaged"):
        run(wanted, tmp_path)
    assert list(tree(tmp_path)) == ["set/a.tgz"]


def test_without_any_way_the_error_says_which_files_go_where(tmp_path: Path) -> None:
    downloads = Download("one", NOWHERE), Download("two", NOWHERE)
    with pytest.raises(DataError) as caught:
        run(data_set(*downloads), tmp_path)
    assert "set cannot be fetched: no mirror provides one" in caught.value.what
    assert f"put one, two into {tmp_path / 'set'}" in caught.value.remedy
    assert str(caught.value).count("\n") == 1


@needs_posix
def test_two_processes_do_not_fetch_into_one_folder(site: Site, tmp_path: Path) -> None:
    import fcntl

    wanted = served(site, one=b"1")
    (tmp_path / "set").mkdir()
    descriptor = os.open(tmp_path / "set", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with pytest.raises(DataError, match="Another process"):
            run(wanted, tmp_path)
    finally:
        os.close(descriptor)
    assert run(wanted, tmp_path).files == ("one",)


def test_a_data_folder_that_cannot_be_written_to_says_so(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="data folder is not writable") as caught:
        run(served(site, one=b"1"), tmp_path / "file")
    assert "--data-dir" in caught.value.remedy


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_data_folder_says_so(site: Site, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(FileError, match="Permission denied"):
        run(served(site, one=b"1"), tmp_path)


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
from datadistill.data.fetch import fetch
from datadistill.data.sources import Download, Source
from tests.data.fetch.made import data_set

url, checksum, size, folder = sys.argv[1:]
source = Source((url,), checksum, int(size))
fetch("set", folder, data_sets={"set": data_set(Download("one", source))})
"""


def test_a_process_that_is_killed_leaves_what_arrived_for_the_next(
    site: Site, tmp_path: Path
) -> None:
    content = os.urandom(1 << 20)
    url = site.serve("one", content, fine(pause=0.05), fine())
    part = tmp_path / "set" / "one.part"
    with python("-c", SLOW_FETCH, url, md5(content), str(len(content)), tmp_path) as process:
        while process.poll() is None and not (part.is_file() and part.stat().st_size > 50_000):
            time.sleep(0.01)
        process.kill()
    assert process.returncode != 0
    arrived = part.stat().st_size
    assert 50_000 < arrived < len(content)

    download = Download("one", Source((url,), md5(content), len(content)))
    run(data_set(download), tmp_path)
    assert tree(tmp_path) == {"set/one": content}
    assert site.ranges == [None, f"bytes={arrived}-"]
    assert site.requests[-1][1]["If-Range"] == '"one"'
