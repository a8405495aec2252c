"""An exported ``train.py`` needs torch and safetensors only, and reaches the artefact's figure."""

import ast
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import datadistill as dd
from datadistill.artefact.make import make
from datadistill.core.network import Network, Weights
from datadistill.errors import ArtefactError, ConfigError
from datadistill.exchange.script import RULES, called
from datadistill.models import MODELS, build
from tests.cli.helpers import run

ALONE = """
import importlib.util, runpy, sys
sys.path[:0] = {places!r}
assert importlib.util.find_spec("datadistill") is None
sys.argv = {argv!r}
runpy.run_path({script!r}, run_name="__main__")
used = {{name.partition(".")[0] for name in sys.modules}}
print("others:", sorted(used & {{"datadistill", "pydantic", "sklearn", "PIL", "tyro", "yaml"}}))
"""
"""Runs a script where only torch and safetensors can be found, not this package."""

OWN = """
import torch
from torch import nn

class Normal(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        convolution = nn.Conv2d(1, width, 3, stride=2)
        self.body = nn.Sequential(convolution, nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width * 9, 10)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, images):
        return self.head(self.body(images).flatten(1) * self.scale)
"""

Digits = tuple[dd.LabelledData, dd.LabelledData]
SETTINGS: dict[str, Any] = {
    "iterations": 2,
    "steps": 2,
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 0.1,
    "test_networks": 3,
}
FIXED: dict[str, Any] = {**SETTINGS, "test_networks": 1}


@pytest.fixture(scope="module")
def digits() -> Digits:
    train, test = dd.data.load("digits", size=8)
    return train.part(torch.arange(300), "train"), test.part(torch.arange(200), "test")


def small(**arguments: int) -> torch.nn.Module:
    return dd.models.MLP(**{"size": 8, "hidden": 12, **arguments})


def printed(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What an exported script prints, run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["train.py", *words])
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "own_network", raising=False)
        runpy.run_path(str(folder / "train.py"), run_name="__main__")
    return capsys.readouterr().out


def figure(text: str) -> str:
    found = re.search(r"^[a-z ]+: ([\d.]+( ± [\d.]+)?)( %)?$", text, re.MULTILINE)
    assert found, text
    return found[1]


def claimed(distilled: dd.DistilledData) -> str:
    assert distilled.claim
    return str(distilled.claim).partition(" %")[0].partition(" mean")[0]


def test_the_line_that_is_shown_runs_from_a_shell(digits: Digits, tmp_path: Path) -> None:
    distilled = dd.distill(digits[0], small(), initialization=dd.FixedInit(), **SETTINGS)
    (note,) = dd.export(distilled, tmp_path / "my script")
    line = note.partition(" trains the network")[0]
    assert shlex.split(line) == ["python", str(tmp_path / "my script" / "train.py")]
    assert (tmp_path / "my script" / "train.py").is_file()


def test_the_script_runs_with_torch_and_safetensors_only_to_the_digit(
    tmp_path: Path, data_dir: Path
) -> None:
    mnist, real = dd.data.load("mnist", data_dir)
    real_settings: dict[str, Any] = {**FIXED, "iterations": 30, "steps": 1, "outer_lr": 0.05}
    distilled = dd.distill(
        mnist.part(torch.arange(6000), "train"),
        dd.models.LeNet(),
        test=real,
        initialization=dd.FixedInit(seed=1),
        **real_settings,
    )
    dd.export(distilled, tmp_path / "out", test=real)
    script = str(tmp_path / "out" / "train.py")
    places = [str(Path(module.__file__ or "").parents[1]) for module in (torch, safetensors)]
    text = ALONE.format(places=places, script=script, argv=["train.py"])
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    alone = [sys.executable, "-S", "-E", "-c", text]
    ended = subprocess.run(alone, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert figure(ended.stdout) == claimed(distilled)
    assert "others: []" in ended.stdout
    trained = safetensors.torch.load_file(tmp_path / "out" / "trained.safetensors")
    own = distilled.train().state_dict()
    assert all(torch.allclose(trained[name], own[name], atol=1e-4) for name in own)
    assert trained.keys() == own.keys()


@pytest.mark.parametrize(
    "rule",
    [
        dd.GradientDescent(),
        dd.Momentum(0.8),
        dd.Nesterov(0.7),
        dd.Adam(),
        dd.WeightDecay(0.01, dd.Momentum()),
        dd.WeightDecay(0.02, dd.Adam()),
    ],
    ids=str,
)
def test_every_update_rule(
    rule: dd.UpdateRule, digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = digits
    init = dd.RandomInit()
    distilled = dd.distill(
        train, small(), test=test, initialization=init, update_rule=rule, **SETTINGS
    )
    dd.export(distilled, tmp_path / "out", test=test)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)


def test_momentum_and_factors_of_layers_that_were_learned(
    digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = digits
    rule = dd.WeightDecay(0.01, dd.Nesterov(0.7))
    learned: dict[str, Any] = {**SETTINGS, "learn_momentum": True, "learn_layer_rates": True}
    distilled = dd.distill(
        train, small(), test=test, initialization=dd.RandomInit(), update_rule=rule, **learned
    )
    assert distilled.header.update_rule["name"] == "layer-rates"
    dd.export(distilled, tmp_path / "out", test=test)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)


@pytest.mark.parametrize("scheme", ["xavier-uniform", "he-normal", "orthogonal", "module"])
def test_random_networks_are_drawn_as_the_artefact_draws_them(
    scheme: Any, digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = digits
    distilled = dd.distill(
        train, small(), test=test, initialization=dd.RandomInit(scheme), **SETTINGS
    )
    dd.export(distilled, tmp_path / "out", test=test)
    said = printed(tmp_path / "out", capsys)
    assert figure(said) == claimed(distilled)
    assert f"the artefact's: {distilled.claim}" in said
    more = dd.evaluate(distilled, test, networks=7)
    assert figure(printed(tmp_path / "out", capsys, "--networks", "7")) == claimed(
        distilled.with_claim(more.claim())
    )


@dataclass(frozen=True)
class Halved(dd.RandomInit):
    """A user's own initialization, derived from the built-in one."""

    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        return {name: w / 2 for name, w in super().sample(network, generators).items()}


def test_networks_of_an_own_initialization_are_in_the_file(
    digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = digits
    distilled = dd.distill(train, small(), test=test, initialization=Halved(), **SETTINGS)
    dd.export(distilled, tmp_path / "out", test=test)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)
    more = printed(tmp_path / "out", capsys, "--networks", "7")  # there are no others
    assert figure(more) == claimed(distilled)


@pytest.mark.parametrize("learn_labels", [False, True])
def test_poisoning_and_soft_labels(
    learn_labels: bool, digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = digits
    distilled = dd.distill(
        train,
        small(),
        test=test,
        initialization=dd.FixedInit(),
        objective=dd.Poisoning(3, 5),
        learn_labels=learn_labels,
        **FIXED,
    )
    dd.export(distilled, tmp_path / "out", test=test)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)


def test_a_header_may_leave_out_what_is_the_default(tmp_path: Path) -> None:
    data = (torch.randn(6, 1, 8, 8), torch.arange(6) % 3)
    module = dd.models.Linear(size=8, classes=3)
    settings: dict[str, Any] = {"iterations": 1, "networks": 1, "validation": 0}
    made = dd.distill(data, module, objective=dd.Poisoning(), **settings)
    short = {"objective": {"name": "poisoning"}, "update_rule": {"name": "momentum"}}
    header = made.header.model_copy(update=short)
    dd.export(dd.DistilledData(made.steps, header), tmp_path / "out")
    assigned, *_ = ast.parse((tmp_path / "out" / "train.py").read_text()).body[1:]
    assert isinstance(assigned, ast.Assign)
    found = ast.literal_eval(assigned.value)
    assert found["relabelled"] == {0: 1}
    assert found["update_rule"] == dd.Momentum().record()


@pytest.mark.parametrize("fixed", [False, True])
def test_inner_minibatches_are_drawn_as_the_artefact_draws_them(
    fixed: bool, digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = digits
    init = dd.FixedInit(seed=2) if fixed else dd.RandomInit()
    settings: dict[str, Any] = {**(FIXED if fixed else SETTINGS), "epochs": 3, "steps": 5}
    distilled = dd.distill(
        train, small(), test=test, initialization=init, inner_batch=2, **settings
    )
    assert distilled.header.schedule.inner
    dd.export(distilled, tmp_path / "out", test=test)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)


def test_real_images_are_whitened_as_those_were_that_were_distilled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = dd.data.load("digits", size=8, normalization="zca")
    settings: dict[str, Any] = {**FIXED, "iterations": 20}
    distilled = dd.distill(train, small(), test=test, initialization=dd.FixedInit(), **settings)
    dd.export(distilled, tmp_path / "out", test=test)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)


def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = torch.Generator().manual_seed(1)
    inputs = torch.randn(60, 5, generator=random)
    real = dd.data.as_data((inputs, inputs[:, :2].square().float()))
    distilled = dd.distill(
        real,
        torch.nn.Linear(5, 2),
        test=real,
        objective=dd.Regression(),
        initialization=dd.FixedInit(),
        **FIXED,
    )
    (tmp_path / "net.py").write_text("from torch.nn import Linear")
    own, sizes = f"{tmp_path}/net.py:Linear", ["in_features=5", "out_features=2"]
    dd.export(distilled, tmp_path / "out", test=real, model=own, model_args=sizes)
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)


def test_an_own_network_with_batch_normalisation_by_its_file(
    digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "train.py"  # a name that the script has, too
    own.write_text(OWN)
    words = ["--model", f"{own}:Normal", "--model-args", "width=3"]
    folder = str(tmp_path / "run")
    made = ["distill", "--data", "digits", "--size", "8", "--run", folder, "--initialization"]
    more = ["--iterations", "2", "--test-networks", "3", "--scheme", "module", "--quiet"]
    assert run(*made, "random", *more, *words) == 0
    out = str(tmp_path / "out")
    assert run("export", folder, "--output", out, "--test", *words) == 0
    distilled = dd.load(folder)
    assert distilled.claim
    assert distilled.claim.statistics == "distilled images"
    capsys.readouterr()
    assert figure(printed(tmp_path / "out", capsys)) == claimed(distilled)
    with pytest.raises(ArtefactError, match="which is not built in"):
        dd.export(distilled, tmp_path / "again")


@pytest.mark.parametrize("name", MODELS)
def test_the_source_of_every_network_stands_alone(name: str, tmp_path: Path) -> None:
    kind = MODELS[name]
    least = {"alexnet": 63, "squeezenet": 17, "vgg11": 32, "lenet": 28}.get(name, 16)
    arguments = {"channels": 1, "size": least, "classes": 3}
    if name == "textcnn":
        arguments = {"words": least, "dimensions": least, "classes": 3}
    if "width" in build(name, arguments).__dict__.get("arguments", {}):
        arguments["width"] = 4
    module = build(name, arguments)
    inputs = torch.randn(3, 1, least, least, generator=torch.Generator().manual_seed(0))
    distilled = make(
        dd.Steps(inputs[None], torch.arange(3)[None], torch.full((1, 1), 0.1)),
        network=Network(module, inputs),
        module=module,
        initialization=dd.FixedInit(),
        objective=dd.Classification(),
        rule=dd.GradientDescent(),
        data=dd.data.as_data((inputs, torch.arange(3))),
        configuration={},
    )
    dd.export(distilled, tmp_path)
    text = (tmp_path / "train.py").read_text()
    assert "datadistill" not in text.replace("datadistill-", "")
    found = runpy.run_path(str(tmp_path / "train.py"))
    again = found[kind.__name__](**arguments)
    again.load_state_dict(module.state_dict())
    assert torch.equal(again.eval()(inputs), module.eval()(inputs))


def test_hostile_names_are_nothing_but_text(digits: Digits, tmp_path: Path) -> None:
    train, _ = digits
    evil = '"""\nraise SystemExit(3)\n"""\' {settings} \\'
    named = dd.LabelledData(train.inputs, train.labels, train.normalization, name=evil)
    distilled = dd.distill(named, small(), iterations=1, initialization=dd.FixedInit())
    dd.export(distilled, tmp_path)
    tree = ast.parse((tmp_path / "train.py").read_text())
    assert not any(isinstance(node, ast.Raise) for node in tree.body)
    runpy.run_path(str(tmp_path / "train.py"))


@pytest.mark.parametrize("name", ["x=print(1), y", "class", "", "1", "x)(y", "x\n"])
def test_no_name_of_an_argument_becomes_code(name: str) -> None:
    assert called("Net", {"width": 4, "kind": "')"}) == 'Net(width=4, kind="\')")'
    with pytest.raises(ArtefactError, match="no Python name"):
        called("Net", {name: 1})


def test_what_a_script_cannot_do_is_said(digits: Digits, tmp_path: Path) -> None:
    from tests.exchange.own_rule import Signs

    distilled = dd.distill(
        digits[0], small(), iterations=1, initialization=dd.FixedInit(), update_rule=Signs()
    )
    with pytest.raises(ConfigError, match="which a script does not know"):
        dd.export(distilled, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert set(dd.UpdateRule.names()) | {"weight-decay", "layer-rates"} == RULES
