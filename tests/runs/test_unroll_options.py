"""Options of the unroll: what they do, and which are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.core.update import LayerRates
from datadistill.errors import ConfigError, DataDistillError
from datadistill.runs.config import RunConfig
from datadistill.runs.experiment import load
from tests.runs.helpers import TEST, go, stop_after


def test_updates_take_the_images_that_they_draw(tmp_path: Path) -> None:
    made = go(tmp_path, inner_batch=1, images_per_class=2)
    plain = go(None, images_per_class=2)
    assert made.header.schedule.inner
    assert plain.header.schedule.inner is None
    assert "inner" not in plain.header.schedule.model_dump()
    assert not torch.equal(made.inputs, plain.inputs)
    start = dd.models.Linear()
    seeds = [made.train(start, seed=seed, keep_weights=True).state_dict() for seed in (0, 1)]
    assert any(not torch.equal(seeds[0][name], seeds[1][name]) for name in seeds[0])


def test_momentum_and_factors_of_layers_are_learned_and_become_numbers(tmp_path: Path) -> None:
    made = go(tmp_path, learn_momentum=True, learn_layer_rates=True, momentum=0.3)
    rule = made.rule
    assert isinstance(rule, LayerRates)
    assert isinstance(rule.rule, dd.Momentum)
    assert rule.rule.momentum != pytest.approx(0.3, abs=0.01)
    ((layer, factor),) = rule.layers.items()
    assert f"{layer}.weight" in made.train(seed=0).state_dict()
    assert factor != pytest.approx(1, abs=0.01)
    assert made.steps.coefficients is None
    assert made.header.update_rule == {
        **{"name": "layer-rates", "layers": {layer: factor}},
        "rule": {"name": "momentum", "momentum": rule.rule.momentum},
    }


def test_learning_rates_by_layer_are_for_their_network(tmp_path: Path) -> None:
    made = go(tmp_path, learn_layer_rates=True)
    with pytest.raises(ConfigError, match="for which there is no learning rate"):
        dd.evaluate(made, TEST, architecture=dd.models.MLP(), networks=1)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "too many images": ({"inner_batch": 3}, "there are 2 distilled images of each class"),
    "no window": ({"adjoint": "truncated"}, "truncated adjoint needs window"),
    "placed nowhere": ({"window_placement": "gradient"}, "no meaning for the back-gradient"),
    "code": ({"architectures": ("mine.py:Net",)}, "architectures names Python code"),
    "no network": ({"architectures": ("lenett",)}, "lenett"),
    "fixed": (
        {"architectures": ("mlp",), "initialization": "fixed", "networks": 1},
        "architectures has no meaning for a fixed initialization",
    ),
    "ridge head": ({"adjoint": "ridge-head", "robust": True, "networks": 1}, "do not vary"),
    "negative labels": (
        {"adjoint": "ridge-head", "labels": "soft", "networks": 1},
        "Soft labels may become negative",
    ),
    "by layer": (
        {"learn_layer_rates": True, "architectures": ("mlp",)},
        "Learning rates by layer are for one network",
    ),
    "no momentum": ({"learn_momentum": True, "update_rule": "adam"}, "momentum has no meaning"),
    "optimiser": ({"ordinary": ("rmsprop",)}, "ordinary is"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_before_the_first_outer_step(case: str) -> None:
    settings, message = REFUSED[case]
    with pytest.raises(DataDistillError, match=message):
        go(None, **settings, **stop_after(1))


def test_a_ridge_head_serves_real_images_though_distilled_ones_outnumber_features() -> None:
    config = RunConfig(
        adjoint="ridge-head", start="k-means", images_per_class=10, networks=4, threads=1
    )
    distillation = load(config).prepare()
    losses, _ = distillation.distiller.gradient(
        distillation.start().distiller, distillation.batch(0)
    )
    assert losses.max() < 0.5  # with the 1e-6 of the published method, 0.54 to 1.45
