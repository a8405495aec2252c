"""Recurrent layers and attention in a user's own module: twice differentiable, state untouched."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from datadistill.core.network import Network
from tests.models.helpers import ATTENTION, RECURRENT, Attention, Recurrent, problem

ROWS = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


def settings() -> dict[str, bool]:
    """What torch chooses its kernels by, for the whole process."""
    return {
        "math": torch.backends.cuda.math_sdp_enabled(),
        "flash": torch.backends.cuda.flash_sdp_enabled(),
        "efficient": torch.backends.cuda.mem_efficient_sdp_enabled(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "cudnn": bool(torch.backends.cudnn.enabled),
    }


class Spy(nn.Module):
    """Notes the settings within its forward pass."""

    def __init__(self, *, recurrent: bool = False, fails: bool = False) -> None:
        super().__init__()
        self.fc = Recurrent(nn.GRU(8, 3, batch_first=True)) if recurrent else Attention()
        self.fails = fails
        self.seen: list[dict[str, bool]] = []

    def __deepcopy__(self, memory: dict[int, object]) -> "Spy":
        return self

    def forward(self, rows: Tensor) -> Tensor:
        self.seen.append(settings())
        if self.fails:
            raise ArithmeticError
        return self.fc(rows)


def test_the_kernels_of_attention_are_plain_within_the_forward_pass_alone() -> None:
    before, spy = settings(), Spy()
    network = Network(spy, ROWS)
    network(network.stack([network.weights] * 2), ROWS)
    plain = {"math": True, "flash": False, "efficient": False, "fast path": False}
    assert spy.seen
    assert all(seen == {**plain, "cudnn": before["cudnn"]} for seen in spy.seen)
    assert settings() == before


def test_cudnn_is_off_for_recurrent_layers_alone() -> None:
    before, spy = settings(), Spy(recurrent=True)
    Network(spy, ROWS)
    assert before["cudnn"]
    assert spy.seen
    assert not any(seen["cudnn"] for seen in spy.seen)
    assert settings() == before


def test_settings_of_the_user_come_back_even_after_an_error() -> None:
    spy = Spy()
    network = Network(spy, ROWS)
    spy.fails = True
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            before = settings()
            with pytest.raises(ArithmeticError):
                network(network.stack([network.weights]), ROWS)
            assert settings() == before
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_threads_whose_forward_passes_overlap_leave_the_settings_as_they_were() -> None:
    before = settings()
    entered, left = threading.Event(), threading.Event()

    class First(Spy):
        waits = False

        def forward(self, rows: Tensor) -> Tensor:
            if self.waits:
                entered.set()
                assert left.wait(30)
            return super().forward(rows)

    slow, quick = First(), Spy()
    networks = Network(slow, ROWS), Network(quick, ROWS)
    slow.waits = True
    thread = threading.Thread(
        target=lambda: networks[0](networks[0].stack([networks[0].weights]), ROWS)
    )
    thread.start()
    assert entered.wait(30)
    networks[1](networks[1].stack([networks[1].weights]), ROWS)
    left.set()  # the first to enter leaves last, and still computes by plain kernels
    thread.join()
    assert not slow.seen[-1]["flash"]
    assert settings() == before


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_is_computed_for_all_networks_at_once(name: str) -> None:
    assert problem(name).network.side_by_side


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_are_computed_network_by_network(name: str) -> None:
    case = problem(name, networks=3)
    assert not case.network.side_by_side
    assert case.network(case.theta0, case.batch[0]).shape == (3, 4, 3)


def test_a_network_stays_copyable_after_its_recurrent_layers_were_used() -> None:
    case = problem("lstm")
    weights = {n: w.clone().requires_grad_() for n, w in case.theta0.items()}
    case.outer_loss(weights).sum().backward()
    one = {n: w[1] for n, w in case.theta0.items()}
    torch.testing.assert_close(dict(case.network.module(one).named_parameters()), one)


def test_attention_by_plain_kernels_is_the_fused_attention() -> None:
    network = Network(Attention(), ROWS)
    module = network.module()
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        fused = module(ROWS)
    torch.testing.assert_close(network(network.stack([network.weights]), ROWS)[0], fused)
    query = torch.randn(1, 2, 5, 4, requires_grad=True)
    attended = F.scaled_dot_product_attention(query, query, query)
    (gradient,) = torch.autograd.grad(attended.sum(), query, create_graph=True)
    with pytest.raises(RuntimeError, match="not implemented"):  # which is why it is not taken
        gradient.sum().backward()
