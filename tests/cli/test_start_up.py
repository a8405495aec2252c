"""Help, lists and wrong words do not wait for torch: two seconds that they have no use for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import datadistill
from datadistill import core, evaluation, runs, tables
from datadistill.runs.config import NAMING, RunConfig
from datadistill.runs.seams import SEAMS, check_names

HEAVY = ("torch", "numpy", "scipy", "sklearn", "matplotlib", "PIL", "safetensors")

PROGRAM = f"""
import sys
from datadistill.cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
found = sorted(set({HEAVY!r}) & set(sys.modules))
print("heavy:", *found, file=sys.stderr)
sys.exit(code)
"""


def imported_by(*words: str) -> tuple[int, str, list[str]]:
    """The exit code of a command, what it says, and the heavy packages that it imports."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    *said, heavy = done.stderr.splitlines()
    return done.returncode, done.stdout + "\n".join(said), heavy.removeprefix("heavy:").split()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--help", 0, "quickstart"),
        ("--version", 0, datadistill.__version__),
        ("distil", 2, "Did you mean 'distill'?"),
        ("distill --help", 0, "--images-per-class"),
        ("distill --epochz 3", 2, "There is no option --epochz"),
        ("distill no-recipe", 2, "There is no recipe 'no-recipe'"),
        ("evaluate --help", 0, "--baselines"),
        ("pretrain --help", 0, "--held-out"),
        ("data fetch --help", 0, "Data set"),
        ("recipes", 0, "mnist-fixed-10"),
        ("recipes digits-fixed", 0, "data: digits"),
    ],
)
def test_what_needs_no_network_imports_neither_torch_nor_what_torch_needs(
    words: str, code: int, said: str
) -> None:
    ended, text, heavy = imported_by(*words.split())
    assert (ended, heavy) == (code, []), text
    assert said in text


def test_the_package_imports_torch_when_a_name_that_needs_it_is_used() -> None:
    program = """
import sys, datadistill as dd
assert "torch" not in sys.modules
dd.RunConfig(epochs=2), dd.DataDistillError, dir(dd)
assert "torch" not in sys.modules
dd.GradientDescent()
assert "torch" in sys.modules
assert dd.core.update.GradientDescent is dd.GradientDescent
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("first", ["artefact", "runs.seams"])
def test_every_name_is_there_whatever_is_imported_first(first: str) -> None:
    """Also those that register themselves when they are imported."""
    program = f"""
import datadistill.{first}
from datadistill.core.initialization import Initialization
assert "random-pretrained" in Initialization.names()
import datadistill, datadistill.runs, datadistill.tables, datadistill.evaluation
for package in (datadistill.tables, datadistill.evaluation, datadistill.runs, datadistill):
    assert package.__all__ and set(package.__all__) <= set(dir(package))
    found = {{name: getattr(package, name) for name in package.__all__}}
    exec(f"from {{package.__name__}} import *")
    assert all(found[name] is globals()[name] for name in found)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("package", [datadistill, runs, tables, evaluation])
def test_what_type_checkers_import_is_what_the_package_has(package: object) -> None:
    path = Path(str(vars(package)["__file__"]))
    block = next(n for n in ast.parse(path.read_text()).body if isinstance(n, ast.If))
    names = {
        a.asname or a.name for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names
    }
    assert names == set(vars(package)["__all__"]) - {"__version__"}


def test_a_name_that_a_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'datadistill' has no attribute 'distil'"):
        _ = datadistill.distil  # pyright: ignore
    with pytest.raises(ImportError, match="cannot import name 'run_all'"):
        exec("from datadistill.runs import run_all")
    assert not hasattr(core, "torch")


def test_the_settings_that_are_checked_when_they_are_given_are_those_that_name_something() -> None:
    assert set(NAMING) == set(SEAMS)
    check_names(RunConfig())  # which making it leaves out
