"""Speed of wide networks against thirty lines of plain PyTorch, as in :mod:`.plain_loop`.

The quick setting has a third of the updates and of the minibatch: 10 steps × 1 epoch.
"""

from typing import Any

from benchmarks.plain_loop import WIDE, rows_of


def measure(*, quick: bool = False) -> dict[str, Any]:
    """All of them."""
    cases = WIDE
    if quick:
        cases = {n: one._replace(minibatch=one.minibatch // 3) for n, one in WIDE.items()}
    return {"threads": 1, "rows": rows_of(cases, quick=quick, epochs=1 if quick else 3)}
