"""Makes the files under ``data``: artefacts, a pool and run folders of an earlier version.

Made with the version of commit f2376be; kept so that readers of schema 1 stay. It is not meant to
be run again: what a later version makes is no test of reading an earlier one's files. It was run
in an empty folder, with that version on the path and this folder's files copied beside it::

    cp tests/legacy/*.py /tmp/legacy && cd /tmp/legacy && OMP_NUM_THREADS=1 python make.py
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import modules
import torch
from common import figures_of, processor_bits
from safetensors.torch import load_file, save_file

import datadistill as dd

DATA = Path("data")
ARTEFACTS, POOL, RUNS, AFTER = (
    DATA / "artefacts",
    DATA / "digits-mlp",
    DATA / "runs",
    DATA / "after",
)
WEIGHTS = DATA / "pretrained.safetensors"
QUICK: dict[str, Any] = {
    "iterations": 300,
    "batch_size": 128,
    "threads": 1,
    "learning_rate": 0.3,
    "outer_lr": 0.1,
}
MLP = ("--model", "mlp", "--model-args", "hidden=6")
STOPPED: dict[str, tuple[signal.Signals, int, list[str]]] = {
    "fixed": (
        signal.SIGTERM,
        9,
        [
            *("--model", "linear", "--initialization", "fixed", "--init-seed", "3", "--steps", "2"),
            *("--keep", "best"),
        ],
    ),
    "random": (
        signal.SIGKILL,
        11,
        [
            *MLP,
            *("--steps", "3", "--epochs", "2", "--adjoint", "truncated", "--window", "2"),
            *("--momentum", "0.5", "--averaging", "0.9", "--networks", "2", "--test-networks", "5"),
        ],
    ),
    "poisoning": (
        signal.SIGINT,
        7,
        [
            *MLP,
            *("--initialization", "random-pretrained", "--pool", str(POOL), "--pool-noise", "0.1"),
            *("--objective", "poisoning", "--attacked", "2", "--target", "7", "--epochs", "1"),
            *("--rates-factor", "1.2"),
        ],
    ),
    "own": (
        signal.SIGTERM,
        10,
        [
            *("--model", "modules.py:Small", "--model-args", "width=3"),
            *("--objective", "modules.py:smooth", "--test-networks", "5"),
            *("--learn-labels", "True", "--networks", "2"),
        ],
    ),
    "weights": (
        signal.SIGKILL,
        8,
        [
            *MLP,
            *("--initialization", "fixed-pretrained", "--weights", str(WEIGHTS)),
            *("--reset-head", "--trained", "fc2", "fc3", "--dtype", "float64"),
        ],
    ),
}
"""Runs that are stopped: by what, after how many outer steps, and their settings."""
FINISHED = ["--model", "linear", "--initialization", "fixed", "--keep", "best", "--epochs", "2"]
RESUME: dict[str, list[str]] = {
    "poisoning": ["--pool", str(POOL)],
    "own": ["--model", "modules.py:Small", "--objective", "modules.py:smooth"],
    "weights": ["--weights", str(WEIGHTS)],
}


def main() -> None:
    if DATA.exists():
        raise SystemExit("The files are there, and are never made again.")
    for folder in (ARTEFACTS, RUNS, AFTER):
        folder.mkdir(parents=True)
    torch.set_num_threads(1)
    train, test = dd.data.load("digits", size=8)
    pool = make_pool(train, test)
    expected = {
        "processor": processor_bits(),
        "artefacts": make_artefacts(train, test, pool),
        "runs": {name: make_stopped(name) for name in STOPPED},
        "finished": make_finished(),
    }
    (DATA / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    for lock in DATA.rglob(".lock"):  # a file left by a process that has ended; it names the host
        lock.unlink()


def make_pool(train: dd.LabelledData, test: dd.LabelledData) -> dd.Pool:
    """Two files of training networks, one of held-out ones, and a file of other weights."""
    for networks in (3, 5):
        words = ["digits", "--size", "8", *MLP, "--networks", str(networks), "--held-out", "3"]
        run("pretrain", *words, "--epochs", "30", "--threads", "1", "--pool", str(POOL))
    seven = dd.LabelledData(train.inputs, train.labels % 7, normalization=train.normalization)
    module = dd.models.MLP(1, 8, 7, 6)
    other = dd.pretrain(seven, module, "other", networks=1, held_out=1, epochs=30)
    save_file(other.network("train", 0), WEIGHTS)
    return dd.Pool(POOL)


def make_artefacts(train: dd.LabelledData, test: dd.LabelledData, pool: dd.Pool) -> dict[str, Any]:
    linear, mlp = dd.models.Linear(1, 8, 10), dd.models.MLP(1, 8, 10, 6)
    large = dd.data.load("digits")
    fixed, few = dd.FixedInit(seed=2), {"networks": 2, "test_networks": 5}
    pretrained = {"initialization": "fixed-pretrained", "weights": WEIGHTS, "reset_head": True}
    poison = {"objective": dd.Poisoning(2, 7), "epochs": 1, "learning_rate": 0.1}
    made: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
        "fixed": (train, test, linear, {"initialization": fixed}),
        "random": (*large, dd.models.LeNet(), {**few, "iterations": 60, "learning_rate": 0.05}),
        "momentum": (train, test, linear, {"momentum": 0.5, "steps": 2, **few}),
        "soft-labels": (train, test, linear, {"learn_labels": True, **few}),
        "regression": (
            modules.measurements(),
            modules.measurements(),
            modules.regressor(),
            {"objective": dd.Regression(), "images_per_class": 6, "initialization": fixed},
        ),
        "poisoning": (train, test, mlp, {"initialization": dd.PoolInit(pool, noise=0.1), **poison}),
        "own-objective": (train, test, linear, {"objective": modules.smooth, **few}),
        "own-module": (train, test, modules.small(), {"scheme": "module", **few}),
        "pretrained": (train, test, mlp, {**pretrained, "trained": ("fc2", "fc3")}),
        "pool": (train, test, mlp, {"initialization": dd.PoolInit(pool, 4)}),
        "rates-factor": (train, test, linear, {"rates_factor": 1.25, **few}),
        "averaging": (train, test, linear, {"averaging": 0.9, "initialization": fixed}),
        "float64": (train, test, linear, {"dtype": "float64", "initialization": fixed}),
        "left-out": (
            *(train, test, modules.small()),
            {"initialization": dd.FixedInit(weights=dict(modules.small().named_parameters()))},
        ),
        "no-test": (train, None, linear, {"keep": "best", "initialization": fixed}),
    }
    return {name: make_artefact(name, *how) for name, how in made.items()}


def make_artefact(
    name: str, train: Any, test: Any, module: torch.nn.Module, settings: dict[str, Any]
) -> dict[str, Any]:
    made = dd.distill(train, module, test=test, **QUICK | settings)
    limit = {"carry_limit": 0} if name == "left-out" else {}
    made.save(ARTEFACTS / f"{name}.safetensors", **limit)
    assert made.claim
    trained = made.train(seed=1).state_dict()
    return {"repr": repr(made), "claim": made.claim.mean, "trained": figures_of(trained)}


def make_stopped(name: str) -> dict[str, Any]:
    """Stops a run, then goes on with a copy of it to see what it would have given."""
    by, outer_steps, words = STOPPED[name]
    distill = ["distill", *common(), "--checkpoint-every", "3", *words, "--run", str(RUNS / name)]
    process = subprocess.Popen([sys.executable, "-m", "datadistill", *distill])
    metrics = RUNS / name / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < outer_steps:
        assert process.poll() is None, f"{name} has ended"
        time.sleep(0.0005)
    process.send_signal(by)
    process.wait()
    reached = metrics.read_bytes().count(b"\n")
    assert not (RUNS / name / "distilled.safetensors").exists()
    copy = Path("resumed") / name
    shutil.copytree(RUNS / name, copy)
    run("resume", str(copy), *RESUME.get(name, []))
    made = dd.load(copy / "distilled.safetensors")
    assert made.claim
    tensors = load_file(copy / "distilled.safetensors")
    kept = {n: t for n, t in tensors.items() if n in ("inputs", "labels", "learning_rates")}
    save_file(kept, AFTER / f"{name}.safetensors")
    return {
        "stopped_at": reached,
        "claim": made.claim.mean,
        "outer_step": made.header.configuration["outer_step"],
    }


def make_finished() -> dict[str, Any]:
    """A whole run, with baselines in its results."""
    folder = RUNS / "finished"
    run("distill", *common(), *FINISHED, "--run", str(folder))
    run("evaluate", str(folder), "--baselines")
    made = dd.load(folder / "distilled.safetensors")
    assert made.claim
    return {"repr": repr(made), "claim": made.claim.mean}


def common() -> list[str]:
    words = ["--data", "digits", "--size", "8", "--iterations", "40", "--batch-size", "128"]
    words += ["--learning-rate", "0.1", "--outer-lr", "0.05", "--validate-every", "5"]
    return [*words, "--threads", "1", "--processes", "1", "--quiet"]


def run(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "datadistill", *words], check=True)


if __name__ == "__main__":
    assert "DATADISTILL_DATA" not in os.environ, "digits need no files"
    main()
