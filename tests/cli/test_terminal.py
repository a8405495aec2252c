"""What files and paths say is shown as it is: it neither steers the terminal nor is markup."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from rich.table import Table
from rich.text import Text

import datadistill as dd
from datadistill.bars import PlainConsole
from datadistill.errors import DataDistillError, DataError, printable
from tests.cli.helpers import run
from tests.data import makers
from tests.processes import finished

ESCAPES = "\x1b]0;owned\x07\x9b31m\r\u202e"
SHOWN = "\\u001b]0;owned\\u0007\\u009b31m\\u000d\\u202e"
BRACKETS = "[bold]:cat:[/][/x]"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def made() -> dd.DistilledData:
    train, test = dd.data.load("digits")
    made = dd.distill(train, dd.models.Linear(), initialization=dd.FixedInit(), iterations=1)
    return made.with_claim(dd.evaluate(made, test).claim())


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert text == printable(text)
    return text


def test_a_console_shows_texts_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("x" + BRACKETS)
    table.add_row(ESCAPES + BRACKETS)
    console = PlainConsole(width=200)
    for shown in (ESCAPES + BRACKETS, Text(ESCAPES + BRACKETS), table):
        console.print(shown)
    console.print_json(json.dumps({"name": ESCAPES}))
    text = said(capsys)
    assert text.count(SHOWN + BRACKETS) >= 2  # rich itself drops \a and \r of a Text
    assert "x" + BRACKETS in text
    assert "\\u009b31m" in text.splitlines()[-2]


def test_errors_show_no_control_characters_in_python_either() -> None:
    error = DataError(f"{ESCAPES} is bad.", f"Remove {ESCAPES}.")
    assert str(error) == f"{SHOWN} is bad.\nRemove {SHOWN}."
    assert isinstance(error, DataDistillError)
    assert error.what == f"{SHOWN} is bad."


def test_class_names_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    names = np.array([ESCAPES, BRACKETS, "[red]$\\frac{"])
    makers.make_npz(Path("own.npz"), class_names=names)
    assert run("data", "check", "own.npz") == 0
    text = said(capsys)
    assert SHOWN in text
    assert BRACKETS in text
    assert "[red]$\\frac{" in text


def test_paths(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{BRACKETS.replace('/', '')}\x1b[31m"
    makers.make_npz(Path(f"{name}.npz"))
    assert run("data", "check", f"{name}.npz") == 0
    assert f"{printable(name)}: 12 training" in said(capsys)
    nowhere = os.fsdecode(b"\xff\x1b[31m.safetensors")
    for words in (["verify"], ["train"], ["evaluate"], ["resume"], ["verify", "--debug"]):
        assert run(*words, nowhere) == 2
        assert "\\udcff\\u001b[31m.safetensors" in said(capsys)


def test_brackets_in_the_path_of_an_output(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    made.save("a.safetensors")
    output = f"{BRACKETS}w.safetensors"
    assert run("train", "a.safetensors", "--output", output) == 0
    assert f"trained weights: {output}" in said(capsys)
    assert Path(output).is_file()


@pytest.mark.parametrize("words", [[], ["--help"], ["--debug"]])
def test_a_recipe(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text('data: "digits\\e[31m"\ndescription: "\\e[2J"\n')
    assert run("distill", "mine.yaml", *words) == (0 if words == ["--help"] else 2)
    text = said(capsys)
    if not words:
        assert "data has a control character" in text
    Path("mine.yaml").write_text('"\\e[31m": 1\n')
    assert run("distill", "mine.yaml") == 2
    assert "\\u001b[31m has a control character" in said(capsys)
    assert run("recipes", "mine.yaml") == 2
    said(capsys)


def test_the_claim_of_an_artefact(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.claim is not None
    hostile = made.claim.model_copy(update={"data": ESCAPES})
    try:
        made.with_claim(hostile).save("a.safetensors")
        dd.load("a.safetensors")
    except DataDistillError:
        return  # such a name is refused
    run("verify", "a.safetensors", "--data", "digits")
    assert "owned" in said(capsys)
    run("verify", "a.safetensors", "--data", "digits", "--json")
    said(capsys)


@pytest.mark.parametrize("command", ["verify", "evaluate"])
def test_an_artefact_does_not_choose_a_path_or_code_to_open(
    command: str,
    made: dd.DistilledData,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    makers.make_npz(Path("own.npz"))
    Path("evil.py").write_text("import os\nos.mkdir('touched')\n")
    assert made.claim is not None
    monkeypatch.setattr(dd.data, "load", None)  # nothing is loaded
    for name in ("own.npz", str(Path("own.npz").absolute()), ".", "evil.py:DATA"):
        header = made.header.model_copy(update={"data": name})
        claim = made.claim.model_copy(update={"data": name})
        hostile = dd.DistilledData(made.steps, header, carried=made.carried).with_claim(claim)
        hostile.save("a.safetensors")
        assert run(command, "a.safetensors") == 2
        assert "is not built in" in said(capsys)
    assert not Path("touched").exists()


COMMANDS = [
    ["--version"],
    ["recipes"],
    ["data", "--data-dir", "~nobodyatall/x"],
    ["data", "check", "~nobodyatall/x.npz"],
    ["distill", "--data", "digits", "--model", "~nobodyatall/x.py:Net"],
    [
        *("distill", "--data", "digits", "--model", "linear", "--iterations", "1", "--quiet"),
        *("--networks", "1", "--test-networks", "1", "--steps", "1", "--epochs", "1"),
    ],
]


@pytest.mark.parametrize(
    "cache",
    ["cache", None],
)
def test_every_command_works_for_a_user_without_home_and_entry(
    cache: str | None, tmp_path: Path
) -> None:
    program = (
        "import pwd\n"
        "def unknown(uid): raise KeyError(uid)\n"
        "pwd.getpwuid = pwd.getpwnam = unknown\n"
        "from datadistill.cli.main import main\n"
        f"codes = [main(words) for words in {COMMANDS!r}]\n"
        "assert codes == [0, 0, 0, 2, 2, 0], codes\n"
    )
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    place = {} if cache is None else {"XDG_CACHE_HOME": str(tmp_path / cache)}
    done = finished("-c", program, env={**kept, **place, "DATADISTILL_ENGINE": "plain"})
    assert done.returncode == 0, done.stderr
    assert "unexpected" not in done.stderr
    assert not Path("~").exists()
