"""Updates in C: gradients and their products are those of autograd."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from datadistill import models
from datadistill.core.distilled import Step
from datadistill.core.engine import PlainEngine
from datadistill.core.network import Network, Weights
from datadistill.core.objective import Classification, Objective, Poisoning, Regression
from datadistill.engine import FastEngine, using
from tests.engine.test_chain import CHAINS, several
from tests.engine.test_stacked import Residual
from tests.helpers import relative_error


class Unpooled(nn.Sequential):
    """Convolutions without pooling, with ReLU and without, and without biases."""

    def __init__(self) -> None:
        first = nn.Conv2d(2, 3, 3, padding=1, bias=False)
        layers = first, nn.ReLU(), nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(50, 3, bias=False)
        super().__init__(*layers)


LAYERS = {**CHAINS, "unpooled": (Unpooled, (2, 7, 7))}


def engines(
    name: str, dtype: torch.dtype = torch.float64, objective: Objective | None = None
) -> tuple[FastEngine, PlainEngine]:
    make, shape = LAYERS[name]
    torch.manual_seed(2)
    network = Network(make().to(dtype), torch.randn(2, *shape, dtype=dtype))
    objective = objective or Classification()
    return FastEngine(network, objective), PlainEngine(network, objective)


def in_c(engine: FastEngine) -> bool:
    return engine._chained is not None  # pyright: ignore[reportPrivateUsage]


def a_step(engine: FastEngine, networks: int, *, own: bool, soft: bool, images: int = 6) -> Step:
    """A step for all networks, or one of each; soft labels that do not add up to 1."""
    like, classes = engine.network.example, engine.network.outputs[0]
    several = (networks, images) if own else (images,)
    x = torch.randn(*several, *like.shape[1:]).to(like)
    labels = torch.rand(*several, classes).to(like)
    labels = labels if soft else labels.argmax(-1)
    return Step(x, labels, torch.ones(networks if own else ()).to(like))


def differences(fast: FastEngine, plain: PlainEngine, theta: Weights, step: Step) -> list[float]:
    """Relative errors of the gradient and of all its products."""
    u = {
        name: torch.randn(w.shape[::-1]).to(w).permute(*range(w.ndim)[::-1])
        for name, w in theta.items()
    }
    made, expected = fast.record(theta, step), plain.record(theta, step)
    found = [relative_error(made.values[name], own) for name, own in expected.values.items()]
    ours, theirs = made.products(u), expected.products(u)
    found += [relative_error(ours.weights[name], own) for name, own in theirs.weights.items()]
    found.append(relative_error(ours.inputs, theirs.inputs))
    if step.labels.is_floating_point():
        found.append(relative_error(ours.labels, theirs.labels))
    return found


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("networks", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_and_their_products_are_those_of_autograd(
    name: str, networks: int, own: bool, soft: bool
) -> None:
    fast, plain = engines(name)
    assert in_c(fast)
    theta = several(fast.network, networks)
    step = a_step(fast, networks, own=own, soft=soft)
    assert max(differences(fast, plain, theta, step)) < 1e-10
    with torch.no_grad():
        found, expected = fast.gradient(theta, step), plain.gradient(theta, step)
    assert all(relative_error(found[n], one) < 1e-10 for n, one in expected.items())


@pytest.mark.parametrize("images", [1, 10, 17])
def test_so_are_they_in_single_precision_up_to_rounding(images: int) -> None:
    """LeNet at its size, as vectors of other lengths compute it."""
    fast, plain = engines("lenet", torch.float32)
    step = a_step(fast, 2, own=True, soft=True, images=images)
    assert max(differences(fast, plain, several(fast.network, 2), step)) < 1e-4


def test_an_attack_descends_the_same_loss_on_distilled_data() -> None:
    fast, plain = engines("lenet", objective=Poisoning(0, 1))
    assert in_c(fast)
    theta, step = several(fast.network, 2), a_step(fast, 2, own=False, soft=False)
    assert max(differences(fast, plain, theta, step)) < 1e-10


class Halved(Classification, name="halved"):
    """A user's own inner loss."""

    def inner_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(outputs, labels) / 2


@pytest.mark.parametrize("objective", [Halved(), Regression()])
def test_other_losses_are_left_to_autograd(objective: Objective) -> None:
    fast, _ = engines("mlp", objective=objective)
    assert not in_c(fast)


def test_so_are_other_layers_a_single_output_and_what_may_not_use_kernels() -> None:
    residual = Network(Residual(), torch.randn(2, 2, 7, 7))
    single = Network(models.Linear(2, 7, 1), torch.randn(2, 2, 7, 7))
    assert not any(in_c(FastEngine(one, Classification())) for one in (residual, single))
    with using("torch"):
        assert not in_c(engines("lenet")[0])


def test_what_is_known_of_a_network_is_gone_with_it() -> None:
    fast, _ = engines("mlp")
    assert in_c(fast)
    layers = weakref.ref(fast.vectorised.stacked)
    del fast, _
    gc.collect()
    assert layers() is None


def test_tensors_of_another_shape_are_refused_rather_than_read_beyond_their_ends() -> None:
    fast, _ = engines("mlp")
    step = a_step(fast, 2, own=True, soft=False)
    theta = several(fast.network, 2)
    with torch.no_grad(), pytest.raises(ValueError, match="other weights"):
        fast.gradient(theta, step._replace(inputs=step.inputs[..., :-1]))
    name = next(iter(theta))
    with torch.no_grad(), pytest.raises(ValueError, match="other weights"):
        fast.gradient({**theta, name: theta[name][..., :-1]}, step)
    with torch.no_grad(), pytest.raises(ValueError, match="labels"):
        fast.gradient(theta, step._replace(labels=step.labels[:, :-1]))
