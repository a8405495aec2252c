"""Ordinary training in place: the numbers of torch.optim.Adam, without its start-up."""

import subprocess
import sys

import torch

from datadistill.core.distilled import Step
from datadistill.core.network import Weights
from datadistill.engine.in_place import InPlaceAdam


def test_it_gives_the_numbers_of_torch_optim_adam() -> None:
    random = torch.Generator().manual_seed(0)
    shapes = {"kernel": (2, 3, 4), "bias": (2, 3), "scale": (2,)}

    def draw() -> Weights:
        return {n: torch.randn(s, generator=random).double() for n, s in shapes.items()}

    theta0, gradients, rates = draw(), [draw() for _ in range(6)], torch.rand(6).double()
    before = {name: w.clone() for name, w in theta0.items()}
    rule = InPlaceAdam((0.8, 0.95))
    learner = rule.start(theta0)
    expected = {name: w.clone().requires_grad_() for name, w in theta0.items()}
    optimizer = torch.optim.Adam([*expected.values()], betas=(0.8, 0.95))
    for g, rate in zip(gradients, rates, strict=True):
        with torch.no_grad():
            learner = rule.update(learner, g, Step(rate, rate, rate.expand(2)))
        optimizer.param_groups[0]["lr"] = float(rate)
        for name, w in expected.items():
            w.grad = g[name]
        optimizer.step()
    for name, w in expected.items():
        assert torch.equal(learner.weights[name], w)
        assert torch.equal(theta0[name], before[name])  # the initial weights stay


def test_it_does_not_import_the_compiler_of_torch() -> None:
    program = """
import sys, torch
from datadistill.core.distilled import Step
from datadistill.engine.in_place import InPlaceAdam
w = {"w": torch.ones(1, 2)}
rule = InPlaceAdam()
with torch.no_grad():
    rule.update(rule.start(w), w, Step(w["w"], w["w"], torch.ones(1)))
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
