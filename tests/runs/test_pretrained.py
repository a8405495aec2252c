"""Distillation for pre-trained networks: what it draws from, resumes with and leaves behind."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import datadistill as dd
from datadistill.errors import ArtefactError, ConfigError, ModelError, PoolError, RunError
from datadistill.runs.preparation import prepare
from datadistill.runs.recipes import read_recipe
from tests.pools.helpers import DATA, TEST, make, module
from tests.runs.helpers import contents, stop_after

QUICK: dict[str, Any] = {"iterations": 6, "batch_size": 16, "networks": 2, "epochs": 1}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> dd.Pool:
    return make(tmp_path_factory.mktemp("pools") / "small", networks=20, held_out=10)


def distill(**settings: Any) -> dd.DistilledData:
    return dd.distill(DATA, module(), **QUICK | settings)


def test_evaluation_begins_with_the_held_out_networks_of_the_pool(pool: dd.Pool) -> None:
    made = distill(initialization=dd.PoolInit(pool), test=TEST)
    assert made.claim
    assert made.claim.networks == 10  # all that the pool holds out
    untrained = dd.learning_curve(made, TEST, after=[0])[0]
    assert untrained.values == pytest.approx(pool.accuracies("held-out", test=True))
    few = dd.evaluate(made, TEST, networks=3)
    assert few.values == dd.evaluate(made, TEST).values[:3]
    with pytest.raises(ConfigError, match="networks is 11, but the pool has 10 held-out"):
        dd.evaluate(made, TEST, networks=11)
    with pytest.raises(ConfigError, match="networks is 11, but the pool has 10 held-out"):
        distill(initialization=dd.PoolInit(pool), test_networks=11)


def test_validation_never_reads_the_networks_that_are_reported(
    pool: dd.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, network = set[str](), dd.Pool.network

    def recorded(self: dd.Pool, part: Any, number: int) -> Any:
        read.add(part)
        return network(self, part, number)

    monkeypatch.setattr(dd.Pool, "network", recorded)
    made = distill(initialization=dd.PoolInit(pool), validation=0.2, validate_every=2)
    assert made.claim
    assert (made.claim.split, read) == ("validation", {"train"})
    assert dd.verify(made, DATA.hold_out(0.2, 0)[1]).found.mean == made.claim.mean


def test_an_artefact_names_its_pool_and_needs_it(pool: dd.Pool, tmp_path: Path) -> None:
    made = distill(initialization=dd.PoolInit(pool, networks=12), test=TEST)
    made.save(tmp_path / "a.safetensors")
    loaded = dd.load(tmp_path / "a.safetensors")
    record = loaded.header.initialization.pool
    assert record
    assert (record.name, record.networks) == ("small", 12)
    assert "pool" not in loaded.header.configuration  # where it was says nothing
    assert not loaded.carried
    for use in (loaded.train, lambda: dd.evaluate(loaded, TEST)):
        with pytest.raises(PoolError, match="for networks of the pool small, which is not in"):
            use()
    ready = loaded.with_pool(pool.path)
    assert dd.evaluate(ready, TEST) == dd.evaluate(made, TEST)
    assert dd.verify(ready, TEST).holds
    first, second = (ready.train(seed=seed).state_dict() for seed in (0, 1))
    assert not torch.equal(first["fc1.weight"], second["fc1.weight"])
    other = dd.evaluate(loaded, TEST, architecture=module(9), networks=2)
    assert "not those of a pool" in other.note


def test_another_pool_is_noted_and_no_claim_is_verified_with_it(
    pool: dd.Pool, tmp_path: Path
) -> None:
    made = distill(initialization=dd.PoolInit(pool), test=TEST)
    other = made.with_pool(make(tmp_path / "other", networks=0, seed=4))
    assert "networks of the pool other, from data distilled for" in dd.evaluate(other, TEST).note
    with pytest.raises(PoolError, match="measured on networks of the pool small"):
        dd.verify(other, TEST)
    with pytest.raises(ArtefactError, match="needs no pool"):
        distill().with_pool(pool)


def test_a_run_is_resumed_to_the_same_bytes_though_its_pool_grew(
    pool: dd.Pool, tmp_path: Path
) -> None:
    place = Path(shutil.copytree(pool.path, tmp_path / "small"))
    settings: dict[str, Any] = {"test": TEST, "checkpoint_every": 1}
    whole: dict[str, Any] = {
        "run": tmp_path / "whole",
        "initialization": dd.PoolInit(dd.Pool(place)),
        **settings,
    }
    distill(**whole)
    stopped: dict[str, Any] = {**whole, "run": tmp_path / "stopped"}
    with pytest.raises(KeyboardInterrupt):
        distill(**stopped, **stop_after(3))
    make(place, networks=23, held_out=10)
    grown = dd.PoolInit(dd.Pool(place))
    with pytest.raises(RunError, match="pool_networks: 20 → 23"):
        distill(**{**stopped, "initialization": grown})
    distill(**{**stopped, "initialization": dd.PoolInit(dd.Pool(place), 20)})
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_a_run_is_not_resumed_with_another_pool(pool: dd.Pool, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        distill(run=run, initialization=dd.PoolInit(pool), checkpoint_every=1, **stop_after(3))
    other = make(tmp_path / "other", networks=20, held_out=10, seed=4)
    with pytest.raises(RunError, match="The pool differs from the run's"):
        distill(run=run, initialization=dd.PoolInit(other), checkpoint_every=1)


def test_one_network_of_a_pool_or_a_file_is_a_fixed_initialization(
    pool: dd.Pool, tmp_path: Path
) -> None:
    weights = pool.network("train", 3)
    save_file(weights, tmp_path / "net.safetensors")
    torch.save(weights, tmp_path / "net.pth")
    given: dict[str, Any] = {"initialization": "fixed-pretrained", "test": TEST, "networks": 1}
    ways = [
        distill(pool=pool.path, init_seed=3, **given),
        distill(weights=tmp_path / "net.safetensors", init_seed=3, **given),
        distill(weights=tmp_path / "net.pth", init_seed=3, **given),
        distill(**{**given, "initialization": pool.fixed(3)}),
    ]
    for made in ways:
        assert all(torch.equal(made.carried[f"initial/{n}"], w) for n, w in weights.items())
        assert torch.equal(made.inputs, ways[0].inputs)
        assert made.header.initialization.kind == "fixed-pretrained"
    sources = [made.header.initialization.source for made in ways]
    assert sources == ["pool small, network 3", "net.safetensors", "net.pth", sources[0]]
    ways[0].save(tmp_path / "a.safetensors")
    loaded = dd.load(tmp_path / "a.safetensors")  # needs neither pool nor file
    assert dd.evaluate(loaded, TEST) == dd.evaluate(ways[0], TEST)
    assert loaded.initialization == ways[0].initialization


def test_the_head_is_reset_for_other_classes(pool: dd.Pool, tmp_path: Path) -> None:
    net = dd.models.MLP(channels=1, size=8, classes=7, hidden=6)
    save_file(net.state_dict(), tmp_path / "seven.safetensors")
    given: dict[str, Any] = {
        "initialization": "fixed-pretrained",
        "weights": tmp_path / "seven.safetensors",
    }
    with pytest.raises(ModelError, match=r"seven.safetensors does not fit MLP"):
        distill(networks=1, **given)
    made = distill(networks=1, reset_head=True, **given)
    *body, head_weight, head_bias = [n for n in made.carried if n.startswith("initial/")]
    for name in body:
        assert torch.equal(made.carried[name], net.state_dict()[name.removeprefix("initial/")])
    assert not made.carried[head_weight].any()
    assert not made.carried[head_bias].any()
    from_pool = distill(
        networks=1, initialization="fixed-pretrained", pool=pool.path, reset_head=True
    )
    assert not from_pool.carried[head_weight].any()


def test_what_a_partial_load_leaves_out_is_told(tmp_path: Path) -> None:
    weights = module().state_dict()
    name = next(iter(weights))
    del weights[name]
    save_file(weights, tmp_path / "part.safetensors")
    given: dict[str, Any] = {
        "initialization": "fixed-pretrained",
        "weights": tmp_path / "part.safetensors",
    }
    with pytest.raises(ModelError, match=f"missing in the file: {name}"):
        distill(networks=1, **given)
    from datadistill.runs.config import RunConfig

    config = RunConfig(
        initialization="fixed-pretrained",
        weights=tmp_path / "part.safetensors",
        partial=True,
        networks=1,
    )
    notes = prepare(config, DATA, module()).notes
    assert notes == (f"part.safetensors: 5 weights match; missing in the file: {name}.",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"initialization": "random-pretrained"}, "needs networks that were trained before"),
        ({"initialization": "fixed-pretrained"}, "needs networks that were trained before"),
        ({"initialization": "random", "pool": "p"}, "pool has no meaning for a random init"),
        ({"initialization": "fixed", "weights": "w.pth"}, "weights has no meaning for a fixed"),
        ({"initialization": "random", "reset_head": True}, "reset_head has no meaning"),
        ({"initialization": "random-pretrained", "pool": "p", "partial": True}, "partial has no"),
        ({"initialization": "fixed-pretrained", "pool": "p", "pool_networks": 3}, "pool_networks"),
        ({"initialization": "fixed-pretrained", "pool": "p", "weights": "w.pth"}, "Both pool and"),
        ({"initialization": "pretrained"}, "no initialization 'pretrained'. Did you mean"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        distill(**settings)


def test_a_recipe_may_name_a_pool(tmp_path: Path) -> None:
    text = "initialization: random-pretrained\npool: pools/mnist\npool_networks: 50\n"
    (tmp_path / "mine.yaml").write_text(text)
    config = read_recipe(str(tmp_path / "mine.yaml")).config
    assert (config.pool, config.pool_networks) == (Path("pools/mnist"), 50)
