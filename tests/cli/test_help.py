"""What ``--help`` shows, and what is said of words that the command line does not know."""

import io
import re
from dataclasses import fields

import pytest

from datadistill.cli.distill import FIRST, Distill
from datadistill.cli.flags import HIDDEN, field_help
from datadistill.cli.parsing import COMMANDS, parse
from datadistill.errors import ConfigError
from datadistill.runs.config import NAMES, RunConfig
from datadistill.runs.settings import GROUPS
from tests.cli.helpers import run


def flag(name: str) -> str:
    return "--run" if name == "run_folder" else f"--{name.replace('_', '-')}"


def lines(text: str) -> list[str]:
    return [line.strip("│╭╮╰╯─ ") for line in text.splitlines() if "---" not in line]


def boxes(shown: str) -> dict[str, list[str]]:
    """The flags of each box of options, by its title."""
    found: dict[str, list[str]] = {}
    for line in lines(shown):
        if line == "options" or line.endswith(" options"):
            found[line] = []
        elif re.match(r"--\w+(-\w+)*(,| [A-Z{\[]|$|   )", line):
            found[[*found][-1]].append(line.split()[0].rstrip(","))
    return found


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(*command.split(), "--help") == 0
    said = capsys.readouterr()
    assert not said.err
    return said.out


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_help_shows_the_ten_first_and_then_the_groups(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = help_of("distill", capsys)
    assert max(map(len, shown.splitlines())) <= columns
    found = boxes(shown)
    assert len(FIRST) == 10
    assert found["options"][:10] == [flag(name) for name in FIRST]
    assert found["options"][10:] == [
        *("--preset", "--dry-run", "--resume", "--overwrite", "--quiet", "--debug")
    ]
    assert list(found) == ["options", *(f"{title} options" for title in GROUPS)]
    for title, group in GROUPS.items():
        names = [f.name for f in fields(group) if f.name not in (*FIRST, *HIDDEN)]
        assert found[f"{title} options"] == [flag(name) for name in names]


def test_help_knows_every_setting_and_no_none(capsys: pytest.CaptureFixture[str]) -> None:
    shown = help_of("distill", capsys)
    known = {one for box in boxes(shown).values() for one in box}
    assert {flag(name) for name in NAMES if name not in HIDDEN} <= known
    for name in ("augment", "learn_rates", "learn_labels", "compiled", "tensorboard"):
        assert f"{flag(name)}, --no-{flag(name)[2:]}" in shown
    for unwanted in ("{None", "None,", "True", "False", "(default: )"):
        assert unwanted not in shown


@pytest.mark.parametrize("command", [*COMMANDS, "data list", "data check", "data fetch"])
def test_help_of_every_command_fits_and_explains(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = help_of(command, capsys)
    _, *text = shown.splitlines()  # the first is the usage
    assert max(map(len, text)) <= 80
    assert "{None" not in shown
    assert "(default: None)" not in shown


def test_every_field_of_every_command_is_documented() -> None:
    for cls in (*COMMANDS.values(), RunConfig):
        undocumented = {field.name for field in fields(cls)} - field_help(cls).keys()
        assert undocumented <= {"config", "action", "named"}


def test_the_program_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("-h", "--help"):
        assert run(word) == 0
        shown = lines(capsys.readouterr().out)

        assert all(any(line.startswith(f"{name} ") for line in shown) for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "value"), [([], None), (["--augment"], True), (["--no-augment"], False)]
)
def test_a_yes_no_setting_may_be_left_to_its_default(words: list[str], value: bool | None) -> None:
    command = parse(["distill", *words])
    assert isinstance(command, Distill)
    assert command.config.augment is value


def test_a_limit_can_be_lifted() -> None:
    command = parse(["distill", "--clip-norm", "None"])
    assert isinstance(command, Distill)
    assert command.config.clip_norm is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "No command is given."),
        ("distil", "There is no command 'distil'. Did you mean 'distill'?"),
        ("distill --stepz 3", "There is no option --stepz. Did you mean --steps?"),
        ("resume r --steps 3", "There is no option --steps."),
        ("distill --steps three", "Invalid --steps: 'three'. Expected --steps INT."),
        ("distill --steps", "--steps needs a value."),
        ("distill --betas 0.5", "--betas needs 2 values."),
        ("distill --keep worst", "Invalid --keep: 'worst'. Choose one of 'auto', 'last', 'best'."),
        ("distill --channels 2", "Invalid --channels: '2'. Choose one of "),
        ("distill a.yaml b", "Unexpected argument: b."),
        ("distill --augment True", "--augment takes no value."),
        ("distill --no_augment=False", "--no_augment takes no value."),
        ("distill --learn-rates False", "--learn-rates takes no value."),
        ("distill --dry-run True", "--dry-run takes no value."),
        ("distill mnist-fixd-10", "Did you mean 'mnist-fixed-10'?"),
        ("distill nowhere.yaml", "nowhere.yaml cannot be read"),
        ("evaluate", "ARTEFACT is missing."),
        ("import images.pt --data mnist", "--model is missing."),
        ("reproduce", "Name one of: mnist-cifar,adaptation,imagenet,"),
        ("evaluate nowhere", "There is no file nowhere."),
        ("data chek", "Unexpected argument: chek."),
    ],
)
def test_a_mistake_is_told_in_two_lines_at_most(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words.split()) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("error: ")
    assert message in said.err
    assert "None" not in said.err
    assert len(said.err.splitlines()) == (1 if words == "distil" else 2)
    assert max(map(len, said.err.splitlines())) <= 120


def test_the_remedy_for_a_value_of_a_yes_no_setting(capsys: pytest.CaptureFixture[str]) -> None:
    run("distill", "--augment", "True")
    assert capsys.readouterr().err.endswith("\nWrite --augment or --no-augment.\n")


@pytest.mark.parametrize("columns", ["40", "80", "300"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_mistakes_are_told_alike_on_every_terminal(
    columns: str,
    encoding: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", terminal)
    with pytest.raises(ConfigError) as caught:
        parse(["distill", "--keep", "worst"])
    assert caught.value.what == "Invalid --keep: 'worst'. Choose one of 'auto', 'last', 'best'."
