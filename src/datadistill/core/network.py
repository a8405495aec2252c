"""Any ``nn.Module`` as a pure function of stacked weights: J networks side by side."""

import copy
import warnings
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.parameter import is_lazy

from ..errors import ModelError
from .attention import twice_differentiable
from .statistics import RunningStatistics

Weights = dict[str, Tensor]
"""Named weights with a leading axis of J networks."""

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
        self.name = type(module).__name__
        self._module = _pure_copy(module, self.name).to(device=device, dtype=dtype)
        self._running = RunningStatistics(self._module)
        self.recurrent = any(isinstance(layer, nn.RNNBase) for layer in module.modules())
        self._aliases = _aliases(self._module)
        named = dict(self._module.named_parameters())
        self.weights: Weights = {n: p.detach() for n, p in named.items() if p.requires_grad}
        self.constants: Weights = {
            **{n: p.detach() for n, p in named.items() if not p.requires_grad},
            **dict(self._module.named_buffers()),
        }
        if not self.weights:
            raise ModelError(
                f"{self.name} has no trainable weights.",
                "Distillation trains a network: unfreeze at least one parameter.",
            )
        first = next(iter(self.weights.values()))
        self.device, self.dtype = first.device, first.dtype
        self.example = example[:2].to(self.device, self.dtype)
        self.outputs = self._check_pure(self.example)
        self.side_by_side = self._check_twice_differentiable(self.example)

    def __repr__(self) -> str:
        count = sum(weight.numel() for weight in self.weights.values())
        shapes = f"{tuple(self.example.shape[1:])} → {tuple(self.outputs)}"
        return f"<Network {self.name}: {count:,} weights, {shapes}, {self.dtype}, {self.device}>"

    def __call__(self, weights: Weights, inputs: Tensor) -> Tensor:
        """Returns the outputs (J, N, …) of J networks for the same N inputs."""
        return self._for_each(lambda one: self._forward(one, inputs), weights)

    def losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x, θ_j) for each of J networks, shape (J,)."""
        return self._for_each(lambda one: loss(self._forward(one, inputs), labels), weights)

    def own_losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x_j, θ_j), each network on inputs (J, N, …) and labels of its own."""

        def one(weights: Weights, inputs: Tensor, labels: Tensor) -> Tensor:
            return loss(self._forward(weights, inputs), labels)

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
        module = copy.deepcopy(self._module)
        named = dict(module.named_parameters())
        with torch.no_grad():
            for name in self.weights:
                named[name].copy_(weights[name])
        self._running.put_into(module, weights)
        return module

    @property
    def keeps_statistics(self) -> bool:
        """Whether the module has layers that normalise by running statistics once it is trained."""
        return bool(self._running.layers)

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
        found = self._running.empty(next(iter(weights.values())))
        measured = False
        for batch in self._running.measuring(batches):
            self._forward({**weights, **found}, batch)
            measured = True
        return found if measured else {}

    def _forward(self, weights: Weights, inputs: Tensor) -> Tensor:
        return self._apply({**self.constants, **weights}, inputs)

    def _apply(self, given: Weights, inputs: Tensor) -> Tensor:
        with twice_differentiable(recurrent=self.recurrent):
            return self.bare(given, inputs)

    def bare(self, given: Weights, inputs: Tensor) -> Tensor:
        """Outputs of one network by all its tensors, for callers in ``twice_differentiable``."""
        given.update({alias: given[name] for alias, name in self._aliases.items()})
        self._running.use(given)
        return functional_call(self._module, given, (inputs,), tie_weights=False)

    def _for_each(self, one: Callable[[Weights], Tensor], weights: Weights) -> Tensor:
        networks = len(next(iter(weights.values())))
        if self.side_by_side and networks > 1:  # one network gains nothing from vmap
            return vmap(one)(weights)
        return torch.stack([one(own) for own in unstacked(weights)])

    def _check_pure(self, example: Tensor) -> torch.Size:
        """Refuses a module whose forward pass is not a function of weights and inputs."""
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=_cuda_devices(self.device)),
            warnings.catch_warnings(),
        ):
            # Said once in a process, about speed alone.
            warnings.filterwarnings("ignore", message="LSTM with projections is not supported")
            before = _random_state(self.device)
            try:
                outputs = self._forward(self.weights, example)
            except Exception as error:
                raise ModelError(
                    f"{self.name} raised {type(error).__name__} on inputs of shape "
                    f"{tuple(example.shape)}: {_first_line(error)}",
                    "Give it inputs of the shape it was made for, or make it for these.",
                ) from error
            self._check_outputs(outputs, example)
            if not torch.equal(before, _random_state(self.device)):
                raise ModelError(
                    f"{self.name} draws random numbers in its forward pass.",
                    "Distillation differentiates a pure function: make the random part a "
                    "torch.nn.Dropout layer, or a function that is off in eval mode.",
                )
            self._check_buffers(example)
            again = self._forward(self.weights, example)
        if not torch.allclose(outputs, again, rtol=1e-3, atol=1e-5, equal_nan=True):
            raise ModelError(
                f"{self.name} gives two different outputs for the same weights and inputs.",
                "Remove what its forward pass remembers or draws at random.",
            )
        return outputs.shape[1:]

    def _check_outputs(self, outputs: object, example: Tensor) -> None:
        if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
            kind = outputs.dtype if isinstance(outputs, Tensor) else type(outputs).__name__
            raise ModelError(
                f"{self.name} returns {kind}, not a floating-point tensor.",
                "Wrap it in a module that returns the logits alone.",
            )
        if outputs.ndim < 2 or len(outputs) != len(example):
            raise ModelError(
                f"{self.name} turns {len(example)} inputs into an output of shape "
                f"{tuple(outputs.shape)}.",
                "It must return one row of outputs per input: shape (inputs, classes).",
            )

    def _check_buffers(self, example: Tensor) -> None:
        """Refuses buffers that the forward pass changes, in eval or in training mode."""
        for training in (False, True):
            constants = {name: value.clone() for name, value in self.constants.items()}
            given = {**constants, **self.weights}
            versions = {name: value._version for name, value in constants.items()}
            try:
                self._module.train(training)
                self._apply(given, example)
            except Exception:
                if not training:
                    raise
                # Only eval mode is ever used: training mode may raise as it likes.
            finally:
                self._module.eval()
            for name, value in constants.items():
                # functional_call writes a buffer that was rebound back into `given`.
                if given[name] is not value or value._version != versions[name]:
                    raise ModelError(
                        f"{self.name} changes its buffer {name!r} in the forward pass.",
                        "Distillation differentiates a pure function: make the buffer constant, "
                        "or use a torch.nn normalisation layer, whose batch statistics are used.",
                    )

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
                f"{self.name} has no second derivative: {_first_line(error)}",
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


def _pure_copy(module: nn.Module, name: str) -> nn.Module:
    """Copies a module, with dropout off."""
    for key, value in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(value):
            raise ModelError(
                f"The parameter {key!r} of {name} has no shape yet (a lazy layer).",
                "Call the module once on a batch of inputs first, e.g. in its constructor.",
            )
    try:
        module = copy.deepcopy(module)
    except Exception as error:
        raise ModelError(
            f"{name} cannot be copied: {_first_line(error)}",
            "Keep only modules, tensors and plain values as its attributes.",
        ) from error
    return module.eval()


def unstacked(weights: Weights) -> list[Weights]:
    """The weights of each of J networks by itself."""
    # Of unbind, the gradient is one stack; of an index, zeros as large as all networks.
    each = zip(*(w.unbind() for w in weights.values()), strict=True)
    return [dict(zip(weights, own, strict=True)) for own in each]


def _cuda_devices(device: torch.device) -> list[torch.device]:
    return [device] if device.type == "cuda" else []


def _random_state(device: torch.device) -> Tensor:
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return torch.cat(states)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _aliases(module: nn.Module) -> dict[str, str]:
    """Names of shared parameters and buffers → the name that stands for them.

    A layer that is registered twice needs none: it is one place. ``functional_call`` would swap
    it twice, and put a swapped tensor back.
    """
    places: set[tuple[int, str]] = set()
    first: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for prefix, layer in module.named_modules(remove_duplicate=False):
        own = [*layer.named_parameters("", False, False), *layer.named_buffers("", False, False)]
        for attribute, tensor in own:
            name = f"{prefix}.{attribute}" if prefix else attribute
            if (id(layer), attribute) in places:
                continue
            places.add((id(layer), attribute))
            if first.setdefault(id(tensor), name) != name:
                aliases[name] = first[id(tensor)]
    return aliases
