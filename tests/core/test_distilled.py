import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadistill.core.distilled import Position, Steps, class_labels, noise, positive, raw_of


@given(st.floats(1e-6, 50))
def test_a_rate_survives_softplus_and_its_inverse(rate: float) -> None:
    raw = raw_of(torch.tensor(rate, dtype=torch.float64))
    assert float(positive(raw)) == pytest.approx(rate, rel=1e-9)


@given(st.floats(-80, 80))
def test_rates_are_positive_whatever_is_learned(raw: float) -> None:
    assert float(positive(torch.tensor(raw, dtype=torch.float64))) > 0


def test_the_schedule_goes_through_all_steps_epoch_after_epoch() -> None:
    steps = Steps(torch.rand(3, 2, 1), torch.zeros(3, 2), torch.rand(2, 3))
    assert steps.schedule == [Position(e, s) for e in (0, 1) for s in (0, 1, 2)]
    for step, (epoch, number) in zip(steps, steps.schedule, strict=True):
        assert torch.equal(step.inputs, steps.inputs[number])
        assert torch.equal(step.learning_rate, steps.learning_rates[epoch, number])


def test_every_step_has_every_class_equally_often() -> None:
    labels = class_labels(steps=4, classes=10, images_per_class=2)
    assert labels.shape == (4, 20)
    assert all(torch.equal(torch.bincount(row), torch.full((10,), 2)) for row in labels)


def test_noise_is_standard_normal_and_numbered_by_the_seed() -> None:
    drawn = noise(5, (10, 10, 1, 28, 28))
    assert abs(float(drawn.mean())) < 4 / math.sqrt(drawn.numel())
    assert float(drawn.std()) == pytest.approx(1, abs=0.01)
    assert torch.equal(drawn, noise(5, (10, 10, 1, 28, 28)))
    assert not torch.equal(drawn, noise(6, (10, 10, 1, 28, 28)))


def test_moving_keeps_class_indices_whole_and_casts_float_labels() -> None:
    hard = Steps(torch.rand(1, 2, 3), torch.tensor([[0, 1]]), torch.rand(1, 1))
    soft = Steps(torch.rand(1, 2, 3), torch.rand(1, 2, 4), torch.rand(1, 1))
    cpu = torch.device("cpu")
    assert hard.to(cpu, torch.float64).labels.dtype == torch.int64
    assert soft.to(cpu, torch.float64).labels.dtype == torch.float64
    assert hard.to(cpu, torch.float64).inputs.dtype == torch.float64
