"""Hostile files of every kind: a time-boxed campaign, and all files that broke a promise once."""

import random
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from benchmarks.hostile import fuzz
from benchmarks.hostile.counts import Counts
from benchmarks.hostile.files import run
from benchmarks.hostile.guided import Guided
from benchmarks.hostile.kinds import Kind, NotFiniteError, SilentChangeError
from benchmarks.hostile.trial import CASES, FUZZED, KINDS, Place

from datadistill.errors import DataError

SECONDS = 5.0
READERS = [
    *(name for name in FUZZED if name.startswith(("artefact", "checkpoint", "pool"))),
    *("recipe", "config", "metrics", "csv", "npz", "usps: usps", "adult: adult.data"),
]
"""Artefacts, checkpoints, pools, recipes and data: readers that are Python to a good part."""
KEPT = sorted(path for path in CASES.glob("*/*"))


@pytest.fixture(scope="module")
def places() -> Generator[dict[str, Place]]:
    made = {name: Place(kind) for name, kind in FUZZED.items()}
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


def test_fuzzing_that_is_guided_by_coverage_breaks_no_promise(places: dict[str, Place]) -> None:
    total, seed, begin = Counts(), random.SystemRandom().randrange(2**32), time.monotonic()
    draw, guided = random.Random(seed), dict[str, Guided]()
    while time.monotonic() - begin < SECONDS:
        name = draw.choice(READERS)
        if name not in guided:
            guided[name] = Guided(places[name], draw)
        found = guided[name].try_next()
        found.details = [f"{name}, seed {seed}: {d}" for d in found.details]
        total.add(found if found.over_memory == 0 else Counts(tried=1))  # see above
    assert total.tried >= 20
    assert not total.failed, total.details
    assert any(len(one.corpus) > 1 for one in guided.values())


def test_coverage_leads_to_what_single_changes_do_not_reach() -> None:
    def make(folder: Path) -> Path:
        (folder / "file").write_bytes(b"...")
        return folder / "file"

    def use(path: Path) -> None:
        content = path.read_bytes()
        if content[0] != ord("a"):
            return
        if content[1] != ord("b"):
            return
        if content[2] == ord("c"):
            raise KeyError(content)

    def change(content: bytes, draw: random.Random) -> bytes:
        place = draw.randrange(3)
        return content[:place] + draw.choice([b"a", b"b", b"c", b"d"]) + content[place + 1 :]

    place = Place(Kind("fake", make, use, change))
    assert not any(place.judge(place.case(0, number)).failed for number in range(500))
    guided = Guided(place, random.Random(0), __file__)
    assert any(guided.try_next().untyped for _ in range(500))
    assert [content[:2] for content in guided.corpus[-1:]] == [b"ab"]
    place.close()


@pytest.mark.slow
def test_a_run_of_atheris_keeps_its_corpus(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="needs the extra fuzz: pip install -e .[fuzz]")
    for name in ("recipe", "artefact, hashed again"):
        counts = fuzz.run(0.1, [name], tmp_path)
        assert counts.tried
        assert not counts.failed, counts.details
    assert {path.name for path in tmp_path.iterdir()} == {"recipe", "artefact-hashed-again"}
    assert all(any(path.iterdir()) for path in tmp_path.iterdir())


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
