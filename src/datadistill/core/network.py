"""Any ``nn.Module`` as a pure function of stacked weights: J networks side by side."""

import copy
import warnings
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.func import vmap

from ..errors import ModelError, first_line
from .pure_module import PureModule, Weights

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs, labels) of one network → a scalar."""


class Network:
    """An architecture as a pure function of the weights of J networks.

    The module is copied; the original is never touched. Dropout is off, and normalisation
    layers use the statistics of the batch, unless the weights come with running statistics, as
    :meth:`statistics` gives them. Frozen parameters (``requires_grad=False``) and
    buffers are constants that all J networks share; everything else is a weight.

    Args:
        module: The architecture. Weights may be shared, unused, frozen, of several dtypes.
        example: A few inputs on which the module is tried once: one that is not pure, not
            twice differentiable or does not take such inputs is refused here.
        device: Where to compute; the module's own device by default.
        dtype: What to compute in; the module's own dtypes by default.

    Attributes:
        weights: The module's own trainable weights, without the axis of networks.
        constants: Frozen parameters and buffers.
        outputs: The shape of the output for one input.
        side_by_side: Whether the networks are computed by one vectorised pass. A module
            that cannot be vectorised is computed network by network, with the same result.
        device: Where the weights are.
        dtype: The floating-point type of inputs.
        example: Two of the inputs on which it was tried.
    """

    def __init__(
        self,
        module: nn.Module,
        example: Tensor,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._pure = PureModule(module, device=device, dtype=dtype)
        self.name, self.weights = self._pure.name, self._pure.weights
        self.constants, self.recurrent = self._pure.constants, self._pure.recurrent
        first = next(iter(self.weights.values()))
        self.device, self.dtype = first.device, first.dtype
        self.example = example[:2].to(self.device, self.dtype)
        self.outputs = self._pure.check(self.example)
        self.side_by_side = self._check_twice_differentiable(self.example)

    def __repr__(self) -> str:
        count = sum(weight.numel() for weight in self.weights.values())
        shapes = f"{tuple(self.example.shape[1:])} → {tuple(self.outputs)}"
        return f"<Network {self.name}: {count:,} weights, {shapes}, {self.dtype}, {self.device}>"

    def __call__(self, weights: Weights, inputs: Tensor) -> Tensor:
        """Returns the outputs (J, N, …) of J networks for the same N inputs."""
        return self._for_each(lambda one: self._pure(one, inputs), weights)

    def losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x, θ_j) for each of J networks, shape (J,)."""
        return self._for_each(lambda one: loss(self._pure(one, inputs), labels), weights)

    def own_losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x_j, θ_j), each network on inputs (J, N, …) and labels of its own."""

        def one(weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
            return loss(self._pure(weights, inputs), labels)

        if self.side_by_side and len(inputs) > 1:
            return vmap(one)(weights, inputs, labels)
        own = zip(unstacked(weights), inputs, labels, strict=True)
        return torch.stack([one(*each) for each in own])

    def stack(self, networks: list[Weights]) -> Weights:
        """Stacks the weights of single networks along axis 0, on the network's device."""
        return {
            name: torch.stack([one[name] for one in networks]).to(own.device, own.dtype)
            for name, own in self.weights.items()
        }

    def module(self, weights: Weights | None = None) -> nn.Module:
        """Returns a plain copy of the module with the given weights of one network."""
        weights = weights or self.weights
        module = copy.deepcopy(self._pure.module)
        named = dict(module.named_parameters())
        with torch.no_grad():
            for name in self.weights:
                named[name].copy_(weights[name])
        self._pure.running.put_into(module, weights)
        return module

    @property
    def keeps_statistics(self) -> bool:
        """Whether the module has layers that normalise by running statistics once it is trained."""
        return bool(self._pure.running.layers)

    @torch.no_grad()
    def statistics(self, weights: Weights, batches: Iterable[Tensor]) -> Weights:
        """Measures the running statistics of J trained networks.

        Args:
            weights: The stacked weights.
            batches: Inputs (N, …) whose statistics are averaged, batch by batch; iterated over
                once for every network. Without any, there are no statistics.

        Returns:
            Statistics (J, …) by the names of the module's buffers, to go with the weights; empty
            where the module keeps none.
        """
        if not self.keeps_statistics:
            return {}
        each = [self._measured(one, batches) for one in unstacked(weights)]
        return {name: torch.stack([one[name] for one in each]) for name in each[0]}

    def _measured(self, weights: Weights, batches: Iterable[Tensor]) -> Weights:
        found = self._pure.running.empty(next(iter(weights.values())))
        measured = False
        for batch in self._pure.running.measuring(batches):
            self._pure({**weights, **found}, batch)
            measured = True
        return found if measured else {}

    def bare(self, given: Weights, inputs: Tensor) -> Tensor:
        """Outputs of one network by all its tensors, for callers in ``twice_differentiable``."""
        return self._pure.bare(given, inputs)

    def _for_each(self, one: Callable[[Weights], Tensor], weights: Weights) -> Tensor:
        networks = len(next(iter(weights.values())))
        if self.side_by_side and networks > 1:  # one network gains nothing from vmap
            return vmap(one)(weights)
        return torch.stack([one(own) for own in unstacked(weights)])

    def _check_twice_differentiable(self, example: Tensor) -> bool:
        """Tries a second derivative; returns whether it works for J networks at once."""
        stacked = self.stack([self.weights] * 2)
        self.side_by_side = False
        try:
            self._second_derivative(stacked, example)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"{self.name} has no second derivative: {first_line(error)}",
                "Distillation differentiates through gradient steps: replace the operation named.",
            ) from error
        self.side_by_side = True
        try:
            with warnings.catch_warnings():
                # Without a batching rule vmap is slower than network by network.
                warnings.filterwarnings("error", message="There is a performance drop")
                self._second_derivative(stacked, example)
        except Exception:
            return False
        return True

    def _second_derivative(self, weights: Weights, example: Tensor) -> None:
        weights = {name: w.detach().requires_grad_() for name, w in weights.items()}
        inputs = example.detach().requires_grad_()
        outputs = self(weights, inputs)
        if not outputs.requires_grad:
            raise ModelError(
                f"The outputs of {self.name} do not depend on its trainable weights.",
                "Look for .detach(), torch.no_grad() or .data in its forward pass.",
            )
        leaves = [*weights.values()]
        gradients = torch.autograd.grad(
            outputs.square().mean(), leaves, create_graph=True, materialize_grads=True
        )
        square = sum((g.square().sum() for g in gradients), start=outputs.sum() * 0)
        # Not autograd.grad, which goes only where inputs are asked for and so never meets the
        # error that a once-differentiable function has put at the end of its path.
        square.backward()


def unstacked(weights: Weights) -> list[Weights]:
    """The weights of each of J networks by itself."""
    # Of unbind, the gradient is one stack; of an index, zeros as large as all networks.
    each = zip(*(w.unbind() for w in weights.values()), strict=True)
    return [dict(zip(weights, own, strict=True)) for own in each]
