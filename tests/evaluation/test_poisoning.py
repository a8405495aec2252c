"""Poisoning: networks that were trained in earnest, attacked, and defended."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import datadistill as dd
from datadistill.cli.main import main
from datadistill.core.distilled import Steps
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import Initialization, networks_for
from datadistill.core.network import Network, Weights
from datadistill.core.objective import Classification
from datadistill.core.random import minibatch
from datadistill.core.settings import DistillerConfig
from datadistill.data import LabelledData
from datadistill.errors import ConfigError, DataError
from datadistill.evaluation import FullTraining, HeldOut, train_on_all
from datadistill.evaluation.defence import Defence, Honest, defend, defended
from datadistill.evaluation.poisoning import Attacked, Victims, attack
from datadistill.evaluation.rate_search import LEARNING_RATES
from datadistill.tables import Counts, poisoning_table

POISON = dd.Poisoning(attacked=3, target=8)
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Trained(Initialization):
    """A few well-trained networks: those of even numbers to distil with, odd ones held out."""

    pool: Weights
    parity: int

    def sample(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        count = len(self.pool["fc1.weight"]) // 2
        drawn = [2 * int(torch.randint(count, (), generator=g)) + self.parity for g in generators]
        return {name: w[drawn] for name, w in self.pool.items()}


class Scene(NamedTuple):
    network: Network
    pool: Weights
    steps: Steps
    train: LabelledData
    test: LabelledData

    def victims(self, networks: int = 4) -> Victims:
        sample = functools.partial(Trained(self.pool, 1).sample, self.network)
        return Victims(HeldOut(self.network, sample, networks), self.test, POISON)


@functools.cache
def scene() -> Scene:
    """Eight small networks trained on digits, and ten images that poison them."""
    train, test = dd.data.load("digits")
    network = Network(dd.models.MLP(hidden=16), train.example())
    theta0 = dd.RandomInit().sample(network, networks_for(0, "pool", range(8)))
    pool = train_on_all(network, theta0, train, Classification(), FullTraining(epochs=15))
    config = DistillerConfig(epochs=1, iterations=80, batch_size=256, outer_lr=0.03)
    distiller = Distiller(network, Trained(pool, 0), POISON, config)
    state = distiller.init(train.input_shape, train.labels)
    for t in range(config.iterations):
        batch = train.batch(minibatch(0, t, 256, len(train)), CPU, torch.float32)
        state, _ = distiller.step(state, batch)
    return Scene(network, pool, distiller.distilled(state), train, test)


def test_the_figures_are_those_of_the_calls() -> None:
    calls = torch.tensor([[[8, 1, 1], [2, 6, 2], [0, 1, 9]], [[1, 9, 0], [0, 10, 0], [5, 0, 5]]])
    found = Attacked.of(calls, dd.Poisoning(0, 1), ["a", "b", "c"])
    assert found.success.values == (0.1, 0.9)
    assert found.modified.values == pytest.approx(((1 + 6 + 9) / 30, (9 + 10 + 5) / 30))
    assert found.others.values == (0.75, 0.75)
    assert [one.values for one in found.by_class] == [(0.8, 0.1), (0.6, 1.0), (0.9, 0.5)]
    assert found.success.mean == 0.5
    assert found.success.std == pytest.approx(0.4 * 2**0.5)


def test_one_step_turns_a_class_of_held_out_networks_and_spares_the_others() -> None:
    found = attack(scene().steps, scene().victims())
    assert found.before.success.mean < 0.1
    assert found.before.others.mean > 0.85
    assert found.after.success.mean > 0.5
    assert found.after.others.mean > 0.75
    assert found.after.by_class[3].mean < 0.5 < found.before.by_class[3].mean
    assert found.after.modified.mean > found.before.modified.mean


def test_each_network_is_attacked_as_it_would_be_alone() -> None:
    at, victims = scene(), scene().victims(3)
    found = attack(at.steps, victims)
    theta0 = Trained(at.pool, 1).sample(at.network, networks_for(0, "held-out network", range(3)))
    inputs, labels = at.test.batch(slice(None), CPU, torch.float32)
    for j in range(3):
        module = at.network.module({name: w[j] for name, w in theta0.items()})
        F.cross_entropy(module(at.steps.inputs[0]), at.steps.labels[0]).backward()
        with torch.no_grad():
            for p in module.parameters():
                p -= at.steps.learning_rates[0, 0] * p.grad  # pyright: ignore[reportOperatorIssue]
            called = module(inputs).argmax(1)
        of_three = called[labels == 3]
        assert found.after.success.values[j] == pytest.approx(
            float((of_three == 8).double().mean())
        )
        right = (called == torch.where(labels == 3, 8, labels)).double().mean()
        assert found.after.modified.values[j] == pytest.approx(float(right))


def norms(weights: Weights) -> Tensor:
    return (
        torch.stack([w.double().flatten(1).square().sum(1) for w in weights.values()]).sum(0).sqrt()
    )


def test_a_capped_update_is_as_long_as_the_cap_and_as_directed() -> None:
    at, victims = scene(), scene().victims(4)
    theta0 = Trained(at.pool, 1).sample(at.network, networks_for(0, "held-out network", range(4)))
    free = victims.after(theta0, at.steps, range(4))
    moved = {n: free[n] - w for n, w in theta0.items()}
    median = norms(moved) / float(at.steps.learning_rates) / 2  # so that the cap halves the update
    honest = Honest(torch.zeros(4, 1), median[:, None])
    with torch.no_grad():
        capped, stopped = defended(victims, theta0, at.steps, Defence("cap", 1.0), honest)
        loose, let = defended(victims, theta0, at.steps, Defence("cap", 3.0), honest)
    for name, w in theta0.items():
        torch.testing.assert_close(capped[name], w + moved[name] / 2, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(loose[name], free[name])
    assert stopped.tolist() == [1.0] * 4
    assert let.tolist() == [0.0] * 4


def test_defences_weaken_the_attack_at_the_cost_they_name() -> None:
    at, victims = scene(), scene().victims(4)
    wanted = [
        Defence(),
        Defence("cap", 0.001),
        Defence("factor", 0.001),
        Defence("loss", 0.05),
        Defence("gradient norm", 0.05),
    ]
    found = defend(at.steps, victims, at.train, wanted, honest_batches=40)
    plain = attack(at.steps, victims)
    none, cap, factor, loss, norm = found
    assert none.figures == plain.after
    assert (none.stopped, none.honest) == (0, 0)
    assert cap.figures.success.mean < 0.1 < none.figures.success.mean
    assert factor.figures.success.mean < 0.1
    assert cap.stopped == 1
    for check in (loss, norm):  # 40 batches: 2 of them are above the threshold
        assert check.honest == pytest.approx(0.05)
        assert check.figures.success.mean <= none.figures.success.mean
        if check.stopped == 1:
            assert check.figures == plain.before


def test_victims_need_examples_of_the_attacked_class() -> None:
    at = scene()
    without = at.test.part((at.test.labels != POISON.attacked).nonzero()[:, 0], "test")
    sample = functools.partial(Trained(at.pool, 1).sample, at.network)
    with pytest.raises(DataError, match="no example of the attacked class 3"):
        Victims(HeldOut(at.network, sample), without, POISON)


def test_defences_that_cannot_be_measured_are_refused() -> None:
    at = scene()
    with pytest.raises(ConfigError, match="1 % of 40 honest batches is less than one"):
        defend(at.steps, at.victims(1), at.train, [Defence("loss", 0.01)], honest_batches=40)
    with pytest.raises(ConfigError, match="strength of cap is 0"):
        defend(at.steps, at.victims(1), at.train, [Defence("cap", 0)], honest_batches=4)


def test_real_images_with_modified_labels_are_compared_at_a_rate_that_turns_the_class() -> None:
    at = scene()
    counts = Counts(sets=2, drawn=3, kept=2, choosing_networks=2, picking_networks=2)
    found, rows = poisoning_table(at.steps, at.train, at.victims(2), counts=counts)
    names = ["distilled", "random real", "optimised real", "k-means", "average real"]
    assert [row.name for row in rows] == names
    assert rows[0].figures == found.after
    assert [len(row.figures.success.values) for row in rows] == [2, 4, 4, 4, 2]
    for row in rows[1:]:
        assert row.rate in ("learned", *LEARNING_RATES)
        assert row.turns
        assert row.figures.success.mean > 0.02  # at least 10 % where the rate was chosen
    assert rows[0].figures.modified.mean > rows[1].figures.modified.mean


def test_evaluate_prints_and_keeps_all_figures_of_an_attack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artefact = str(tmp_path / "poison.safetensors")
    train, _ = dd.data.load("digits")
    dd.distill(train, dd.models.Linear(), objective=POISON, epochs=1, iterations=2).save(artefact)
    assert main(["evaluate", artefact, "--networks", "2", "--defence", "--quiet"]) == 0
    told = capsys.readouterr().out
    for words in ("3 called 8", "accuracy on modified labels", "no defence", "learning rate × 0.1"):
        assert words in told
    kept = json.loads((tmp_path / "poison.results.json").read_text())["poisoning"]
    assert (kept["attacked"], kept["target"], kept["networks"]) == (3, 8, 2)
    assert len(kept["after"]["by_class"]) == 10
    assert kept["defences"][0]["figures"]["success"] == kept["after"]["success"]
    assert main(["evaluate", artefact, "--networks", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["after"] == kept["after"]


def test_there_is_no_defence_against_honest_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, _ = dd.data.load("digits")
    dd.distill(train, dd.models.Linear(), iterations=1).save(tmp_path / "a.safetensors")
    assert main(["evaluate", str(tmp_path / "a.safetensors"), "--defence"]) == 2
    assert "these are for classification" in capsys.readouterr().err
