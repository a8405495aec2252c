"""J networks as one: their channels side by side in every layer.

``vmap`` computes J networks of any module, but in a layout of memory that makes pooling ten times
as slow. Here every layer is computed once, on images of J·C channels that lie last in memory. Only
plain layers are known, none of which mixes examples; other modules are left to ``Network``.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.func import vmap

from ..core.network import Loss, Network, Weights
from ..core.random import stream

_RELU: set[object] = {F.relu, torch.relu, "relu", nn.ReLU}
_ELEMENTWISE: set[object] = {
    *_RELU,
    *(torch.tanh, torch.sigmoid, F.leaky_relu, F.elu, F.gelu, F.softplus),
    *("tanh", "sigmoid"),
    *(nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.GELU, nn.Softplus),
    *(nn.Identity, nn.Dropout, nn.Dropout2d),  # dropout is off outside training mode
}
_MAX_POOLING: set[object] = {F.max_pool2d, nn.MaxPool2d}
_POOLING: set[object] = {
    *_MAX_POOLING,
    *(F.avg_pool2d, F.adaptive_avg_pool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d),
}
_FLATTENING: set[object] = {torch.flatten, "flatten", nn.Flatten}
_ADDING: set[object] = {operator.add, torch.add}

_Layer = Callable[..., Tensor]
"""(weights of J networks, results of earlier layers) → the layer's result."""


class _Form(NamedTuple):
    """How the result of a layer lies in its tensor.

    Attributes:
        same: Whether it is the same for all networks: (N, …). Otherwise it is maps,
            (N, J·C, H, W), or rows, (J, N, features).
        maps: Whether it is maps.
    """

    same: bool
    maps: bool


class _Call(NamedTuple):
    """One layer in the order of computation: where its result goes, and what is then over."""

    result: fx.Node
    layer: _Layer
    sources: list[fx.Node]
    over: list[fx.Node]


class _UnknownLayerError(Exception):
    """The module has a layer that is not known here."""


class Stacked:
    """A network of known layers as a function of the stacked weights of J networks.

    Calls change nothing in it, so that several threads may use it at once.

    Attributes:
        widest: Numbers in the largest result of a layer, for one network and one example.
    """

    def __init__(self, network: Network, example: Tensor) -> None:
        module = network.module()
        self._constants = network.constants
        self._maps = example.ndim == 4
        self._shared = _Program(module, _Form(same=True, maps=self._maps))
        self._own = _Program(module, _Form(same=False, maps=self._maps))
        self.widest = 0

        def measure(result: Tensor) -> None:
            self.widest = max(self.widest, result.numel())

        one = self._all(network.stack([network.weights]))
        self._shared(one, example[:1], watch=measure)

    def __call__(self, weights: Weights, inputs: Tensor) -> Tensor:
        """Returns the outputs (J, N, …) of J networks for the same N inputs."""
        return self._shared(self._all(weights), _channels_last(inputs) if self._maps else inputs)

    def losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x, θ_j) for each of J networks, shape (J,)."""
        return vmap(loss, in_dims=(0, None))(self(weights, inputs), labels)

    def own_losses(self, weights: Weights, inputs: Tensor, labels: Tensor, loss: Loss) -> Tensor:
        """Returns ℓ(x_j, θ_j), each network on inputs (J, N, …) and labels of its own."""
        if self._maps:
            inputs = _channels_last(inputs.transpose(0, 1).flatten(1, 2))
        return vmap(loss)(self._own(self._all(weights), inputs), labels)

    def _all(self, weights: Weights) -> Weights:
        networks = len(next(iter(weights.values())))
        shared = {name: c.expand(networks, *c.shape) for name, c in self._constants.items()}
        return {**shared, **weights}


def stacked(network: Network, example: Tensor) -> Stacked | None:
    """Returns a network as :class:`Stacked`, if all its layers are known there.

    Args:
        network: The network.
        example: Two inputs, on which both must agree.
    """
    if not network.side_by_side or example.ndim not in (2, 4):
        return None
    example = example[:2].to(network.device, network.dtype)
    weights = network.stack([network.weights, network.weights])
    weights = {name: w + 0.1 * _noise(name, w) for name, w in weights.items()}
    with torch.no_grad():
        try:
            fast = Stacked(network, example)
            found = fast(weights, example)
        except Exception:  # tracing refuses a module in as many ways as there are modules
            return None
        expected = network(weights, example)
    tolerance = torch.finfo(network.dtype).eps ** 0.5 * expected.abs().max()
    agree = found.shape == expected.shape and bool((found - expected).abs().max() <= tolerance)
    return fast if agree else None


class _Program:
    """The layers of a module in the order of computation."""

    def __init__(self, module: nn.Module, start: _Form) -> None:
        self._modules = dict(module.named_modules())
        self._names = {id(weight): name for name, weight in module.named_parameters()}
        graph = fx.Tracer().trace(module)
        self._pool_first(graph)
        forms: dict[fx.Node, _Form] = {}
        self._calls: list[_Call] = []
        for node in graph.nodes:
            sources = node.all_input_nodes
            if node.op == "placeholder" and not forms:
                self._inputs, forms[node] = node, start
            elif node.op == "output":
                self._outputs: fx.Node = sources[0]
            else:
                layer, forms[node] = self._layer(node, [forms[source] for source in sources])
                self._calls.append(_Call(node, layer, sources, []))
        if forms[self._outputs] != _Form(same=False, maps=False):
            raise _UnknownLayerError
        last = {source: call for call in self._calls for source in call.sources}
        for source, call in last.items():
            call.over.append(source)

    def __call__(
        self, weights: Weights, inputs: Tensor, watch: Callable[[Tensor], None] | None = None
    ) -> Tensor:
        results = {self._inputs: inputs}
        for call in self._calls:
            result = call.layer(weights, *(results[source] for source in call.sources))
            results[call.result] = result
            for node in call.over:
                del results[node]
            if watch:
                watch(result)
        return results[self._outputs]

    def _pool_first(self, graph: fx.Graph) -> None:
        """Turns max-pooling of ReLU into ReLU of max-pooling: the same, of fewer numbers."""
        for pool in [*graph.nodes]:
            relu = pool.args[0] if pool.args else None
            if self._kind(pool) not in _MAX_POOLING or not isinstance(relu, fx.Node):
                continue
            if self._kind(relu) in _RELU and len(relu.users) == 1:
                source = relu.all_input_nodes[0]
                pool.replace_input_with(relu, source)
                pool.append(relu)
                pool.replace_all_uses_with(relu)
                relu.replace_input_with(source, pool)

    def _layer(self, node: fx.Node, forms: list[_Form]) -> tuple[_Layer, _Form]:
        """The function that computes a layer, and the form of its result."""
        kind, form = self._kind(node), forms[0] if forms else None
        module = self._modules[str(node.target)] if node.op == "call_module" else None
        if isinstance(module, nn.Conv2d) and kind is nn.Conv2d and form and form.maps:
            return self._convolution(module, form.same), _Form(same=False, maps=True)
        if isinstance(module, nn.Linear) and kind is nn.Linear and form and not form.maps:
            return self._linear(module, form.same), _Form(same=False, maps=False)
        if kind in _ADDING and len(forms) == 2 and forms[0] == forms[1] and not node.kwargs:
            return _sum, forms[0]
        if form is None or len(forms) != 1:
            raise _UnknownLayerError
        function = module or (getattr(Tensor, str(kind)) if node.op == "call_method" else kind)
        return self._plain(node, kind, _with(function, node), form)

    def _plain(
        self, node: fx.Node, kind: object, function: Callable[[Tensor], Tensor], form: _Form
    ) -> tuple[_Layer, _Form]:
        """A layer without weights, which treats all channels alike."""
        if kind in _FLATTENING and function(torch.empty(2, 3, 4, 5)).shape == (2, 60):
            return _flat(form), _Form(form.same, maps=False)
        if kind in _RELU:
            source = node.all_input_nodes[0]
            fresh = self._kind(source) in (nn.Conv2d, nn.Linear, *_MAX_POOLING)
            return _relu(may_overwrite=fresh and len(source.users) == 1), form
        if kind in _ELEMENTWISE or (kind in _POOLING and form.maps):
            return _max_pool(function) if self._halves(node) else _alone(function), form
        raise _UnknownLayerError

    def _halves(self, node: fx.Node) -> bool:
        """Whether a layer takes the maximum of every 2×2 pixels."""
        if self._kind(node) not in _MAX_POOLING or len(node.args) > 2:
            return False
        names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
        module = self._modules[str(node.target)] if node.op == "call_module" else None
        given = {name: getattr(module, name) for name in names} if module else dict(node.kwargs)
        size = node.args[1] if len(node.args) == 2 else given.pop("kernel_size", None)
        stride = given.pop("stride", None) or size
        given.pop("kernel_size", None)
        plain = {"padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}
        return size in (2, (2, 2)) and stride in (2, (2, 2)) and plain == {**plain, **given}

    def _convolution(self, layer: nn.Conv2d, same: bool) -> _Layer:
        if layer.padding_mode != "zeros" or (same and layer.groups > 1):
            raise _UnknownLayerError
        weight_name, bias_name = self._weights_of(layer)
        stride, padding, dilation = layer.stride, layer.padding, layer.dilation

        def convolution(weights: Weights, maps: Tensor) -> Tensor:
            weight = weights[weight_name]
            groups = 1 if same else layer.groups * len(weight)
            bias = weights[bias_name].flatten() if bias_name else None
            return F.conv2d(maps, weight.flatten(0, 1), bias, stride, padding, dilation, groups)

        return convolution

    def _linear(self, layer: nn.Linear, same: bool) -> _Layer:
        weight_name, bias_name = self._weights_of(layer)

        def linear(weights: Weights, rows: Tensor) -> Tensor:
            weight = weights[weight_name]
            bias = weights[bias_name] if bias_name else weight.new_zeros(len(weight), 1)
            if same:
                every = F.linear(rows, weight.flatten(0, 1))
                return every.unflatten(1, weight.shape[:2]).transpose(0, 1) + bias[:, None]
            return torch.baddbmm(bias[:, None], rows, weight.mT)

        return linear

    def _weights_of(self, layer: nn.Conv2d | nn.Linear) -> tuple[str, str | None]:
        bias = None if layer.bias is None else self._names[id(layer.bias)]
        return self._names[id(layer.weight)], bias

    def _kind(self, node: fx.Node) -> object:
        if node.op == "call_module":
            return type(self._modules[str(node.target)])
        return node.target if node.op in ("call_function", "call_method") else None


def _with(function: object, node: fx.Node) -> Callable[[Tensor], Tensor]:
    """A function of a layer's input alone, with the other arguments that the module gives it."""
    if not callable(function) or node.args[:1] != (node.all_input_nodes[0],):
        raise _UnknownLayerError
    rest, named = node.args[1:], node.kwargs

    def layer(result: Tensor) -> Tensor:
        return function(result, *rest, **named)  # pyright: ignore[reportReturnType]

    return layer


def _alone(function: Callable[[Tensor], Tensor]) -> _Layer:
    return lambda _weights, result: function(result)  # pyright: ignore[reportUnknownLambdaType]


def _sum(_: Weights, one: Tensor, other: Tensor) -> Tensor:
    return one + other


def _max_pool(function: Callable[[Tensor], Tensor]) -> _Layer:
    """Max-pooling by 2×2. Without a gradient it need not say where each maximum was."""

    def max_pool(_: Weights, maps: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return function(maps)
        height, width = maps.shape[2] // 2 * 2, maps.shape[3] // 2 * 2
        pixels = maps.permute(0, 2, 3, 1)[:, :height, :width]
        pixels = torch.maximum(pixels[:, 0::2], pixels[:, 1::2])
        pixels = torch.maximum(pixels[:, :, 0::2], pixels[:, :, 1::2])
        return pixels.permute(0, 3, 1, 2)

    return max_pool


def _relu(*, may_overwrite: bool) -> _Layer:
    def relu(_: Weights, result: Tensor) -> Tensor:
        overwrite = may_overwrite and not torch.is_grad_enabled()
        return result.relu_() if overwrite else result.relu()

    return relu


def _flat(form: _Form) -> _Layer:
    """(N, C, H, W) of each network → rows of C·H·W features."""

    def flat(weights: Weights, result: Tensor) -> Tensor:
        if form.same:
            return result.flatten(1)
        if not form.maps:
            return result
        networks = len(next(iter(weights.values())))
        return result.unflatten(1, (networks, -1)).flatten(2).transpose(0, 1)

    return flat


def _channels_last(images: Tensor) -> Tensor:
    """The same images with the channels last in memory.

    ``contiguous(memory_format=torch.channels_last)`` would leave images of a single channel as
    they are, whose strides then tell a convolution nothing.
    """
    last = images.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format)
    return last.permute(0, 3, 1, 2)


def _noise(name: str, like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=stream(0, f"trial of {name}")).to(like)
