"""Hostile but correctly hashed artefacts: a small part of ``python -m benchmarks.hostile``."""

import time
from typing import Any

import pytest
import torch
from benchmarks.hostile import artefact_trial
from benchmarks.hostile.artefact_trial import Trial
from benchmarks.hostile.artefacts import run
from benchmarks.hostile.counts import Counts
from safetensors import SafetensorError

COUNT = 75
SHARED = 65
"""An artefact in which one tensor has two names."""


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial(0, picture=False)


@pytest.mark.parametrize("first", [0, pytest.param(COUNT, marks=pytest.mark.thorough)])
def test_no_hostile_artefact_breaks_a_promise(trial: Trial, first: int) -> None:
    counts = Counts()
    for number in range(first, first + COUNT):
        counts.add(trial(number))
    assert counts.details == []
    assert counts.failed == 0
    assert counts.tried == COUNT == counts.refused + counts.used
    assert min(counts.refused, counts.used) > COUNT // 20


def test_a_broken_promise_is_counted(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        raise KeyError("weights")

    monkeypatch.setattr("benchmarks.hostile.artefact_trial._used", broken)
    counts = Counts()
    for number in range(20):
        counts.add(trial(number))
    assert counts.untyped > 0
    assert counts.untyped == len(counts.details)
    assert "KeyError: 'weights'" in counts.details[0]


@pytest.mark.parametrize("slow", ["write_container", "_used"])
def test_time_is_that_of_using_an_artefact_and_not_of_writing_it(
    slow: str, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(artefact_trial, slow)

    def slowly(*arguments: object) -> object:
        begin = time.process_time()
        while time.process_time() - begin < 2.5:
            pass
        return real(*arguments)

    number = next(n for n in range(COUNT) if trial(n).used)
    monkeypatch.setattr(artefact_trial, slow, slowly)
    monkeypatch.setattr(trial, "seconds", 2.0)
    assert trial(number).over_time == (slow == "_used")


def test_memory_is_that_of_using_an_artefact_and_not_of_writing_it(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = artefact_trial.write_container

    def largely(*arguments: Any) -> None:
        torch.ones(2**26)  # 256 MB
        real(*arguments)

    number = next(n for n in range(COUNT) if trial(n).used)
    monkeypatch.setattr(artefact_trial, "write_container", largely)
    monkeypatch.setattr(artefact_trial, "BYTES", 2**27)
    assert trial(number).used


def test_an_artefact_that_cannot_be_written_is_not_said_to_be_refused(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object) -> None:
        raise SafetensorError("Error while serializing: header too large")

    monkeypatch.setattr(artefact_trial, "write_container", too_large)
    assert trial(0) == Counts(tried=1, unwritten=1)


def test_tensors_that_share_memory_are_written(trial: Trial) -> None:
    assert not trial(SHARED).unwritten


@pytest.mark.slow
def test_workers_and_portions_count_the_same() -> None:
    seen: list[int] = []
    whole = run(range(20), 0, 2, lambda done, _: seen.append(done))
    assert whole.tried == seen[-1] == 20
    portions = run(range(15), 0, 1, lambda done, _: None)
    portions.add(run(range(15, 20), 0, 1, lambda done, _: None))
    assert portions == whole
