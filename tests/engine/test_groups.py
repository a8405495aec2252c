import threading
import time
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadistill.engine.groups import LARGEST_GROUP, Groups, StoppedError


@given(
    networks=st.integers(1, 300),
    each=st.integers(1, 2**20),
    besides=st.integers(0, 2**20),
    memory=st.integers(1, 2**24),
    threads=st.integers(1, 9),
)
def test_groups_fit_into_memory_and_hold_every_network_once(
    networks: int, each: int, besides: int, memory: int, threads: int
) -> None:
    groups = Groups.within(memory, networks, each=each, besides=besides, threads=threads)
    assert [n for numbers in groups.numbers for n in numbers] == [*range(networks)]
    sizes = [len(numbers) for numbers in groups.numbers]
    assert max(sizes) <= LARGEST_GROUP
    assert groups.workers <= threads
    assert (groups.workers == 0) == (threads == 1 or len(sizes) == 1)
    if besides + each <= memory:
        assert max(groups.workers, 1) * (besides + groups.size * each) <= memory
    else:
        assert groups.size == 1
        assert groups.workers <= 1
    one_thread = Groups.within(memory, networks, each=each, besides=besides, threads=1)
    assert groups.numbers == one_thread.numbers


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_results_are_in_the_order_of_the_groups(workers: int) -> None:
    def work(numbers: range, wanted: Callable[[], None]) -> int:
        wanted()
        time.sleep(0.02 if numbers.start == 0 else 0)
        return numbers.start

    assert Groups(7, 2, workers).each(work) == [0, 2, 4, 6]


def test_each_worker_computes_with_one_thread_and_the_setting_comes_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = Groups(4, 1, 2).each(lambda numbers, wanted: torch.get_num_threads())
        assert found == [1, 1, 1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_error_in_one_group_stops_the_others() -> None:
    begun = threading.Barrier(2, timeout=30)
    stopped: list[int] = []

    def work(numbers: range, wanted: Callable[[], None]) -> None:
        begun.wait()
        if numbers.start == 1:
            raise ValueError("this group fails")
        try:
            while True:
                wanted()
                time.sleep(0.001)
        except StoppedError:
            stopped.append(numbers.start)
            raise

    with pytest.raises(ValueError, match="this group fails"):
        Groups(6, 1, 2).each(work)
    assert stopped == [0]  # and groups 2 to 5 were never begun
