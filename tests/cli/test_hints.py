"""Every command that a message shows is run as it is shown, for built-in and own data and code.

Each test provokes a message, takes the command out of it, and runs it in the same folder. Capitals
such as ``RECIPE`` and the rest ``…`` of an earlier command are filled in; where a default would
take long, flags that make it short are added at the end. :data:`SHOWN` names the test of each place
in the source that shows a command: a new one without a test fails.
"""

import ast
import html
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import torch
from PIL import Image
from torch import nn

import datadistill as dd
from datadistill.cli import quickstart
from datadistill.cli.parsing import COMMANDS
from datadistill.data import DATA_SETS
from datadistill.data.sources import Download, Source
from datadistill.errors import FileError, TeamError
from datadistill.models import find_for
from datadistill.runs.distillation import Distillation
from datadistill.runs.run import Run
from tests.cli.helpers import run
from tests.helpers import engine_to_ask_for

from ..data.fetch.test_server import running_site

SOURCE = Path(dd.__file__).parent
SHORT = ["--iterations", "1", "--batch-size", "16", "--threads", "1", "--processes", "1"]
POOL = ["--model", "mlp", "--model-args", "hidden=3", "--epochs", "1"]
CODE = """
import torch
from dataclasses import dataclass
from torch import nn
import datadistill as dd

class Net(nn.Sequential):
    def __init__(self, inputs=784, bias=False):
        super().__init__(nn.Flatten(), nn.Linear(inputs, 10, bias=bias))

def some_digits():
    train, test = dd.data.load("digits")
    return train.part(torch.arange(100), "train"), test

def loss(logits, labels):
    return nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)

@dataclass(frozen=True)
class Sign(dd.GradientDescent):
    beta: float = 1.0
"""


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    Attributes:
        words: What ``distill`` is told.
        network: What its network is, and how it is made.
        code: The flags that name its code, for commands that measure.
    """

    words: tuple[str, ...]
    network: str = "linear"
    code: tuple[str, ...] = ()


LINEAR = ("--model", "linear")
NET = ("--model", "my code.py:Net", "--model-args", "inputs=784", "bias=true")
LOSS = ("--objective", "my code.py:loss")
KINDS = {
    "built-in": Kind(("--data", "digits", *LINEAR)),
    "npz": Kind(("--data", "my data.npz", *LINEAR)),
    "folder": Kind(("--data", "my photos", *LINEAR)),
    "csv": Kind(("--data", "my table.csv", *LINEAR)),
    "network": Kind(("--data", "my data.npz", *NET), "my code.py:Net", NET),
    "code": Kind(
        ("--data", "my code.py:some_digits", *NET, *LOSS),
        "my code.py:Net",
        ("--data", "my code.py:some_digits", *NET, *LOSS),
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with own data and code, and a finished run of each kind that was made there."""
    folder = tmp_path_factory.mktemp("my work")
    train, test = dd.data.load("digits")
    images, labels = np.asarray(train.inputs)[:100], train.labels[:100].numpy()
    np.savez(
        folder / "my data.npz",
        train_inputs=images,
        train_labels=labels,
        test_inputs=np.asarray(test.inputs)[:50],
        test_labels=test.labels[:50].numpy(),
    )
    for number, (image, label) in enumerate(zip(images[:60], labels[:60], strict=True)):
        path = folder / "my photos" / f"digit {label}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).save(path)
    rows = [f"{number / 9 - 5:.3f},{number % 7},{number % 2}" for number in range(100)]
    (folder / "my table.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    (folder / "my code.py").write_text(CODE)
    (folder / "tiny.yaml").write_text(
        "data: digits\nmodel: linear\ninitialization: fixed\niterations: 1\nbatch_size: 16\n"
        "threads: 1\nprocesses: 1\n"
    )
    return folder


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder as the working directory."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What was printed since the last call."""

    def told() -> str:
        captured = capsys.readouterr()
        return captured.out + captured.err

    return told


def after(marker: str, text: str) -> str:
    """The rest of the line that follows a marker, of which there is one."""
    found = re.findall(f"{re.escape(marker)}(.*)", text)
    assert len(found) == 1, f"{marker!r} in:\n{text}"
    return found[0].rstrip(".")


def obey(line: str, *short: str, **filled: str) -> int:
    """The exit code of a command as it was shown, with capitals and … filled in."""
    name, *words = shlex.split(line)
    assert name == "datadistill", line
    for placeholder, text in filled.items():
        assert placeholder in words, line
        at = words.index(placeholder)
        words[at : at + 1] = shlex.split(text)
    return run(*words, *short)


def distil(kind: str, run_folder: str, *words: str) -> int:
    fixed = ("--initialization", "fixed", "--run", run_folder)
    return run("distill", *KINDS[kind].words, *SHORT, *fixed, *words)


@pytest.fixture(scope="module")
def said_by(made: Path) -> dict[str, str]:
    """What the finished runs printed."""
    return {}


@pytest.fixture
def finished(
    here: Path, tell: Callable[[], str], said_by: dict[str, str]
) -> Callable[[str], tuple[str, str]]:
    """Returns a finished run of a kind, which no test changes, and what it printed."""

    def find(kind: str) -> tuple[str, str]:
        name = f"a {kind} run"
        if kind not in said_by:
            tell()
            assert distil(kind, name) == 0
            said_by[kind] = tell()
        return name, said_by[kind]

    return find


def other_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes to a folder in which nothing is."""
    (here / "elsewhere").mkdir(exist_ok=True)
    monkeypatch.chdir(here / "elsewhere")


@every_kind
def test_use_them(
    kind: str, here: Path, finished: Callable[[str], tuple[str, str]], tell: Callable[[], str]
) -> None:
    name, said = finished(kind)
    assert obey(after("Use them: ", said)) == 0
    said = tell()
    assert f"trained weights: {name}/distilled-trained.safetensors\n" in said
    distilled = dd.load(here / name)
    module = find_for(
        KINDS[kind].network,
        distilled.inputs.shape[2:],
        2 if kind == "csv" else 10,
        ("bias=true",) if KINDS[kind].code else (),
    )
    load = after(f"Load them into a {type(module).__name__}: ", said)
    assert load.startswith("module.load_state_dict(")
    eval(load, {"module": module, "safetensors": safetensors})
    (here / name / "distilled-trained.safetensors").unlink()


@every_kind
def test_page(kind: str, here: Path, finished: Callable[[str], tuple[str, str]]) -> None:
    name, said = finished(kind)
    page = here / name / "report.html"
    before = html.unescape(page.read_text(encoding="utf-8"))
    assert obey(after("More on that page: ", said)) == 0
    assert obey(after("are not measured yet: ", before).partition("<")[0]) == 0
    after_ = html.unescape(page.read_text(encoding="utf-8"))
    for verb in ("train", "evaluate", "verify"):
        assert obey(_code(verb, after_)) == 0
    assert obey(_code("distill", after_), "--run", f"{name} again") == 0


def _code(verb: str, page: str) -> str:
    """The command of a page that begins with a verb."""
    (found,) = re.findall(rf"^(?:.*<code>)?(datadistill {verb} .*?)(?:</code>.*)?$", page, re.M)
    return found


STOPS: dict[str, Callable[[], BaseException]] = {
    "To resume: ": KeyboardInterrupt,
    "Free some space. Then resume: ": lambda: FileError("The disk is full.", "Free some space."),
    "Start it again. To resume: ": lambda: TeamError("Process 1 has ended.", "Start it again."),
}


def stopped_at_the_end(error: BaseException) -> Callable[..., None]:
    def finish(*_: object) -> None:
        raise error

    return finish


@pytest.mark.parametrize(
    ("marker", "kind"),
    [("To resume: ", "folder"), *((marker, "code") for marker in STOPS)],
)
def test_resume(
    marker: str,
    kind: str,
    here: Path,
    tell: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"{kind} stopped {list(STOPS).index(marker)}"
    with monkeypatch.context() as patched:
        patched.setattr(Run, "_finish", stopped_at_the_end(STOPS[marker]()))
        assert distil(kind, name) in (1, 130)
    shown = after(marker, tell())
    assert obey(shown) == 0
    assert (here / name / "distilled.safetensors").exists()


def test_nothing_to_resume(
    here: Path, tell: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Distillation, "start", stopped_at_the_end(KeyboardInterrupt()))
    assert distil("built-in", "nothing") == 130
    assert "resume" not in tell()


def test_resume_on_the_engine_before(here: Path, tell: Callable[[], str]) -> None:
    assert distil("code", "an engine") == 0
    named = [word for word in KINDS["code"].code if word not in NET[2:]]
    tell()
    assert run("resume", "an engine", *named, "--iterations", "2", "--engine", "plain") == 0
    assert obey(after("To compute as before: ", tell())) == 0


@pytest.mark.parametrize("kind", ["npz", "code"])
def test_repeat_config(
    kind: str,
    here: Path,
    finished: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(here / finished(kind)[0])
    comment = Path("config.yaml").read_text().partition("\n")[0]
    assert obey(after("To repeat it: ", comment)) == 0
    (again,) = Path("runs").glob("*/distilled.safetensors")
    assert torch.equal(dd.load(again).inputs, dd.load("distilled.safetensors").inputs)


@every_kind
@pytest.mark.parametrize("verb", ["evaluate", "verify", "train"])
def test_a_run_folder_finds_its_data_from_any_folder(
    verb: str,
    kind: str,
    here: Path,
    finished: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = here / finished(kind)[0]
    other_folder(here, monkeypatch)
    code = [w.replace("my code.py", str(here / "my code.py")) for w in KINDS[kind].code]
    if verb == "train":
        code = [w for w in code if w != "--data" and "some_digits" not in w] + ["--overwrite"]
    assert run(verb, str(folder), *code) == 0
    assert dd.load(folder).header == dd.load(folder / "distilled.safetensors").header


def test_an_artefact_alone_opens_no_path(
    finished: Callable[[str], tuple[str, str]], tell: Callable[[], str]
) -> None:
    artefact = f"{finished('npz')[0]}/distilled.safetensors"
    tell()
    for verb in ("evaluate", "verify"):
        assert run(verb, artefact) == 2
        said = tell()
        assert "The data set of this artefact, 'my data', is not built in." in said
        assert run(verb, artefact, "--data", "my data.npz") == 0


def test_code_that_only_a_file_names(
    here: Path,
    finished: Callable[[str], tuple[str, str]],
    tell: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each error names one flag; with all of them the command works."""
    name, _ = finished("code")
    for words in (["resume", name], ["distill", f"{name}/config.yaml", "--run", "repeated"]):
        tell()
        while (code := run(*words)) != 0:
            assert code == 2
            words += shlex.split(after("name it yourself: ", tell()))
        assert len(words) >= 8
    assert run("evaluate", name, *NET, *LOSS) == 2
    data = shlex.split(after("name it yourself: ", tell()))
    assert run("evaluate", name, *NET, *LOSS, *data) == 0
    tell()
    folder = here / name
    other_folder(here, monkeypatch)
    assert run("resume", str(folder)) == 2
    assert "go to the folder that contains it and name it yourself: --model" in tell()


def test_python_runs_are_resumed_in_python(
    here: Path, tell: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Own(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Flatten(), nn.Linear(784, 10))

    train, _ = dd.data.load("digits")
    pair = (np.asarray(train.inputs)[:100], train.labels[:100].numpy())
    given: dict[str, Any] = {"iterations": 1, "batch_size": 16, "threads": 1}

    def call(call: str) -> dd.DistilledData:
        assert call.startswith("dd.distill(…, ")
        return eval(call.replace("…", "*arguments, **given"), {"dd": dd, **scope})

    for number, arguments in enumerate([(pair, Own()), (pair, "linear"), (train, Own())]):
        scope = {"arguments": arguments, "given": given}
        name = f"python {number}"
        with monkeypatch.context() as patched:
            patched.setattr(Run, "_finish", stopped_at_the_end(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt) as caught:
                dd.distill(*arguments, run=name, **given)
        shown = after("To resume: make the same call again: ", str(caught.value))
        assert shown == f"dd.distill(…, run={name!r})"
        assert run("resume", name) == 2
        assert (
            "If it was started in Python, resume it there: make the same dd.distill call again.\n"
            in tell()
        )
        assert len(call(shown)) == 10
        comment = (here / name / "config.yaml").read_text().partition("\n")[0]
        assert "datadistill " not in comment


def test_python_runs_are_told_of_another_engine_in_python(
    here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train, _ = dd.data.load("digits")
    given: dict[str, Any] = {"batch_size": 16, "threads": 1, "run": "python engine"}
    dd.distill(train, "linear", iterations=1, **given)
    dd.distill(train, "linear", iterations=2, engine="plain", **given)
    shown = after("To compute as before: make the same call again: ", caplog.text)
    engine = engine_to_ask_for()
    assert shown == f"dd.distill(…, run='python engine', engine='{engine}', threads=1)"


def test_start_a_run(here: Path, tell: Callable[[], str]) -> None:
    (here / "an empty one").mkdir()
    assert run("resume", "an empty one") == 2
    assert obey(after("Start one there: ", tell()), RECIPE="tiny.yaml") == 0
    tell()
    assert run("resume", "an empty one", "--model", "my code.py:Net") == 2
    shown = after("start another run: ", tell())
    assert obey(shown, "--run", "another", RECIPE="tiny.yaml") == 0


def test_tune(here: Path, tell: Callable[[], str]) -> None:
    pytest.importorskip("optuna", reason="needs the extra tune")
    assert obey("datadistill tune", "tiny.yaml", "--trials", "1") == 0
    assert obey(after("Use them: ", tell())) == 0


def test_published(here: Path, tell: Callable[[], str]) -> None:
    assert run("train", "mnist-fixed-1") == 2
    assert "datadistill artefacts lists those that are published" in tell()
    assert obey("datadistill artefacts") == 0
    assert obey(after("Train a network:    ", tell()), NAME="mnist-fixed-10") == 0


def test_recipes(here: Path, tell: Callable[[], str]) -> None:
    assert run("distill", "digits-fixd") == 2
    said = tell()
    assert "datadistill recipes lists them" in said
    assert obey("datadistill recipes") == 0
    said = tell()
    assert obey(after("Show one: ", said), NAME="digits-fixed") == 0
    assert tell().startswith("description: ")
    shortened = (*SHORT, "--model", "linear", "--run", "a recipe")
    assert obey(after("Run one:  ", said), *shortened, NAME="digits-fixed") == 0


FEW = ("--networks", "2")
DRAWN = ("--initialization", "random-pretrained", *POOL[:4], *SHORT, *FEW)
DATA = "'my data.npz'"


def test_pools(here: Path, tell: Callable[[], str]) -> None:
    assert run("distill", "--data", "my data.npz", *DRAWN) == 2
    made = (*POOL, *FEW, "--held-out", "0")
    assert obey(after("make one: ", tell()), *made, DATA=DATA) == 0
    said = tell()
    again = shlex.split(after("For a bit-identical result, use ", said))
    assert run("pretrain", "my data.npz", *made, *again) == 0
    before = f"{DATA} {shlex.join(POOL)} --networks 2 --held-out 2"
    use = after("Use it: ", said)
    tell()
    assert obey(use, *SHORT, *FEW) == 2  # no network is held out
    assert obey(after("Make some: ", tell()), **{"…": before}) == 0
    assert obey(use, *SHORT, *FEW, "--run", "pooled") == 0
    assert obey(after("Use them: ", tell())) == 0
    assert run("evaluate", "pooled") == 0
    assert run("verify", "pooled") == 0
    tell()
    assert obey(use, *SHORT, *FEW, "--pool-networks", "3") == 2
    assert obey(after("make more: ", tell()), **{"…": before}) == 0
    tell()
    assert run("evaluate", "pooled", "--networks", "101") == 2
    assert obey(after("or make more: ", tell()), **{"…": before}) == 0
    with pytest.raises(dd.DataDistillError) as caught:
        dd.Pool(after("pool: ", said)).network("train", 200)
    assert obey(after("or make more: ", str(caught.value)), **{"…": before}) == 0


def test_other_pools(here: Path, tell: Callable[[], str]) -> None:
    for name, seed in (("a pool", "1"), ("another pool", "2")):
        words = ("--data", "my data.npz", *DRAWN, "--pool", name, "--run", f"of {name}")
        assert run("distill", *words) == 2
        short = (*POOL, *FEW, "--held-out", "2", "--seed", seed)
        assert obey(after("Make one: ", tell()), *short, DATA=DATA) == 0
        assert run("distill", *words) == 0
        tell()
    shutil.copy("of a pool/distilled.safetensors", "alone.safetensors")
    alone = ("alone.safetensors", "--data", "my data.npz")
    assert run("verify", *alone) == 2
    said = tell()
    assert "Name its folder: --pool DIR; " in said
    assert run("verify", *alone, "--pool", "a pool") == 0
    shown = after("measure with another pool: ", said)
    assert obey(shown, ARTEFACT=shlex.join(alone), DIR="'another pool'") == 0


@pytest.mark.parametrize(
    ("kind", "marker", "changes"),
    [
        ("built-in", "Measure one: ", {}),
        ("built-in", "Measure the test split: ", {"split": "other"}),
        ("network", "Measure fewer: ", {"networks": 20_000}),
    ],
)
def test_claims(
    kind: str,
    marker: str,
    changes: dict[str, Any],
    finished: Callable[[str], tuple[str, str]],
    tell: Callable[[], str],
) -> None:
    distilled = dd.load(finished(kind)[0])
    assert distilled.claim is not None
    claim = distilled.claim.model_copy(update=changes) if changes else None
    header = distilled.header.model_copy(update={"claim": claim})
    replace(distilled, header=header).save("claim.safetensors")
    own = ("--data", "my data.npz") if kind == "network" else ()
    words = ("claim.safetensors", *KINDS[kind].code, *own)
    tell()
    assert run("verify", *words) == 2
    shown = after(marker, tell()).partition(";")[0]
    assert obey(shown, ARTEFACT=shlex.join(words)) == 0


def test_a_claim_of_another_metric(finished: Callable[[str], tuple[str, str]]) -> None:
    """Such a file is refused when it is read; only Python can have it."""
    name, _ = finished("built-in")
    distilled = dd.load(name)
    assert distilled.claim is not None
    other = distilled.with_claim(distilled.claim.model_copy(update={"metric": "other"}))
    with pytest.raises(dd.DataDistillError) as caught:
        dd.verify(other, dd.data.load("digits")[1])
    assert obey(after("Measure the artefact: ", str(caught.value)), ARTEFACT=f"'{name}'") == 0


def test_data(here: Path, tell: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    with running_site() as site:
        one = Download("one", Source((site.serve("one", b"1234"),), None, 4))
        mine = replace(
            DATA_SETS["digits"],
            name="mine",
            folder="mine",
            files=(("one",),),
            downloads=(one,),
            package=None,
        )
        monkeypatch.setitem(DATA_SETS, "mine", mine)
        for folder in ([], ["--data-dir", "my sets"]):
            monkeypatch.setenv("DATADISTILL_DATA", "default sets")
            assert run("data", "check", "mine", *folder) == 2
            fetch = re.findall("Run (.*?); or put", tell())
            assert obey(fetch[0]) == 0
            assert obey(after("Inspect it: ", tell())) == 0
            tell()
            assert run("data", *folder) == 0
            said = tell()
            assert obey(after("Inspect one:  ", said), NAME="mine") == 0
            assert obey(after("Download one: ", said), NAME="mine") == 0
            tell()


@pytest.mark.parametrize(
    "words", [("--data", "digits", *LINEAR), ("--data", "my data.npz", *NET)], ids=["known", "own"]
)
def test_import(here: Path, tell: Callable[[], str], words: tuple[str, ...]) -> None:
    torch.save(torch.randn(10, 1, 28, 28), "images.pt")
    assert run("import", "images.pt", *words, "--overwrite") == 0
    assert obey(after("Evaluate them: ", tell()), "--networks", "2", "--epochs", "1") == 0


def test_quickstart(here: Path, tell: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quickstart, "RECIPE", "tiny.yaml")
    assert run("--help") == 0
    assert "Start with datadistill quickstart.\n" in tell()
    assert obey("datadistill quickstart", "--output", "a first run") == 0
    shown = re.findall(r"^  (datadistill .*?)   *\S", tell(), re.MULTILINE)
    assert [shlex.split(line)[1] for line in shown] == ["train", "evaluate", "distill"]
    for line in shown:
        assert obey(line) == 0


def test_threads_of_an_evaluation(
    finished: Callable[[str], tuple[str, str]], tell: Callable[[], str]
) -> None:
    name, _ = finished("built-in")
    tell()
    assert run("evaluate", name) == 0
    said = tell()
    flags = shlex.split(after("For a bit-identical result, use ", said))
    assert run("evaluate", name, *flags) == 0
    assert said.splitlines()[0] == tell().splitlines()[0]


def test_help(tell: Callable[[], str]) -> None:
    assert run() == 2
    assert "datadistill --help lists the commands." in tell()
    assert obey("datadistill --help") == 0
    assert "datadistill COMMAND --help shows the options of a command;" in tell()
    assert obey("datadistill --version") == 0
    for name in COMMANDS:
        tell()
        assert run(name, "--no-such-option") == 2
        assert obey(after("See ", tell())) == 0


SHOWN: dict[str, dict[str, Callable[..., None]]] = {
    "artefact/container.py": {"datadistill distill": test_use_them},  # writes such files
    "artefact/reader.py": {"datadistill artefacts": test_published},
    "cli/published.py": {"datadistill train": test_published},
    "cli/data.py": {
        "hint('check', 'NAME')": test_data,
        "hint('check', self.name)": test_data,
        "hint('fetch', 'NAME')": test_data,
        "command('data', *words, *folder)": test_data,
    },
    "cli/import_images.py": {
        "command('evaluate', output, '--ordinary', *self._needed())": test_import
    },
    "cli/outcome.py": {
        "command('report', folder.path, *needed(distilled))": test_page,
        "command('train', folder.path, *needed(distilled))": test_use_them,
    },
    "cli/parsing.py": {
        "datadistill --help": test_help,
        "datadistill --version": test_help,
        "datadistill COMMAND": test_help,
        "datadistill quickstart": test_quickstart,
    },
    "cli/pretrain.py": {
        "command('distill', '--data', self.data, *self._flags(), *use)": test_pools
    },
    "cli/quickstart.py": {
        "command('distill', '--help')": test_quickstart,
        "command('evaluate', folder.path)": test_quickstart,
        "command('train', folder.path)": test_quickstart,
    },
    "cli/recipes.py": {"datadistill distill": test_recipes, "datadistill recipes": test_recipes},
    "cli/tune.py": {"command('distill', found.recipe)": test_tune},
    "runs/tuning/tuning.py": {"datadistill tune": test_tune},
    "data/data_set.py": {"command('data', 'fetch', self.name, *there)": test_data},
    "evaluation/verification.py": {"command('evaluate', 'ARTEFACT')": test_claims},
    "pools/index.py": {"command('pretrain', 'DATA', '--pool', folder)": test_pools},
    "pools/initialization.py": {
        "command('pretrain', REST, '--held-out', networks)": test_pools,
        "extending('--held-out', 100)": test_pools,
        "extending('--networks', max(self.count, 200))": test_pools,
    },
    "pools/pool.py": {
        "command('pretrain', REST, *words, '--pool', self.path)": test_pools,
        "extending('--networks' if part == 'train' else '--held-out', number + 1)": test_pools,
    },
    "runs/experiment.py": {"command('distill', 'RECIPE', flag(setting), value)": test_start_a_run},
    "report/making.py": {"command('report', run)": test_page},
    "report/usage.py": {
        "command('distill', file, *repeat_flags(config))": test_page,
        "command('train', story.path, *words)": test_page,
        "command(verb, story.path, *data, *words)": test_page,
    },
    "runs/initialization.py": {"command('pretrain', 'DATA')": test_pools},
    "runs/recipes.py": {"command('recipes')": test_recipes},
    "runs/resuming.py": {"command('distill', 'RECIPE', '--run', folder.path)": test_start_a_run},
    "runs/run.py": {
        "_resume()": test_resume,
        "_resume(**one.settings())": test_resume_on_the_engine_before,
        "command('distill', self.folder.config.name, *repeat_flags(config))": test_repeat_config,
        "command('resume', self.folder.path, *code_flags(self.distillation.config), *flags)": (
            test_resume
        ),
    },
}
"""Where the source shows a command, and the test that runs it."""

SHOWING = {"command", "hint", "extending", "_resume"}
"""Functions that return a command to show."""


def texts(tree: ast.Module) -> list[str]:
    """The texts of a module that are not documentation."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
    ]


def shown(tree: ast.Module) -> set[str]:
    """The commands that a module shows."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in SHOWING:
                arguments = ast.unparse(node).partition(f"{name}(")[2]
                found.add(f"{name}({arguments}")
    names = "|".join([*COMMANDS, "--[a-z]+", "COMMAND"])
    for text in texts(tree):
        found |= set(re.findall(rf"datadistill (?:{names})\b", text))
    return found


def test_every_command_that_is_shown_has_a_test() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 100
    trees = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in files}
    found = {file: commands for file, tree in trees.items() if (commands := shown(tree))}
    assert found == {file: set(tests) for file, tests in SHOWN.items()}


def test_every_name_in_python_that_is_shown_exists() -> None:
    found = {
        name
        for path in SOURCE.rglob("*.py")
        for text in texts(ast.parse(path.read_text()))
        for name in re.findall(r"\bdd\.([a-zA-Z_.]*[a-zA-Z_])", text)
    }
    assert {"evaluate", "data.load", "data.as_data", "models.LeNet"} <= found
    for name in found:
        attrgetter(name)(dd)
