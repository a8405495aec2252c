"""Linear regression distilled by the general engine agrees with the closed form."""

import json
import math
from pathlib import Path

import pytest
import torch

from datadistill.cli.main import main
from datadistill.core.distilled import Step
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.objective import Regression
from datadistill.core.settings import DistillerConfig
from datadistill.tables.linear import LinearProblem, diabetes, linear_bound
from datadistill.theory import gd_step, loss


def test_the_engine_agrees_with_the_closed_form_below_and_from_d_images_on() -> None:
    real = diabetes()
    two = LinearProblem("two columns", real.d[:, 2:4], real.t)
    one, enough = linear_bound(two, images=(1, 2), iterations=500).points
    assert one.bound <= one.theory <= one.engine
    assert one.engine == pytest.approx(one.theory, rel=5e-3)
    assert one.worst > 0.1
    assert enough.worst < 1e-8
    assert enough.distance < 1e-3
    assert enough.theory < 1e-25


def test_the_engines_loss_is_twice_the_papers_after_the_papers_step() -> None:
    real = diabetes()
    config = DistillerConfig(epochs=1, images_per_class=4, networks=3, learning_rate=0.7)
    distiller = Distiller(real.network, RandomInit(), Regression(), config)
    state = distiller.init(real.d.shape[1:], real.t)
    losses, _ = distiller.gradient(state, (real.d, real.t[:, None]))
    x = distiller.distilled(state)
    step = Step(x.inputs[0], x.labels[0, :, 0], 2 * x.learning_rates[0, 0])
    (theta0,) = RandomInit().sample(real.network, networks_for(0, "network", range(3))).values()
    expected = 2 * loss(real.d, real.t, gd_step(theta0[:, 0], step))
    torch.testing.assert_close(losses, expected, rtol=1e-12, atol=0)


def test_the_problem_says_how_its_starts_are_drawn() -> None:
    real = diabetes()
    starts = real.starts(1000, seed=1)
    error = 3 * math.sqrt(2 / 1000) * float(real.covariance[0, 0])
    torch.testing.assert_close(starts.T.cov(), real.covariance, rtol=0, atol=1.5 * error)


def test_reproduce_linear_writes_its_figures_and_its_picture_and_keeps_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    words = ["reproduce", "linear", "--iterations", "1", "--output", str(tmp_path), "--quiet"]
    assert main([*words, "--time-budget", "0.000001s"]) == 2
    assert "time budget has ended" in capsys.readouterr().err
    assert main(words) == 0
    assert torch.get_num_threads() == threads
    figures = json.loads((tmp_path / "results.json").read_text())["linear"]
    assert [point["images"] for point in figures["points"]] == [*range(1, 13)]
    assert (tmp_path / "linear-bound.png").stat().st_size > 10_000
    figure = (tmp_path / "linear-bound.svg").read_text()
    assert "1,000 random θ₀, seed 0" in figure
    assert ">10⁰<" in figure
    assert "mathdefault" not in figure
    told = capsys.readouterr()
    assert "best possible" in told.out
    assert not told.err
    assert main([*words, "--time-budget", "0.000001s"]) == 0  # nothing is left to compute
    assert json.loads((tmp_path / "results.json").read_text())["linear"] == figures
    assert main([*words, "--time-budget", "0.000001s", "--seed", "1"]) == 2
