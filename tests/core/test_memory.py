import pytest
from benchmarks.memory import growth, kept_weights


@pytest.mark.skipif("sys.platform == 'win32'", reason="needs the resource module")
def test_memory_of_back_gradient_grows_by_the_kept_weights_alone_and_in_segments_by_few() -> None:
    few, many, segmented = (
        growth(adjoint, updates, 2, "mlp", 64)
        for adjoint, updates in [
            ("back-gradient", 10),
            ("back-gradient", 70),
            ("back-gradient in 10 segments", 70),
        ]
    )
    kept = kept_weights(60, 2, "mlp")
    assert 0.8 * kept < many - few < 1.5 * kept
    assert segmented - few < 0.3 * kept  # 10 beginnings and 7 of one segment, not 10 in all
