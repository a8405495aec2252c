import torch

from datadistill.core.optimizer import adam, adam_init


def test_adam_is_torch_adam() -> None:
    random = torch.Generator().manual_seed(0)
    start = {"a": torch.randn(3, 4, generator=random, dtype=torch.float64), "b": torch.zeros(2)}
    parameters, state = dict(start), adam_init(start)
    theirs = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimizer = torch.optim.Adam(theirs.values(), lr=0.01, betas=(0.5, 0.999))
    for _ in range(20):
        gradient = {n: torch.randn(p.shape, generator=random).to(p) for n, p in start.items()}
        parameters, state = adam(parameters, gradient, state, 0.01, (0.5, 0.999))
        for name, leaf in theirs.items():
            leaf.grad = gradient[name]
        optimizer.step()
    assert state.count == 20
    for name, leaf in theirs.items():
        torch.testing.assert_close(parameters[name], leaf.detach(), rtol=1e-6, atol=1e-9)


def test_adam_changes_nothing_it_is_given() -> None:
    parameters = {"a": torch.ones(2)}
    state = adam_init(parameters)
    adam(parameters, {"a": torch.ones(2)}, state, 0.1, (0.9, 0.999))
    assert torch.equal(parameters["a"], torch.ones(2))
    assert torch.equal(state.first["a"], torch.zeros(2))
