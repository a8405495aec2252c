"""Makes a traced graph shorter without changing what it computes."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

aten: Any = torch.ops.aten

SAME = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)
"""Operations that hand on what they are given: nothing is changed in place or differentiated."""
VIEWS = (
    *(aten.view.default, aten._unsafe_view.default, aten.reshape.default),
    *(aten.squeeze.dim, aten.squeeze.default, aten.squeeze.dims, aten.unsqueeze.default),
)
"""Operations that give the numbers another shape."""
ALIASES = (
    *VIEWS,
    *(aten.t.default, aten.transpose.int, aten.permute.default, aten.expand.default),
    *(aten.select.int, aten.slice.Tensor, aten.split.Tensor, aten.unbind.int),
    *(aten.as_strided.default, aten.diagonal.default, aten.split_with_sizes.default),
    operator.getitem,
)
"""Operations whose results may share memory with their first argument."""

ZEROS = (aten.zeros_like.default, aten.zeros.default, aten.new_zeros.default)
ADDED = {
    aten.mm.default: (aten.addmm.default, aten.addmm_.default),
    aten.bmm.default: (aten.baddbmm.default, aten.baddbmm_.default),
}
"""Matrix products, with the operations that add them to something, to a new tensor or in place."""
PRODUCTS = {*ADDED, *(adding for both in ADDED.values() for adding in both)}
"""Operations whose results are new, so that what uses one alone may add to it in place."""


def simplify(graph: fx.Graph) -> None:
    """Removes what is computed twice, or for nothing, and calls the rest in the shortest way."""
    for node in [*graph.nodes]:
        if node.target in SAME and node.op == "call_function":
            _replace(node, node.args[0])
    fixed = _changed_in_place(graph)
    for node in [*graph.nodes]:
        if node.op == "call_function" and node not in fixed:
            _shorten(node)
    _once(graph, fixed)
    for node in [*graph.nodes]:
        if node.target in PRODUCTS and len(node.args) == 3 and not node.kwargs:
            _product(node, fixed)
        elif node.target is aten.add.Tensor and len(node.args) == 2 and not node.kwargs:
            _sum(node, fixed)
    graph.eliminate_dead_code()
    for node in graph.nodes:
        if node.op == "call_function":
            node.target = shortest(node.target)


def shape(node: Any) -> torch.Size | None:
    """The shape of a node's result, if it is one tensor."""
    found = node.meta.get("tensor_meta") if isinstance(node, fx.Node) else None
    return getattr(found, "shape", None)


def _plain(node: fx.Node) -> bool:
    """Whether a result lies in memory as its shape says."""
    found: Any = node.meta.get("tensor_meta")
    if found is None or not hasattr(found, "stride"):
        return False
    size, expected = 1, list[int]()
    for length in reversed(found.shape):
        expected.insert(0, size)
        size *= length
    pairs = zip(found.shape, found.stride, expected, strict=True)
    return all(length == 1 or own == wanted for length, own, wanted in pairs)


def _replace(node: fx.Node, other: Any) -> None:
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)


def _changed_in_place(graph: fx.Graph) -> set[fx.Node]:
    """Nodes whose memory something changes later: they stay exactly as they are."""
    roots: dict[fx.Node, fx.Node] = {}
    changed: set[fx.Node] = set()
    for node in graph.nodes:
        first = node.args[0] if node.args else None
        mutable = _is_mutable(node)
        if isinstance(first, fx.Node) and (mutable or node.target in ALIASES):
            roots[node] = roots.get(first, first)
            if mutable:
                changed.add(roots[node])
        elif mutable:
            changed |= {roots.get(one) or one for one in node.all_input_nodes}
    return {node for node in graph.nodes if roots.get(node, node) in changed}


def _is_mutable(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(schema and schema.is_mutable)


def _shorten(node: fx.Node) -> None:
    """Takes a single node out of the way, where its result is at hand."""
    first: Any = node.args[0] if node.args else None
    if node.target is aten.stack.default and len(first) == 1:
        node.target, node.args = aten.unsqueeze.default, (first[0], *(node.args[1:] or (0,)))
        return
    if not isinstance(first, fx.Node):
        return
    if node.target in (*VIEWS, aten.expand.default) and shape(node) == shape(first) is not None:
        _replace(node, first)
    elif node.target in VIEWS and first.target in VIEWS:
        source: Any = first.args[0]
        if isinstance(source, fx.Node) and _plain(source):
            node.target = aten.view.default
            node.args = (source, [*(shape(node) or ())])
            _shorten(node)
    elif node.target is first.target is aten.t.default:
        _replace(node, first.args[0])
    elif node.target is first.target is aten.transpose.int:
        rank = len(shape(first) or ())
        axes: list[Any] = [*node.args[1:], *first.args[1:]]
        both = [{axis % rank for axis in axes[i : i + 2]} for i in (0, 2)] if rank else []
        if both and both[0] == both[1]:
            _replace(node, first.args[0])


def _sum(node: fx.Node, fixed: set[fx.Node]) -> None:
    """Adds no zeros, and products to what is there."""
    one, other = node.args
    if not (isinstance(one, fx.Node) and isinstance(other, fx.Node)):
        return
    if one.target is other.target is aten.t.default:
        _turned_sum(node, one, other, fixed)
        return
    for first, second in ((one, other), (other, one)):
        if _is_zero(first, fixed) and _alike(second, node):
            _replace(node, second)
            return
        adding: Any = ADDED.get(second.target) if len(second.users) == 1 else None
        if adding and shape(second) == shape(node):
            source: Any = first.args[0] if first.target is aten.expand.default else first
            free = len(source.users) == 1 and source.target in PRODUCTS
            # Views of a stack count on how it lies in memory; matrices are only ever turned.
            matrix = second.target is aten.mm.default
            if matrix or (_alike(source, node) if free else _plain(node)):
                node.target = adding[free]
                node.args = (source, *second.args)
                return


def _product(node: fx.Node, fixed: set[fx.Node]) -> None:
    """Adds no product to zeros."""
    if _is_zero(node.args[0], fixed):
        node.target = next(one for one, adding in ADDED.items() if node.target in adding)
        node.args = node.args[1:]


def _is_zero(source: Any, fixed: set[fx.Node]) -> bool:
    """Whether a node gives zeros, or a view of some, that nothing changes in place."""
    while isinstance(source, fx.Node) and source.target in (*VIEWS, aten.expand.default):
        source = source.args[0]
    return isinstance(source, fx.Node) and source.target in ZEROS and source not in fixed


def _alike(one: fx.Node, other: fx.Node) -> bool:
    """Whether two results have the same shape and lie in memory alike."""
    first, second = (node.meta.get("tensor_meta") for node in (one, other))
    if first is None or second is None or not hasattr(first, "stride"):
        return False
    kinds = [(own.shape, own.stride, own.dtype) for own in (first, second)]
    return kinds[0] == kinds[1]


def _turned_sum(node: fx.Node, one: fx.Node, other: fx.Node, fixed: set[fx.Node]) -> None:
    """A sum of two transposed matrices as the transpose of their sum."""
    with node.graph.inserting_before(node):
        total = node.graph.call_function(aten.add.Tensor, (one.args[0], other.args[0]))
        turned = node.graph.call_function(aten.t.default, (total,))
    found: Any = node.meta["tensor_meta"]
    total.meta["tensor_meta"] = found._replace(shape=torch.Size(reversed(found.shape)))
    turned.meta = node.meta
    for user in [*node.users]:
        if user.target is aten.t.default:
            _replace(user, total)
    _replace(node, turned)
    for spent in {one, other}:
        if not spent.users:
            node.graph.erase_node(spent)
    _sum(total, fixed)


def _once(graph: fx.Graph, fixed: set[fx.Node]) -> None:
    """Computes the same thing of the same things once."""
    seen: dict[Any, fx.Node] = {}
    for node in [*graph.nodes]:
        if node.op != "call_function" or node in fixed or fixed & {*node.all_input_nodes}:
            continue
        if node.target is not operator.getitem and not hasattr(node.target, "_schema"):
            continue
        drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if drawn or node.is_impure():
            continue
        key = (node.target, repr(node.args), repr(node.kwargs))
        if key in seen:
            _replace(node, seen[key])
        else:
            seen[key] = node


def shortest(target: Any) -> Callable[..., Any]:
    """The way into an operation that costs Python least: its own function or method."""
    name = getattr(target, "_schema", None) and target._schema.name
    if not name or not name.startswith("aten::"):
        return target
    name = name.removeprefix("aten::")
    for place in (torch, Tensor):
        found = getattr(place, name, None)
        if found is not None and type(found).__name__ in (
            "builtin_function_or_method",
            "method_descriptor",
        ):
            return found
    return target
