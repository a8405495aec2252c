"""Functions that a trace takes as one operation each, such as calls of C kernels."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, fx

Boxed = Callable[..., Sequence[Tensor]]
"""A function of tensors that gives some."""

_table: ContextVar[list[Boxed] | None] = ContextVar("boxes", default=None)
_library = torch.library.Library("datadistill", "DEF")
_library.define("box(Tensor[] tensors, int number) -> Tensor[]")


def _call(tensors: Sequence[Tensor], number: int) -> list[Tensor]:
    table = _table.get()
    assert table is not None
    return [*table[number](*tensors)]


_library.impl("box", _call, "CompositeExplicitAutograd")


def box(function: Boxed, *tensors: Tensor) -> Sequence[Tensor]:
    """Calls a function; within :func:`boxes`, as one operation that a trace records."""
    table = _table.get()
    if table is None:
        return function(*tensors)
    table.append(function)
    operation: Any = torch.ops.datadistill.box
    return operation(tensors, len(table) - 1)


@contextlib.contextmanager
def boxes() -> Generator[list[Boxed]]:
    """Within it, boxed functions are recorded; yields their table."""
    table: list[Boxed] = []
    before = _table.set(table)
    try:
        yield table
    finally:
        _table.reset(before)


def unbox(graph: fx.Graph, table: Sequence[Boxed]) -> None:
    """Has a graph call the functions themselves."""
    operation: Any = torch.ops.datadistill.box.default
    for node in graph.nodes:
        if node.target is operation:
            tensors, number = node.args
            node.target, node.args = table[number], tuple(tensors)
