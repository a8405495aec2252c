"""The reference: the authors' published algorithm in eager PyTorch, written to be measured against.

Networks one after another; each update's gradient with its graph kept; then the reverse sweep,
with one vector-Jacobian product a step, which frees that step's graph. Only the data, the numbered
random streams and the shape of the schedule are the library's, so that both sides see the same.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from datadistill.core.distilled import Steps, class_labels, noise, raw_of
from datadistill.core.initialization import networks_for
from datadistill.core.network import Weights
from datadistill.runs.config import RunConfig
from datadistill.runs.distillation import Distillation

OUTER_LR, BETAS, DECAY, DECAY_PASSES = 0.01, (0.5, 0.999), 0.5, 40
FIRST_RATE = 0.02


def gradient(
    module: nn.Module, networks: Iterable[Weights], steps: Steps, batch: tuple[Tensor, Tensor]
) -> tuple[Tensor, Steps]:
    """The losses (J,) after all updates, and the gradient of their mean; that of labels is 0.

    Args:
        module: The architecture.
        networks: The initial weights of each network.
        steps: The distilled data.
        batch: The minibatch of real data.
    """
    inputs = [one.detach().requires_grad_() for one in steps.inputs]
    total = Steps(
        torch.zeros_like(steps.inputs),
        torch.zeros_like(steps.labels),
        torch.zeros_like(steps.learning_rates),
    )
    losses = [_one_network(module, theta0, inputs, steps, batch, total) for theta0 in networks]
    total.inputs.div_(len(losses))
    total.learning_rates.div_(len(losses))
    return torch.stack(losses), total


def _one_network(
    module: nn.Module,
    theta0: Weights,
    inputs: list[Tensor],
    steps: Steps,
    batch: tuple[Tensor, Tensor],
    total: Steps,
) -> Tensor:
    """The loss of one network; adds its gradient to ``total``."""
    names, rates = list(theta0), steps.learning_rates.tolist()
    theta = tuple(w.detach().requires_grad_() for w in theta0.values())

    def loss(theta: tuple[Tensor, ...], inputs: Tensor, labels: Tensor) -> Tensor:
        weights = dict(zip(names, theta, strict=True))
        return F.cross_entropy(functional_call(module, weights, (inputs,)), labels)

    trail: list[tuple[tuple[Tensor, ...], tuple[Tensor, ...]]] = []
    for e, s in steps.schedule:
        inner = loss(theta, inputs[s], steps.labels[s])
        descent = torch.autograd.grad(inner, theta, create_graph=True, materialize_grads=True)
        trail.append((theta, descent))
        with torch.no_grad():
            theta = tuple(w - rates[e][s] * g for w, g in zip(theta, descent, strict=True))
        theta = tuple(w.requires_grad_() for w in theta)

    outer = loss(theta, *batch)
    v = torch.autograd.grad(outer, theta, materialize_grads=True)
    for e, s in reversed(steps.schedule):
        theta, descent = trail.pop()
        with torch.no_grad():
            slope = sum((a * b).sum() for a, b in zip(v, descent, strict=True))
            total.learning_rates[e, s] -= slope
        pulled = [(g, -rates[e][s] * a) for g, a in zip(descent, v, strict=True) if g.requires_grad]
        *curved, pixels = torch.autograd.grad(
            [g for g, _ in pulled],
            [*theta, inputs[s]],
            [a for _, a in pulled],
            materialize_grads=True,
        )
        total.inputs[s] += pixels
        v = tuple(a + b for a, b in zip(v, curved, strict=True))
    return outer.detach()


def sampled(distillation: Distillation, outer_step: int) -> Iterable[Weights]:
    """The networks of an outer step, those that the library's distiller draws."""
    distiller, count = distillation.distiller, distillation.distiller.networks
    numbers = range(outer_step * count, (outer_step + 1) * count)
    generators = networks_for(distillation.config.seed, "network", numbers)
    stacked = distiller.initialization.sample(distillation.network, generators)
    return ({name: w[j] for name, w in stacked.items()} for j in range(count))


def paper_settings(config: RunConfig) -> RunConfig:
    """The same experiment with the paper's minibatch and networks, all threads, and no end."""
    networks = 1 if config.initialization == "fixed" else 4
    return replace(config, batch_size=1024, networks=networks, threads=None, iterations=10**9)


class ReferenceRun:
    """The whole distillation by the paper's schedule.

    Adam with learning rate 0.01 and betas (0.5, 0.999), halved every 40 passes; images from noise,
    learning rates from 0.02.

    Args:
        distillation: The data, the network and its initialization, prepared with the
            :func:`paper_settings`. Its outer schedule is not used.

    Attributes:
        outer_step: How many outer steps are done.
    """

    def __init__(self, distillation: Distillation) -> None:
        config, network = distillation.config, distillation.network
        self.outer_step = 0
        self._distillation = distillation
        self._module = network.module()
        self._labels = class_labels(config.steps, network.outputs[0], config.images_per_class)
        shape = (*self._labels.shape, *distillation.data.input_shape)
        rates = raw_of(torch.full((config.epochs, config.steps), FIRST_RATE, dtype=torch.float64))
        self._inputs = nn.Parameter(noise(config.seed, shape).to(network.dtype))
        self._raw_rates = nn.Parameter(rates.float().to(network.dtype))
        self._adam = torch.optim.Adam([self._inputs, self._raw_rates], OUTER_LR, BETAS)
        passes = len(distillation.data) / min(config.batch_size, len(distillation.data))
        self._decay = torch.optim.lr_scheduler.StepLR(
            self._adam, math.ceil(DECAY_PASSES * passes), DECAY
        )

    gradient = staticmethod(gradient)

    @property
    def distilled(self) -> Steps:
        """The distilled data as they stand."""
        rates = F.softplus(self._raw_rates.detach())
        return Steps(self._inputs.detach(), self._labels, rates)

    def step(self) -> float:
        """Makes one outer step; returns its loss."""
        batch = self._distillation.batch(self.outer_step)
        networks = sampled(self._distillation, self.outer_step)
        losses, found = self.gradient(self._module, networks, self.distilled, batch)
        self._inputs.grad = found.inputs
        self._raw_rates.grad = found.learning_rates * self._raw_rates.detach().sigmoid()
        optimise: Any = self._adam.step
        optimise()
        self._decay.step()
        self.outer_step += 1
        return float(losses.mean())
