"""A sample of power losses and failing calls; all of them: python -m benchmarks.power_loss."""

import errno
import itertools
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from benchmarks.power_loss.__main__ import failing_cases
from benchmarks.power_loss.calls import Failing
from benchmarks.power_loss.campaign import Campaign
from benchmarks.power_loss.commands import COMMANDS, Command
from benchmarks.power_loss.disk import FATES, Fates, Recorder, Tree, all_fates, lay_out, tree_of
from benchmarks.power_loss.order import out_of_order

from datadistill import files

LOSSES, FAILURES = 12, 12
SLOW = {
    "distil": 2,
    "resume": 2,
    "extend": 2,
    "resume bases": 4,
    "resume ridge": 4,
}  # parts of the sample
NOTHING, ALL = all_fates(range(0))[:2]


def named(name: str) -> Command:
    return next(command for command in COMMANDS if command.name == name)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_that_was_broken_off_ends_in_the_same_bytes(command: Command) -> None:
    random, part = Random(command.name), SLOW.get(command.name, 1)
    campaign = Campaign(command)
    ways = all_fates(range(30))
    points = random.sample([*campaign.points], min(LOSSES // part, len(campaign.points)))
    campaign.lose_power([(point, random.choice(ways)) for point in points])
    cases = failing_cases(campaign.calls)
    campaign.fail(random.sample(cases, FAILURES // part))
    found = campaign.outcome
    assert found.defects == []
    assert found.cases == len(points) + FAILURES // part
    assert found.resumed == found.cases  # none of these needs the user
    assert found.told


def test_the_first_call_of_an_export_may_fail() -> None:
    campaign = Campaign(named("export"))
    campaign.fail(failing_cases(range(1, 3)))
    assert campaign.outcome.defects == []
    assert campaign.outcome.resumed == campaign.outcome.told == 4


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Campaign]:
    return {command.name: Campaign(command) for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_nothing_that_was_promised_is_lost_at_any_point(
    command: Command, undisturbed: dict[str, Campaign]
) -> None:
    campaign = undisturbed[command.name]
    campaign.keep_promises()
    assert campaign.outcome.defects == []


def do_nothing(*_: object) -> None:
    """In place of a sync."""


def copy(temporary: Path, path: Path) -> None:
    """In place of a rename: a reader sees half of it."""
    files.write(path, temporary.read_bytes())
    files.remove(temporary)


MUTANTS: dict[str, tuple[Any, str, Callable[..., None], str]] = {
    "bytes are not synced": (files, "sync", do_nothing, "before its bytes are synced"),
    "names are not synced": (files, "sync_folder", do_nothing, "is not synced before"),
    "a copy, not a rename": (files, "rename", copy, "is written in place"),
    "the log is not synced": (files.Appended, "sync", do_nothing, "lines that are not synced"),
}


WITHOUT_LOG = [mutant for mutant in MUTANTS if "log" not in mutant]


@pytest.mark.parametrize(
    ("command", "mutant"),
    [
        *(("resume", mutant) for mutant in MUTANTS),
        *itertools.product(("pretrain", "evaluate", "save"), WITHOUT_LOG),
    ],
)
def test_a_write_that_is_not_whole_and_synced_is_found_out(
    command: str, mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, name, instead, defect = MUTANTS[mutant]
    monkeypatch.setattr(place, name, instead)
    campaign = Campaign(named(command))
    assert any(defect in one for one in out_of_order(campaign.record))
    if mutant == "bytes are not synced":
        monkeypatch.undo()
        campaign.keep_promises()
        assert any(one.endswith(" is lost") for one in campaign.outcome.defects)


def test_an_error_that_is_not_ours_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(path: Path, error: OSError) -> OSError:
        return error

    monkeypatch.setattr(files, "cannot_write", raising)
    campaign = Campaign(named("save"))
    campaign.fail([(5, errno.EIO, False)])
    assert len(campaign.outcome.defects) == 1
    assert "OSError(5, " in campaign.outcome.defects[0]


def changed(folder: Path) -> Recorder:
    """A file that is replaced without a sync in between, and one that is synced."""
    (folder / "old").write_bytes(b"old")
    record = Recorder(folder)
    with record.watched():
        for name in ("old", "new"):
            files.write(folder / ".x", b"1234")
            if name == "new":
                files.sync(folder / ".x")
            files.rename(folder / ".x", folder / name)
            if name == "new":
                files.sync_folder(folder)
                files.remove(folder / name)
    return record


def test_what_is_synced_is_certain_and_what_is_not_may_be_anything(tmp_path: Path) -> None:
    record = changed(tmp_path)
    end = len(record.changes)
    assert record.disk(end).after(ALL) == tree_of(tmp_path) == {"old": b"1234"}
    assert record.disk(0).after(NOTHING) == {"old": b"old"}
    # The folder was synced with both names, but the removal and one file's bytes were not.
    assert record.disk(end).after(NOTHING) == {"old": b"", "new": b"1234"}
    contents = {fate: _with(record, fate)["old"] for fate in FATES}
    assert contents == {"kept": b"1234", "dropped": b"", "torn": b"12", "zeros": bytes(4)}
    seen = {tuple(sorted(record.disk(4).after(f).items())) for f in all_fates(range(40))}  # pyright: ignore[reportArgumentType]
    assert (("old", b"old"),) in seen
    assert (("old", b"1234"),) in seen  # the rename alone
    assert ((".x", b"1234"), ("old", b"old")) in seen
    assert not any(dict(tree).get("old") is None for tree in seen)  # it is indivisible


def _with(record: Recorder, fate: str) -> Tree:
    return record.disk(len(record.changes)).after(Fates("", lambda: fate, lambda: True))  # pyright: ignore[reportArgumentType, reportReturnType]


def test_bytes_that_are_appended_are_lost_from_where_the_last_sync_was(tmp_path: Path) -> None:
    record = Recorder(tmp_path)
    with record.watched(), files.appending(tmp_path / "log", 0) as log:
        log.append(b"1\n")
        log.sync()
        log.append(b"2\n")
    assert record.disk(len(record.changes)).after(NOTHING) == {"log": b"1\n"}
    lay_out({"below": None, "below/file": b"x"}, tmp_path)
    record = Recorder(tmp_path)
    with record.watched(), files.appending(tmp_path / "log", 2) as log:
        log.append(b"3\n")
    assert record.disk(len(record.changes)).after(ALL)["log"] == b"1\n3\n"


def test_a_file_that_is_written_beside_our_functions_is_found_out(tmp_path: Path) -> None:
    with Recorder(tmp_path).watched(), pytest.raises(AssertionError, match="beside"):
        (tmp_path / "new").write_bytes(b"")


def test_the_nth_call_fails_and_on_a_full_disk_all_changes_after_it(tmp_path: Path) -> None:
    for forever in (False, True):
        calls = Failing(tmp_path, nth=1, forever=forever)
        with calls.watched():
            with pytest.raises(OSError, match="No space left"):
                files.write(tmp_path / "a", b"")
            if forever:
                with pytest.raises(OSError, match="No space left"):
                    files.write(tmp_path / "a", b"")
            else:
                files.write(tmp_path / "a", b"")
            (tmp_path / "a").exists()
        assert calls.failed == "open a"
