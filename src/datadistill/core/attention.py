"""Attention and recurrent layers by kernels that can be differentiated twice."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from threading import Lock

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextmanager
def twice_differentiable(*, recurrent: bool) -> Generator[None]:
    """Within it, torch takes kernels whose gradients have gradients.

    Fused attention, the inference path of transformer layers and cuDNN's recurrent layers are
    faster, but can be differentiated once at most; the kernels taken instead compute the same.

    Args:
        recurrent: Whether there are recurrent layers. Only then is cuDNN off, which the
            convolutions of all other modules should keep.
    """
    with _ATTENTION, _RECURRENCE if recurrent else nullcontext():
        yield


class _Scope:
    """A process-wide setting, changed while any thread is within the scope.

    The first to enter changes it and the last to leave puts it back, so that threads whose
    forward passes overlap leave it as they found it.
    """

    def __init__(self, change: Callable[[], AbstractContextManager[object]]) -> None:
        self._change = change
        self._changed = ExitStack()
        self._inside = 0
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._changed.enter_context(self._change())
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._changed.close()


@contextmanager
def _math_attention() -> Generator[None]:
    before = torch.backends.mha.get_fastpath_enabled()
    with sdpa_kernel(SDPBackend.MATH):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def _without_cudnn() -> Generator[None]:
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        torch.backends.cudnn.enabled = before


_ATTENTION = _Scope(_math_attention)
_RECURRENCE = _Scope(_without_cudnn)
