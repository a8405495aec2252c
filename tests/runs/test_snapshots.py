"""Snapshots: which ones a run keeps, and that stopping it changes none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from datadistill.errors import RunError
from datadistill.pixels import pictures_of
from datadistill.runs.store.checkpoint import newest, write_checkpoint
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.snapshots import BYTES, MOST, Snapshots, is_due, shrunk, spacing_at

from .helpers import go, stop_after

LONG = {"iterations": 90, "validate_every": 30, "checkpoint_every": 7, "networks": 1}


def _snapshots(run: Path) -> Snapshots:
    return newest(RunFolder(run).checkpoints)[0].state.snapshots


def test_there_are_never_more_than_planned_and_they_are_evenly_spaced() -> None:
    shots, image = Snapshots(), torch.rand(1, 2, 1, 3, 3)
    for outer_step in range(1000):
        if is_due(outer_step):
            shots = shots.taken(outer_step, image)
        spacing = spacing_at(shots.outer_steps[-1])
        assert shots.outer_steps == tuple(range(0, shots.outer_steps[-1] + 1, spacing))
        assert outer_step - shots.outer_steps[-1] < spacing_at(outer_step)
        assert len(shots.outer_steps) <= MOST + 1
        assert outer_step < MOST or len(shots.outer_steps) > MOST // 2


def test_each_picture_is_stretched_to_its_own_range() -> None:
    images = torch.tensor([[-5.0, 7.0], [0.25, 0.5]]).reshape(1, 2, 1, 1, 2)
    assert pictures_of(images).flatten().tolist() == [0, 255, 0, 255]
    assert pictures_of(torch.ones(1, 1, 1, 2, 2)).max() == 0  # of a single colour
    assert pictures_of(torch.tensor([-3e38, 3e38]).reshape(1, 1, 1, 1, 2)).max() == 255


def test_large_images_are_made_small_enough() -> None:
    images = torch.rand(10, 20, 3, 112, 112)
    small = shrunk(images)
    assert small.numel() <= BYTES
    assert small.shape[:3] == images.shape[:3]
    assert shrunk(torch.rand(10, 10, 1, 28, 28)).shape[-2:] == (28, 28)  # of the paper's runs


def test_a_run_that_was_stopped_has_the_snapshots_of_one_that_never_was(tmp_path: Path) -> None:
    go(tmp_path / "whole", **LONG)
    for stop in (1, 40, 41, 83):
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path / "stopped", **LONG, **stop_after(stop))
    go(tmp_path / "stopped", **LONG)
    whole, stopped = _snapshots(tmp_path / "whole"), _snapshots(tmp_path / "stopped")
    assert whole.outer_steps == tuple(range(0, 89, 4))
    assert stopped == whole
    last = whole.pictures[-1].float()
    assert (last - whole.pictures[0].float()).abs().max() > 5  # they show something


def test_inputs_that_are_no_images_have_no_snapshots(tmp_path: Path) -> None:
    import datadistill as dd

    data = torch.rand(30, 6), torch.arange(30) % 3
    dd.distill(data, "linear", run=tmp_path, iterations=2, validation=0.0, batch_size=8)
    assert _snapshots(tmp_path) == Snapshots()


def test_snapshots_of_other_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, **stop_after(4))
    folder = RunFolder(tmp_path)
    checkpoint, _ = newest(folder.checkpoints)
    others = Snapshots((0,), torch.zeros(1, 2, 10, 1, 5, 5, dtype=torch.uint8))
    state = replace(checkpoint.state, snapshots=others)
    write_checkpoint(folder.checkpoints, replace(checkpoint, state=state))
    with pytest.raises(RunError, match="do not match its configuration"):
        go(tmp_path)


@pytest.mark.parametrize(
    "shape", [(2, 1, 1, 1, 3, 3), (1, 1, 1, 2, 3, 3), (1, 1, 3, 3), (1, 1, 1, 1, 3)]
)
def test_snapshots_that_are_no_pictures_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="not pictures"):
        Snapshots((0,), torch.zeros(shape, dtype=torch.uint8))
