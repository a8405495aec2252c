"""``datadistill pretrain`` and what uses its pools, as a user types them."""

import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

import datadistill as dd
from tests.cli.helpers import run
from tests.pools.helpers import IMAGES, LABELS
from tests.runs.helpers import finish, start

WORDS = ["--model", "mlp", "--model-args", "hidden=6", "--epochs", "2", "--batch-size", "16"]
POOL = ["pretrain", "clouds.npz", *WORDS, "--networks", "18", "--held-out", "3"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    inputs = (40 * IMAGES + 128).clamp(0, 255).byte().numpy()
    labels = LABELS.numpy()
    np.savez(
        "clouds.npz",
        train_inputs=inputs,
        train_labels=labels,
        test_inputs=inputs,
        test_labels=labels,
    )
    return tmp_path


def test_make_extend_and_use_a_pool(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*POOL) == 0
    said = capsys.readouterr()
    assert "Training 21 networks for 2 epochs, about" in said.err
    assert "For a bit-identical result, use --threads 1 --processes 1.\n" in said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("18 train networks: ")
    assert lines[1].startswith("3 held-out networks: ")
    assert lines[2] == "pool: pools/clouds-mlp"
    use = "datadistill distill --data clouds.npz --model mlp --model-args hidden=6"
    drawn = "--initialization random-pretrained --pool pools/clouds-mlp"
    assert f"Use it: {use} {drawn}\n" in said.err
    assert run(*POOL[:-3], "19", "--held-out", "4", "--quiet") == 0
    assert not capsys.readouterr().err
    brackets = ["mlp(hidden=6)", *POOL[POOL.index("hidden=6") + 1 : -3], "19", "--held-out", "4"]
    assert run(*POOL[: POOL.index("mlp")], *brackets, "--quiet") == 0, "the same pool"
    assert capsys.readouterr().out.splitlines()[2] == "pool: pools/clouds-mlp"
    words = ["--data", "clouds.npz", *WORDS[:4], "--pool", "pools/clouds-mlp", "--quiet"]
    quick = ["--iterations", "2", "--batch-size", "16", "--networks", "2"]
    many = ["--initialization", "random-pretrained", "--run", "many"]
    assert run("distill", *words[:-1], *quick, *many) == 0
    said = capsys.readouterr()
    claimed, use = said.out.splitlines()[0], said.err.splitlines()[-1]
    assert run(*use.removeprefix("Use them: datadistill ").split()) == 0
    capsys.readouterr()
    assert "over 4 networks" in claimed
    alone = ["evaluate", "many/distilled.safetensors", "--data", "clouds.npz"]
    assert run(*alone) == 2
    assert "--pool DIR" in capsys.readouterr().err
    for words_ in ([*alone, "--pool", "pools/clouds-mlp"], ["evaluate", "many"]):
        assert run(*words_) == 0
        assert capsys.readouterr().out.strip() == claimed
    assert run("resume", "many", "--iterations", "3", "--quiet") == 0
    (here / "pools" / "clouds-mlp").rename("moved")
    assert run("resume", "many", "--iterations", "4", "--quiet") == 2
    assert run("resume", "many", "--iterations", "4", "--quiet", "--pool", "moved") == 0
    one = ["--initialization", "fixed-pretrained", "--init-seed", "2", "--reset-head"]
    words[words.index("pools/clouds-mlp")] = "moved"
    capsys.readouterr()
    assert run("distill", *words[:-1], *quick[:-2], *one, "--run", "one") == 0
    assert "pool moved, network 2: 4 weights match; reset: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epochs", "0"], "epochs is 0"),
        (["--networks", "-1"], "networks is -1"),
        (["--processes", "0"], "processes is 0"),
        (["--preset", "paper"], "The paper has no setting to pre-train networks on clouds"),
        (["--model", "lenett"], "no network called 'lenett'"),
    ],
)
def test_bad_input_ends_with_code_2_and_two_lines(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run(*POOL, *words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 2


def test_two_processes_make_the_networks_of_one(here: Path) -> None:
    code, said = finish(start(*POOL, "--pool", "two", "--processes", "2", "--threads", "1"))
    assert code == 0, said
    assert run(*POOL, "--pool", "one", "--threads", "1") == 0
    one, two = dd.Pool("one"), dd.Pool("two")
    for part in ("train", "held-out"):
        assert one.index.chunks_of(part) == two.index.chunks_of(part)


def test_the_processes_of_torchrun_divide_the_networks(here: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [start(*POOL, variables=variables | {"RANK": rank}) for rank in ("0", "1")]
    (code, said), (other, silent) = map(finish, processes)
    assert (code, other) == (0, 0), said
    assert "18 train networks" in said
    assert not silent
    pool = dd.Pool("pools/clouds-mlp")
    assert (pool.count("train"), pool.count("held-out")) == (18, 3)


def test_ctrl_c_ends_with_code_130_and_says_how_to_go_on(here: Path) -> None:
    process = start(*POOL, "--epochs", "100000")
    deadline = time.monotonic() + 60
    while not (here / "pools" / "clouds-mlp" / "index.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code == 130
    assert "Interrupted; finished files of networks are kept." in said
    assert "Run the same command to continue." in said
