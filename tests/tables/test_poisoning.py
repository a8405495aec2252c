"""The poisoning table: a user's own baselines, and names that are none."""

import dataclasses
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.baselines import Baseline, Layout, Stream
from datadistill.core.distilled import Steps
from datadistill.errors import ConfigError
from datadistill.evaluation.poisoning import Victims, attack, victims_of
from datadistill.evaluation.rate_search import Choice, scheduled
from datadistill.tables import Counts, PoisoningRow, poisoning_table

from ..pools.helpers import DATA, TEST

ARTEFACT = Path(__file__).parent / "made_by_0_1_0" / "poisoning.safetensors"
FEW = Counts(sets=2, drawn=3, kept=2, picking_networks=2, choosing_networks=2, examples=64)


@pytest.fixture(scope="module")
def distilled() -> dd.DistilledData:
    return dd.load(ARTEFACT)


@pytest.fixture(scope="module")
def victims(distilled: dd.DistilledData) -> Victims:
    return victims_of(distilled, TEST, networks=2)


class Noise(Baseline):
    title = "noise"

    def steps(self, data: dd.LabelledData, layout: Layout, stream: Stream) -> Steps:
        shape = (layout.classes, layout.per_class, *data.input_shape)
        return layout.arrange(torch.randn(shape, generator=stream("noise")))


def test_a_users_own_baseline_is_an_attack_like_the_others(
    distilled: dd.DistilledData, victims: Victims, tmp_path: Path
) -> None:
    results = tmp_path / "results.json"

    def table() -> list[PoisoningRow]:
        _, rows = poisoning_table(
            distilled.steps, DATA, victims, baselines=[Noise()], counts=FEW, results=results
        )
        row = rows[-1]
        assert (row.name, row.sets) == ("noise", 2)
        return rows

    rows = table()
    kept = results.read_bytes()
    assert table() == rows
    assert results.read_bytes() == kept, "nothing is computed again"
    row = rows[-1]
    rest, _ = DATA.hold_out(0.1, seed=0)
    learned, values = distilled.learning_rates, list[float]()
    for number in range(2):
        images = Noise().draw(rest, Layout(4), number)
        labels = victims.objective.modified(images.labels)
        assert row.rate is not None
        choice = Choice(row.rate, len(learned))
        steps = scheduled(dataclasses.replace(images, labels=labels), choice, learned)
        values += attack(steps, victims).after.success.values
    assert row.figures.success.values == tuple(values)


def test_an_unknown_name_is_refused(distilled: dd.DistilledData, victims: Victims) -> None:
    with pytest.raises(ConfigError, match=r"no baseline 'avarage real'\. Did you mean"):
        poisoning_table(distilled.steps, DATA, victims, baselines=["avarage real"], counts=FEW)
