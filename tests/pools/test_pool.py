"""Pools on the disk: read lazily, bounded in memory, checked, and never overlapping."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import datadistill as dd
from datadistill.core.initialization import networks_for
from datadistill.core.network import Network, Weights
from datadistill.core.random import stream
from datadistill.errors import PoolError
from datadistill.pools import HeldOutInit
from datadistill.pools.chunks import contents_of, read_chunk, write_chunk
from datadistill.pools.index import read_index, write_index
from tests.pools.helpers import DATA, make, module

FILES = [
    "held-out-00000-00005.safetensors",
    "index.json",
    "train-00000-00015.safetensors",
    "train-00016-00019.safetensors",
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dd.Pool:
    return make(tmp_path_factory.mktemp("pools") / "small")


@pytest.fixture
def copied(original: dd.Pool, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original.path, tmp_path / "copied"))


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(module(), DATA.example())


def size_of(pool: dd.Pool) -> int:
    return sum(w.numel() * w.element_size() for w in pool.network("train", 0).values())


def as_held_out(folder: Path, seen: dict[str, torch.Tensor], identity: str) -> None:
    """Puts other networks into the place of the held-out ones, with an index that knows them."""
    (folder / FILES[0]).unlink()
    contents = contents_of(
        seen, identity=identity, part="held-out", first=0, validation=None, test=None
    )
    chunk = read_chunk(write_chunk(folder, seen, contents))
    index = read_index(folder)
    chunks = [*index.chunks_of("train"), chunk]
    write_index(folder, index.model_copy(update={"chunks": chunks}))


def test_every_network_is_read_as_it_was_written(original: dd.Pool) -> None:
    assert sorted(p.name for p in original.path.iterdir() if p.name != ".lock") == FILES
    assert (original.count("train"), original.count("held-out")) == (20, 6)
    first, second = (load_file(original.path / name) for name in FILES[2:])
    for number in (0, 15, 16, 19):
        stored = {
            n: (w[number] if number < 16 else second[n][number - 16]) for n, w in first.items()
        }
        found = original.network("train", number)
        assert found.keys() == stored.keys()
        assert all(torch.equal(found[name], w) for name, w in stored.items())
    hashes = [*original.hashes("train"), *original.hashes("held-out")]
    assert len(set(hashes)) == 26


def test_draws_are_numbered_uniform_and_of_the_training_part_only(
    original: dd.Pool, network: Network
) -> None:
    init = dd.PoolInit(original)
    generators = networks_for(0, "network", range(400))
    drawn = init.sample(network, generators)
    name, column = next(iter(drawn.items()))
    known = torch.stack([original.network("train", number)[name] for number in range(20)])
    matches = (column[:, None] == known[None]).flatten(2).all(2)
    assert matches.sum(1).eq(1).all()  # each draw is exactly one of the training networks
    counts = matches.sum(0)
    assert counts.min() >= 8  # of 20 expected
    assert counts.max() <= 35
    again = init.sample(network, [stream(0, "network", 7)])
    assert torch.equal(again[name][0], column[7])


def test_fewer_networks_are_the_first_ones(original: dd.Pool, network: Network) -> None:
    drawn = dd.PoolInit(original, networks=2).sample(network, networks_for(0, "x", range(30)))
    name, column = next(iter(drawn.items()))
    known = torch.stack([original.network("train", number)[name] for number in range(2)])
    assert (column[:, None] == known[None]).flatten(2).all(2).sum(1).eq(1).all()
    with pytest.raises(dd.DataDistillError, match=r"pool_networks is 21, and .* has 20"):
        dd.PoolInit(original, networks=21)


def test_held_out_networks_come_in_order_and_none_twice(
    original: dd.Pool, network: Network
) -> None:
    init = HeldOutInit("small", original)
    found = init.sample(network, networks_for(5, "held-out network", [4, 0, 2]))
    for place, number in enumerate([4, 0, 2]):
        for name, w in original.network("held-out", number).items():
            assert torch.equal(found[name][place], w)
    with pytest.raises(PoolError, match="has no held-out network 6"):
        init.sample(network, networks_for(5, "held-out network", [6]))


@pytest.mark.parametrize("networks", [0, 1, 3])
def test_a_pool_larger_than_the_memory_limit_works(
    original: dd.Pool, network: Network, networks: int
) -> None:
    limit = networks * size_of(original)
    pool = dd.Pool(original.path, memory=limit)
    for number in range(60):
        drawn = dd.PoolInit(pool).sample(network, networks_for(0, "network", [number]))
        expected = dd.PoolInit(original).sample(network, networks_for(0, "network", [number]))
        assert all(torch.equal(drawn[name], w) for name, w in expected.items())
        assert pool.bytes_in_memory <= limit
    assert pool.bytes_in_memory == limit


def test_a_changed_byte_is_refused_with_the_name_of_its_file(copied: Path) -> None:
    file = copied / FILES[2]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    pool = dd.Pool(copied)
    pool.network("train", 16)  # of another file
    with pytest.raises(PoolError, match=f"{FILES[2]} is damaged: network 15 does not match"):
        pool.stack("train", range(16))
    with pytest.raises(PoolError, match=rf"{FILES[2]} is damaged: its bytes do not match"):
        make(copied)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (None, "is missing"),
        (slice(-1), "is damaged: it has"),
        (slice(0), "is damaged: it has 0 bytes"),
    ],
)
def test_a_file_that_is_missing_or_cut_short_is_refused_at_once(
    copied: Path, kept: slice | None, message: str
) -> None:
    file = copied / FILES[3]
    if kept is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[kept])
    with pytest.raises(PoolError, match=f"{FILES[3]} {message}"):
        dd.Pool(copied)


@pytest.mark.parametrize(
    ("place", "name", "value", "message"),
    [
        ([], "origin", None, "index.json is damaged: origin"),
        ([], "schema_version", 9, "schema version 9"),
        (["chunks", 0], "part", "test", "index.json is damaged: chunks.0"),
        (["chunks", 0], "test", [1.0], "index.json is damaged: chunks.0"),
        (["chunks", 1], "first", 3, "holds networks that another file holds too"),
        (["origin", "configuration"], "lr", 1.0, "belongs to another pool"),
    ],
)
def test_an_index_that_makes_no_sense_is_refused(
    copied: Path, place: list[Any], name: str, value: object, message: str
) -> None:
    index = json.loads((copied / "index.json").read_text())
    part = index
    for step in place:
        part = part[step]
    part[name] = value
    (copied / "index.json").write_text(json.dumps(index))
    with pytest.raises(PoolError, match=message):
        dd.Pool(copied)


@pytest.mark.parametrize("content", ["", "[", "[]", "{}", "null", '{"schema_version": "x"}'])
def test_an_index_that_is_no_index_is_refused(copied: Path, content: str) -> None:
    (copied / "index.json").write_text(content)
    with pytest.raises(PoolError, match=r"index.json is damaged"):
        dd.Pool(copied)


def test_a_folder_without_a_pool_is_told(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="There is no pool in") as caught:
        dd.Pool(tmp_path)
    assert "datadistill pretrain" in caught.value.remedy


def test_a_pool_that_holds_out_a_training_network_is_refused_with_both_names(
    copied: Path, original: dd.Pool
) -> None:
    as_held_out(copied, original.stack("train", [17, 3]), original.origin.identity)
    message = f"held-out-00000-00001.safetensors shares a network with {FILES[3]}"
    with pytest.raises(PoolError, match=message):
        dd.Pool(copied)


def test_another_pool_that_holds_out_what_distillation_saw_is_refused_by_name(
    original: dd.Pool, tmp_path: Path
) -> None:
    distilled = dd.distill(
        DATA, module(), initialization=dd.PoolInit(original), iterations=1, batch_size=16
    )
    other = make(tmp_path / "other", networks=2, seed=1)
    assert distilled.with_pool(other).pool is other
    as_held_out(other.path, original.stack("train", [17]), other.origin.identity)
    with pytest.raises(PoolError, match=r"other/held-out-00000-00000.safetensors holds a network"):
        distilled.with_pool(other.path)


def test_another_architecture_or_other_inputs_are_refused(original: dd.Pool) -> None:
    init = dd.PoolInit(original)
    with pytest.raises(PoolError, match=r"small holds networks of .* mlp\(.*hidden=6"):
        dd.distill(DATA, module(hidden=5), initialization=init, iterations=1)
    small = dd.LabelledData(DATA.inputs[:, :, ::2, ::2], DATA.labels)  # pyright: ignore
    net = dd.models.MLP(channels=1, size=4, classes=4, hidden=6)
    with pytest.raises(PoolError, match=r"small take inputs of shape \(1, 8, 8\), not \(1, 4, 4\)"):
        dd.distill(small, net, initialization=init, iterations=1)


def test_a_pool_without_held_out_networks_is_refused_for_distillation(tmp_path: Path) -> None:
    pool = make(tmp_path / "no", networks=1, held_out=0)
    with pytest.raises(PoolError, match="no held-out networks") as caught:
        dd.PoolInit(pool)
    assert "--held-out 100" in caught.value.remedy


def test_noise_is_a_share_of_each_tensors_deviation(original: dd.Pool, network: Network) -> None:
    def drawn(noise: float) -> Weights:
        generators = networks_for(0, "network", range(50))
        return dd.PoolInit(original, noise=noise).sample(network, generators)

    plain, noisy = drawn(0), drawn(0.5)
    for name, w in plain.items():
        added = (noisy[name] - w).flatten(1) / w.flatten(1).std(1, correction=0)[:, None]
        assert float(added.std()) == pytest.approx(0.5, rel=0.15)
        assert abs(float(added.mean())) < 0.1
        torch.testing.assert_close(drawn(0.5)[name], noisy[name], rtol=0, atol=0)
    with pytest.raises(dd.DataDistillError, match="pool_noise is -1"):
        dd.PoolInit(original, noise=-1)
