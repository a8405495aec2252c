"""Files that are not sound artefacts are refused by name, and run nothing."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import datadistill as dd
from datadistill.artefact import container
from datadistill.artefact.bounds import VALUES
from datadistill.artefact.container import KEYS, read_container, write_container
from datadistill.artefact.header import Header
from datadistill.errors import ArtefactError, FileError


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = (torch.randn(30, 1, 28, 28), torch.arange(30) % 10)
    path = tmp_path_factory.mktemp("artefact") / "a.safetensors"
    made = dd.distill(data, dd.models.Linear(), iterations=1, networks=1, validation=0)
    made.save(path)
    return path


def refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=message) as caught:
        dd.load(path)
    assert str(path) in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize("share", [0, 0.0001, 0.001, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(artefact: Path, tmp_path: Path, share: float) -> None:
    whole = artefact.read_bytes()
    cut = whole[: int(share * len(whole))]
    refused(tmp_path / "cut.safetensors", cut, "cut short|promises")


def test_the_start_of_an_artefact_is_not_taken_for_a_pickle(tmp_path: Path) -> None:
    start = (0x0780).to_bytes(8, "little")  # the length of a header, whose bytes are a pickle's
    refused(tmp_path / "cut.safetensors", start[:3], "cut short")
    refused(tmp_path / "small.safetensors", pickle.dumps(1), "is a pickle")


def test_every_kind_of_flipped_bit_is_found(artefact: Path, tmp_path: Path) -> None:
    whole = bytearray(artefact.read_bytes())
    header = int.from_bytes(whole[:8], "little")
    places = [*range(0, 8 + header, 97), *range(8 + header, len(whole), 4001), len(whole) - 1]
    for place in places:
        for bit in (0, 5):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            (tmp_path / "flipped.safetensors").write_bytes(flipped)
            with pytest.raises(ArtefactError):
                dd.load(tmp_path / "flipped.safetensors")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_change_of_bytes_is_an_error_or_changes_nothing(
    artefact: Path, tmp_path: Path, data: st.DataObject
) -> None:
    whole = artefact.read_bytes()
    original, _ = read_container(artefact)
    at = data.draw(st.integers(0, len(whole)))
    removed = data.draw(st.integers(0, 20))
    inserted = data.draw(st.binary(max_size=20))
    path = tmp_path / "changed.safetensors"
    path.write_bytes(whole[:at] + inserted + whole[at + removed :])
    try:
        loaded, _ = read_container(path)
    except ArtefactError:
        return
    assert all(torch.equal(loaded[name], tensor) for name, tensor in original.items())


@given(st.binary(max_size=300))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rubbish_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(
        tmp_path / "rubbish.safetensors", content, "not a safetensors file|damaged|pickle|not an"
    )


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("touched",)


def test_a_pickle_is_refused_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in range(2, 6):
        content = pickle.dumps(Payload(), protocol=protocol)
        refused(tmp_path / "p.safetensors", content, "is a pickle")
    refused(tmp_path / "p.safetensors", pickle.dumps(Payload(), protocol=0), "not a safetensors")
    torch.save({"weights": torch.zeros(3)}, tmp_path / "t.safetensors")
    refused(tmp_path / "t.safetensors", (tmp_path / "t.safetensors").read_bytes(), "is a pickle")
    assert not (tmp_path / "touched").exists()


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    foreign = safetensors.torch.save({"weight": torch.zeros(3)}, {"format": "pt"})
    refused(tmp_path / "f.safetensors", foreign, "not an artefact of datadistill")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    newer = safetensors.torch.save(
        {"inputs": torch.zeros(3)},
        {KEYS["artefact"]: json.dumps({"schema_version": 4, "surprise": 1})},
    )
    refused(tmp_path / "n.safetensors", newer, "schema version 4.*\n?.*up to 3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "world peace"}, "objective"),
        ({"unknown": 1}, "unknown"),
        ({"schedule": {"steps": 0, "epochs": 3, "images": 10}}, "schedule.steps"),
        ({"schedule": {"steps": 2, "epochs": 3, "images": 10}}, "do not fit its schedule"),
        ({"update_rule": {"name": "sorcery"}}, "update_rule: There is no update rule 'sorcery'"),
        ({"update_rule": {"momentum": 0.9}}, "update_rule: "),
        ({"update_rule": {"name": "momentum", "momentum": 2.0}}, "update_rule: momentum is 2"),
        ({"normalization": {"mean": [0.1], "std": [0.0]}}, "normalization.std"),
    ],
)
def test_a_whole_file_that_makes_no_sense_is_refused(
    artefact: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    tensors, header = read_container(artefact)
    write_container(tmp_path / "odd.safetensors", tensors, header | change)
    with pytest.raises(ArtefactError, match=message) as caught:
        dd.load(tmp_path / "odd.safetensors")
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("inputs", torch.full((1, 10, 1, 28, 28), torch.nan), "inputs are not all finite"),
        ("inputs", torch.zeros(1, 9, 1, 28, 28), "do not fit its schedule"),
        ("learning_rates", torch.tensor([[0.1], [-0.1], [0.1]]), "not all positive"),
        ("learning_rates", torch.ones(2, 1), "do not fit its schedule"),
        ("labels", torch.zeros(1, 3), "labels of shape"),
    ],
)
def test_tensors_that_make_no_sense_are_refused(
    artefact: Path, tmp_path: Path, name: str, value: torch.Tensor, message: str
) -> None:
    tensors, header = read_container(artefact)
    write_container(tmp_path / "odd.safetensors", tensors | {name: value}, header)
    with pytest.raises(ArtefactError, match=message):
        dd.load(tmp_path / "odd.safetensors")


@pytest.mark.parametrize("field", ["class_names", "engines", "configuration", "extra"])
@pytest.mark.parametrize("values", [[[]] * VALUES, [[0] * 100] * (VALUES // 100), {}])
def test_a_header_of_very_many_values_is_refused_before_each_gets_a_message(
    artefact: Path, tmp_path: Path, field: str, values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 MB of them took 51 s and 9 GB."""
    tensors, header = read_container(artefact)
    header[field] = values or {str(number): 0 for number in range(VALUES)}
    path = tmp_path / "large.safetensors"
    write_container(path, tensors, header)
    monkeypatch.setattr(container, "_content_hash", None)  # not even hashed
    refused(path, path.read_bytes(), f"its header has more than {VALUES:,} values")


@pytest.mark.parametrize("inside", [True, False])
def test_a_header_of_millions_of_values_is_not_even_parsed(
    tmp_path: Path, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = json.dumps([[]] * 10**6)
    text = (
        json.dumps({"__metadata__": {KEYS["artefact"]: values}}) if inside else f'{{"a":{values}}}'
    )
    monkeypatch.setattr(container.json, "loads", None)
    content = len(text).to_bytes(8, "little") + text.encode()
    refused(tmp_path / "a.safetensors", content, f"its header has more than {VALUES:,} values")


def test_of_many_wrong_engines_one_gets_messages(artefact: Path) -> None:
    _, header = read_container(artefact)
    header["engines"] = [{}] * (VALUES // 2)
    with pytest.raises(ValidationError) as caught:
        Header.model_validate(header)
    assert caught.value.error_count() < 20


def test_a_header_that_is_too_large_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safetensors itself does not write one of more than 100 MB."""
    text = b'{"__metadata__":{"datadistill":"' + b"[" * container.HEADER_LIMIT + b'"}}'
    monkeypatch.setattr(container.json, "loads", None)
    content = len(text).to_bytes(8, "little") + text
    refused(tmp_path / "large.safetensors", content, "is not a safetensors file")


def test_a_missing_tensor_is_named(artefact: Path, tmp_path: Path) -> None:
    tensors, header = read_container(artefact)
    del tensors["labels"]
    write_container(tmp_path / "odd.safetensors", tensors, header)
    with pytest.raises(ArtefactError, match="no tensor 'labels'"):
        dd.load(tmp_path / "odd.safetensors")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="There is no file"):
        dd.load(tmp_path / "none.safetensors")
    with pytest.raises(ArtefactError, match=r"holds no distilled\.safetensors"):
        dd.load(tmp_path)
    (tmp_path / "distilled.safetensors").mkdir()
    with pytest.raises(ArtefactError, match=r"holds no distilled\.safetensors"):
        dd.load(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_no_other(artefact: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(artefact.read_bytes())
    distilled = dd.load(path)
    folder = tmp_path / "file"
    folder.write_text("in the way")
    with pytest.raises(FileError, match="cannot be written"):
        distilled.save(folder / "b.safetensors")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.safetensors", "file"]
