"""Flags, YAML and Python name things alike; what none of them knows is an error."""

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import yaml

import datadistill as dd
from datadistill.cli.distill import Distill
from datadistill.cli.flags import HIDDEN
from datadistill.cli.parsing import parse
from datadistill.core.adjoint import Adjoint
from datadistill.core.objective import Objective
from datadistill.core.parametrisation import Parametrisation
from datadistill.errors import ConfigError
from datadistill.runs.calls.presets import PAPER, Preset
from datadistill.runs.config import NAMES, RunConfig, config_from
from datadistill.runs.recipes import read_recipe, recipe_names
from datadistill.runs.seams import make, make_rule
from datadistill.runs.settings import GROUPS
from datadistill.runs.store.yaml_files import parse_yaml, read_config, write_yaml
from tests.covering import combinations
from tests.runs.helpers import DATA, contents, finish, start

OTHER: dict[str, Any] = {
    "data": "mnist",
    "data_dir": Path("/somewhere"),
    "size": 14,
    "channels": 3,
    "augment": False,
    "normalization": "imagenet",
    "model": "mlp",
    "model_args": ("width=7", "depth=2"),
    "initialization": "fixed",
    "init_seed": 5,
    "pool": Path("pools/mine"),
    "pool_networks": 50,
    "pool_noise": 0.25,
    "rates_factor": 1.2,
    "weights": Path("net.pth"),
    "reset_head": True,
    "partial": True,
    "trained": ("fc3", "fc2.weight"),
    "scheme": "he-uniform",
    "objective": "regression",
    "attacked": 3,
    "target": 5,
    "adjoint": "truncated",
    "window": 4,
    "random_window": False,
    "window_placement": "gradient",
    "inner_batch": 2,
    "shuffle": True,
    "robust": True,
    "ordinary": ("sgd",),
    "jitter": 0.25,
    "architectures": ("mlp", "convnet3(width=16)"),
    "clip_factor": 2.0,
    "validation": 0.25,
    "validate_every": 9,
    "keep": "best",
    "test_networks": 3,
    "device": "cpu",
    "dtype": "float64",
    "processes": 2,
    "threads": 1,
    "compiled": False,
    "checkpoint_every": 12,
    "checkpoint_minutes": 2.5,
    "tensorboard": True,
    "steps": 2,
    "epochs": 4,
    "images_per_class": 6,
    "images_per_step": 7,
    "iterations": 11,
    "networks": 8,
    "batch_size": 77,
    "learning_rate": 1e-3,
    "learn_rates": False,
    "learn_labels": True,
    "learn_momentum": True,
    "learn_layer_rates": True,
    "labels": "logits",
    "view": "shift+rotate(degrees=5.0)",
    "labels_lr": 0.2,
    "update_rule": "nesterov",
    "momentum": 0.5,
    "weight_decay": 0.01,
    "parametrisation": "bases",
    "bases": 3,
    "downscale": 2,
    "engine": "plain",
    "outer_lr": 1e20,
    "betas": (0.25, 0.75),
    "rates_lr": 0.3,
    "outer_schedule": "periods",
    "start": "k-means",
    "decay": 0.125,
    "decay_every": 13,
    "clip_norm": 0.1,
    "micro_batch": 20,
    "averaging": 0.5,
    "seed": 99,
    "plans": ((0, 20), (5, 11)),
}
"""A value for every setting that is not its default."""


def test_the_groups_hold_every_setting_once() -> None:
    assert sorted(NAMES) == sorted(field.name for field in dataclasses.fields(RunConfig))
    assert tuple(RunConfig().mapping()) == NAMES


def test_the_defaults_are_those_of_the_groups() -> None:
    config = RunConfig()
    for group in GROUPS.values():
        for field in dataclasses.fields(group):
            assert getattr(config, field.name) == field.default


def test_without_a_run_the_defaults_are_the_papers() -> None:
    paper = config_from({**PAPER, "iterations": 7})
    for field in dataclasses.fields(dd.DistillerConfig):
        assert field.name == "iterations" or getattr(paper, field.name) == field.default


def test_every_setting_has_another_value_here() -> None:
    assert set(OTHER) == set(NAMES)
    for field in dataclasses.fields(RunConfig):
        assert OTHER[field.name] != field.default


@pytest.mark.parametrize("name", NAMES)
def test_flags_yaml_and_python_give_the_same_configuration(name: str) -> None:
    value = OTHER[name]
    python = config_from({name: value})
    assert getattr(python, name) == value
    text = yaml.safe_dump({name: python.mapping()[name]})
    assert config_from(parse_yaml(text.encode(), "recipe")) == python
    if name in HIDDEN:
        return
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        words = [flag if value else flag.replace("--", "--no-")]
    else:
        words = [flag, *map(str, _flat(value))]
    command = parse(["distill", *words])
    assert isinstance(command, Distill)
    assert command.config == python


def test_plans_that_a_run_wrote_are_read_again(tmp_path: Path) -> None:
    config = config_from({"iterations": 11, "plans": OTHER["plans"]})
    (tmp_path / "config.yaml").write_bytes(write_yaml(config, "all"))
    command = parse(["distill", str(tmp_path / "config.yaml")])
    assert isinstance(command, Distill)
    assert command.config == config


def _flat(value: Any) -> list[Any]:
    return [one for part in value for one in _flat(part)] if isinstance(value, tuple) else [value]


def test_a_whole_configuration_survives_yaml() -> None:
    config = config_from(OTHER)
    assert config_from(parse_yaml(write_yaml(config, "all"), "all")) == config


def test_numbers_with_exponents_are_numbers_in_yaml() -> None:
    config = config_from(parse_yaml(b"learning_rate: 1e-3\nouter_lr: 2E+1\n", "recipe"))
    assert (config.learning_rate, config.outer_lr) == (1e-3, 20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iteration: 5", "There is no setting 'iteration'. Did you mean 'iterations'?"),
        ("learning-rate: 5", "Did you mean 'learning_rate'?"),
        ("steps: 0", "steps is 0"),
        ("steps: '3'", "steps is '3'"),
        ("steps: true", "steps is True"),
        ("steps: 1.5", "steps is 1.5"),
        ("steps: .nan", "steps is nan"),
        ("learning_rate: .nan", "learning_rate is nan"),
        ("learning_rate: .inf", "learning_rate is inf"),
        ("learning_rate: -1", "learning_rate is -1"),
        ("checkpoint_minutes: 0", "checkpoint_minutes is 0"),
        ("rates_factor: 0", "rates_factor is 0"),
        ("keep: worst", "keep is 'worst'"),
        ("keep: best\nvalidation: 0", "keep=best needs validation data"),
        ("betas: [0.5]", "betas is [0.5]"),
        ("betas: [0.5, 2]", "betas is (0.5, 2.0)"),
        ("model_args: width=3", "model_args is 'width=3'"),
        ("device: gpu", "device is 'gpu'"),
        ("data: 2001-01-01", "is not a plain type"),
        ("1: 2", "There is no setting 1"),
        ("- steps", "holds no settings"),
        ("", "holds no settings"),
        ("steps: [", "line 1 is not plain YAML"),
    ],
)
def test_what_cannot_be_right_is_an_error_of_two_lines_that_names_the_file(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_recipe(str(path))
    assert message in caught.value.what
    assert caught.value.what.startswith(str(path))
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_parses_and_says_what_it_is(name: str) -> None:
    recipe = read_recipe(name)
    assert len(recipe.description) > 40
    make(Adjoint, recipe.config)
    assert recipe.config.data in dd.data.DATA_SETS
    assert dd.models.build(recipe.config.model, {}) is not None


def test_recipes_that_were_not_run_say_so_as_the_results_do() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results" / "README.md").read_text()
    listed = re.findall(r"`([a-z0-9-]+)`", page[page.index("Not run yet") :])
    said = {name for name in recipe_names() if "Not run yet" in read_recipe(name).description}
    assert said
    assert said == {name for name in listed if name in recipe_names()}


@pytest.mark.parametrize(
    ("name", "preset"), combinations(recipe_names(), get_args(Preset), together=1)
)
def test_the_command_takes_every_recipe(name: str, preset: Preset) -> None:
    command = parse(["distill", name, "--preset", preset])
    assert isinstance(command, Distill)
    assert command.config == read_recipe(name, preset).config


def test_the_first_set_of_recipes_is_there_with_the_papers_settings() -> None:
    assert {
        "digits-fixed",
        "mnist-fixed-10",
        "mnist-fixed-100",
        "mnist-random-100",
        "cifar10-fixed-100",
        "cifar10-random-100",
    } <= set(recipe_names())
    for name in recipe_names():
        own = read_recipe(name)
        pretrained = own.config.initialization.endswith("pretrained")
        if pretrained or "Not in the paper" in own.description:
            continue
        data, kind, images = (*name.split("-"), "100")[:3]
        config = read_recipe(name, "paper").config
        assert (config.data, config.initialization) == (data, kind)
        assert config.steps * config.images_per_class * 10 == int(images)
        if data != "digits":
            assert (config.batch_size, config.clip_norm, config.start) == (1024, None, "noise")
            assert (config.outer_schedule, config.decay, config.keep) == ("periods", 0.5, "last")
            assert config.learning_rate == {"mnist": 0.02, "cifar10": 0.001}[data]
            assert (config.epochs, config.outer_lr, config.betas) == (3, 0.01, (0.5, 0.999))
            training = {"mnist": 54_000, "cifar10": 45_000}[data]
            assert config.iterations == -(-400 * training // 1024)  # 400 passes


@pytest.mark.parametrize(
    "name", ["mnist-poisoning", "cifar10-poisoning", "cifar10-lenet-poisoning"]
)
def test_poisoning_is_one_step_of_100_images_on_networks_of_a_pool(name: str) -> None:
    for preset in ("fast", "paper"):
        config = read_recipe(name, preset).config
        assert (config.steps, config.epochs, config.images_per_class) == (1, 1, 10)
        assert make(Objective, config) == dd.Poisoning(0, 1)
        assert config.initialization == "random-pretrained"
        assert config.pool == Path(f"pools/{config.data}-{config.model}")
    paper = read_recipe(name, "paper").config
    assert (paper.outer_lr, paper.batch_size) == (0.02, 1024)
    assert (paper.pool_noise, paper.pool_networks, paper.rates_factor) == (0, None, 1)


@pytest.mark.parametrize("kind", ["fixed", "random"])
@pytest.mark.parametrize(
    ("source", "target"),
    [("mnist", "usps"), ("usps", "mnist"), ("svhn-gray", "mnist"), ("svhn", "mnist")],
)
def test_domain_adaptation_is_10_steps_for_networks_trained_on_the_source(
    source: str, target: str, kind: str
) -> None:
    for preset in ("fast", "paper"):
        config = read_recipe(f"{source}-to-{target}-{kind}", preset).config
        assert (config.data, config.initialization) == (target, f"{kind}-pretrained")
        assert config.pool == Path(f"pools/{source}-lenet")
        assert (config.steps, config.epochs, config.images_per_class) == (10, 3, 1)
        assert config.channels == (3 if source == "svhn" else None)
        assert config.keep == "last" or (preset, kind) == ("fast", "fixed")
    training = {"mnist": 54_000, "usps": 6564 if config.validation else 7291}[target]
    assert config.iterations == -(-400 * training // 1024)  # 400 passes


def test_flags_override_a_recipe_wherever_it_stands() -> None:
    for words in (
        ["distill", "mnist-fixed-100", "--steps", "3", "--quiet"],
        ["distill", "--steps", "3", "--quiet", "mnist-fixed-100"],
    ):
        command = parse(words)
        assert isinstance(command, Distill)
        assert command.quiet
        assert command.config == dataclasses.replace(read_recipe("mnist-fixed-100").config, steps=3)


def test_a_flag_that_only_the_recipes_objective_has_is_read() -> None:
    command = parse(["distill", "mnist-poisoning", "--attacked", "3"])
    assert isinstance(command, Distill)
    assert make(Objective, command.config) == dd.Poisoning(3, 1)


def test_the_preset_is_read_below_the_flags() -> None:
    words = ["distill", "mnist-random-100", "--preset", "paper", "--outer-lr", "0.3"]
    command = parse(words)
    assert isinstance(command, Distill)
    paper = read_recipe("mnist-random-100", "paper").config
    assert command.config == dataclasses.replace(paper, outer_lr=0.3)
    command = parse(["distill", "--preset", "paper", "--steps", "2"])
    assert isinstance(command, Distill)
    assert command.config == config_from({**PAPER, "steps": 2})


def test_config_yaml_does_the_same_run_again(tmp_path: Path) -> None:
    words = ["--data", "digits", "--model", "linear", "--iterations", "3", "--test-networks", "2"]
    first, again = tmp_path / "first", tmp_path / "again"
    for words_of_run in (
        ["distill", *words, "--quiet", "--run", str(first)],
        ["distill", str(first / "config.yaml"), "--quiet", "--run", str(again)],
    ):
        code, said = finish(start(*words_of_run))
        assert code == 0, said
    assert contents(again) == contents(first)
    unset = {n for n, v in read_config(first / "config.yaml").mapping().items() if v is None}
    # All that could be filled in is.
    assert unset == {
        "data_dir",
        "size",
        "channels",
        "augment",
        "normalization",
        "micro_batch",
        "pool",
        "pool_networks",
        "weights",
        "window",
        "window_placement",
        "inner_batch",
        "clip_factor",
        "attacked",
        "target",
        "update_rule",
        "learn_labels",
        "labels",
        "bases",
        "downscale",
        "view",
        "labels_lr",
        "images_per_step",
        "rates_lr",
        "checkpoint_every",
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": "5"}, "iterations is '5'"),
        ({"betas": (0.1,)}, "betas is"),
        ({"validate_every": 0}, "validate_every is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"data_dir": object()}, "is not a plain type"),
    ],
)
def test_python_is_validated_like_yaml(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        dd.distill(DATA, dd.models.Linear(), **settings)


def test_a_schedule_is_scaled_to_another_number_of_outer_steps() -> None:
    config = config_from({"iterations": 1000, "decay_every": 100})
    short = config.scaled(250)
    rates = [config.outer_lr_at(t) for t in range(0, 1000, 4)]
    assert [short.outer_lr_at(t) for t in range(250)] == rates
    assert short.iterations == 250
    assert short.validate_every == 13
    assert config.scaled(3).decay_every == 1


def test_the_number_of_threads_is_set_and_recorded(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        dd.distill(
            DATA,
            dd.models.Linear(),
            run=tmp_path,
            threads=2,
            iterations=1,
            networks=1,
            batch_size=8,
        )
        assert torch.get_num_threads() == 2
        assert read_config(tmp_path / "config.yaml").threads == 2
    finally:
        torch.set_num_threads(before)


def test_own_classes_take_the_settings_of_the_class_they_derive_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import datadistill as dd\n\n\nclass Mine(dd.Plain):\n    pass\n"
    (tmp_path / "own_plain.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    config = RunConfig(parametrisation="own_plain.py:Mine", learn_labels=True)
    made = make(Parametrisation, config)
    assert isinstance(made, dd.Plain)
    assert made.learn_labels is True
    config = RunConfig(parametrisation="own_plain.py:Mine(learn_rates=False)")
    assert make(Parametrisation, config).record()["learn_rates"] is False


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"update_rule": "adma"}, "Did you mean 'adam'"),
        ({"update_rule": "weight-decay"}, "There is no update rule"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"parametrisation": "plane"}, "Did you mean 'plain'"),
        ({"adjoint": "stored"}, "There is no adjoint"),
        ({"initialization": "fixd"}, "Did you mean 'fixed'"),
    ],
)
def test_a_setting_that_names_no_implementation_is_refused_at_once(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config_from(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"update_rule": "adam", "momentum": 0.5}, "momentum has no meaning"),
        ({"update_rule": "nesterov"}, "momentum is 0.0"),
    ],
)
def test_a_rule_and_momentum_that_do_not_fit_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_rule(config_from(settings))


def test_arguments_of_a_network_may_follow_its_name_in_brackets() -> None:
    config = config_from({"model": "convnet3(width=16)", "model_args": ["size=28"]})
    assert (config.model, config.model_args) == ("convnet3", ("width=16", "size=28"))
    assert config == RunConfig(model="convnet3", model_args=("width=16", "size=28"))
