"""A traced graph in two halves: what is computed before u is known, and what after."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx, nn


@dataclass(frozen=True)
class Halves:
    """A function (given, u) → (first, second) as two functions.

    Attributes:
        forward: given → (first, what the other half needs).
        backward: (that, u) → second.
    """

    forward: Any
    backward: Any


def cut(graph: fx.Graph, owner: nn.Module, given: int, first: int) -> Halves:
    """Cuts a graph whose first results do not depend on its last arguments.

    Args:
        graph: The graph.
        owner: The module with its constants.
        given: How many of its arguments the first half has.
        first: How many of its results the first half gives.
    """
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    (results,) = (node.args[0] for node in graph.nodes if node.op == "output")
    before = _needed_for(results[:first])
    before |= {*arguments[:given]}
    for node in graph.nodes:  # of a result in parts only those are kept that are needed
        if node.target is operator.getitem and node.args[0] in before:
            before.add(node)
    after = _needed_for(results[first:]) - before
    after_cut = after | {*results[first:]}
    crossing = [n for n in graph.nodes if n in before and (n in after_cut or _used_in(n, after))]
    constants = {n for n in crossing if n.op == "get_attr"}
    kept = [node for node in crossing if node not in constants]
    forward, backward = fx.Graph(), fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        if node in before:
            copies[node] = forward.node_copy(node, copies.__getitem__)
    forward.output(([copies[n] for n in results[:first]], [copies[n] for n in kept]))
    copies = {node: backward.placeholder(f"kept_{n}") for n, node in enumerate(kept)}
    for node in arguments[given:]:
        copies[node] = backward.node_copy(node)
    for node in graph.nodes:
        if (node in after and node not in copies) or node in constants:
            copies[node] = backward.node_copy(node, copies.__getitem__)
    backward.output([copies[node] for node in results[first:]])
    return Halves(*(_function(half, owner) for half in (forward, backward)))


def _function(graph: fx.Graph, owner: nn.Module) -> Any:
    graph.eliminate_dead_code()
    return fx.GraphModule(owner, graph).forward


def _needed_for(results: Iterable[fx.Node]) -> set[fx.Node]:
    found: set[fx.Node] = set()
    waiting = [*results]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


def _used_in(node: fx.Node, nodes: set[fx.Node]) -> bool:
    return any(user in nodes for user in node.users)


def kept_bytes(kept: Sequence[Any], given: Iterable[Tensor]) -> int:
    """What kept tensors take, besides those that were given."""
    sizes = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in kept}
    for one in given:
        sizes.pop(one.untyped_storage().data_ptr(), None)
    return sum(sizes.values())
