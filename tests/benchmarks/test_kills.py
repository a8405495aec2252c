"""The campaign of kills: a small one, and that it sees what it looks for."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from benchmarks.kills.campaign import TOKEN, Campaign, processes_of, without_times
from benchmarks.kills.works import WORKS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.slow
def test_killed_processes_leave_nothing_and_the_next_start_ends_alike(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, random.Random(0))
    campaign.run(2, ["pretrain, 2 processes"])
    assert campaign.failures == []
    assert campaign.kills == {"pretrain, 2 processes": 2}


@pytest.mark.slow
def test_every_command_can_be_killed(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, random.Random(1))
    campaign.run(4 * len(WORKS))
    assert campaign.failures == []
    assert campaign.kills == dict.fromkeys(WORKS, 4)


def test_other_bytes_stale_files_and_orphans_are_seen(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, random.Random(0))
    (tmp_path / "run").mkdir()
    campaign.compare("train", tmp_path, {"output": b"1"}, {"output": b"1"})
    assert campaign.failures == []
    (tmp_path / "run" / ".results.0123abcd.json").touch()
    campaign.compare("train", tmp_path, {"output": b"1"}, {"output": b"2", "run/last": b""})
    assert len(campaign.failures) == 3
    variables = os.environ | {TOKEN: str(tmp_path)}
    with subprocess.Popen(["cat"], env=variables, bufsize=0, stdin=PIPE, stdout=PIPE) as orphan:
        assert orphan.stdin
        assert orphan.stdout
        orphan.stdin.write(b"!")
        assert orphan.stdout.read(1) == b"!"  # it runs: before, the system does not list variables
        assert processes_of(tmp_path) == [orphan.pid]
        orphan.kill()


def test_of_a_page_only_its_times_are_left_out(tmp_path: Path) -> None:
    pages = (
        b"<dd>4.6 s</dd><dd>60</dd>",
        b"<dd>1 min 2 s</dd><dd>60</dd>",
        b"<dd>2 s</dd><dd>6</dd>",
    )
    found: list[bytes] = []
    for content in pages:
        (tmp_path / "report.html").write_bytes(content)
        found.append(without_times(tmp_path / "report.html"))
    assert found[0] == found[1] != found[2]


def test_of_a_table_only_its_times_are_left_out(tmp_path: Path) -> None:
    found: list[bytes] = []
    for figure, seconds in ((0.5, 2.25), (0.5, 1e-05), (0.25, 2.25)):
        table = {"mean": figure, "seconds": seconds, "cpu_seconds": seconds / 2}
        (tmp_path / "table.json").write_text(json.dumps(table, indent=2))
        found.append(without_times(tmp_path / "table.json"))
    assert found[0] == found[1] != found[2]
