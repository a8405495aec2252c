"""Arrays and tensors of users: taken where their meaning is clear, otherwise a DataError."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import datadistill as dd
from datadistill.errors import DataError

IMAGES = np.random.default_rng(0).normal(size=(20, 1, 28, 28)).astype(np.float32)
LABELS = np.arange(20) % 10
TENSOR = torch.from_numpy(IMAGES)
SETTINGS: dict[str, Any] = {
    **{"iterations": 1, "networks": 1, "steps": 1, "epochs": 1},
    **{"validation": 0.0, "keep": "last", "test_networks": 1},
}


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [
        pytest.param(IMAGES[::-1][::-1], LABELS[::-1][::-1], id="turned twice"),
        pytest.param(IMAGES[::-1].copy()[::-1], LABELS[::-1].copy()[::-1], id="negative strides"),
        pytest.param(np.flip(np.flip(IMAGES, 3).copy(), 3), LABELS, id="flipped images"),
        pytest.param(IMAGES.astype(">f4"), LABELS.astype(">i8"), id="big-endian"),
        pytest.param(IMAGES, LABELS.astype(">u2"), id="big-endian labels"),
        pytest.param(np.broadcast_to(IMAGES, IMAGES.shape), LABELS, id="read-only"),
        pytest.param(np.asfortranarray(IMAGES), LABELS.tolist(), id="Fortran order and a list"),
    ],
)
def test_unusual_layouts_are_taken(inputs: Any, labels: Any) -> None:
    data = dd.data.as_data((inputs, labels))
    assert isinstance(data.inputs, torch.Tensor)
    assert np.array_equal(data.inputs.numpy(), IMAGES)
    assert np.array_equal(data.labels.numpy(), LABELS)


UNUSABLE = {
    "object": (IMAGES.astype(object), LABELS, "not numbers"),
    "object labels": (IMAGES, LABELS.astype(object), "type object"),
    "complex": (IMAGES + 1j, LABELS, "complex"),
    "complex tensor": (TENSOR + 1j, LABELS, "complex64"),
    "structured": (np.zeros(20, [("a", "f4")]), LABELS, "not an array"),
    "dates": (IMAGES, np.zeros(20, "M8[s]"), "datetime64"),
    "SciPy": (scipy.sparse.csr_array(IMAGES.reshape(20, -1)), LABELS, "sparse inputs"),
    "sparse": (TENSOR.to_sparse(), LABELS, "sparse tensor"),
    "sparse labels": (TENSOR, torch.from_numpy(LABELS).to_sparse(), "sparse tensor"),
    "float8": (TENSOR.to(torch.float8_e4m3fn), LABELS, "float8_e4m3fn"),
    "float8 labels": (TENSOR, torch.ones(20).to(torch.float8_e5m2), "float8_e5m2"),
    "meta": (TENSOR.to("meta"), LABELS, "on meta"),
    "masked": (np.ma.masked_array(IMAGES, IMAGES > 0), LABELS, "masked"),
    "too large": (IMAGES, np.full(20, 2**64 - 1, np.uint64), "18446744073709551615"),
    "ragged": ([[1.0, 2.0], [3.0]], [0, 1], "not an array"),
    "no array": (None, LABELS, "None for inputs"),
    "one number": (np.float32(3), np.int64(1), "single value"),
    "one label": (IMAGES, np.int64(1), "single value"),
    "NaN targets": (IMAGES, np.full(20, np.nan), "NaN"),
    "a class number that is none": (IMAGES, np.full(20, 2**30), "labels up to"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_what_has_no_clear_meaning_is_a_data_error(case: str) -> None:
    inputs, labels, message = UNUSABLE[case]
    with pytest.raises(DataError, match=message) as caught:
        dd.data.as_data((inputs, labels))
    assert caught.value.remedy
    if isinstance(inputs, torch.Tensor) and isinstance(labels, torch.Tensor):
        with pytest.raises(DataError, match=message):
            dd.LabelledData(inputs, labels)


@pytest.mark.parametrize("case", ["object", "sparse", "float8", "SciPy"])
def test_distill_and_evaluate_refuse_them_before_they_start(case: str) -> None:
    inputs, labels, message = UNUSABLE[case]
    with pytest.raises(DataError, match=message):
        dd.distill((inputs, labels), dd.models.Linear(), **SETTINGS)
    distilled = dd.distill((IMAGES[::-1], LABELS[::-1]), dd.models.Linear(), **SETTINGS)
    with pytest.raises(DataError, match=message):
        dd.evaluate(distilled, (inputs, labels), networks=1)
