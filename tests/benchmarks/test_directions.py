"""The two ways to pull back that are measured are the same as the engine's."""

import pytest
from benchmarks.compiled import convolutional, row_by_row
from benchmarks.directions import differ, ways
from benchmarks.speed import prepare
from torch import nn

from datadistill.models import LeNet


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # torch's own
@pytest.mark.parametrize("module", [LeNet(), convolutional(), row_by_row()])
def test_forward_over_reverse_is_reverse_over_reverse_and_ours(module: nn.Module) -> None:
    settings = {"steps": 1, "epochs": 1, "batch_size": 20, "dtype": "float64"}
    found = ways(prepare(module, (1, 28, 28), 1, **settings))
    assert len(found) == 3
    assert differ([way() for way in found.values()]) < 1e-10
