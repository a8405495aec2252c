import dataclasses

import pytest
import torch
from torch import Tensor, nn

from datadistill.core.adjoint import BackGradient
from datadistill.core.distilled import Steps
from datadistill.core.distiller import Distiller, DistillerState
from datadistill.core.initialization import FixedInit, Initialization, RandomInit, networks_for
from datadistill.core.network import Network
from datadistill.core.objective import Classification, Objective, Regression
from datadistill.core.parametrisation import Parametrisation, Plain, SoftLabels
from datadistill.core.settings import DistillerConfig
from datadistill.engine import FastEngine
from datadistill.errors import ConfigError
from tests.helpers import Convolutional, Mlp, nested_autograd, relative_error

LABELS = torch.arange(30) % 3
INPUTS = torch.randn(30, 1, 6, 6, generator=torch.Generator().manual_seed(0)).double()
BATCH = (INPUTS + LABELS[:, None, None, None], LABELS)


def distiller(
    module: nn.Module | None = None,
    initialization: Initialization | None = None,
    objective: Objective | None = None,
    parametrisation: Parametrisation | None = None,
    **settings: object,
) -> Distiller:
    network = Network(module or Mlp(3), INPUTS, dtype=torch.float64)
    config = DistillerConfig(**{"steps": 2, "epochs": 2, "learning_rate": 0.1} | settings)  # pyright: ignore
    objective = objective or Classification()
    return Distiller(
        network,
        initialization or RandomInit(),
        objective,
        config,
        parametrisation=parametrisation or Plain(),
        own_engine=FastEngine(network, objective),
    )


def start(made: Distiller) -> DistillerState:
    return made.init(INPUTS.shape[1:], LABELS)


def same(left: DistillerState, right: DistillerState) -> bool:
    return all(torch.equal(left.parameters[n], right.parameters[n]) for n in left.parameters)


def test_distilled_data_start_as_the_protocol_says() -> None:
    made = distiller(learning_rate=0.02, images_per_class=2)
    state = start(made)
    steps = made.distilled(state)
    assert steps.inputs.shape == (2, 6, 1, 6, 6)
    assert steps.labels.tolist() == [[0, 1, 2, 0, 1, 2]] * 2
    torch.testing.assert_close(steps.learning_rates, torch.full((2, 2), 0.02).double())
    assert set(state.parameters) == {"inputs", "raw_rates"}


def test_one_outer_step_is_adam_on_the_mean_gradient_of_the_sampled_networks() -> None:
    made = distiller(networks=3, outer_lr=0.05)
    state = start(made)
    after, metrics = made.step(state, BATCH)
    theta0 = made.initialization.sample(made.network, networks_for(0, "network", range(3)))
    steps = made.distilled(state)
    results = [
        nested_autograd(
            made.network.module(),
            {n: w[j] for n, w in theta0.items()},
            Steps(
                steps.inputs,
                torch.eye(3).double()[steps.labels],
                steps.learning_rates,
            ),
            BATCH,
            "classification",
        )
        for j in range(3)
    ]
    mean = torch.stack([gradients[0] for _, gradients in results]).mean(0)
    rates = torch.stack([gradients[2] for _, gradients in results]).mean(0)
    raw = state.parameters["raw_rates"].clone().requires_grad_()
    (raw_gradient,) = torch.autograd.grad(nn.functional.softplus(raw), raw, rates)
    leaves = [state.parameters["inputs"].clone(), state.parameters["raw_rates"].clone()]
    leaves[0].grad, leaves[1].grad = mean, raw_gradient
    torch.optim.Adam(leaves, lr=0.05, betas=(0.5, 0.999)).step()
    assert relative_error(after.parameters["inputs"], leaves[0]) < 1e-9
    assert relative_error(after.parameters["raw_rates"], leaves[1]) < 1e-9
    assert metrics.loss == pytest.approx(float(torch.stack([loss for loss, _ in results]).mean()))
    assert metrics.accepted


def test_step_and_init_are_pure() -> None:
    made = distiller()
    state = start(made)
    before = {n: p.clone() for n, p in state.parameters.items()}
    global_state = torch.get_rng_state()
    first, _ = made.step(state, BATCH)
    second, _ = made.step(state, BATCH)
    assert same(first, second)
    assert all(torch.equal(state.parameters[n], before[n]) for n in before)
    assert state.outer_step == 0
    assert first.outer_step == 1
    assert torch.equal(global_state, torch.get_rng_state())


def test_every_outer_step_draws_other_networks() -> None:
    made = distiller(networks=2)
    state = start(made)
    later = dataclasses.replace(state, outer_step=1)
    assert not torch.equal(made.gradient(state, BATCH)[0], made.gradient(later, BATCH)[0])


def test_which_process_draws_a_network_does_not_matter() -> None:
    """Eight networks at once are the same eight as two halves of four."""
    whole = distiller(networks=8)
    state = start(whole)
    losses, gradient = whole.gradient(state, BATCH)
    parts: list[Tensor] = []
    for half in (range(4), range(4, 8)):
        theta0 = whole.initialization.sample(whole.network, networks_for(0, "network", half))
        parts.append(
            BackGradient()(
                whole.rule,
                whole.engine,
                whole.rule.start(theta0),
                whole.distilled(state),
                lambda w: whole.network.losses(w, *BATCH, whole.objective.outer_loss),
                torch.Generator(),
            )[1].inputs
        )
    assert len(losses) == 8
    assert relative_error((parts[0] + parts[1]) / 2, gradient["inputs"]) < 1e-12


def test_distillation_lowers_the_loss() -> None:
    made = distiller(Convolutional(3), networks=4, outer_lr=0.1)
    state, losses = start(made), list[float]()
    for _ in range(40):
        state, metrics = made.step(state, BATCH)
        losses.append(metrics.loss)
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    assert float(made.distilled(state).learning_rates.min()) > 0


def test_a_non_finite_outer_step_is_rejected_and_counted() -> None:
    made = distiller()
    state = start(made)
    bad = (torch.full_like(INPUTS, torch.inf), LABELS)
    after, metrics = made.step(state, bad)
    assert not metrics.accepted
    assert same(state, after)
    assert after.adam.count == 0
    assert (after.outer_step, after.rejected, after.rejected_in_a_row) == (1, 1, 1)
    again, _ = made.step(after, bad)
    assert (again.rejected, again.rejected_in_a_row) == (2, 2)
    good, metrics = made.step(again, BATCH)
    assert metrics.accepted
    assert (good.rejected, good.rejected_in_a_row) == (2, 0)


def test_a_long_gradient_is_clipped() -> None:
    """Seen in Adam's first moment, (1 − β₁) times the gradient it was given."""
    free, clipped = distiller(networks=1), distiller(networks=1, clip_norm=1e-3)
    state = start(free)
    _, metrics = free.step(state, BATCH)
    assert metrics.gradient_norm > 1e-3
    after, _ = clipped.step(state, BATCH)
    length = torch.stack([m.norm() for m in after.adam.first.values()]).norm()
    assert float(length) == pytest.approx(0.5 * 1e-3, rel=1e-9)
    longer = distiller(networks=1, clip_norm=1e3)
    assert same(longer.step(state, BATCH)[0], free.step(state, BATCH)[0])


def test_each_network_is_clipped_by_itself_so_that_none_drowns_the_others() -> None:
    """Network j of an outer step with J networks is the one of outer step J·t + j with one."""
    state = dataclasses.replace(start(distiller()), outer_step=2)
    alone = [
        distiller(networks=1).gradient(dataclasses.replace(state, outer_step=3 * 2 + j), BATCH)[1]
        for j in range(3)
    ]
    lengths = [torch.stack([g.norm() for g in one.values()]).norm() for one in alone]
    bound = float(sorted(lengths)[1])  # the longest is clipped, the shortest is not
    _, found = distiller(networks=3, clip_norm=bound).gradient(state, BATCH)
    for name, gradient in found.items():
        clipped = [g[name] * min(1, bound / n) for g, n in zip(alone, lengths, strict=True)]
        torch.testing.assert_close(gradient, torch.stack(clipped).mean(0), rtol=1e-12, atol=1e-14)


def test_the_outer_learning_rate_is_halved_every_40_passes() -> None:
    config = DistillerConfig(batch_size=1024).for_examples(60_000)
    assert config.decay_every == 2344
    assert config.outer_lr_at(2343) == 0.01
    assert config.outer_lr_at(2344) == 0.005
    assert config.outer_lr_at(2 * 2344) == 0.0025
    assert DistillerConfig(decay_every=7).for_examples(60_000).decay_every == 7


def test_a_cosine_falls_over_the_run_or_over_its_period_and_stays_down() -> None:
    config = DistillerConfig(iterations=200, outer_lr=1.0, outer_schedule="cosine")
    config = config.for_examples(60_000)
    assert config.decay_every == 200
    found = [config.outer_lr_at(t) for t in (0, 100, 200, 5000)]
    assert found == pytest.approx([1, 0.505, 0.01, 0.01])
    rates = [config.outer_lr_at(t) for t in range(201)]
    assert rates == sorted(rates, reverse=True)
    assert DistillerConfig(decay_every=7, outer_schedule="cosine").for_examples(9).decay_every == 7


def test_learning_rates_can_have_an_outer_rate_of_their_own() -> None:
    batch = INPUTS.double(), LABELS
    moved: dict[float, float] = {}
    for rates_lr in (0.05, 0.0005):
        made = distiller(Convolutional(3), outer_lr=0.05, rates_lr=rates_lr)
        before = start(made)
        after, _ = made.step(before, batch)
        change = after.parameters["raw_rates"] - before.parameters["raw_rates"]
        moved[rates_lr] = float(change.abs().max())
        inputs = after.parameters["inputs"] - before.parameters["inputs"]
        assert float(inputs.abs().max()) == pytest.approx(0.05, rel=1e-3)
    assert moved[0.05] == pytest.approx(100 * moved[0.0005], rel=1e-3)


def test_learning_rates_can_be_held_fixed() -> None:
    made = distiller(parametrisation=Plain(learn_rates=False))
    state = start(made)
    assert set(state.parameters) == {"inputs"}
    after, _ = made.step(state, BATCH)
    assert torch.equal(made.distilled(after).learning_rates, made.distilled(state).learning_rates)


def test_labels_can_be_learned() -> None:
    made = distiller(parametrisation=SoftLabels())
    state = start(made)
    assert torch.equal(made.distilled(state).labels, torch.eye(3).double().expand(2, 3, 3))
    after, _ = made.step(state, BATCH)
    assert not torch.equal(made.distilled(after).labels, made.distilled(state).labels)


def test_binary_labels_can_be_learned() -> None:
    labels = LABELS.clamp_max(1)
    made = distiller(Mlp(1), parametrisation=Plain(learn_labels=True))
    state = made.init(INPUTS.shape[1:], labels)
    assert made.distilled(state).labels.tolist() == [[0.0, 1.0]] * 2
    after, metrics = made.step(state, (BATCH[0], labels))
    assert metrics.accepted
    assert not torch.equal(made.distilled(after).labels, made.distilled(state).labels)


def test_regression_learns_its_targets() -> None:
    targets = INPUTS.flatten(1)[:, :2]
    made = distiller(nn.Sequential(nn.Flatten(), nn.Linear(36, 2)), objective=Regression())
    state = made.init(INPUTS.shape[1:], targets)
    assert made.distilled(state).labels.shape == (2, 1, 2)
    assert "labels" in state.parameters
    after, metrics = made.step(state, (INPUTS, targets))
    assert metrics.accepted
    assert not torch.equal(made.distilled(after).labels, made.distilled(state).labels)


def test_a_fixed_initialization_is_one_network() -> None:
    assert distiller(initialization=FixedInit()).networks == 1
    assert distiller(initialization=RandomInit()).networks == 4
    with pytest.raises(ConfigError, match="fixed initialization is one network"):
        distiller(initialization=FixedInit(), networks=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("steps", "epochs", "iterations", "images_per_class")),
        *((name, 0) for name in ("batch_size", "networks", "decay_every", "learning_rate")),
        ("outer_lr", -1.0),
        ("learning_rate", float("nan")),
        ("clip_norm", 0.0),
        ("averaging", 1.0),
        ("betas", (0.5, 1.0)),
        ("decay", float("inf")),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is .*\nSet {name} to"):
        DistillerConfig(**{name: value})  # pyright: ignore[reportArgumentType]


def test_the_running_mean_of_the_parameters_is_what_is_distilled() -> None:
    made = distiller(averaging=0.75)
    state = start(made)
    mean = dict(state.parameters)
    for t in range(1, 40):
        before = state
        state, _ = made.step(state, BATCH)
        share = min(0.75, t / (t + 9))
        mean = {n: share * m + (1 - share) * state.parameters[n] for n, m in mean.items()}
        assert torch.equal(before.current.all["inputs"], before.parameters["inputs"])
    torch.testing.assert_close(made.distilled(state).inputs, mean["inputs"])
    torch.testing.assert_close(
        made.distilled(state).learning_rates, torch.nn.functional.softplus(mean["raw_rates"])
    )
    assert not torch.allclose(made.distilled(state).inputs, state.parameters["inputs"])


def test_averaging_does_not_change_the_course_of_the_parameters() -> None:
    plain, averaged = distiller(), distiller(averaging=0.9)
    state, other = start(plain), start(averaged)
    for _ in range(3):
        state, other = plain.step(state, BATCH)[0], averaged.step(other, BATCH)[0]
    assert torch.equal(state.parameters["inputs"], other.parameters["inputs"])
    assert state.average == {}
