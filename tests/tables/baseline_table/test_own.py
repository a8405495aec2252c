"""A user's own baseline: a row like the built-in ones, from Python and on the command line."""

import dataclasses
import functools
import json
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.baselines import Baseline, KMeans, Layout, RandomReal, Stream
from datadistill.cli.main import main
from datadistill.core.distilled import Steps
from datadistill.errors import ConfigError
from datadistill.evaluation.rate_search import EPOCHS, LEARNING_RATES, Choice, scheduled
from datadistill.tables import BaselineTable, TableSettings

from .helpers import FEW, Digits, accuracies, parts_of, table_of

FILE = '''
import torch

from datadistill.baselines import Baseline


class Medians(Baseline):
    """The median image of each class."""

    title = "median real"
    deterministic = True

    def steps(self, data, layout, stream):
        inputs, labels = data.batch(slice(None), torch.device("cpu"), layout.dtype)
        medians = [inputs[labels == c].median(0).values for c in range(layout.classes)]
        images = torch.stack(medians)[:, None].expand(-1, layout.per_class, *data.input_shape)
        return layout.arrange(images)
'''


@dataclasses.dataclass(frozen=True)
class Noisy(Baseline):
    """Random real images with noise."""

    noise: float = 0.1
    title = "noisy real"
    neighbours = True

    def steps(self, data: dd.LabelledData, layout: Layout, stream: Stream) -> Steps:
        real = RandomReal().steps(data, layout, stream)
        drawn = torch.randn(real.inputs.shape, generator=stream("noise"))
        return dataclasses.replace(real, inputs=real.inputs + self.noise * drawn)


class BestCentroids(KMeans):
    title = "best centroids"
    neighbours = False
    candidates = KMeans()


class BestNoisy(Noisy):
    title = "best noisy"
    neighbours = False
    candidates = Noisy()


def test_it_is_a_row_that_is_searched_and_measured_like_the_others(
    distilled: dd.DistilledData, small: Digits, whole: tuple[BaselineTable, Path], tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(whole[1].read_bytes())
    table = table_of(distilled, small, path, baselines=[Noisy(), BestNoisy()])
    names = [row.name for row in table.rows]
    assert names == [
        *("untrained", "distilled", "random real", "optimised real", "k-means", "average real"),
        *("noisy real", "best noisy"),
        *("K-NN random real", "K-NN k-means", "K-NN noisy real", "all real"),
    ]
    assert [row for row in table.rows if "nois" not in row.name] == [*whole[0].rows]
    trials = [p["part"] for p in parts_of(path, "trial") if p["part"]["baseline"] == "noisy real"]
    assert len(trials) == FEW.choosing_sets * (1 + len(LEARNING_RATES))
    assert {tuple(trial["epochs"]) for trial in trials} == {EPOCHS}
    assert all(trial["record"] == Noisy().record() for trial in trials)
    assert len(parts_of(path, "pick")) == 2 * FEW.drawn, "those of random real, and its own"
    rest, _ = small[0].hold_out(0.1, seed=0)
    rate, epochs = table["noisy real"].chosen.removeprefix("lr ").split(", ")
    choice = Choice("learned" if rate == "learned" else float(rate), int(epochs.split()[0]))
    for number, values in enumerate(table["noisy real"].values):
        images = Noisy().draw(rest, Layout(10, steps=2), number)
        steps = scheduled(images, choice, distilled.learning_rates)
        assert values == accuracies(distilled, steps, small[1])


def test_its_figures_are_cached_until_its_images_change(
    distilled: dd.DistilledData, small: Digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    table = table_of(distilled, small, path, baselines=[Noisy()])
    kept = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("datadistill.tables.context.train_and_score", None)
        assert table_of(distilled, small, path, baselines=[Noisy()]) == table
    assert path.read_bytes() == kept

    def louder(self: Noisy, data: dd.LabelledData, layout: Layout, stream: Stream) -> Steps:
        real = RandomReal().steps(data, layout, stream)
        return dataclasses.replace(real, inputs=real.inputs + 5)

    monkeypatch.setattr(Noisy, "steps", louder)  # the same class by name, with other code
    again = table_of(distilled, small, path, baselines=[Noisy()])
    assert again["noisy real"] != table["noisy real"]
    assert again["random real"] == table["random real"]


def test_the_best_sets_are_picked_among_its_own_candidates(
    distilled: dd.DistilledData, small: Digits, whole: tuple[BaselineTable, Path], tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(whole[1].read_bytes())
    table = table_of(distilled, small, path, baselines=[BestCentroids()])
    picks = [p for p in parts_of(path, "pick") if p["part"].get("baseline") == "k-means"]
    assert len(picks) == FEW.drawn
    assert table["best centroids"].chosen == table["k-means"].chosen
    assert len(table["best centroids"].values) == FEW.kept


def test_settings_that_cannot_be_recorded_are_refused_before_anything_is_computed(
    distilled: dd.DistilledData, small: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datadistill.tables.context.train_and_score", None)
    baseline = Noisy(torch.ones(()))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match=r"Noisy cannot be recorded"):
        table_of(distilled, small, baselines=[baseline])


@pytest.mark.parametrize("name", ["random real", "distilled", "K-NN k-means", "all real"])
def test_the_name_of_another_row_is_refused_before_anything_is_computed(
    distilled: dd.DistilledData, small: Digits, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("datadistill.tables.context.train_and_score", None)
    monkeypatch.setattr(Noisy, "title", name)
    with pytest.raises(ConfigError, match=f"another row called '{name}'"):
        table_of(distilled, small, baselines=[Noisy()])


def test_an_unknown_name_is_refused_before_anything_is_computed(
    distilled: dd.DistilledData, small: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datadistill.tables.context.train_and_score", None)
    with pytest.raises(ConfigError, match=r"no baseline 'kmeans'\. Did you mean 'k-means'"):
        table_of(distilled, small, baselines=["kmeans"])


def test_it_is_named_on_the_command_line(
    small: Digits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    few = functools.partial(TableSettings, counts=FEW)
    monkeypatch.setattr("datadistill.tables.TableSettings", few)
    (tmp_path / "mine.py").write_text(FILE)
    fixed = dd.distill(
        small[0], dd.models.MLP(hidden=4), initialization=dd.FixedInit(), iterations=1
    )
    fixed.save("made.safetensors")
    asked = ["evaluate", "made.safetensors", "--data", "digits", "--quiet", "--json"]
    assert main([*asked, "--baseline", "mine.py:Medians"]) == 2
    assert "--baseline needs --baselines" in capsys.readouterr().err
    assert main([*asked, "--baselines", "--baseline", "mine.py:Median"]) == 2
    assert "Did you mean 'Medians'?" in capsys.readouterr().err
    assert main([*asked, "--baselines", "--baseline", "mine.py:Medians"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows["median real"]["sets"] == 1
    assert [*rows].index("median real") == [*rows].index("average real") + 1
