"""The reference that speed is measured against computes the same, and by the paper's schedule."""

from dataclasses import replace

import pytest
from benchmarks.reference import ReferenceRun, gradient, paper_settings, sampled
from benchmarks.reference_team import reference_team
from benchmarks.speed import Case, compare, prepare
from torch import nn

from datadistill.core.optimizer import adam, adam_init
from datadistill.core.random import minibatch
from datadistill.models import AlexCifarNet, LeNet
from datadistill.runs import experiment
from datadistill.runs.distillation import Distillation
from tests.helpers import NETWORKS, relative_error

SMALL = {"steps": 2, "epochs": 2, "batch_size": 12, "dtype": "float64"}


def small(module: nn.Module, shape: tuple[int, ...], networks: int = 2) -> Distillation:
    return prepare(module, shape, networks, **SMALL)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (LeNet(), (1, 28, 28)),
        (AlexCifarNet(width=4), (3, 32, 32)),
        *((make(10), (1, 6, 6)) for make in NETWORKS.values()),
    ],
    ids=["lenet", "alexcifarnet", *NETWORKS],
)
def test_losses_and_gradients_are_those_of_the_distiller(
    module: nn.Module, shape: tuple[int, ...]
) -> None:
    distillation = small(module, shape)
    state, network = distillation.start().distiller, distillation.network
    losses, expected = distillation.distiller.gradient(state, distillation.batch(0))
    # Not the batch above: where the first layers are frozen, that is of their features.
    images = minibatch(distillation.config.seed, 0, 12, len(distillation.data))
    batch = distillation.data.batch(images, network.device, network.dtype)
    networks = sampled(distillation, 0)
    found_losses, found = gradient(network.module(), networks, distillation.images(state), batch)
    raw = found.learning_rates * state.parameters["raw_rates"].sigmoid()
    assert relative_error(found_losses, losses) < 1e-10
    assert relative_error(found.inputs, expected["inputs"]) < 1e-10
    assert relative_error(raw, expected["raw_rates"]) < 1e-10


def test_a_run_is_adam_by_the_papers_schedule_on_the_distillers_gradients() -> None:
    distillation = small(NETWORKS["linear"](10), (1, 6, 6), networks=1)
    run, state = ReferenceRun(distillation), distillation.start().distiller
    moments = adam_init(state.parameters)
    for t in range(44):  # 12 examples, one minibatch a pass: halved after 40
        _, found = distillation.distiller.gradient(state, distillation.batch(t))
        lr = 0.01 * 0.5 ** (t // 40)
        parameters, moments = adam(state.parameters, found, moments, lr, (0.5, 0.999))
        state = replace(state, parameters=parameters, outer_step=t + 1)
        run.step()
    expected = distillation.images(state)
    assert relative_error(run.distilled.inputs, expected.inputs) < 1e-8
    assert relative_error(run.distilled.learning_rates, expected.learning_rates) < 1e-8


def test_the_papers_settings_are_those_of_the_paper_whatever_the_recipe_says() -> None:
    config = replace(small(LeNet(), (1, 28, 28)).config, batch_size=64, networks=9)
    assert paper_settings(config).batch_size == 1024
    assert paper_settings(config).networks == 4
    fixed = replace(config, initialization="fixed", networks=1)
    assert paper_settings(fixed).networks == 1


def test_a_row_of_the_speed_table_has_both_sides_and_their_ratio() -> None:
    row = compare(Case("LeNet", 1, 28, 1, 1.5, 1), peak=1e10, trials=1)
    assert row["ratio"] == row["reference, s"] / row["ours, s"] > 0
    # 30 updates on 10 images and the outer loss on 1024: a LeNet's forward pass is 0.83 MFLOP.
    outer = 3 * 1024 * 0.83e-3
    assert outer < row["GFLOP"] < 3 * outer


def test_two_processes_give_the_gradient_of_one() -> None:
    settings = Case("LeNet", 1, 28, 3, 1.5, 1).settings
    settings = replace(settings, steps=2, epochs=1, batch_size=8, dtype="float64", threads=1)
    distillation = experiment.load(settings).prepare()
    alone = ReferenceRun(distillation)
    with reference_team(settings, distillation) as team:
        for _ in range(2):
            assert team.step() == pytest.approx(alone.step(), rel=1e-10)
        assert relative_error(team.distilled.inputs, alone.distilled.inputs) < 1e-10
        assert relative_error(team.distilled.learning_rates, alone.distilled.learning_rates) < 1e-10
