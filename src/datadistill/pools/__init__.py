"""Pools of pre-trained networks: files of many networks, and initializations that draw from them.

A pool has two parts that share no network: distillation draws from ``train``, evaluation takes
``held-out``. The format is described in ``docs/pools.md``; :mod:`.pretraining` makes pools.
"""

from typing import TYPE_CHECKING

from ..exports import on_first_use

if TYPE_CHECKING:
    from .index import PARTS, Part
    from .initialization import HeldOutInit, PoolInit, at_most, check_enough
    from .pool import Pool
else:
    __getattr__, __dir__ = on_first_use(__name__)

__all__ = ["PARTS", "HeldOutInit", "Part", "Pool", "PoolInit", "at_most", "check_enough"]
