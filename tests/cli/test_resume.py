"""``datadistill resume`` and ``datadistill recipes`` as a user types them."""

from pathlib import Path

import pytest

import datadistill as dd
from datadistill.cli.main import main
from datadistill.runs.recipes import recipe_names

WORDS = [
    "--model",
    "linear",
    "--iterations",
    "4",
    "--batch-size",
    "32",
    "--initialization",
    "fixed",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_more_outer_steps_than_planned(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["distill", *WORDS, "--run", "r"]) == 0
    assert main(["resume", "r"]) == 0
    assert (
        "The run is finished. For more outer steps, set iterations above 4."
        in capsys.readouterr().err
    )
    assert main(["resume", "r", "--iterations", "6"]) == 0
    assert "(r/checkpoints/step-00000004.safetensors)." in capsys.readouterr().err
    made = dd.load("r/distilled.safetensors")
    assert made.header.configuration["outer_step"] == 6
    assert made.header.configuration["iterations"] == 6


def test_an_edited_configuration_is_refused_with_the_difference(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["distill", *WORDS, "--run", "r"]) == 0
    file = here / "r" / "config.yaml"
    file.write_text(file.read_text().replace("batch_size: 32", "batch_size: 64"))
    capsys.readouterr()
    assert main(["resume", "r", "--iterations", "9"]) == 2
    assert "batch_size: 32 → 64" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (None, "There is no run folder r"),
        ("empty", "There is no run in r"),
        ("file", "There is no run folder r"),
    ],
)
def test_what_is_no_run_is_told(
    here: Path, capsys: pytest.CaptureFixture[str], make: str | None, message: str
) -> None:
    if make == "empty":
        (here / "r").mkdir()
    elif make == "file":
        (here / "r").write_text("")
    assert main(["resume", "r"]) == 2
    assert message in capsys.readouterr().err


def test_an_own_network_is_resumed_only_if_it_is_named_again(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "resumed_net.py").write_text(
        "import torch.nn as nn\n\n\nclass Mine(nn.Sequential):\n"
        "    def __init__(self):\n        super().__init__(nn.Flatten(), nn.Linear(784, 10))\n"
    )
    words = ["--model", "resumed_net.py:Mine", "--iterations", "2", "--initialization", "fixed"]
    assert main(["distill", *words, "--run", "r"]) == 0
    capsys.readouterr()
    assert main(["resume", "r", "--iterations", "3"]) == 2
    assert "name it yourself: --model resumed_net.py:Mine" in capsys.readouterr().err
    assert main(["distill", "r/config.yaml", "--run", "again"]) == 2
    assert "name it yourself: --model resumed_net.py:Mine" in capsys.readouterr().err
    assert (
        main(["distill", "r/config.yaml", "--model", "resumed_net.py:Mine", "--run", "again"]) == 0
    )
    first, second = (here / run / "distilled.safetensors" for run in ("r", "again"))
    assert first.read_bytes() == second.read_bytes()
    assert main(["resume", "r", "--iterations", "3", "--model", "resumed_net.py:Mine"]) == 0


def test_code_that_a_run_does_not_use_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["distill", *WORDS, "--run", "r"]) == 0
    before = (here / "r" / "config.yaml").read_bytes()
    for setting, own, value in (
        ("model", "linear", "resumed_net.py:Mine"),
        ("model", "linear", "lenet"),
        ("update_rule", "None", "adam"),
    ):
        capsys.readouterr()
        flag = f"--{setting.replace('_', '-')}"
        assert main(["resume", "r", "--iterations", "6", flag, value]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert f"has {setting} {own}; a run that is resumed cannot change it to {value}." in told
        assert f"Leave {flag} out, or start another run: datadistill distill RECIPE" in told
        with pytest.raises(dd.errors.ConfigError, match="cannot change it"):
            dd.resume("r", iterations=6, **{setting: value})  # pyright: ignore[reportArgumentType]
    assert (here / "r" / "config.yaml").read_bytes() == before
    assert main(["resume", "r", "--iterations", "5", "--model", "linear"]) == 0


def test_a_run_of_an_own_data_folder_is_resumed_from_anywhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.runs.helpers import arguments_with

    arguments_with(here / "mine.npz")
    assert main(["distill", "--data", "mine.npz", *WORDS, "--run", "r"]) == 0
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    assert main(["resume", "../r", "--iterations", "5"]) == 0
    made = dd.load(here / "r" / "distilled.safetensors")
    assert made.header.configuration["data"] == "mine"
    assert str(here) not in str(made.header), "an artefact does not tell where it was made"


def test_recipes_are_listed_and_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in recipe_names())
    assert main(["recipes", "mnist-fixed-10"]) == 0
    shown = capsys.readouterr().out
    (here / "mine.yaml").write_text(shown)
    assert "description:" in shown
    assert main(["recipes", "mnist-fixd-10"]) == 2
    assert "Did you mean 'mnist-fixed-10'?" in capsys.readouterr().err


def test_a_recipe_of_ones_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "quick.yaml").write_text(
        "description: quick\nmodel: linear\niterations: 2\nbatch_size: 32\ninitialization: fixed\n"
    )
    assert main(["distill", "quick.yaml", "--seed", "3"]) == 0
    made = dd.load(here / "runs" / "quick" / "distilled.safetensors")
    assert made.header.configuration["seed"] == 3
    assert made.header.configuration["batch_size"] == 32
    capsys.readouterr()
    assert main(["distill", "slow.yaml"]) == 2
    assert "slow.yaml cannot be read: No such file or directory" in capsys.readouterr().err
    assert main(["distill", "mnist-fixd-10"]) == 2
    assert "Did you mean 'mnist-fixed-10'?" in capsys.readouterr().err
