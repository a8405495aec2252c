"""Small tables, and what is in them."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import datadistill as dd
from datadistill.core.distilled import Steps
from datadistill.evaluation import HeldOut, train_and_score
from datadistill.tables import BaselineTable, Counts, TableSettings, baseline_table

Digits = tuple[dd.LabelledData, dd.LabelledData]

FEW = Counts(
    sets=2,
    drawn=4,
    kept=2,
    picking_networks=2,
    choosing_sets=2,
    choosing_networks=2,
    examples=64,
    full_networks=1,
    full_epochs=1,
)

NETWORKS = 3


GRADIENT_STEPS = ("random real", "optimised real", "k-means", "average real")


def table_of(
    distilled: dd.DistilledData, data: Digits, results: Path | None = None, **options: Any
) -> BaselineTable:
    others = {name: options.pop(name) for name in ("progress", "baselines") if name in options}
    settings = replace(TableSettings(networks=NETWORKS, counts=FEW), **options)
    return baseline_table(distilled, *data, settings=settings, results=results, **others)


def parts_of(path: Path, what: str) -> list[dict[str, Any]]:
    parts = json.loads(path.read_text())["baselines"]["parts"].values()
    return [part for part in parts if part["part"]["what"] == what]


def accuracies(
    distilled: dd.DistilledData, steps: Steps, data: dd.LabelledData
) -> tuple[float, ...]:
    """Held-out networks 0 to 2, trained on the steps and tested."""
    network = distilled.network()
    (result,) = train_and_score(
        steps,
        HeldOut(network, partial(distilled.initial_weights, network), NETWORKS),
        data,
        distilled.objective,
    )
    return result.values
