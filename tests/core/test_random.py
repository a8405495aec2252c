import torch
from hypothesis import given
from hypothesis import strategies as st

from datadistill.core.random import minibatch, stream


def draw(*key: object) -> list[float]:
    return torch.rand(4, generator=stream(*key)).tolist()  # pyright: ignore[reportArgumentType]


def test_a_stream_is_a_function_of_seed_purpose_and_counters_alone() -> None:
    first = draw(1, "network", 2, 3)
    torch.manual_seed(99)
    torch.rand(7)
    assert draw(1, "network", 2, 3) == first


def test_streams_that_differ_in_anything_differ() -> None:
    keys = [(1, "a"), (2, "a"), (1, "b"), (1, "a", 0), (1, "a", 1), (1, "a", 0, 1), (11, "a")]
    assert len({tuple(draw(*key)) for key in keys}) == len(keys)


def test_the_numbers_never_change_between_versions() -> None:
    # A change here would break the resumption of every run and the meaning of every seed.
    assert int(torch.randint(10**9, (), generator=stream(0, "network", 5))) == 734756523


@given(examples=st.integers(1, 50), batch_size=st.integers(1, 60), passes=st.integers(1, 3))
def test_every_example_is_seen_once_a_pass(examples: int, batch_size: int, passes: int) -> None:
    size = min(batch_size, examples)
    steps = -(-passes * examples // size)
    order = torch.cat([minibatch(3, t, batch_size, examples) for t in range(steps)])
    assert len(order) == steps * size
    for p in range(passes):
        one_pass = order[p * examples : (p + 1) * examples]
        assert sorted(one_pass.tolist()) == list(range(examples))


def test_passes_are_shuffled_differently() -> None:
    first, second = minibatch(0, 0, 20, 20), minibatch(0, 1, 20, 20)
    assert first.tolist() != second.tolist()
