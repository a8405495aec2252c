"""Every recipe runs on the plain engine, whose outer gradient is that of the fast one.

The data are made up, in the exact formats, and few. The settings are the recipes' own, except that
minibatches, pools, updates and images are few, and that large networks are narrow.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import datadistill as dd
from datadistill.cli.main import main
from datadistill.core.engine import PlainEngine
from datadistill.data.sets.voc2007 import CLASSES as VOC_CLASSES
from datadistill.engine import EngineName, FastEngine
from datadistill.engine.stacked import Stacked
from datadistill.runs import experiment
from datadistill.runs.config import RunConfig
from datadistill.runs.recipes import read_recipe, recipe_names
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.yaml_files import read_yaml
from tests.data import makers

SIZE = 63  # pixels: the smallest that AlexNet takes
STEPS = 2
EPOCHS = 6
WINDOW = 4  # of the updates of recipes that differentiate only some
PHOTOGRAPHS = ("alexnet", "squeezenet")
NARROW = {"alexnet": "width=4", "squeezenet": "width=8", "alexcifarnet": "width=4"}
POOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "mnist-lenet": ("mnist", {}),
    "usps-lenet": ("usps", {}),
    "svhn-lenet": ("svhn", {"size": 28}),
    "svhn-gray-lenet": ("svhn-gray", {"size": 28, "channels": 1}),
    "cifar10-lenet": ("cifar10", {}),
    "cifar10-alexcifarnet": ("cifar10", {}),
}
FLAGS = {"iterations": 1, "batch_size": 8, "threads": 1, "processes": 1}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all data sets and files of weights that recipes name."""
    folder = tmp_path_factory.mktemp("recipes")
    makers.make_mnist(folder / "mnist", train=100)
    makers.make_usps(folder / "usps", train=100)
    makers.make_svhn(folder / "svhn")
    makers.make_svhn(folder / "svhn-gray")
    makers.make_cifar10(folder / "cifar10", count=20)
    makers.make_cub200(folder / "cub200")
    makers.make_image_folder(folder / "caltech20")
    makers.make_voc2007_of(folder / "voc2007", VOC_CLASSES)
    makers.make_adult(folder / "adult", train=100)
    makers.make_r8(folder / "r8", train=160)
    makers.make_spoken_digits(folder / "fsdd", each=12)
    torch.manual_seed(0)
    weights = folder / "imagenet"
    weights.mkdir()
    alexnet = dd.models.AlexNet(width=4).state_dict()
    torch.save(alexnet, weights / "alexnet.pth")
    features = {name: w for name, w in alexnet.items() if name.startswith("features")}
    save_file(features, weights / "alexnet-features-imagenet.safetensors")
    squeezenet = dd.models.SqueezeNet(width=8)
    for layer in squeezenet.modules():
        if isinstance(layer, nn.Conv2d):  # PyTorch's own weights let signals vanish
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    save_file(squeezenet.state_dict(), weights / "squeezenet1_1-imagenet.safetensors")
    return folder


def pool_of(config: RunConfig, made: Path) -> Path | None:
    """The pool that a recipe names: two networks to distil with, one that is held out."""
    if config.pool is None:
        return None
    folder = made / config.pool
    if not folder.exists():
        name, options = POOLS[config.pool.name]
        train, _ = dd.data.load(name, made, **options)
        shape = dd.models.arguments_for(train.input_shape, train.classes)
        narrow = {"width": 4} if config.model in NARROW else {}
        network = dd.models.build(config.model, {**shape, **narrow})
        quick: dict[str, Any] = {"epochs": 1, "batch_size": 50, "validation": 0.0}
        dd.pretrain(train, network, folder, networks=2, held_out=1, **quick)
    return folder


def small(config: RunConfig, made: Path) -> dict[str, Any]:
    """What is changed of a recipe, to run in a moment."""
    random = config.initialization.startswith("random")
    narrow, photographs = NARROW.get(config.model), config.model in PHOTOGRAPHS
    changes = {
        "data_dir": made,
        "pool": pool_of(config, made),
        "networks": 2 if random else None,
        "pool_networks": 2 if config.pool and random else None,
        "steps": min(config.steps, STEPS),
        "epochs": min(config.epochs, EPOCHS),
        "window": config.window and WINDOW,
        "images_per_class": 1,
        "size": SIZE if photographs else None,
        "validation": 0.0 if photographs else None,
        "model_args": (narrow,) if narrow else None,
    }
    return FLAGS | {name: value for name, value in changes.items() if value is not None}


@pytest.mark.parametrize("name", recipe_names())
def test_the_plain_engine_runs_every_recipe(
    name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = small(read_recipe(name).config, made)
    flags = [f"--{flag.replace('_', '-')}" for flag in changes]
    values = [" ".join(v) if isinstance(v, tuple) else str(v) for v in changes.values()]
    words = [word for pair in zip(flags, values, strict=True) for word in pair]
    recorded = 0
    record = PlainEngine.record

    def counted(engine: PlainEngine, *arguments: Any) -> Any:
        nonlocal recorded
        recorded += 1
        return record(engine, *arguments)

    def no_picture(*_: Any) -> None:
        pass

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("the fast engine computes")

    monkeypatch.setattr(PlainEngine, "record", counted)
    monkeypatch.setattr("datadistill.cli.outcome.show_result", no_picture)
    for kind in (FastEngine, Stacked):
        monkeypatch.setattr(kind, "__init__", forbidden)
    run = ["--engine", "plain", "--test-networks", "1", "--run", str(tmp_path / "run"), "--quiet"]
    assert main(["distill", name, *words, *run]) == 0
    config = read_yaml(tmp_path / "run" / "config.yaml")
    assert config["engine"] == "plain"
    updates = config["window"] or config["steps"] * config["epochs"]
    assert recorded == (0 if config["adjoint"] == "stored-graph" else updates)
    (row,) = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert row.loss
    assert row.gradient_norm


@pytest.mark.parametrize("name", recipe_names())
def test_both_engines_give_the_same_outer_gradient(name: str, made: Path) -> None:
    config = read_recipe(name).config
    config = replace(config, **small(config, made), dtype="float64")

    def outer_gradient(engine: EngineName) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        distillation = experiment.load(replace(config, engine=engine)).prepare()
        expected = {"plain": PlainEngine, "fast": FastEngine}[engine]
        assert type(distillation.distiller.engine) is expected
        state = distillation.start().distiller
        return distillation.distiller.gradient(state, distillation.batch(0))

    (losses, plain), (same, fast) = outer_gradient("plain"), outer_gradient("fast")
    torch.testing.assert_close(losses, same, rtol=1e-10, atol=1e-10)
    assert plain.keys() == fast.keys()
    for part, g in plain.items():
        assert g.any()
        scale = float(g.abs().max())
        torch.testing.assert_close(g, fast[part], rtol=0, atol=1e-10 * scale)
