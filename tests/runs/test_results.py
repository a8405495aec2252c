"""``results.json``: one reader and one writer, for runs and for tables."""

import json
from pathlib import Path

import pytest

import datadistill as dd
from datadistill.errors import RunError
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.results import read_results, write_results

DAMAGED = [b"", b'{"run": ', b"[1]", b"3", b"\xff\xfe\x00", b'{"a": 1}x', b"[" * 100_000]


def test_sections_that_are_not_written_stay(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert read_results(path) == {}
    write_results(path, {"run": {"a": 1}, "baselines": 2})
    write_results(path, {"run": [3]}, indent=2)
    assert read_results(path) == {"run": [3], "baselines": 2}
    RunFolder(tmp_path).write_results({"b": 4})
    assert RunFolder(tmp_path).read_results() == {"run": {"b": 4}, "baselines": 2}


@pytest.mark.parametrize("content", DAMAGED, ids=lambda content: repr(content[:10]))
def test_a_damaged_file_is_refused_by_readers_and_writers_and_stays_as_it_is(
    tmp_path: Path, content: bytes
) -> None:
    folder = RunFolder(tmp_path)
    folder.results.write_bytes(content)
    for use in (folder.read_results, lambda: folder.write_results({"b": 4})):
        with pytest.raises(RunError, match=r"results\.json cannot be read") as caught:
            use()
        assert len(str(caught.value).splitlines()) == 2
    assert folder.results.read_bytes() == content


def test_a_run_refuses_a_damaged_file_before_its_first_outer_step(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.results.write_text('{"baselines": ')
    train, _ = dd.data.load("digits")
    with pytest.raises(RunError, match="it is not JSON"):
        dd.distill(train, dd.models.Linear(), iterations=1, run=tmp_path)
    assert not folder.distilled.exists()
    assert folder.results.read_text() == '{"baselines": '
    folder.results.write_text(json.dumps({"baselines": 5}))
    dd.distill(train, dd.models.Linear(), iterations=1, run=tmp_path)
    assert read_results(folder.results)["baselines"] == 5
