"""Every option is resumed bit-identically after a kill, divided, trained with and verified."""

import os
import signal
import socket
from pathlib import Path

import pytest
import safetensors.torch
import torch

import datadistill as dd
from tests.helpers import relative_error
from tests.processes import python
from tests.runs.helpers import contents, finish
from tests.runs.options import OPTIONS, distil, real_data

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.runs.options import distil

def progress(told):
    if told.stage == "distilling" and told.done == 5:
        os.kill(os.getpid(), signal.SIGKILL)

distil(sys.argv[1], Path(sys.argv[2]), progress=progress)
"""


@pytest.mark.parametrize("option", OPTIONS)
def test_a_killed_run_resumes_to_the_same_bytes_and_its_artefact_trains_and_verifies(
    option: str, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    made = distil(option, whole)
    process = python("-c", KILLED, option, killed, cwd=ROOT)
    code, said = finish(process)
    assert code == -signal.SIGKILL, said
    distil(option, killed)
    assert contents(killed) == contents(whole)
    loaded, test = dd.load(whole), real_data(option)[1]
    assert loaded == made
    verified = dd.verify(loaded, test)
    assert verified.holds
    assert verified.found == dd.evaluate(loaded, test, networks=2)
    one, again = (loaded.train(seed=3).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert all(torch.isfinite(w).all() for w in one.values())


DIVIDED = """
import contextlib, sys
import safetensors.torch, torch
from datadistill.runs.config import config_from
from datadistill.runs.distillation import Distillation
from datadistill.runs.preparation import prepare
from datadistill.runs.calls.presets import preset_settings
from datadistill.runs.team.processes import Processes, by_environment
from datadistill.runs.team.secret import Secret
from tests.runs.helpers import SETTINGS
from tests.runs.options import OPTIONS, real_data

alone = sys.argv[1] == "alone"
team = contextlib.nullcontext(Processes()) if alone else by_environment(Secret.by_environment())
with team as team:
    found = {}
    for option in OPTIONS:
        given = {**SETTINGS, "dtype": "float64", "threads": 1, "networks": 3, **OPTIONS[option]}
        given = {**preset_settings(given.pop("preset", "fast"), given), **given}
        train, _, module = real_data(option)
        made = prepare(config_from(given), train, module, team=team)
        state = made.start().distiller
        losses, gradient = made.distiller.at(0).gradient(state, made.batch(0))
        found |= {f"{option}/{name}": g.contiguous() for name, g in gradient.items()}
    safetensors.torch.save_file(found, sys.argv[2])
"""


def test_two_processes_find_the_gradient_of_one_with_every_option(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"},
        **{"LOCAL_WORLD_SIZE": "2", "DATADISTILL_SECRET": "0" * 64},
    }
    started = [
        python("-c", DIVIDED, "alone", tmp_path / "alone", cwd=ROOT),
        *(
            python(
                *("-c", DIVIDED, "together", tmp_path / str(rank)),
                cwd=ROOT,
                env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank in range(2)
        ),
    ]
    for process in started:
        code, said = finish(process)
        assert code == 0, said
    alone, first, second = (
        safetensors.torch.load_file(tmp_path / name) for name in ("alone", "0", "1")
    )
    assert {name.partition("/")[0] for name in alone} == {*OPTIONS}
    for name, expected in alone.items():
        assert torch.equal(first[name], second[name])
        assert relative_error(first[name], expected) < 1e-10, name
