"""The Slurm script of docs/runs.md, run against a scheduler that only pretends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from datadistill.cli.main import main
from datadistill.runs.store.checkpoint import newest
from datadistill.runs.store.folder import RunFolder
from tests.runs.helpers import arguments_with, contents

PAGE = Path(__file__).parents[2] / "docs" / "runs.md"
COMMANDS = {
    "srun": 'exec "$@"',
    "scontrol": 'echo "$@" >> "$REQUESTS"',
    "datadistill": f'exec {sys.executable} -m datadistill "$@"',
}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs bash")


def the_script() -> str:
    (found,) = re.findall(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", PAGE.read_text(), re.DOTALL)
    return found


def submitted(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts the script as Slurm would, in a folder with all that it calls."""
    for name, text in COMMANDS.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "distill.sh").write_text(the_script())
    variables = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NAME": "mnist",
        "REQUESTS": str(folder / "requests"),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        ["bash", "distill.sh", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | variables,
    )


def test_a_warned_job_saves_and_is_queued_again_and_its_next_start_ends_alike(
    tmp_path: Path,
) -> None:
    assert "#SBATCH --signal=B:USR1@120 " in the_script()  # B: the shell alone gets USR1
    run, requests = tmp_path / "runs" / "mnist", tmp_path / "requests"
    arguments = [
        *arguments_with(tmp_path / "data.npz"),
        "--iterations",
        "200",
        "--checkpoint-every",
        "100",
    ]
    first = submitted(tmp_path, *arguments)
    log = RunFolder(run).metrics
    while not log.exists() or log.read_bytes().count(b"\n") < 5:
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    first.send_signal(signal.SIGUSR1)
    said, _ = first.communicate(timeout=120)
    assert first.returncode == 75, said
    assert requests.read_text() == "requeue 4711\n"
    reached = newest(RunFolder(run).checkpoints)[0].state.outer_step
    assert f"Interrupted; outer step {reached:,} is saved." in said
    assert 5 <= reached < 200

    second = submitted(tmp_path, *arguments)
    said, _ = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert f"outer step {reached:,}" in said
    assert requests.read_text() == "requeue 4711\n"
    moments = {"checkpoints": "at other outer steps"}
    assert main(["distill", *arguments, "--run", str(tmp_path / "whole")]) == 0
    assert contents(run) | moments == contents(tmp_path / "whole") | moments
