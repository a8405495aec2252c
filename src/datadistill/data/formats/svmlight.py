"""The svmlight text format of the LIBSVM site: a label and ``index:value`` pairs a line."""

import io
from pathlib import Path

import numpy as np

from .unpack import damaged, unpack

VALUE_BYTES = 16  # of ``index:value``, on average more than any file has
MOST_VALUE_BYTES = 64  # of a single one


def read_svmlight(path: Path, values: int, at_most: int) -> tuple[np.ndarray, np.ndarray]:
    """Reads a dense array (examples, values) and the labels.

    Args:
        path: The file, compressed or not.
        values: How many values each example has.
        at_most: How many examples it can have.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import

    text = unpack(path, at_most * values * VALUE_BYTES)
    if text.count(b"\n") > at_most:  # each would become a whole row
        raise damaged(path, f"has more than {at_most:,} lines, the most possible")
    if max(map(len, text.split(b"\n"))) > values * MOST_VALUE_BYTES:
        raise damaged(path, f"has a line that is longer than {values} values")
    try:
        sparse, labels = load_svmlight_file(
            io.BytesIO(text),
            n_features=values,
            zero_based=False,  # pyright: ignore[reportArgumentType]
        )
    except (ValueError, OverflowError) as error:
        raise damaged(path, f"is not {values} values a line in svmlight format: {error}") from error
    dense = sparse.toarray()
    if not np.isfinite(dense).all():
        raise damaged(path, "has values that are NaN or infinite")
    return dense, labels
