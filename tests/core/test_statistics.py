"""Running statistics of trained networks, against those that torch measures itself."""

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from datadistill.core.initialization import RandomInit, networks_for
from datadistill.core.network import Network

RANDOM = torch.Generator().manual_seed(0)
BATCHES = torch.randn(3, 8, 1, 6, 6, generator=RANDOM, dtype=torch.float64) + 0.5
NORMS = {
    "batch": nn.BatchNorm2d(3),
    "batch, cumulative": nn.BatchNorm2d(3, momentum=None),
    "batch, without scales": nn.BatchNorm2d(3, affine=False),
}


def normalised(norm: nn.Module) -> nn.Module:
    body = nn.Sequential(nn.Conv2d(1, 3, 3), norm, nn.Tanh(), nn.Dropout())
    return nn.Sequential(body, nn.Flatten(), nn.Linear(48, 4)).double()


def stacked(network: Network, networks: int) -> dict[str, Tensor]:
    return RandomInit("he-normal").sample(network, networks_for(0, "network", range(networks)))


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_each_network_has_the_statistics_that_torch_measures(norm: nn.Module) -> None:
    module = normalised(norm)
    network = Network(module, BATCHES[0])
    weights = stacked(network, 3)
    statistics = network.statistics(weights, BATCHES)
    for j in range(3):
        module.load_state_dict({n: w[j] for n, w in weights.items()}, strict=False)
        module.train()
        module[0][3].p = 0.0  # pyright: ignore[reportIndexIssue, reportAttributeAccessIssue]
        update_bn(BATCHES, module)
        expected = {n: b for n, b in module.named_buffers() if n.startswith("0.1")}
        assert {*statistics} == {*expected}
        for name, value in expected.items():
            torch.testing.assert_close(statistics[name][j], value)


def test_networks_use_statistics_that_come_with_their_weights() -> None:
    module = normalised(nn.BatchNorm2d(3))
    network = Network(module, BATCHES[0])
    weights = stacked(network, 2)
    usable = {**weights, **network.statistics(weights, BATCHES)}
    together = network(usable, BATCHES[0])
    each = torch.cat([network(usable, one) for one in BATCHES[0].split(1)], dim=1)
    torch.testing.assert_close(each, together)
    plain = network.module({n: w[1] for n, w in usable.items()})
    assert not plain.training
    torch.testing.assert_close(plain(BATCHES[0]), together[1])
    module.load_state_dict(plain.state_dict(), strict=True)
    torch.testing.assert_close(module.eval()(BATCHES[0]), together[1])
    # Without them the batch's own are used, before and after.
    assert not torch.allclose(network(weights, BATCHES[0]), together)
    assert network.module().state_dict().keys() == network.weights.keys()


def test_instances_are_normalised_by_running_statistics_where_the_layer_keeps_some() -> None:
    norm = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
    network = Network(normalised(norm), BATCHES[0])
    weights = stacked(network, 1)
    usable = {**weights, **network.statistics(weights, BATCHES)}
    maps = network.module({n: w[0] for n, w in weights.items()})[0][0](BATCHES.flatten(0, 1))  # pyright: ignore
    torch.testing.assert_close(usable["0.1.running_mean"][0], maps.mean((0, 2, 3)))
    plain = network.module({n: w[0] for n, w in usable.items()})
    torch.testing.assert_close(network(usable, BATCHES[0])[0], plain(BATCHES[0]))
    assert not torch.allclose(network(weights, BATCHES[0]), network(usable, BATCHES[0]))


@pytest.mark.parametrize(
    "norm", [nn.GroupNorm(1, 3), nn.InstanceNorm2d(3), nn.BatchNorm2d(3, track_running_stats=False)]
)
def test_layers_that_keep_no_statistics_get_none(norm: nn.Module) -> None:
    network = Network(normalised(norm), BATCHES[0])
    assert not network.keeps_statistics
    assert network.statistics(stacked(network, 2), BATCHES) == {}


def test_without_batches_there_are_no_statistics() -> None:
    network = Network(normalised(nn.BatchNorm2d(3)), BATCHES[0])
    assert network.statistics(stacked(network, 2), []) == {}
