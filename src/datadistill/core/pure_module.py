"""Any ``nn.Module`` as a pure function of its tensors, refused where it is none."""

import copy
import warnings

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from ..errors import ModelError, first_line
from .attention import twice_differentiable
from .statistics import RunningStatistics

Weights = dict[str, Tensor]
"""Named weights; with a leading axis of J networks where there are several."""


class PureModule:
    """A module as a function of named tensors and inputs, and of nothing else.

    The module is copied; the original is never touched. Dropout is off, and normalisation layers
    use the statistics of the batch, unless running statistics are among the tensors.

    Args:
        module: Any module. Weights may be shared, unused, frozen, of several dtypes.
        device: Where to compute; the module's own device by default.
        dtype: What to compute in; the module's own dtypes by default.

    Attributes:
        name: The name of its class.
        module: The copy.
        running: Its layers with running statistics.
        recurrent: Whether it has recurrent layers.
        weights: Its trainable parameters.
        constants: Frozen parameters and buffers.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.name = type(module).__name__
        self.module = _copy(module, self.name).to(device=device, dtype=dtype)
        self.running = RunningStatistics(self.module)
        self.recurrent = any(isinstance(layer, nn.RNNBase) for layer in module.modules())
        self._aliases = _aliases(self.module)
        named = dict(self.module.named_parameters())
        self.weights: Weights = {n: p.detach() for n, p in named.items() if p.requires_grad}
        self.constants: Weights = {
            **{n: p.detach() for n, p in named.items() if not p.requires_grad},
            **dict(self.module.named_buffers()),
        }
        if not self.weights:
            raise ModelError(
                f"{self.name} has no trainable weights.",
                "Distillation trains a network: unfreeze at least one parameter.",
            )

    def __call__(self, weights: Weights, inputs: Tensor) -> Tensor:
        """Returns the outputs of one network."""
        return self._apply({**self.constants, **weights}, inputs)

    def _apply(self, given: Weights, inputs: Tensor) -> Tensor:
        with twice_differentiable(recurrent=self.recurrent):
            return self.bare(given, inputs)

    def bare(self, given: Weights, inputs: Tensor) -> Tensor:
        """Outputs of one network by all its tensors, for callers in ``twice_differentiable``."""
        given.update({alias: given[name] for alias, name in self._aliases.items()})
        self.running.use(given)
        return functional_call(self.module, given, (inputs,), tie_weights=False)

    def check(self, example: Tensor) -> torch.Size:
        """Refuses a module whose forward pass is not a function of weights and inputs.

        Args:
            example: A few inputs to try it on.

        Returns:
            The shape of the output for one input.
        """
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=_cuda_devices(example.device)),
            warnings.catch_warnings(),
        ):
            # Said once in a process, about speed alone.
            warnings.filterwarnings("ignore", message="LSTM with projections is not supported")
            before = _random_state(example.device)
            try:
                outputs = self(self.weights, example)
            except Exception as error:
                raise ModelError(
                    f"{self.name} raised {type(error).__name__} on inputs of shape "
                    f"{tuple(example.shape)}: {first_line(error)}",
                    _remedy(error),
                ) from error
            self._check_outputs(outputs, example)
            if not torch.equal(before, _random_state(example.device)):
                raise ModelError(
                    f"{self.name} draws random numbers in its forward pass.",
                    "Distillation differentiates a pure function: make the random part a "
                    "torch.nn.Dropout layer, or a function that is off in eval mode.",
                )
            self._check_buffers(example)
            again = self(self.weights, example)
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
                self.module.train(training)
                self._apply(given, example)
            except Exception:
                if not training:
                    raise
                # Only eval mode is ever used: training mode may raise as it likes.
            finally:
                self.module.eval()
            for name, value in constants.items():
                # functional_call writes a buffer that was rebound back into `given`.
                if given[name] is not value or value._version != versions[name]:
                    raise ModelError(
                        f"{self.name} changes its buffer {name!r} in the forward pass.",
                        "Distillation differentiates a pure function: make the buffer constant, "
                        "or use a torch.nn normalisation layer, whose batch statistics are used.",
                    )


def _copy(module: nn.Module, name: str) -> nn.Module:
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
            f"{name} cannot be copied: {first_line(error)}",
            "Keep only modules, tensors and plain values as its attributes.",
        ) from error
    return module.eval()


def _remedy(error: Exception) -> str:
    """What to do about an error of the forward pass."""
    if "could not create a primitive" in str(error):  # e.g. AMX that a virtual machine only names
        return (
            "oneDNN, PyTorch's CPU library, fails on this processor: use float32, or set "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16."
        )
    return "Give it inputs of the shape it was made for, or make it for these."


def _cuda_devices(device: torch.device) -> list[torch.device]:
    return [device] if device.type == "cuda" else []


def _random_state(device: torch.device) -> Tensor:
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return torch.cat(states)


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
