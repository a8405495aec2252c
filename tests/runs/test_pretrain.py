"""Pre-training: side by side as one by one, stopped and extended without a trace."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import datadistill as dd
from datadistill import files
from datadistill.core.gradients import gradient
from datadistill.core.initialization import networks_for
from datadistill.core.network import Network, Weights
from datadistill.core.optimizer import adam, adam_init
from datadistill.core.random import stream
from datadistill.data import PadCropFlip
from datadistill.errors import ConfigError, NonFiniteError, PoolError, RunError
from datadistill.pools import Part
from datadistill.pools.settings import PoolSettings
from datadistill.pools.training import PoolTrainer
from tests.helpers import relative_error
from tests.pools.helpers import DATA, LABELS, SETTINGS, TEST, make, module

CHOSEN = PoolSettings(epochs=3, batch_size=24, lr=0.01, schedule="halved", halved_every=2)
NETWORKS: dict[str, nn.Module] = {
    "mlp": module().double(),
    "convolutional": nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)
    ).double(),
    "normalised": nn.Sequential(
        nn.Conv2d(1, 2, 3, 2, bias=False),
        nn.BatchNorm2d(2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(18, 4),
    ).double(),
}


def trainer(name: str, data: dd.LabelledData = DATA, **changes: Any) -> PoolTrainer:
    settings = CHOSEN.changed(**changes)
    return PoolTrainer(Network(NETWORKS[name], data.example()), data, None, None, settings)


def one_by_one(given: PoolTrainer, part: Part, number: int) -> Weights:
    """Trains one network as anybody would, in plain PyTorch."""
    settings = given.settings
    drawn = networks_for(settings.seed, f"pool, {part} network", [number])
    theta0 = dd.RandomInit().sample(given.network, drawn)
    network = given.network.module({name: w[0] for name, w in theta0.items()})
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.lr, betas=settings.betas)
    inputs = torch.as_tensor(given.data.inputs).double()
    for epoch in range(settings.epochs):
        optimizer.param_groups[0]["lr"] = settings.lr / (1, 1, 2)[epoch]
        generator = stream(settings.seed, f"pool, {part} order", number, epoch)
        order = torch.randperm(len(inputs), generator=generator)
        for batch in (order[:24], order[24:48], order[48:72]):  # and 8 are left over
            optimizer.zero_grad()
            F.cross_entropy(network(inputs[batch]), given.data.labels[batch]).backward()
            optimizer.step()
    return {name: p.detach() for name, p in network.named_parameters()}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_side_by_side_are_those_of_plain_training_one_by_one(name: str) -> None:
    given = trainer(name)
    together = given("train", range(2, 5)).weights
    alone = given("train", range(3, 4)).weights
    expected = one_by_one(given, "train", 3)
    for key, w in expected.items():
        assert relative_error(together[key][1], w) < 1e-9
        assert relative_error(alone[key][0], w) < 1e-9
    held_out = given("held-out", range(3, 4)).weights
    assert all(relative_error(held_out[key][0], w) > 0.01 for key, w in alone.items() if w.ndim > 2)
    assert given.updates == 9


def test_several_threads_train_the_same_networks() -> None:
    given, told = trainer("convolutional"), list[int]()
    expected = given("train", range(5)).weights
    torch.set_num_threads(2)
    try:
        found = given("train", range(5), told.append).weights
    finally:
        torch.set_num_threads(1)
    assert all(relative_error(found[name], w) < 1e-9 for name, w in expected.items())
    assert sorted(told) == [2] * 9 + [3] * 9  # two groups, of 9 updates each


def test_the_updates_are_adams_own() -> None:
    given = trainer("mlp", schedule="cosine", betas=(0.5, 0.99))
    drawn = networks_for(0, "pool, train network", [0])
    theta = dd.RandomInit().sample(given.network, drawn)
    state, inputs = adam_init(theta), torch.as_tensor(DATA.inputs).double()
    for t in range(3):
        order = torch.randperm(80, generator=stream(0, "pool, train order", 0, 0))
        batch = order[24 * t : 24 * t + 24]
        with torch.no_grad():
            direction = gradient(
                lambda w, b=batch: given.network.losses(
                    w, inputs[b], LABELS[b], F.cross_entropy
                ).sum(),
                theta,
            )
        rate = 0.01 * (1 + torch.cos(torch.tensor(torch.pi * t / 9, dtype=torch.float64))) / 2
        theta, state = adam(theta, direction, state, float(rate), (0.5, 0.99))
    found = given("train", range(1), limit=3).weights
    assert all(relative_error(found[name], w) < 1e-9 for name, w in theta.items())


def test_each_network_has_its_own_random_views() -> None:
    images = torch.randint(0, 256, (80, 1, 8, 8), dtype=torch.uint8, generator=stream(0, "x"))
    data = dd.LabelledData(images, LABELS, augmentation=PadCropFlip(2))
    together = trainer("mlp", data)("train", range(3)).weights
    alone = trainer("mlp", data)("train", range(2, 3)).weights
    plain = dd.LabelledData(images, LABELS)
    without = trainer("mlp", plain)("train", range(2, 3)).weights
    for name, w in alone.items():
        assert relative_error(together[name][2], w[0]) < 1e-9
    assert any(relative_error(without[name], w) > 0.01 for name, w in alone.items())


def test_a_pool_that_is_extended_is_the_one_made_at_once(tmp_path: Path) -> None:
    made = make(tmp_path / "made", networks=5, held_out=2)
    before = {p.name: p.read_bytes() for p in made.path.glob("*.safetensors")}
    make(tmp_path / "made", networks=3, held_out=0)  # fewer is nothing to do
    extended = make(tmp_path / "made", networks=21, held_out=3)
    whole = make(tmp_path / "whole", networks=21, held_out=3)
    assert all((made.path / name).read_bytes() == content for name, content in before.items())
    assert extended.origin == whole.origin
    counts: dict[Part, int] = {"train": 21, "held-out": 3}
    for part, count in counts.items():
        assert extended.count(part) == whole.count(part) == count
        assert extended.accuracies(part) == pytest.approx(whole.accuracies(part))
        for number in range(count):
            one, other = extended.network(part, number), whole.network(part, number)
            assert all(torch.allclose(one[name], w, atol=1e-5) for name, w in other.items())


def test_accuracies_are_those_of_the_networks(tmp_path: Path) -> None:
    pool = make(tmp_path / "p", networks=3, held_out=1)
    validation = DATA.hold_out(SETTINGS["validation"], 0)[1]
    for number in range(3):
        net = module()
        net.load_state_dict(pool.network("train", number))
        for data, test in ((validation, False), (TEST, True)):
            right = (net(data.inputs).argmax(1) == data.labels).double().mean()
            assert pool.accuracies("train", test=test)[number] == pytest.approx(float(right))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dd.Pool:
    return make(tmp_path_factory.mktemp("pools") / "whole", networks=17, held_out=1)


@pytest.mark.parametrize("stage", ["write", "sync", "rename", "sync_folder"])
@pytest.mark.parametrize("call", [2, 4])  # the first file of networks, and the second
def test_a_stop_at_any_stage_of_a_write_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dd.Pool, stage: str, call: int
) -> None:
    original, left = getattr(files, stage), call

    def stopped(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            if stage == "write":
                arguments[0].write_bytes(arguments[1][: len(arguments[1]) // 2])
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(files, stage, stopped)
        with pytest.raises(KeyboardInterrupt, match="Run the same command to continue"):
            make(tmp_path / "p", networks=17, held_out=1)
    again = make(tmp_path / "p", networks=17, held_out=1)
    assert again.index.model_dump() | {"chunks": None} == whole.index.model_dump() | {
        "chunks": None
    }
    for part in ("train", "held-out"):
        assert again.index.chunks_of(part) == whole.index.chunks_of(part)
    assert {p.name for p in again.path.iterdir()} == {p.name for p in whole.path.iterdir()}


def test_finished_files_are_not_trained_again(tmp_path: Path) -> None:
    def stop(told: dd.Progress) -> None:
        if told.done > 16 * 8:  # updates of the networks of the first file
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "p", networks=40, progress=stop)
    first = tmp_path / "p" / "train-00000-00015.safetensors"
    assert [p.name for p in first.parent.glob("*.safetensors")] == [first.name]
    time, told = first.stat().st_mtime_ns, list[str]()
    make(tmp_path / "p", networks=40, tell=told.append)
    assert first.stat().st_mtime_ns == time
    assert told[0].startswith(f"{tmp_path / 'p'} has 16 networks. Training 30 networks for 2 ep")
    make(tmp_path / "p", networks=40, tell=told.append)
    assert told[1] == f"{tmp_path / 'p'} has 46 networks. None is missing."


def test_a_file_that_the_index_does_not_know_yet_is_kept(tmp_path: Path) -> None:
    pool = make(tmp_path / "p")
    index = json.loads((pool.path / "index.json").read_text())
    known = [one for one in index["chunks"] if one["first"] == 0]
    (pool.path / "index.json").write_text(json.dumps(index | {"chunks": known}))
    time = (pool.path / "train-00016-00019.safetensors").stat().st_mtime_ns
    assert dd.Pool(pool.path).count("train") == 16
    again = make(tmp_path / "p")
    assert again.hashes("train") == pool.hashes("train")
    assert (pool.path / "train-00016-00019.safetensors").stat().st_mtime_ns == time


def test_the_index_lists_files_in_one_order_whichever_came_last(tmp_path: Path) -> None:
    make(tmp_path)
    index = tmp_path / "index.json"
    before = json.loads(index.read_text())
    assert len(before["chunks"]) > 1
    first = before["chunks"][0]
    index.write_text(json.dumps({**before, "chunks": before["chunks"][1:]}))
    make(tmp_path)  # finds the first file, which the index does not know
    assert json.loads(index.read_text())["chunks"][0] == first


def test_a_file_that_is_missing_is_made_again(tmp_path: Path) -> None:
    pool = make(tmp_path / "p")
    file = pool.path / "train-00016-00019.safetensors"
    before = file.read_bytes()
    file.unlink()
    with pytest.raises(PoolError, match="is missing"):
        dd.Pool(pool.path)
    make(tmp_path / "p")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0.02}, "lr: 0.01 → 0.02"),
        ({"epochs": 3, "seed": 1}, "epochs: 2 → 3; seed: 0 → 1"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    make(tmp_path / "p", networks=1, held_out=0)
    with pytest.raises(RunError, match=f"other settings: {message}"):
        make(tmp_path / "p", networks=2, **changes)


def test_other_data_or_another_network_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "p", networks=1, held_out=0)
    settings: dict[str, Any] = {**SETTINGS, "networks": 2, "held_out": 0}
    other = dd.LabelledData(torch.as_tensor(DATA.inputs) + 1, LABELS, name="clouds")
    with pytest.raises(RunError, match="data hash: "):
        dd.pretrain(other, module(), tmp_path / "p", **settings)
    with pytest.raises(RunError, match=r"network: mlp\(.*hidden=6\) → mlp\(.*hidden=7\)"):
        dd.pretrain(DATA, module(7), tmp_path / "p", **settings)


def test_divergence_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match="The train network 0 has diverged"):
        make(tmp_path / "p", networks=2, lr=1e30)
    assert not [*(tmp_path / "p").glob("*.safetensors")]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"networks": -1}, {"held_out": -1}, {"epochs": 0}, {"lr": 0.0}, {"validation": 1.0}),
        *({"scheme": "zeros"}, {"preset": "slow"}, {"preset": "paper"}, {"momentum": 0.9}),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        make(tmp_path / "p", **wrong)


def test_the_papers_settings() -> None:
    mnist = PoolSettings.preset("paper", "mnist", 60_000)
    assert (mnist.epochs, mnist.batch_size, mnist.betas) == (40, 1024, (0.5, 0.999))
    assert [mnist.rate(epoch, 0.3) for epoch in (0, 19, 20, 39)] == [2e-4, 2e-4, 1e-4, 1e-4]
    cifar = PoolSettings.preset("paper", "cifar10", 50_000)
    assert cifar.rate(49, 0.9) == 1e-3 / 2**7
    assert PoolSettings.preset("quick", "mnist", 60_000).epochs == 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("usps", 0.95), ("mnist", 0.983)])
def test_lenets_of_the_quick_setting_are_as_good_as_promised(
    data_dir: Path, tmp_path: Path, name: str, least: float
) -> None:
    if not (data_dir / name).is_dir():
        pytest.skip(f"needs the real {name}")
    train, test = dd.data.load(name, data_dir)
    few: dict[str, Any] = {"networks": 4, "held_out": 0}
    pool = dd.pretrain(train, dd.models.LeNet(), tmp_path / "p", test=test, **few)
    assert sum(pool.accuracies("train", test=True)) / 4 >= least
