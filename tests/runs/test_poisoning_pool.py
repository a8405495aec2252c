"""Poisoning of networks from a pool: who is attacked, who chooses, and what is kept."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main
from datadistill.core.network import Weights
from datadistill.data import LabelledData
from datadistill.evaluation.poisoning import attack, victims_of
from datadistill.models.description import weights_hash
from datadistill.progress import Progress, ProgressCallback, silent
from datadistill.tables import Counts, poisoning_table

COUNTS = Counts(sets=2, drawn=3, kept=2, choosing_networks=2, picking_networks=2, examples=64)


@pytest.fixture(scope="module")
def digits() -> tuple[LabelledData, LabelledData]:
    return dd.data.load("digits")


@pytest.fixture(scope="module")
def pool(
    tmp_path_factory: pytest.TempPathFactory, digits: tuple[LabelledData, LabelledData]
) -> dd.Pool:
    folder = tmp_path_factory.mktemp("pools") / "digits-mlp"
    module = dd.models.MLP(hidden=16)
    return dd.pretrain(digits[0], module, folder, networks=8, held_out=4, epochs=12)


@pytest.fixture(scope="module")
def distilled(pool: dd.Pool, digits: tuple[LabelledData, LabelledData]) -> dd.DistilledData:
    return dd.distill(
        digits[0],
        dd.models.MLP(hidden=16),
        initialization=dd.PoolInit(pool),
        objective=dd.Poisoning(3, 8),
        epochs=1,
        iterations=150,
        batch_size=256,
        learning_rate=0.1,
        outer_lr=0.05,
    )


def hashes(stacked: Weights) -> set[str]:
    count = len(next(iter(stacked.values())))
    return {weights_hash({n: w[j] for n, w in stacked.items()}) for j in range(count)}


def test_held_out_networks_of_the_pool_are_turned(
    distilled: dd.DistilledData, digits: tuple[LabelledData, LabelledData]
) -> None:
    assert distilled.header.objective == {"name": "poisoning", "attacked": 3, "target": 8}
    assert distilled.header.initialization.kind == "random-pretrained"
    found = attack(distilled.steps, victims_of(distilled, digits[1]))
    assert len(found.after.success.values) == 4
    assert found.before.success.mean < 0.1
    assert found.before.others.mean > 0.85
    assert found.after.success.mean > 0.3  # of four hardly alike networks
    assert found.after.others.mean > 0.75


def test_others_choose_than_those_that_are_attacked(
    distilled: dd.DistilledData, pool: dd.Pool, digits: tuple[LabelledData, LabelledData]
) -> None:
    victims = victims_of(distilled, digits[1])
    choosing = victims.others(digits[0], 3)
    judges = choosing.others(digits[0], 3)
    assert hashes(victims.sample(range(4))) == set(pool.hashes("held-out"))
    assert hashes(choosing.sample(range(3))) <= set(pool.hashes("train"))
    assert hashes(judges.sample(range(3))) <= set(pool.hashes("train"))


def test_an_interrupted_table_goes_on_with_what_it_has(
    distilled: dd.DistilledData, digits: tuple[LabelledData, LabelledData], tmp_path: Path
) -> None:
    train, test = digits
    results = tmp_path / "results.json"
    victims = victims_of(distilled, test)

    def table(progress: ProgressCallback = silent) -> Any:
        return poisoning_table(
            distilled.steps, train, victims, counts=COUNTS, results=results, progress=progress
        )

    def stop(told: Progress) -> None:
        if told.stage == "attacking: random real":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table(stop)
    content = json.loads(results.read_text())
    kept = content["baselines"]["parts"]
    tested = [one for one in kept.values() if one["part"]["on"][0] == "test"]
    assert len(tested) == 1
    tested[0]["value"]["success"]["values"] = [0.125] * 4  # not what it would compute
    results.write_text(json.dumps(content))
    _, rows = table()
    assert rows[1].figures.success.values[:4] == (0.125,) * 4
    assert len(json.loads(results.read_text())["baselines"]["parts"]) > len(kept)
    torch.manual_seed(1)  # nothing depends on the global state
    assert table()[1] == rows


def test_evaluate_attacks_the_pool_that_is_named(
    distilled: dd.DistilledData, pool: dd.Pool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artefact = str(tmp_path / "poison.safetensors")
    distilled.save(artefact)
    assert main(["evaluate", artefact, "--quiet"]) == 2
    assert "--pool" in capsys.readouterr().err
    assert main(["evaluate", artefact, "--pool", str(pool.path), "--quiet"]) == 0
    told = capsys.readouterr().out
    assert "3 called 8" in told
    assert "4 network(s)" in told
