"""A run that was stopped and resumed ends in the same bytes as one that never was."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.errors import RunError
from datadistill.runs.preparation import prepare
from datadistill.runs.run import Run
from datadistill.runs.store.checkpoint import checkpoints_in
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.yaml_files import read_config, write_yaml
from tests.runs.helpers import DATA, IMAGES, LABELS, SETTINGS, TEST, contents, go, stop_after


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    path = tmp_path_factory.mktemp("whole")
    go(path)
    return path


@pytest.mark.parametrize("outer_step", range(1, 13))
def test_a_run_stopped_after_any_outer_step_and_resumed_ends_in_the_same_bytes(
    whole: Path, tmp_path: Path, outer_step: int
) -> None:
    with pytest.raises(
        KeyboardInterrupt, match=r"To resume: make the same call again: dd\.distill"
    ):
        go(tmp_path, **stop_after(outer_step))
    assert not (tmp_path / "results.json").exists()
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_a_run_stopped_again_and_again_ends_in_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    for outer_step in (2, 3, 5, 6, 9, 11, 12):
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path, **stop_after(outer_step))
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_a_run_in_a_folder_gives_what_one_in_memory_gives(whole: Path) -> None:
    made, loaded = go(None), dd.load(whole / "distilled.safetensors")
    for name in ("inputs", "labels", "learning_rates"):
        assert torch.equal(getattr(made, name), getattr(loaded, name))
    assert made.claim == loaded.claim
    assert made.header == loaded.header


def test_the_best_and_the_last_are_both_kept_and_the_choice_is_recorded(tmp_path: Path) -> None:
    whole, seed = tmp_path / "whole", 1  # which becomes worse by some points towards its end
    go(whole, seed=seed)
    best, last = (dd.load(whole / f"{name}.safetensors") for name in ("best", "last"))
    figures = [row.held_out.mean for row in read_metrics(whole / "metrics.jsonl") if row.held_out]
    assert best.claim is not None
    assert last.claim is not None
    assert (best.claim.mean, last.claim.mean) == (max(figures), figures[-1])
    assert max(figures) > figures[-1], "or this test shows nothing"
    assert best.claim.split == last.claim.split == "validation"
    for keep, expected in (("last", last), ("best", best)):
        chosen = go(tmp_path / keep, keep=keep, seed=seed)
        assert torch.equal(chosen.inputs, expected.inputs)
        assert chosen.claim is not None
        assert chosen.claim.split == "test"
        assert RunFolder(tmp_path / keep).read_results()["run"]["keep"] == keep
        assert chosen.header.configuration["keep"] == keep


def test_the_test_data_are_used_once_and_only_at_the_end(tmp_path: Path) -> None:
    happened: list[str] = []

    class Watched(dd.LabelledData):
        def batch(self, *arguments: Any, **named: Any) -> Any:
            happened.append("test data")
            return super().batch(*arguments, **named)

    dd.distill(
        DATA,
        dd.models.Linear(),
        run=tmp_path,
        test=Watched(*TEST, split="test"),
        progress=lambda told: happened.append(told.stage),
        **SETTINGS,
    )
    assert happened.count("distilling") == 12
    first = happened.index("test data")
    assert "distilling" not in happened[first:]
    # Two networks are tested in two groups, each of which reads the data once.
    assert happened[first:].count("test data") == 2


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"learning_rate": 0.1}, r"learning_rate: 0\.2 → 0\.1"),
        ({"steps": 3, "seed": 4}, "steps: 2 → 3; seed: 0 → 4"),
        ({"keep": "best"}, "keep: auto → best"),
        ({"initialization": dd.FixedInit(), "networks": 1}, "initialization: random → fixed"),
        ({"adjoint": dd.Truncated(1)}, "adjoint: back-gradient → truncated"),
        ({"dtype": "float64"}, "dtype: float32 → float64"),
    ],
)
def test_a_changed_configuration_is_refused_with_the_difference(
    tmp_path: Path, change: dict[str, Any], difference: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(4))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    with pytest.raises(RunError, match=difference) as caught:
        go(tmp_path, **change)
    assert len(str(caught.value).splitlines()) == 2
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}


def test_more_outer_steps_are_allowed_and_fewer_end_the_run_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "a", **stop_after(5))
    more = go(tmp_path / "a", iterations=17)
    assert more.header.configuration["outer_step"] == 17
    never_stopped = go(tmp_path / "b", iterations=17)
    assert torch.equal(more.inputs, never_stopped.inputs)
    assert len(read_metrics(tmp_path / "a" / "metrics.jsonl")) == 17

    go(tmp_path / "a", iterations=20)  # a finished one goes on too
    assert torch.equal(
        dd.load(tmp_path / "a" / "distilled.safetensors").inputs,
        go(tmp_path / "c", iterations=20).inputs,
    )
    with pytest.raises(RunError, match="is already at outer step 20"):
        go(tmp_path / "a", iterations=19)

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "d", checkpoint_every=1, **stop_after(5))
    ended = go(tmp_path / "d", iterations=4)
    assert ended.header.configuration["outer_step"] == 4
    assert len(read_metrics(tmp_path / "d" / "metrics.jsonl")) == 4


def test_a_cosine_stays_as_it_was_planned_when_there_are_more_outer_steps(tmp_path: Path) -> None:
    cosine = {"outer_schedule": "cosine"}
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "a", **cosine, **stop_after(5))
    go(tmp_path / "a", **cosine, iterations=15)
    go(tmp_path / "b", **cosine, iterations=15, decay_every=12)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    rates = [row.outer_lr for row in read_metrics(tmp_path / "a" / "metrics.jsonl")]
    assert rates[12:] == pytest.approx([0.01] * 3)  # a hundredth, after the end of the cosine
    with pytest.raises(RunError, match="decay_every: 12 → 14"):
        go(tmp_path / "a", **cosine, iterations=15, decay_every=14)


def test_a_finished_run_is_read_and_not_made_again(tmp_path: Path) -> None:
    first = go(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    stages: list[str] = []

    def watch(told: dd.Progress) -> None:
        stages.append(told.stage)

    again = go(tmp_path, progress=watch)
    assert stages == []
    assert torch.equal(first.inputs, again.inputs)
    assert again.train() is not None
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    (tmp_path / "distilled.safetensors").write_bytes(b"damaged")
    healed = go(tmp_path)
    assert torch.equal(first.inputs, healed.inputs)
    assert dd.load(tmp_path / "distilled.safetensors").claim == first.claim


@pytest.mark.parametrize(
    ("data", "module", "message"),
    [
        ((IMAGES + 1e-6, LABELS), dd.models.Linear(), "training data differ from the run's"),
        ((IMAGES, LABELS.roll(1)), dd.models.Linear(), "training data differ from the run's"),
        ((IMAGES, LABELS), dd.models.LeNet(), "model: linear → lenet"),
    ],
)
def test_other_data_or_another_network_are_refused(
    tmp_path: Path, data: Any, module: torch.nn.Module, message: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(3))
    named = dd.LabelledData(*data)
    with pytest.raises(RunError, match=message):
        dd.distill(named, module, run=tmp_path, test=TEST, **SETTINGS)


def test_a_damaged_newest_checkpoint_is_skipped_with_the_reason(
    whole: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(7))
    new, old = checkpoints_in(tmp_path / "checkpoints")
    assert (new.name, old.name) == ("step-00000006.safetensors", "step-00000004.safetensors")
    new.write_bytes(new.read_bytes()[:-5])
    said: list[str] = []
    config = replace(read_config(tmp_path / "config.yaml"), model="linear")
    run = prepare(config, DATA, dd.models.Linear())
    test = dd.LabelledData(*TEST, split="test")
    Run(run, RunFolder(tmp_path), test, tell=said.append, in_python=True).go()
    assert "step-00000006.safetensors is damaged" in said[0]
    assert "Resuming from outer step 4 of 12, about " in said[1]
    assert contents(tmp_path) == contents(whole)


def test_without_a_readable_checkpoint_the_reasons_are_told(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(7))
    for path in checkpoints_in(tmp_path / "checkpoints"):
        path.write_bytes(b"")
    with pytest.raises(RunError, match=r"no valid checkpoint.*step-00000006.*cut short"):
        go(tmp_path)


def test_a_lost_config_yaml_comes_back_from_the_checkpoint(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(7))
    (tmp_path / "config.yaml").unlink()
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_what_a_crash_left_half_written_is_mended(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(7))
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"outer_step": 8, "lo')
    (tmp_path / "checkpoints" / ".step-00000008.0a1b2c3d.safetensors").write_bytes(b"half")
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 7
    go(tmp_path)
    assert contents(tmp_path) == contents(whole)


def test_a_link_out_of_the_run_folder_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").symlink_to(precious)
    with pytest.raises(RunError, match="to a place outside the run folder"):
        go(run)
    assert precious.read_text() == "precious"


def test_every_setting_survives_config_yaml(whole: Path, tmp_path: Path) -> None:
    config = read_config(whole / "config.yaml")
    (tmp_path / "again.yaml").write_bytes(write_yaml(config, "again"))
    assert read_config(tmp_path / "again.yaml") == config
    assert config.decay_every is not None
    assert config.threads == torch.get_num_threads()
