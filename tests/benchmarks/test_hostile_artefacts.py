"""Hostile but correctly hashed artefacts: a small part of ``python -m benchmarks.hostile``."""

import pytest
from benchmarks.hostile.artefact_trial import Trial
from benchmarks.hostile.artefacts import run
from benchmarks.hostile.counts import Counts

COUNT = 150


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial(0, picture=False)


def test_no_hostile_artefact_breaks_a_promise(trial: Trial) -> None:
    counts = Counts()
    for number in range(COUNT):
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


@pytest.mark.slow
def test_workers_count_the_same() -> None:
    seen: list[int] = []
    assert run(20, 0, lambda done, _: seen.append(done)).tried == 20
    assert seen[-1] == 20
