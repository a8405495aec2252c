import importlib.util
from pathlib import Path
from typing import Any

import pytest

from datadistill.errors import ConfigError
from datadistill.runs.store.metrics import read_metrics
from tests.runs.helpers import go, stop_after


def figures_in(folder: Path) -> dict[str, dict[int, float]]:
    accumulator: Any = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs TensorBoard: pip install 'datadistill[tensorboard]'",
    )
    events = accumulator.EventAccumulator(str(folder)).Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


@pytest.mark.filterwarnings("default")
def test_tensorboard_shows_each_outer_step_once_even_after_a_stop(tmp_path: Path) -> None:
    pytest.importorskip(
        "tensorboard", reason="needs TensorBoard: pip install 'datadistill[tensorboard]'"
    )
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, tensorboard=True, **stop_after(7))
    go(tmp_path, tensorboard=True)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    figures = figures_in(tmp_path / "tensorboard")
    assert figures["loss"] == pytest.approx({row.outer_step: row.loss for row in rows})
    held_out = {row.outer_step: row.held_out.mean for row in rows if row.held_out}
    assert figures["held-out accuracy"] == pytest.approx(held_out)
    rates = {row.outer_step: row.learning_rates.max for row in rows}
    assert figures["learning rates/max"] == pytest.approx(rates)


def test_without_tensorboard_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)  # as if nothing were installed
    with pytest.raises(ConfigError, match="pip install 'datadistill"):
        go(tmp_path, tensorboard=True)
