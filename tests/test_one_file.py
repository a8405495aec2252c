"""A built-in implementation is added by one file: nothing else in the package changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import datadistill

FILES = {
    "core/update/sign.py": """
from dataclasses import dataclass
from ..learner import Learner
from .rule import UpdateRule, moved

@dataclass(frozen=True)
class Sign(UpdateRule, name="sign"):
    def update(self, learner, gradient, step):
        return Learner(moved(learner.weights, {n: g.tanh() for n, g in gradient.items()}, step))
""",
    "core/adjoint/one_update.py": """
from dataclasses import dataclass
from .adjoint import Adjoint
from .truncated import Truncated

@dataclass(frozen=True)
class OneUpdate(Adjoint, name="one-update"):
    def __call__(self, *arguments):
        return Truncated(1)(*arguments)
""",
    "core/objective/squared.py": """
from dataclasses import dataclass
from .classification import Classification

@dataclass(frozen=True)
class Squared(Classification, name="squared"):
    def outer_loss(self, outputs, labels):
        return super().outer_loss(outputs, labels).square()
""",
    "core/parametrisation/bounded.py": """
from dataclasses import dataclass, replace
from .plain import Plain

@dataclass(frozen=True)
class Bounded(Plain, name="bounded"):
    def steps(self, parameters):
        steps = super().steps(parameters)
        return replace(steps, inputs=steps.inputs.tanh())
""",
    "core/view/dark.py": """
from dataclasses import dataclass
from .view import View

@dataclass(frozen=True)
class Dark(View, name="dark"):
    def draw(self, stream):
        return lambda images: images / 2
""",
    "baselines/black.py": """
import torch
from .baseline import Baseline

class Black(Baseline, name="black"):
    deterministic = True

    def steps(self, data, layout, stream):
        return layout.arrange(torch.zeros(layout.classes, layout.per_class, *data.input_shape))
""",
    "data/sets/few_digits.py": """
import torch
from ..data_set import DataSet, register
from .digits import load_digits

def load_few(folder, options):
    train, test = load_digits(folder, options)
    return train.part(torch.arange(300), "train"), test

DATA_SET = register(DataSet(
    name="few-digits", what="300 digits", input_shape=(1, 28, 28), classes=10, folder="",
    files=(), origin="scikit-learn", canonical=False, loader=load_few, order=15,
))
""",
    "models/networks/tiny.py": """
from torch import nn
from ..names import register

@register("tiny")
class Tiny(nn.Sequential):
    def __init__(self, channels=1, size=28, classes=10):
        super().__init__(nn.Flatten(), nn.Linear(channels * size * size, classes))
        self.arguments = {"channels": channels, "size": size, "classes": classes}
""",
}


PROGRAM = """
import sys
import datadistill as dd
from datadistill.cli.main import main
from datadistill.tables.image_sets import baselines_of_table

assert main(sys.argv[1:]) == 0
made = dd.load("run/distilled.safetensors")
assert (made.rule.name, made.objective.name) == ("sign", "squared"), made.header
assert made.header.architecture.name == "tiny"
assert [*dd.data.DATA_SETS][:3] == ["digits", "few-digits", "mnist"]
assert [one.name for one in baselines_of_table()][-2:] == ["average real", "black"]
"""


def test_one_new_file_of_each_kind_is_found_by_its_name(tmp_path: Path) -> None:
    package = tmp_path / "datadistill"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(datadistill.__file__).parent, package, ignore=ignored)
    for name, text in FILES.items():
        (package / name).write_text(text)
    flags = [
        *("--data", "few-digits", "--model", "tiny", "--update-rule", "sign"),
        *("--objective", "squared", "--parametrisation", "bounded", "--adjoint", "one-update"),
        *("--view", "dark+shift"),
        *("--iterations", "3", "--threads", "1", "--networks", "2", "--test-networks", "2"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "distill", *flags, "--run", "run", "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "on digits test over 2 networks" in done.stdout
