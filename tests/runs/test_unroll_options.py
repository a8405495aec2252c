"""Options of the unroll: each is resumed bit-identically, and its artefact trains and verifies."""

from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.errors import DataDistillError
from tests.runs.helpers import TEST, contents, go, stop_after

OPTIONS: dict[str, dict[str, Any]] = {
    "inner minibatches": {"inner_batch": 1, "images_per_class": 2},
    "shuffled": {"shuffle": True},
    "placed window": {"adjoint": "truncated", "window": 2, "window_placement": "gradient"},
    "running clipping": {"clip_norm": None, "clip_factor": 0.5},
    "robust": {"robust": True, "images_per_class": 2, "architectures": ("mlp(hidden=4)",)},
    "nesterov": {"update_rule": "nesterov", "momentum": 0.5, "weight_decay": 0.01},
    "adam": {"update_rule": "adam", "weight_decay": 0.01, "learning_rate": 0.01},
    "ridge head": {"adjoint": "ridge-head(pool=3, updates=4)", "update_rule": "adam"},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_run_stopped_and_resumed_ends_in_the_same_bytes(option: str, tmp_path: Path) -> None:
    settings = OPTIONS[option]
    go(tmp_path / "whole", **settings)
    for outer_step in (3, 8):
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path / "stopped", **settings, **stop_after(outer_step))
    go(tmp_path / "stopped", **settings)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


@pytest.mark.parametrize("option", OPTIONS)
def test_the_artefact_trains_and_verifies(option: str, tmp_path: Path) -> None:
    made = go(tmp_path, **OPTIONS[option])
    loaded = dd.load(tmp_path)
    assert loaded == made
    assert dd.verify(loaded, TEST).found == dd.evaluate(loaded, TEST, networks=2)
    assert dd.verify(loaded, TEST).holds
    one, again = (loaded.train(seed=3).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], again[name]) for name in one)


def test_updates_take_the_images_that_they_draw(tmp_path: Path) -> None:
    option = OPTIONS["inner minibatches"]
    made, plain = go(tmp_path, **option), go(None, images_per_class=2)
    assert made.header.schedule.inner
    assert plain.header.schedule.inner is None
    assert "inner" not in plain.header.schedule.model_dump()
    assert not torch.equal(made.inputs, plain.inputs)
    start = dd.models.Linear()
    seeds = [made.train(start, seed=seed, keep_weights=True).state_dict() for seed in (0, 1)]
    assert any(not torch.equal(seeds[0][name], seeds[1][name]) for name in seeds[0])


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
    "optimiser": ({"ordinary": ("rmsprop",)}, "ordinary is"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_before_the_first_outer_step(case: str) -> None:
    settings, message = REFUSED[case]
    with pytest.raises(DataDistillError, match=message):
        go(None, **settings, **stop_after(1))
