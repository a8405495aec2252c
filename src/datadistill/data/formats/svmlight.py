"""The svmlight text format of the LIBSVM site: a label and ``index:value`` pairs a line."""

import io
from pathlib import Path

import numpy as np

from .unpack import damaged, unpack


def read_svmlight(path: Path, values: int, at_most: int) -> tuple[np.ndarray, np.ndarray]:
    """Reads a dense array (examples, values) and the labels.

    Args:
        path: The file, compressed or not.
        values: How many values each example has.
        at_most: How many bytes of text it can contain.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import

    text = unpack(path, at_most)
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
