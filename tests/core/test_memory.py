import pytest
from benchmarks.memory import kept_weights, measure


@pytest.mark.skipif("sys.platform == 'win32'", reason="needs the resource module")
def test_memory_of_back_gradient_grows_with_the_updates_by_the_kept_weights_alone() -> None:
    growth = measure("back-gradient", 300, 4) - measure("back-gradient", 30, 4)
    assert growth < 1.5 * (kept_weights(300, 4) - kept_weights(30, 4))
