"""``results.json`` files written by version 0.1.0: every figure is taken over, none is computed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import datadistill as dd
from datadistill.baselines import RandomReal
from datadistill.evaluation.poisoning import victims_of
from datadistill.tables import Counts, TableSettings, baseline_table, poisoning_table

from ..pools.helpers import DATA, IMAGES, LABELS, TEST

FOLDER = Path(__file__).parent / "made_by_0_1_0"
FEW = Counts(sets=2, drawn=3, kept=2, picking_networks=2, choosing_networks=2, examples=64)
STANDARD = replace(FEW, choosing_sets=1, full_networks=1)
ADAPTATION = replace(
    STANDARD,
    choosing_networks=3,
    few_shot_networks=4,
    few_shot_choosing=1,
    few_shot_updates=(2, 4),
)
TARGET = dd.LabelledData(0.5 * IMAGES.flip(-1) - 0.3, LABELS, name="fog")
TARGET_TEST = dd.LabelledData(
    0.5 * IMAGES.flip(-1)[:40] - 0.2, LABELS[:40], name="fog", split="test"
)


@pytest.fixture(autouse=True)
def same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other versions may compute other figures, so they take nothing over."""
    for module in ("baseline", "poisoning"):
        monkeypatch.setattr(f"datadistill.tables.{module}.__version__", "0.1.0")


@pytest.fixture
def nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "context.train_and_score",
        "references.train_on_all",
        "references.learning_on_all",
    ):
        monkeypatch.setattr(f"datadistill.tables.{name}", None)
    for name in ("references.neighbour_accuracy", "adaptation.adapt_few_shot"):
        monkeypatch.setattr(f"datadistill.tables.{name}", None)


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copy(FOLDER / f"{name}.results.json", folder))


@pytest.mark.usefixtures("nothing_is_computed")
@pytest.mark.parametrize("name", ["standard", "adaptation", "frozen"])
def test_the_figures_of_a_baseline_table(name: str, tmp_path: Path) -> None:
    path, distilled = copied(name, tmp_path), dd.load(FOLDER / f"{name}.safetensors")
    before = json.loads(path.read_text())
    match name:
        case "standard":
            settings = TableSettings(networks=3, counts=STANDARD)
            table = baseline_table(distilled, DATA, TEST, settings=settings, results=path)
        case "adaptation":
            table = baseline_table(
                distilled.with_pool(FOLDER / "clouds"),
                TARGET,
                TARGET_TEST,
                settings=TableSettings(counts=ADAPTATION),
                source=DATA,
                results=path,
            )
        case _:
            counts = Counts(sets=2, drawn=3, kept=2, examples=64)
            settings = TableSettings(counts=counts)
            table = baseline_table(distilled, DATA, TEST, settings=settings, results=path)
    before["baselines"]["table"]["train_examples"] = len(TARGET if name == "adaptation" else DATA)
    assert json.loads(json.dumps(table.summary())) == before["baselines"]["table"]
    assert json.loads(path.read_text()) == before


def test_the_figures_of_a_poisoning_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, distilled = copied("poisoning", tmp_path), dd.load(FOLDER / "poisoning.safetensors")
    before = path.read_bytes()

    def never(self: RandomReal, *_: object) -> None:
        raise AssertionError("images are only drawn for what is computed")

    for baseline in map(dd.Baseline.implementation, dd.Baseline.names()):
        monkeypatch.setattr(baseline, "steps", never)
    victims = victims_of(distilled, TEST, networks=2)
    _, rows = poisoning_table(distilled.steps, DATA, victims, counts=FEW, results=path)
    assert [row.sets for row in rows] == [1, 2, 2, 2, 1]
    assert rows[1].figures.success.values == (0.6, 0.2, 0.9, 0.6)
    assert path.read_bytes() == before
