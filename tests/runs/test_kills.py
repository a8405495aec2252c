"""Real processes, killed at any instant and at every stage of a write, then resumed."""

import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from datadistill.runs.store.folder import RunFolder
from tests.runs.helpers import arguments_with, contents, finish, start

STAGES = ("write", "sync", "rename", "sync_folder", "remove")

KILLED_AT_A_STAGE = """
import os, signal, sys
from datadistill import files
from datadistill.cli.main import main

stage, left = sys.argv[1], int(sys.argv[2])
original = getattr(files, stage)

def killed(*arguments):
    global left
    left -= 1
    if not left:
        if stage == "write":  # half of it is on the disk
            arguments[0].write_bytes(arguments[1][: len(arguments[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments)

setattr(files, stage, killed)
sys.exit(main(sys.argv[3:]))
"""


@dataclass(frozen=True)
class Whole:
    """A run that nothing happened to: when it began its work, and how long it took in all."""

    run: Path
    arguments: list[str]
    begun: float
    total: float

    def command(self, run: Path) -> list[str]:
        """What a user would type next."""
        if RunFolder(run).is_new:
            return ["distill", *self.arguments, "--run", str(run)]
        return ["resume", "--quiet", str(run)]

    def finish_and_compare(self, run: Path) -> None:
        code, said = finish(start(*self.command(run)))
        assert code == 0, said
        assert contents(run) == contents(self.run)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    run, arguments = folder / "run", arguments_with(folder / "data.npz")
    begin = time.monotonic()
    process = start("distill", *arguments, "--run", str(run))
    while not RunFolder(run).config.exists():
        assert process.poll() is None, finish(process)
        time.sleep(0.01)
    begun = time.monotonic() - begin
    code, said = finish(process)
    assert code == 0, said
    return Whole(run, arguments, begun, time.monotonic() - begin)


@pytest.mark.parametrize("nth", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_processes_killed_at_every_stage_of_a_write_lose_nothing(
    whole: Whole, tmp_path: Path, nth: int
) -> None:
    run = tmp_path / "run"
    for stage in STAGES:
        killed = start(stage, str(nth), *whole.command(run), program=KILLED_AT_A_STAGE)
        code, said = finish(killed)
        assert code == -signal.SIGKILL, said
    whole.finish_and_compare(run)


def kill_at_random(whole: Whole, folder: Path, seed: int, kills: int) -> None:
    instants = random.Random(seed)
    runs = iter(folder / str(number) for number in range(10 * kills))
    run, begun, total = next(runs), whole.begun, whole.total
    while kills:
        process, begin = start(*whole.command(run)), time.monotonic()
        try:
            process.wait(instants.uniform(0.8 * begun, total))
        except subprocess.TimeoutExpired:
            process.kill()
            finish(process)
            kills -= 1
        else:  # it was faster than the axe
            code, said = finish(process)
            assert code == 0, said
            assert contents(run) == contents(whole.run)
            shutil.rmtree(run)
            # The machine may have been slower when the whole run was measured.
            took = time.monotonic() - begin
            begun, total = min(begun, took / 2), min(total, took)
            run = next(runs)
    whole.finish_and_compare(run)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_processes_killed_at_random_instants_lose_nothing(
    whole: Whole, tmp_path: Path, seed: int
) -> None:
    kill_at_random(whole, tmp_path, seed, kills=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_two_hundred_kills_at_random_instants_lose_nothing(
    whole: Whole, tmp_path: Path, seed: int
) -> None:
    kill_at_random(whole, tmp_path, seed, kills=20)
