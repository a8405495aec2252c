import json

import pytest
from benchmarks.memory import MODULES

from tests.processes import finished


def growth(side: str, updates: int) -> int:
    """What ``benchmarks.memory.growth`` tells, by a process that need not import torch again."""
    done = finished("-m", "benchmarks.memory", side, str(updates), "1", "mlp", "64")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif("sys.platform == 'win32'", reason="needs the resource module")
def test_memory_of_back_gradient_grows_by_the_kept_weights_alone_and_in_segments_by_few() -> None:
    few, many, in_ten_segments = growth("1", 40), growth("1", 80), growth("10", 80)
    kept = 40 * sum(w.nbytes for w in MODULES["mlp"]().parameters())
    assert 0.8 * kept < many - few < 1.5 * kept
    assert in_ten_segments < few  # 10 beginnings and 8 of one segment, not 40
