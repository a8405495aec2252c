"""Any change of bytes in a run's files is a typed error or changes nothing; nothing is executed."""

import os
import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import datadistill as dd
from datadistill.artefact.container import read_container, write_container
from datadistill.cli.main import main
from datadistill.errors import (
    ArtefactError,
    ConfigError,
    DataDistillError,
    FileError,
    RunError,
)
from datadistill.runs.config import differences
from datadistill.runs.experiment import CODE_SETTINGS
from datadistill.runs.resuming import config_of_run
from datadistill.runs.store.checkpoint import read_checkpoint
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import logging_to, read_metrics
from datadistill.runs.store.restore import opened
from datadistill.runs.store.yaml_files import parse_yaml, read_config, read_yaml
from tests.runs.helpers import contents, go, stop_after

often = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after outer step 7, with checkpoints of 4 and 6."""
    path = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        go(path, **stop_after(7))
    return path


@st.composite
def changes(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes flipped, cut, inserted."""
    kind = draw(st.sampled_from(["flip", "cut", "insert", "end", "replace"]))
    at = draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        return (
            content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
        )
    if kind == "end":
        return content[:at]
    count = draw(st.integers(1, 400 if kind == "cut" else 20))
    inserted = b"" if kind == "cut" else draw(st.binary(min_size=1, max_size=20))
    removed = 0 if kind == "insert" else count
    return content[:at] + inserted + content[at + removed :]


@often
@given(data=st.data())
def test_a_changed_checkpoint(stopped: Path, tmp_path: Path, data: st.DataObject) -> None:
    source = stopped / "checkpoints" / "step-00000006.safetensors"
    original, _ = read_container(source, "checkpoint")
    path = tmp_path / source.name
    path.write_bytes(data.draw(changes(source.read_bytes())))
    try:
        found = read_checkpoint(path)
    except ArtefactError:
        return
    again, _ = read_container(path, "checkpoint")
    assert all(torch.equal(again[name], tensor) for name, tensor in original.items())
    assert found.config == read_checkpoint(source).config


@often
@given(data=st.data())
def test_a_changed_config_yaml(stopped: Path, tmp_path: Path, data: st.DataObject) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    folder = RunFolder(tmp_path)
    folder.config.write_bytes(data.draw(changes((stopped / "config.yaml").read_bytes())))
    with opened(folder) as saved:
        assert saved is not None
        try:
            config = config_of_run(folder, saved)
        except ConfigError:
            return
    kept = saved.config
    # What resume does with it: a difference that matters is refused, and shown.
    if not differences(kept, config):
        free = {n: getattr(config, n) for n in ("data_dir", "pool", "weights")}
        free |= {
            n: getattr(config, n)
            for n in ("threads", "tensorboard", "processes", "compiled", "engine")
        }
        free |= {n: getattr(config, n) for n in ("checkpoint_every", "checkpoint_minutes")}
        assert replace(kept, iterations=config.iterations, **free) == config


@often
@given(data=st.data())
def test_a_changed_metrics_jsonl(stopped: Path, tmp_path: Path, data: st.DataObject) -> None:
    source = stopped / "metrics.jsonl"
    rows = read_metrics(source)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(data.draw(changes(source.read_bytes())))
    try:
        found = read_metrics(path)
    except RunError:
        pass
    else:
        assert found == rows[: len(found)]
    try:
        with logging_to(path, after=6):
            pass
    except RunError:
        return
    assert read_metrics(path) == rows[:6]


@often
@given(data=st.data())
def test_a_changed_results_json_is_read_or_refused_and_never_overwritten(
    stopped: Path, tmp_path: Path, data: st.DataObject
) -> None:
    folder = RunFolder(tmp_path)
    content = data.draw(changes(b'{"run": {"outer_steps": 12}, "more": [1]}'))
    folder.results.write_bytes(content)
    try:
        before = folder.read_results()
    except RunError:
        with pytest.raises(RunError):
            folder.write_results({"outer_steps": 13})
        assert folder.results.read_bytes() == content
    else:
        folder.write_results({"outer_steps": 13})
        assert folder.read_results() == {**before, "run": {"outer_steps": 13}}


@given(st.binary(max_size=300))
@often
def test_rubbish_is_never_another_exception(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rubbish").write_bytes(content)
    for read in (read_checkpoint, read_config, read_metrics, dd.load):
        try:
            read(tmp_path / "rubbish")
        except DataDistillError:
            continue
        if read is read_config:  # an empty mapping of settings leaves all at their defaults
            assert yaml.safe_load(content) == {}
            continue
        assert read is read_metrics  # a log without one whole line is an empty one
        assert b"\n" not in content


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("touched",)


def test_a_pickle_named_safetensors_touches_nothing(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    monkeypatch.chdir(tmp_path)
    for name in ("checkpoints/step-00000006.safetensors", "distilled.safetensors"):
        (run / name).write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ArtefactError, match="is a pickle"):
        read_checkpoint(run / "checkpoints" / "step-00000006.safetensors")
    go(run)  # from outer step 4
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    "text",
    [
        "model: !!python/object/apply:os.mkdir [touched]",
        "model: !!python/name:os.mkdir",
        "!!python/object/new:os.mkdir [touched]",
        "? !!python/object/apply:os.mkdir [touched]\n: 1",
    ],
)
def test_a_yaml_tag_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="not plain YAML"):
        parse_yaml(text.encode(), "recipe")
    assert not (tmp_path / "touched").exists()


def test_a_yaml_file_can_neither_grow_nor_nest_without_bound(tmp_path: Path) -> None:
    laughs = b"a: &a [x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c]\n" % (c, c, c - 1, c - 1) for c in range(98, 120)
    )
    for content, message in [
        (laughs, "aliases"),
        (b"[" * 10_000, "nested too deeply"),
        (b"steps: 1\n" + b"#" * 2**20, "too large"),
        (b"steps: 1\nsteps: 2", "given twice"),
    ]:
        (tmp_path / "bad.yaml").write_bytes(content)
        with pytest.raises(ConfigError, match=message):
            read_yaml(tmp_path / "bad.yaml")


@pytest.mark.parametrize("setting", [*CODE_SETTINGS])
def test_code_that_a_file_names_is_not_run(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("import os\nos.mkdir('touched')\n")
    shutil.copytree(stopped, tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    text, count = re.subn(rf"(?m)^{setting}: .*$", f"{setting}: evil.py:Evil", config.read_text())
    assert count == 1
    config.write_text(text)
    with pytest.raises(ConfigError, match="names Python code"):
        dd.resume(tmp_path / "run")
    (tmp_path / "recipe.yaml").write_text(f"{setting}: evil.py:Evil\n")
    flags = ["--iterations", "1", "--quiet", "--run", str(tmp_path / "new")]
    assert main(["distill", str(tmp_path / "recipe.yaml"), *flags]) == 2
    assert not (tmp_path / "touched").exists()
    # Named by the user it is imported, and has no Evil.
    assert main(["distill", f"--{setting.replace('_', '-')}", "evil.py:Evil", *flags]) == 2
    assert (tmp_path / "touched").exists()


def test_all_settings_that_can_name_code_are_known() -> None:
    assert {"data", "model", "objective", "update_rule", "adjoint", "initialization"} <= {
        *CODE_SETTINGS
    }
    assert "parametrisation" in CODE_SETTINGS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outer_step": 5}, "is the checkpoint of outer step 5"),
        ({"outer_step": -1}, "not a valid checkpoint"),
        ({"seconds": "long"}, "not a valid checkpoint"),
        ({"configuration": {"stepz": 1}}, "no setting 'stepz'"),
        ({"surprise": 1}, "not a valid checkpoint"),
        ({"snapshots": [0, 9]}, "not pictures"),
    ],
)
def test_a_whole_checkpoint_that_makes_no_sense_is_refused(
    stopped: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    name = "step-00000006.safetensors"
    tensors, header = read_container(stopped / "checkpoints" / name, "checkpoint")
    write_container(tmp_path / name, tensors, header | change, "checkpoint")
    with pytest.raises(ArtefactError, match=message):
        read_checkpoint(tmp_path / name)


def test_tensors_of_another_shape_are_refused(stopped: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    path = run / "checkpoints" / "step-00000006.safetensors"
    tensors, header = read_container(path, "checkpoint")
    tensors["adam_first/inputs"] = tensors["adam_first/inputs"][:1].clone()
    write_container(path, tensors, header, "checkpoint")
    with pytest.raises(RunError, match="shapes"):
        go(run)


def test_an_artefact_and_a_checkpoint_are_not_taken_for_each_other(
    stopped: Path, tmp_path: Path
) -> None:
    with pytest.raises(ArtefactError, match="is a checkpoint, but not an artefact"):
        dd.load(stopped / "checkpoints" / "step-00000006.safetensors")
    run = tmp_path / "run"
    go(run)
    with pytest.raises(ArtefactError, match="is an artefact, but not a checkpoint"):
        read_checkpoint(run / "distilled.safetensors")
    assert contents(run)["checkpoints"]


@pytest.mark.parametrize("value", ["1:30", "-1:30", "1:30.5", "190:20:30", "!!int 1:30"])
def test_a_sexagesimal_number_is_no_number(tmp_path: Path, value: str) -> None:
    assert parse_yaml(f"steps: {value}".encode(), "recipe") == {"steps": value.split()[-1]}
    (tmp_path / "recipe.yaml").write_text(f"steps: {value}\n")
    with pytest.raises(ConfigError, match="steps is"):
        read_config(tmp_path / "recipe.yaml")


def test_other_numbers_stay_numbers() -> None:
    text = b"a: 12\nb: -0.5\nc: 1e-3\nd: 1_000\ne: .5\nf: 0x10\ng: 2.5e+3"
    expected = {"a": 12, "b": -0.5, "c": 1e-3, "d": 1000, "e": 0.5, "f": 16, "g": 2500.0}
    assert parse_yaml(text, "recipe") == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_whole_checkpoint_with_numbers_that_are_not_finite_is_refused(
    stopped: Path, tmp_path: Path, value: float
) -> None:
    name = "step-00000006.safetensors"
    tensors, header = read_container(stopped / "checkpoints" / name, "checkpoint")
    for changed in ("parameters/inputs", "adam_first/inputs"):
        assert changed in tensors
        hostile = tensors[changed].clone()
        hostile.view(-1)[0] = value
        content = {**tensors, changed: hostile}
        write_container(tmp_path / name, content, header, "checkpoint")
        with pytest.raises(ArtefactError, match=f"{changed} is not finite"):
            read_checkpoint(tmp_path / name)
    content = {**tensors, "parameters/inputs": tensors["parameters/inputs"].to(torch.float8_e5m2)}
    write_container(tmp_path / name, content, header, "checkpoint")
    with pytest.raises(ArtefactError, match="is not finite"):
        read_checkpoint(tmp_path / name)


def test_nothing_is_said_of_resuming_before_the_first_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise FileError("The disk is full.", "Free some space.")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("datadistill.runs.run.write_checkpoint", full)
        with pytest.raises(FileError) as caught:
            go(tmp_path / "run")
    assert caught.value.remedy == "Free some space."
    with monkeypatch.context() as patch:
        patch.setattr("datadistill.runs.run.write_checkpoint", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"^nothing was saved\.$"):
            go(tmp_path / "run")
    go(tmp_path / "run")  # the folder can be used
