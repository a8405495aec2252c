"""The layers of a module in the order of computation, each written for networks side by side."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, fx, nn

from ..core.network import Weights
from . import layers
from .chain import Chain, Shapes, chain
from .choice import may_use_kernels
from .kernels import (
    NARROW,
    Convolution,
    Kernels,
    Pooling,
    kernels_for,
    make_convolution,
    worth_while,
)
from .layers import Compute, Names


class _Call(NamedTuple):
    """One layer in the order of computation: where its result goes, and what is then over."""

    result: fx.Node
    compute: Compute
    sources: list[fx.Node]
    over: list[fx.Node]


class UnknownLayerError(Exception):
    """The module has a layer that is not known here."""


class Program:
    """A module taken apart into known layers; refuses one that has others.

    The result of a layer is (J, N, …), whatever ways its numbers lie in memory.

    Args:
        module: The module.
        example: Inputs of it, as many as wanted.

    Attributes:
        widest: Numbers in the largest result of a layer, for one example.
        narrow: Whether no convolution is wide.
        kernels: The C kernels that its convolutions use, or why they do not.
    """

    def __init__(self, module: nn.Module, example: Tensor) -> None:
        self._modules = dict(module.named_modules())
        self._names = {id(weight): name for name, weight in module.named_parameters()}
        self._like = example
        graph = fx.Tracer().trace(module)
        self._pool_first(graph)
        shapes = _shapes(fx.GraphModule(module, graph), example)
        self.widest = max(shape.numel() // len(example) for shape in shapes.values())
        self.narrow = True
        self.kernels: Kernels | None = None
        self._by_torch = False  # any convolution
        self._calls: list[_Call] = []
        self._done: set[fx.Node] = set()  # computed together with an earlier layer
        for node in graph.nodes:
            if node.op == "placeholder" and not self._calls:
                self._inputs: fx.Node = node
            elif node.op == "output":
                self._outputs: fx.Node = node.all_input_nodes[0]
            elif node not in self._done:
                result, compute = self._layer(node, shapes)
                self._calls.append(_Call(result, compute, node.all_input_nodes, []))
        if len(shapes[self._outputs]) != 2:
            raise UnknownLayerError
        last = {source: call for call in self._calls for source in call.sources}
        for source, call in last.items():
            call.over.append(source)

    def chain(self, shapes: Shapes) -> Chain | None:
        """The layers as a chain in C, if that is what they are, for weights of these shapes."""
        sources = [self._inputs, *(call.result for call in self._calls)]
        in_turn = all(call.sources == [s] for call, s in zip(self._calls, sources, strict=False))
        layers = [call.compute for call in self._calls]
        return chain(layers, shapes, self._like) if in_turn and may_use_kernels() else None

    @property
    def by_kernels(self) -> bool:
        """Whether there are convolutions, and kernels compute all of them."""
        return bool(self.kernels and self.kernels.functions) and not self._by_torch

    def __call__(self, weights: Weights, inputs: Tensor) -> Tensor:
        """The outputs (J, N, …) of J networks, each for inputs (J, N, …) of its own."""
        results = {self._inputs: inputs}
        for call in self._calls:
            sources = (results[source] for source in call.sources)
            results[call.result] = call.compute(weights, *sources)
            for node in call.over:
                del results[node]
        return results[self._outputs]

    def _pool_first(self, graph: fx.Graph) -> None:
        """Turns max-pooling of ReLU into ReLU of max-pooling: the same, of fewer numbers."""
        for pool in [*graph.nodes]:
            relu = pool.args[0] if pool.args else None
            if self._kind(pool) not in layers.MAX_POOLING or not isinstance(relu, fx.Node):
                continue
            if self._kind(relu) in layers.RELU and len(relu.users) == 1:
                source = relu.all_input_nodes[0]
                pool.replace_input_with(relu, source)
                pool.append(relu)
                pool.replace_all_uses_with(relu)
                relu.replace_input_with(source, pool)

    def _layer(self, node: fx.Node, shapes: dict[fx.Node, torch.Size]) -> tuple[fx.Node, Compute]:
        """The function that computes a layer, and the node whose result that is."""
        sources = node.all_input_nodes
        kind, module = self._kind(node), self._module(node)
        if not sources:
            raise UnknownLayerError
        shape = shapes[sources[0]]
        if isinstance(module, nn.Conv2d) and kind is nn.Conv2d and len(shape) == 4:
            return self._convolution(node, module, shape)
        if isinstance(module, nn.Linear) and kind is nn.Linear and len(shape) == 2:
            return node, layers.linear(self._weights_of(module))
        if isinstance(module, nn.GroupNorm) and kind is nn.GroupNorm:
            names = self._weights_of(module) if module.affine else None
            return node, layers.group_norm(module, names)
        if kind in layers.ADDING and len(sources) == 2 and not node.kwargs:
            if shape != shapes[sources[1]]:
                raise UnknownLayerError
            return node, layers.addition
        if len(sources) != 1:
            raise UnknownLayerError
        return node, self._plain(node, shape)

    def _plain(self, node: fx.Node, shape: torch.Size) -> Compute:
        """A layer without weights."""
        kind, module = self._kind(node), self._module(node)
        if isinstance(module, nn.LocalResponseNorm) and len(shape) == 4:
            return layers.response_norm(module, self._like, shape[1])
        method = getattr(Tensor, str(kind)) if node.op == "call_method" else kind
        function = _with(module or method, node)
        if kind in layers.FLATTENING and function(torch.empty(2, 3, 4, 5)).shape == (2, 60):
            return layers.flattening
        if kind in layers.RELU:
            source = node.all_input_nodes[0]
            fresh = self._kind(source) in (nn.Conv2d, nn.Linear, *layers.MAX_POOLING)
            return layers.Relu(fresh and len(source.users) == 1)
        if kind in layers.SAME:
            return layers.same
        if kind in layers.ELEMENTWISE:
            return layers.elementwise(function)
        if kind in layers.POOLING and len(shape) == 4:
            return layers.pooling(function)
        raise UnknownLayerError

    def _convolution(
        self, node: fx.Node, layer: nn.Conv2d, shape: torch.Size
    ) -> tuple[fx.Node, Compute]:
        """A convolution, together with the max-pooling and the ReLU that follow, if possible."""
        if layer.padding_mode != "zeros":
            raise UnknownLayerError
        padding = layer.padding
        plain = (layer.stride, layer.dilation, layer.groups) == ((1, 1), (1, 1), 1)
        if plain and isinstance(padding, tuple):
            channels, height, width = shape[1:]
            rows, columns = layer.kernel_size
            kernel = (layer.out_channels, channels, rows, columns)
            result, pooling, absorbed = self._pooling(node)
            made = self._kernel(
                (channels, height, width), kernel, (padding[0], padding[1]), pooling
            )
            if made:
                self._done.update(absorbed)
                return result, layers.WithWeights(made, self._weights_of(layer))
        self._by_torch = True
        self.narrow &= layer.in_channels * layer.out_channels <= NARROW**2
        return node, layers.convolution(layer, self._weights_of(layer))

    def _kernel(
        self,
        image: tuple[int, int, int],
        kernel: tuple[int, int, int, int],
        padding: tuple[int, int],
        pooling: Pooling | None,
    ) -> Convolution | None:
        """The C code for a convolution, if it is faster than torch's, and in use."""
        if not may_use_kernels() or not worth_while(kernel, pooling):
            return None
        self.kernels = kernels_for(kernel, padding, pooling, self._like) or self.kernels
        return make_convolution(image, kernel, padding, pooling, self._like)

    def _pooling(self, node: fx.Node) -> tuple[fx.Node, Pooling | None, list[fx.Node]]:
        """The max-pooling and ReLU that alone use a result: the last, how to pool, and all."""
        pool = _only_user(node)
        window = None if pool is None else self._window(pool)
        if pool is None or window is None:
            return node, None, []
        relu = _only_user(pool)
        if relu is None or self._kind(relu) not in layers.RELU:
            return pool, Pooling(*window), [pool]
        return relu, Pooling(*window, relu=True), [pool, relu]

    def _window(self, node: fx.Node) -> tuple[int, int, int] | None:
        """Size, stride and padding of a plain max-pooling."""
        if self._kind(node) not in layers.MAX_POOLING:
            return None
        names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
        module = self._module(node)
        if module:
            given = {name: getattr(module, name) for name in names}
        else:
            given = {**dict(zip(names, node.args[1:], strict=False)), **node.kwargs}
        usual = {"dilation": 1, "ceil_mode": False, "return_indices": False}
        rest = {name: given[name] for name in usual if name in given}
        size, stride, padding = (given.get(name) for name in names[:3])
        size, stride, padding = _square(size), _square(stride or size), _square(padding or 0)
        if size is None or stride is None or padding is None or {**usual, **rest} != usual:
            return None
        return size, stride, padding

    def _weights_of(self, layer: nn.Conv2d | nn.Linear | nn.GroupNorm) -> Names:
        bias: Tensor | None = layer.bias
        return Names(self._names[id(layer.weight)], None if bias is None else self._names[id(bias)])

    def _kind(self, node: fx.Node) -> object:
        if node.op == "call_module":
            return type(self._modules[str(node.target)])
        return node.target if node.op in ("call_function", "call_method") else None

    def _module(self, node: fx.Node) -> nn.Module | None:
        return self._modules[str(node.target)] if node.op == "call_module" else None


def _shapes(module: fx.GraphModule, example: Tensor) -> dict[fx.Node, torch.Size]:
    """The shape of every layer's result for an example."""
    found: dict[fx.Node, torch.Size] = {}

    class Watch(fx.Interpreter):
        def run_node(self, n: fx.Node) -> object:
            result = super().run_node(n)
            if isinstance(result, Tensor):
                found[n] = result.shape
            return result

    Watch(module).run(example)
    return found


def _only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _square(size: object) -> int | None:
    """The one number of a size that may be a pair."""
    pair = (size, size) if isinstance(size, int) else size
    match pair:
        case (int(one), int(other)) if one == other:
            return one
        case _:
            return None


def _with(function: object, node: fx.Node) -> Callable[[Tensor], Tensor]:
    """A function of a layer's input alone, with the other arguments that the module gives it."""
    if not callable(function) or node.args[:1] != (node.all_input_nodes[0],):
        raise UnknownLayerError
    rest, named = node.args[1:], node.kwargs

    def layer(result: Tensor) -> Tensor:
        return function(result, *rest, **named)  # pyright: ignore[reportReturnType]

    return layer
