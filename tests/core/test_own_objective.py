"""Users' own objectives: what they may be, and that they are computed as written."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from datadistill import models
from datadistill.core.distiller import Distiller
from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.network import Network
from datadistill.core.objective import Classification, Objective, OwnObjective
from datadistill.core.settings import DistillerConfig
from datadistill.engine import FastEngine
from datadistill.errors import ConfigError, DataError

THREE = torch.Size([3])
LABELS = torch.arange(30) % 3


def weighted(logits: Tensor, labels: Tensor) -> Tensor:
    """Divided by the sum of the batch's weights: not a mean over examples."""
    return F.cross_entropy(logits, labels, weight=torch.tensor([1.0, 2.0, 50.0]).to(logits))


def test_a_loss_that_is_no_mean_is_computed_on_the_whole_minibatch() -> None:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(600, 1, 28, 28, generator=random, dtype=torch.float64)
    labels = torch.randint(3, (600,), generator=random)
    labels[:30] = LABELS
    network = Network(models.Linear(classes=3).double(), inputs)
    objective, config = OwnObjective.of(weighted), DistillerConfig(networks=2)
    fast = FastEngine(network, objective)
    distiller = Distiller(network, RandomInit(), objective, config, own_engine=fast)
    state = distiller.init(inputs.shape[1:], labels)
    losses, gradient = distiller.gradient(state, (inputs, labels))
    leaves = {n: t.clone().requires_grad_() for n, t in state.parameters.items()}
    theta0 = RandomInit().sample(network, networks_for(0, "network", range(2)))
    expected = torch.stack([unrolled(leaves, theta0, j, inputs, labels) for j in range(2)])
    torch.testing.assert_close(losses, expected.detach(), rtol=1e-12, atol=0)
    expected.mean().backward()
    for name, found in gradient.items():
        torch.testing.assert_close(found, leaves[name].grad, rtol=1e-9, atol=1e-14)


def unrolled(
    leaves: dict[str, Tensor], theta0: dict[str, Tensor], j: int, inputs: Tensor, labels: Tensor
) -> Tensor:
    """Three plain updates of a linear network, then the loss: an independent computation."""
    w, b = (theta0[name][j].clone().requires_grad_() for name in ("fc.weight", "fc.bias"))
    images, rates = leaves["inputs"][0].flatten(1), F.softplus(leaves["raw_rates"])
    for rate in rates[:, 0]:
        inner = F.cross_entropy(images @ w.T + b, torch.arange(3))
        of_w, of_b = torch.autograd.grad(inner, [w, b], create_graph=True)
        w, b = w - rate * of_w, b - rate * of_b
    return weighted(inputs.flatten(1) @ w.T + b, labels)


def test_the_learner_and_the_metric_stay_as_they_are() -> None:
    own, usual = OwnObjective.of(weighted), Classification()
    outputs = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(own.inner_loss(outputs, LABELS), usual.inner_loss(outputs, LABELS))
    assert torch.equal(own.score(outputs, LABELS), usual.score(outputs, LABELS))
    assert torch.equal(own.outer_loss(outputs, LABELS), weighted(outputs, LABELS))
    own.check(THREE, LABELS, complete=True)


def not_scalar(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none")


def constant(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(1) == labels).float().mean()


def not_finite(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.log().mean()


def branching(logits: Tensor, labels: Tensor) -> Tensor:
    loss = F.cross_entropy(logits, labels)
    return loss if float(loss.detach()) > 1 else 2 * loss


def a_number(logits: Tensor, labels: Tensor) -> float:
    return float(logits.detach().mean())


def broken(logits: Tensor, labels: Tensor) -> Tensor:
    raise ValueError("no such thing\nand more")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (not_scalar, r"returns \(30,\), not a single"),
        (constant, "does not depend on the logits"),
        (not_finite, "not finite"),
        (branching, "side by side"),
        (a_number, "returns float"),
        (broken, "raised ValueError: no such thing$"),
    ],
)
def test_a_function_that_is_no_loss_is_refused(function: object, message: str) -> None:
    objective = OwnObjective.of(function)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError) as caught:
        objective.check(THREE, LABELS, complete=True)
    assert caught.match(f"(?m){message}")
    assert "test_own_objective:" in caught.value.what
    assert str(caught.value).count("\n") == 1


def test_labels_are_checked_as_for_classification() -> None:
    with pytest.raises(DataError, match="no example of class 2"):
        OwnObjective.of(weighted).check(THREE, torch.tensor([0, 1]), complete=True)


def test_an_artefact_knows_its_name_alone_and_runs_no_code() -> None:
    record = {"name": "own-loss", "function": "no.such.module:function"}
    named = Objective.from_record(record)
    assert named.record() == record
    assert named.text == "no.such.module:function"
    outputs = torch.randn(30, 3)
    assert torch.isnan(named.outer_loss(outputs, LABELS))
    assert torch.isfinite(named.inner_loss(outputs, LABELS))
