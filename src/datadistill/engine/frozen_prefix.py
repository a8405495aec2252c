"""A network in two: frozen layers that come before all learned ones, and the rest.

What frozen layers make of an image is the same after every update. So they need not be unrolled:
distilled images pass through them once in an outer step, and the gradient passes back once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]

from ..core.distilled import Steps
from ..core.network import Network
from ..core.objective import Objective
from ..core.parametrisation import Parameters, Parametrisation
from ..core.random import stream
from .saved import saved_storages
from .stacked import agree

PART_BYTES = 2**26
"""What the graph of a part of the images may keep."""


class FrozenPrefix:
    """Frozen layers: images (N, …) → features (N, …), each image by itself.

    Images are taken in parts whose graph fits a bound, which changes no gradient: the parts do
    not touch each other.

    Attributes:
        shape: The shape of the features of one image.
        part: How many images are computed at a time.
    """

    def __init__(self, module: nn.Module, example: Tensor, part_bytes: int = PART_BYTES) -> None:
        # Convolutions of a few large images are faster with the channels last in memory.
        self._format = torch.channels_last if example.ndim == 4 else torch.contiguous_format
        self._module = module.requires_grad_(False).eval()
        self._module.to(memory_format=self._format)  # pyright: ignore[reportCallIssue]
        with torch.no_grad():
            self.shape = module(example[:1]).shape[1:]
        self.part = max(1, part_bytes // max(1, self._kept(example[:1])))

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Returns the features, keeping no graph."""
        images = images.contiguous(memory_format=self._format)
        return torch.cat([self._module(part).contiguous() for part in images.split(self.part)])

    def pull_back(self, images: Tensor, v: Tensor) -> Tensor:
        """(∂L/∂images) of J networks from v = ∂L/∂features (J, N, …): shape (J, N, …).

        Args:
            images: (N, …), the same for all J networks.
            v: What each of them has for its gradient.
        """
        return torch.cat([*self._pulled_back(images, v)], dim=1)

    def _pulled_back(self, images: Tensor, v: Tensor) -> Iterator[Tensor]:
        images = images.contiguous(memory_format=self._format)
        for part, own in zip(images.split(self.part), v.split(self.part, dim=1), strict=True):
            leaf = part.detach().requires_grad_()
            with torch.enable_grad():
                features = self._module(leaf)
            last = len(own) - 1
            yield torch.stack(
                [
                    torch.autograd.grad(features, leaf, one, retain_graph=j < last)[0]
                    for j, one in enumerate(own)
                ]
            )

    def _kept(self, example: Tensor) -> int:
        """Bytes that the graph of one image keeps."""
        image = example.clone().requires_grad_()
        return sum(saved_storages(lambda: self._module(image)).values())


def steps_through(prefix: FrozenPrefix, steps: Steps) -> Steps:
    """Steps of features, for steps of images."""
    features = prefix(steps.inputs.flatten(0, 1))
    return replace(steps, inputs=features.unflatten(0, steps.inputs.shape[:2]))


@dataclass(frozen=True)
class FrozenFeatures(Parametrisation):
    """Distilled data as features: what frozen layers make of the images.

    Attributes:
        inner: The parametrisation of the images.
        prefix: The frozen layers.
    """

    inner: Parametrisation
    prefix: FrozenPrefix

    def start(self, steps: Steps, objective: Objective, outputs: torch.Size) -> Parameters:
        """That of the images."""
        return self.inner.start(steps, objective, outputs)

    def steps(self, parameters: Parameters) -> Steps:
        """Steps of features."""
        return steps_through(self.prefix, self.inner.steps(parameters))

    def images(self, parameters: Parameters) -> Steps:
        """The images."""
        return self.inner.images(parameters)

    @property
    def of_images(self) -> Parametrisation:
        """That of the images."""
        return self.inner.of_images

    def project(self, learned: dict[str, Tensor]) -> dict[str, Tensor]:
        """As for the images."""
        return self.inner.project(learned)

    def pull_back(self, parameters: Parameters, gradient: Steps) -> dict[str, Tensor]:
        """Back through the frozen layers, then to what is learned of the images."""
        found = self.pull_back_each(parameters, gradient.for_each(1))
        return {name: g[0] for name, g in found.items()}

    def pull_back_each(self, parameters: Parameters, gradient: Steps) -> dict[str, Tensor]:
        """The same for J networks, by one forward pass through the frozen layers."""
        images = self.inner.steps(parameters).inputs
        v = gradient.inputs.transpose(0, 1).flatten(1, 2)  # (J, steps × images, …)
        pulled = self.prefix.pull_back(images.flatten(0, 1), v)
        pulled = pulled.unflatten(1, images.shape[:2]).transpose(0, 1)
        return self.inner.pull_back_each(parameters, replace(gradient, inputs=pulled))


@dataclass(frozen=True)
class Split:
    """A network in two: network(weights, x) = head(weights, prefix(x)).

    Attributes:
        prefix: Frozen layers that come before all learned ones.
        head: The rest, with all weights of the network by the same names.
    """

    prefix: FrozenPrefix
    head: Network


def split_frozen(network: Network) -> Split | None:
    """Splits a network where its frozen beginning ends; None if it has none or cannot be split."""
    module = network.module()
    if all(p.requires_grad for p in module.parameters()):
        return None
    if any(isinstance(layer, _NormBase) for layer in module.modules()):
        return None  # the features of an image would depend on those beside it
    try:
        parts = _graphs(module)
        if parts is None:
            return None
        prefix = FrozenPrefix(parts[0], network.example)
        head = Network(parts[1], prefix(network.example))
    except Exception:  # tracing refuses a module in as many ways as there are modules
        return None
    found = Split(prefix, head)
    return found if _agrees(network, found) else None


def _graphs(module: nn.Module) -> tuple[fx.GraphModule, fx.GraphModule] | None:
    """The graph of what does not depend on learned weights, and that of the rest."""
    graph = fx.Tracer().trace(module)
    frozen = _frozen(module, graph)
    border = [n for n in graph.nodes if n in frozen and n.op != "get_attr" and _leaves(n, frozen)]
    if len(border) != 1 or border[0].op == "placeholder":
        return None
    before, after = fx.Graph(), fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        if node in frozen:
            copies[node] = before.node_copy(node, copies.__getitem__)
            if node is border[0]:
                break
    before.output(copies[border[0]])
    rest = {border[0]: after.placeholder("features")}
    for node in graph.nodes:
        if node not in frozen or (node.op == "get_attr" and _leaves(node, frozen)):
            rest[node] = after.node_copy(node, rest.__getitem__)
    return fx.GraphModule(module, before), fx.GraphModule(module, after)


def _frozen(module: nn.Module, graph: fx.Graph) -> set[fx.Node]:
    """The nodes that do not depend on learned weights."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        match node.op:
            case "placeholder":
                own = False
            case "call_module":
                layer = module.get_submodule(str(node.target))
                own = any(p.requires_grad for p in layer.parameters())
            case "get_attr":
                where, _, name = str(node.target).rpartition(".")
                own = bool(getattr(module.get_submodule(where), name).requires_grad)
            case _:
                own = node.op == "output"
        if not own and found.issuperset(node.all_input_nodes):
            found.add(node)
    return found


def _leaves(node: fx.Node, frozen: set[fx.Node]) -> bool:
    """Whether learned layers use what a frozen one gives."""
    return any(user not in frozen for user in node.users)


def _agrees(network: Network, found: Split) -> bool:
    """Whether the two halves give what the network gives, for each example by itself."""
    if {*found.head.weights} != {*network.weights}:
        return False
    # Of a last layer that is reset, every output is the same: other weights show more.
    weights = {name: w + 0.1 * _noise(name, w) for name, w in network.weights.items()}
    weights, example = network.stack([weights]), network.example
    with torch.no_grad():
        expected = network(weights, example)
        alone = torch.cat([found.prefix(one) for one in example.split(1)])
        return agree(found.head(weights, alone), expected)


def _noise(name: str, like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=stream(0, f"trial of {name}")).to(like)
