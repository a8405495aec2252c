import platform

import pytest

from tests.processes import finished

TENSORS = 50
PAGES = 8 * 2**20 // 4096
FAULTS = f"""
import resource
import torch
from datadistill.engine.allocation import keep_freed_memory

kept = keep_freed_memory()
torch.ones(2 * 2**20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TENSORS}):
    torch.ones(2 * 2**20) + torch.ones(2 * 2**20)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")


@glibc
def test_freed_memory_is_used_again_and_not_asked_for_anew() -> None:
    done = finished("-c", FAULTS)
    kept, faults = done.stdout.split()
    assert kept == "True"
    # Without it, all tensors are asked for anew. Three of them are there at the same time.
    assert int(faults) < 3 * TENSORS * PAGES / 10


@glibc
def test_memory_is_allocated_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert finished("-c", FAULTS).stdout.startswith("False")
