"""Hostile files of every kind: a time-boxed campaign, and all files that broke a promise once."""

import random
import time
from collections.abc import Generator

import pytest
from benchmarks.hostile.counts import Counts
from benchmarks.hostile.files import run
from benchmarks.hostile.kinds import Kind, NotFiniteError, SilentChangeError
from benchmarks.hostile.trial import CASES, KINDS, Place

from datadistill.errors import DataError

SECONDS = 5.0
KEPT = sorted(path for path in CASES.glob("*/*"))


@pytest.fixture(scope="module")
def places() -> Generator[dict[str, Place]]:
    made = {name: Place(kind) for name, kind in KINDS.items()}
    yield made
    for place in made.values():
        place.close()


def test_valid_files_are_used_and_hostile_ones_break_no_promise(places: dict[str, Place]) -> None:
    for name, place in places.items():
        counts = place.judge(place.content)
        assert counts.used == 1, (name, counts.details)
    total, seed, begin = Counts(), random.SystemRandom().randrange(2**32), time.monotonic()
    names, number = list(KINDS), 0
    random.Random(seed).shuffle(names)
    while time.monotonic() - begin < SECONDS:
        name = names[number % len(names)]
        found = places[name].judge(places[name].case(seed, number))
        found.details = [f"{name}, seed {seed}, case {number}: {d}" for d in found.details]
        # This process has the memory of all tests before; the campaign's workers have their own.
        total.add(found if found.over_memory == 0 else Counts(tried=1))
        number += 1
    assert total.tried >= 20
    assert total.refused
    assert not total.failed, total.details


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_that_broke_a_promise_once(path: object, places: dict[str, Place]) -> None:
    case = next(one for one in KEPT if one == path)
    counts = places[case.parent.name].judge(case.read_bytes())
    assert counts.failed == counts.over_memory, counts.details  # see above


def test_cases_depend_on_their_seed_and_number_alone(places: dict[str, Place]) -> None:
    for place in places.values():
        if place.kind.name not in ("tgz", "package"):  # gzip writes the time
            assert place.case(1, 2) == place.case(1, 2)


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (DataError("It is bad.", "Mend it."), "refused"),
        (SilentChangeError(), "silent"),
        (NotFiniteError(), "not_finite"),
        (MemoryError(), "over_memory"),
        (KeyError("x"), "untyped"),
        (RecursionError(), "untyped"),
    ],
)
def test_every_outcome_is_counted(error: Exception, counted: str, places: dict[str, Place]) -> None:
    def use(_: object) -> None:
        raise error

    valid = places["recipe"]
    place = Place(Kind("fake", valid.kind.make, use))
    counts = place.judge(place.content)
    place.close()
    assert getattr(counts, counted) == 1
    assert counts.failed == (counted != "refused")


@pytest.mark.slow
def test_a_campaign_in_workers() -> None:
    counts = run(range(200), 7, 2, lambda done, count: None)
    assert counts.tried == 200
    assert not counts.failed, counts.details
