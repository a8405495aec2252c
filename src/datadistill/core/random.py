"""Numbered random streams: every draw is a function of (seed, purpose, counters).

No draw touches global state, so a resumed run needs no saved generator, and it does not
matter which process draws a network.
"""

import hashlib

import torch
from torch import Tensor


def stream(seed: int, purpose: str, *counters: int) -> torch.Generator:
    """Returns the generator that belongs to (seed, purpose, counters).

    Args:
        seed: The run's seed.
        purpose: What the numbers are for; streams of different purposes are independent.
        counters: Whatever numbers the draw, e.g. the outer step and the network's index.

    Returns:
        A CPU generator. Draw on the CPU and move the result, so that every device sees
        the same numbers.
    """
    name = "/".join([str(seed), purpose, *map(str, counters)])
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    # Generators take a signed 64-bit seed; the sign carries nothing, so drop it.
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def minibatch(seed: int, outer_step: int, batch_size: int, examples: int) -> Tensor:
    """Returns the indices of the real examples that outer step ``outer_step`` sees.

    The data set is shuffled anew for every pass and the passes are laid end to end, so
    that every minibatch is full and every example is seen once a pass.
    """
    batch_size = min(batch_size, examples)
    first, last = outer_step * batch_size, (outer_step + 1) * batch_size
    passes = range(first // examples, (last - 1) // examples + 1)
    orders = [torch.randperm(examples, generator=stream(seed, "pass", p)) for p in passes]
    start = first - passes[0] * examples
    return torch.cat(orders)[start : start + batch_size]
