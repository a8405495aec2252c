import pytest
from benchmarks.memory import growth, kept_weights


@pytest.mark.skipif("sys.platform == 'win32'", reason="needs the resource module")
def test_memory_of_back_gradient_grows_by_the_kept_weights_alone_and_in_segments_by_few() -> None:
    few, many, in_ten_segments = (
        growth(side, updates, 1, "mlp", 64)
        for side, updates in [("1", 40), ("1", 100), ("10", 100)]
    )
    kept = kept_weights(60, 1, "mlp")
    assert 0.8 * kept < many - few < 1.5 * kept
    assert in_ten_segments < few  # 10 beginnings and 10 of one segment, not 40
