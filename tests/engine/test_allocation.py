import platform

import pytest

from tests.processes import finished

PAGES = 8 * 2**20 // 4096  # of one tensor
FAULTS = """
import resource
import torch
from datadistill.engine.allocation import keep_freed_memory

kept = keep_freed_memory()
for counted in (False, True):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        torch.ones(2 * 2**20) + torch.ones(2 * 2**20)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")


@glibc
def test_freed_memory_is_used_again_and_not_asked_for_anew() -> None:
    kept, faults = finished("-c", FAULTS).stdout.split()
    assert kept == "True"
    assert int(faults) < PAGES  # glibc as it is asks for up to 150 tensors


@glibc
def test_memory_is_allocated_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert finished("-c", FAULTS).stdout.startswith("False")
