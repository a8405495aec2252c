"""Finished parts in ``results.json``, and files that are not what they should be."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter

import datadistill as dd
from datadistill.data.fingerprint import data_hash
from datadistill.errors import FileError, RunError
from datadistill.tables.result_cache import ResultCache, Unit

ACCURACIES = TypeAdapter(list[Unit])
KEY = {"what": "figure", "set": 3}
VALUE = [0.25, 1.0, 0.0]


def compute() -> list[float]:
    return VALUE


def never() -> list[float]:
    raise AssertionError("this part is known")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.json"


def get(path: Path | None, context: str = "a", make: Any = compute) -> list[float]:
    return ResultCache.read(path, {"artefact": context}).get(KEY, make, ACCURACIES, 3)


def test_a_part_is_computed_once_and_then_read(path: Path) -> None:
    assert get(path) == VALUE
    assert get(path, make=never) == VALUE


def test_without_a_file_parts_are_kept_in_memory() -> None:
    parts = ResultCache.read(None, {})
    assert parts.get(KEY, compute, ACCURACIES, 3) == VALUE
    assert parts.get(KEY, never, ACCURACIES, 3) == VALUE


def test_a_part_of_another_context_or_key_is_another_part(path: Path) -> None:
    get(path)
    with pytest.raises(AssertionError, match="is known"):
        get(path, "b", never)
    with pytest.raises(AssertionError, match="is known"):
        ResultCache.read(path, {"artefact": "a"}).get({**KEY, "set": 4}, never, ACCURACIES, 3)


def test_what_others_write_meanwhile_stays(path: Path) -> None:
    path.write_text('{"run": 1}')
    parts = ResultCache.read(path, {"artefact": "a"})
    path.write_text('{"run": 2, "more": [null]}')
    parts.get(KEY, compute, ACCURACIES, 3)
    parts.write({"table": 5})
    content = json.loads(path.read_text())
    assert (content["run"], content["more"], content["baselines"]["table"]) == (2, [None], 5)
    assert get(path, make=never) == VALUE


def test_what_is_computed_by_an_interrupted_call_is_not_kept(path: Path) -> None:
    def interrupted() -> list[float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(path, make=interrupted)
    assert not path.exists()


@pytest.mark.parametrize(
    "value",
    [
        *(None, "0.5", 3, {}, [], [0.5], [0.5] * 1000),
        *([float("nan")] * 3, [float("inf")] * 3, [2.0] * 3, [-0.1] * 3, [10**400] * 3),
        *(["0.5"] * 3, [True] * 3, [None] * 3, [[0.5]] * 3, {"0": 0.5, "1": 0.5, "2": 0.5}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_part_that_cannot_be_true_is_computed_again(path: Path, value: Any) -> None:
    get(path)
    content = json.loads(path.read_text())
    (name,) = content["baselines"]["parts"]
    content["baselines"]["parts"][name]["value"] = value
    path.write_text(json.dumps(content))
    assert get(path) == VALUE
    assert get(path, make=never) == VALUE


@pytest.mark.parametrize("part", [None, 3, [], {}, {"part": KEY}, "x"])
def test_a_part_that_is_none_is_computed_again(path: Path, part: Any) -> None:
    get(path)
    content = json.loads(path.read_text())
    (name,) = content["baselines"]["parts"]
    content["baselines"]["parts"][name] = part
    path.write_text(json.dumps(content))
    assert get(path) == VALUE
    assert get(path, make=never) == VALUE


@pytest.mark.parametrize("section", [3, None, [], "x", {"parts": []}, {"parts": None}])
def test_a_damaged_section_is_made_anew_and_others_stay(path: Path, section: Any) -> None:
    path.write_text(json.dumps({"run": [1], "baselines": section}))
    assert get(path) == VALUE
    assert get(path, make=never) == VALUE
    assert json.loads(path.read_text())["run"] == [1]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"3", b"\xff\xfe\x00", b"[" * 100_000, b'{"a": 1}x', None]
)
def test_a_file_that_is_no_json_object_is_an_error_with_a_remedy_and_is_not_replaced(
    path: Path, content: bytes | None
) -> None:
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(RunError, match=r"results\.json cannot be read") as caught:
        get(path)
    assert len(str(caught.value).splitlines()) == 2
    assert content is None or path.read_bytes() == content


def test_a_huge_file_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RunError, match="larger than"):
        get(path)


def test_a_file_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((FileError, RunError)) as caught:
        get(tmp_path / "file" / "results.json")
    assert len(str(caught.value).splitlines()) == 2


def test_the_hash_of_data_tells_apart_what_figures_depend_on() -> None:
    images, labels = torch.arange(24, dtype=torch.uint8).reshape(6, 1, 2, 2), torch.arange(6) % 2
    norm = dd.data.Normalization((0.1,), (0.2,))
    same = [dd.LabelledData(images.clone(), labels.clone(), norm) for _ in range(2)]
    others = [
        dd.LabelledData(images + 1, labels, norm),
        dd.LabelledData(images, 1 - labels, norm),
        dd.LabelledData(images, labels),
        dd.LabelledData(images.reshape(6, 2, 2, 1), labels, norm),
        dd.LabelledData(images, labels, norm, augmentation=dd.data.PadCropFlip(1)),
    ]
    assert data_hash(same[0]) == data_hash(same[1])
    assert len({data_hash(data) for data in [same[0], *others]}) == 6
