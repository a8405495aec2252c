"""Views: differentiable, and the same for real and distilled images."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from datadistill.core.distiller import Distiller
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.core.parametrisation import Plain
from datadistill.core.random import stream
from datadistill.core.settings import DistillerConfig
from datadistill.core.view import (
    Brightness,
    Combined,
    Contrast,
    Cutout,
    Flip,
    Rotate,
    Saturation,
    Scale,
    Shift,
    View,
    Viewed,
)
from datadistill.core.view.bundles import SIAMESE
from datadistill.core.view.geometry import resampled
from datadistill.errors import ConfigError
from datadistill.runs.config import RunConfig
from datadistill.runs.seams import make_view

IMAGES = torch.randn(4, 3, 6, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
VIEWS = [View.from_record({"name": name}) for name in View.names()]


def drawn(view: View, number: int = 0) -> Callable[[Tensor], Tensor]:
    return view.draw(stream(0, "view", number))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_differentiable_and_follows_its_stream(view: View) -> None:
    images = IMAGES[:2, :, :4, :3].clone().requires_grad_()
    assert torch.autograd.gradcheck(drawn(view), images)
    assert torch.equal(drawn(view)(IMAGES), drawn(view)(IMAGES))
    assert any(not torch.equal(drawn(view, n)(IMAGES), IMAGES) for n in range(5))
    alone = torch.cat([drawn(view)(one) for one in IMAGES.split(1)])
    torch.testing.assert_close(alone, drawn(view)(IMAGES))


def test_a_shift_moves_whole_pixels_and_repeats_the_edge() -> None:
    for number in range(10):
        seen = drawn(Shift(0.5), number)(IMAGES)
        columns = {round(float(value), 9) for value in IMAGES.flatten()}
        assert {round(float(value), 9) for value in seen.flatten()} <= columns
    right = resampled(IMAGES, ((1, 0, 2 / 8), (0, 1, 0)))
    torch.testing.assert_close(right, torch.cat([IMAGES[..., 1:], IMAGES[..., -1:]], -1))


def test_a_quarter_turn_is_exact_also_of_images_that_are_not_square() -> None:
    square = IMAGES[..., :6]
    turned = resampled(square, ((0, -1, 0), (1, 0, 0)))
    torch.testing.assert_close(turned, square.rot90(1, (-2, -1)))
    # The turned centre of a wide image is that of a square one.
    wide = nn.functional.pad(square, (6, 6))
    seen = resampled(wide, ((0, -6 / 18, 0), (18 / 6, 0, 0)))
    torch.testing.assert_close(seen[..., 6:12], square.rot90(1, (-2, -1)))


def test_the_other_views_do_what_they_are_called() -> None:
    flips = [drawn(Flip(), n)(IMAGES) for n in range(20)]
    assert {torch.equal(one, IMAGES) for one in flips} == {True, False}
    assert all(torch.equal(one, IMAGES) or torch.equal(one.flip(-1), IMAGES) for one in flips)
    added = drawn(Brightness())(IMAGES) - IMAGES
    assert 0 < float(added.abs().max()) <= 0.5
    assert float(added.std()) < 1e-12
    contrast = drawn(Contrast())(IMAGES)
    torch.testing.assert_close(contrast.mean((1, 2, 3)), IMAGES.mean((1, 2, 3)))
    assert 0.5 < float(contrast.std() / IMAGES.std()) < 1.5
    torch.testing.assert_close(drawn(Saturation())(IMAGES).mean(1), IMAGES.mean(1))
    hidden = (drawn(Cutout(0.5), 1)(torch.ones(1, 1, 100, 100)) == 0).float().mean()
    assert 0.06 <= float(hidden) <= 0.25
    larger = [float(drawn(Scale(2.0), n)(IMAGES[:, :, 2:3, :]).std()) for n in range(3)]
    assert len({*larger}) == 3
    assert {type(view).name for view in SIAMESE} == {*View.names()} - {"dsa", "digits"}


@dataclass(frozen=True)
class Doubled(View):
    """A user's own: it only doubles."""

    def draw(self, stream: torch.Generator) -> Callable[[Tensor], Tensor]:
        return lambda images: 2 * images


def test_real_and_distilled_images_are_seen_alike() -> None:
    """Seen doubled, a linear layer learns as a layer of doubled weights that are half as fast."""
    network = Network(nn.Sequential(nn.Flatten(), nn.Linear(144, 3)), IMAGES, dtype=torch.float64)
    config = DistillerConfig(steps=2, epochs=2, networks=2, learning_rate=0.1)
    plain = Distiller(network, RandomInit(), Classification(), config)
    seen = Distiller(network, RandomInit(), Classification(), config, view=Doubled())
    state, labels = plain.init(IMAGES.shape[1:], torch.arange(3)), torch.arange(4) % 3
    twice = {**state.parameters, "inputs": 2 * state.parameters["inputs"]}
    expected = plain.gradient(
        type(state)(0, twice, state.constants, state.adam), (2 * IMAGES, labels)
    )
    losses, gradient = seen.gradient(state, (IMAGES, labels))
    torch.testing.assert_close(losses, expected[0])
    torch.testing.assert_close(gradient["inputs"], 2 * expected[1]["inputs"])
    torch.testing.assert_close(gradient["raw_rates"], expected[1]["raw_rates"])
    assert torch.equal(seen.distilled(state).inputs, plain.distilled(state).inputs)


def test_views_are_named_together_and_recorded() -> None:
    made = make_view(RunConfig(view="shift+rotate(degrees=20.5)+cutout"))
    assert made is not None
    assert made == Combined((Shift(), Rotate(20.5), Cutout()))
    assert made.text == "shift+rotate(degrees=20.5)+cutout"
    assert View.from_record(made.record()) == made
    assert make_view(RunConfig()) is None
    assert make_view(RunConfig(view=Rotate(3).text)) == Rotate(3)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("rotat", "Did you mean 'rotate'"),
        ("shift+", "There is no view ''"),
        ("combined", "There is no view 'combined'"),
        ("rotate(degree=3)", "no field 'degree'"),
        ("rotate(degrees=-3)", "degrees of the view rotate is -3"),
        ("shift(most=1.5)", "positive number below 1"),
        ("shift(most='far')", "most of the view shift is 'far'"),
        (f"scale(most={10**400})", "positive number below 1e"),
        (f"shift(most={'-' * 50_000}1)", "has 50,013 letters"),
        ("+" * 500_000, "has 500,000 letters"),
        (f"shift(most={'-' * 4_000}1)", "cannot be read"),
    ],
)
def test_a_wrong_view_is_refused(view: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        RunConfig(view=view)


def test_inputs_that_are_no_images_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"The view dsa is for images; these inputs have"):
        View.from_record({"name": "dsa"}).check(torch.Size([4]))


def test_a_view_of_no_change_leaves_the_gradient() -> None:
    parametrisation = Plain()
    network = Network(nn.Sequential(nn.Flatten(), nn.Linear(144, 3)), IMAGES, dtype=torch.float64)
    made = Distiller(network, RandomInit(), Classification(), DistillerConfig())
    state = made.init(IMAGES.shape[1:], torch.arange(3))
    seen = Viewed(parametrisation, lambda images: images)
    each = made.distilled(state).for_each(2)
    found, expected = (one.pull_back_each(state.current, each) for one in (seen, parametrisation))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
