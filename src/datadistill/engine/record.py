"""The record of an engine: all that is known to change the last bits of what it computes."""

import hashlib
import os
import platform
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from ..core.engine import Engine
from ..core.network import Network
from ..core.values import titled
from .choice import chosen
from .fast import FastEngine
from .kernels.library import TURNED_OFF, Kernels
from .stacked import stacked
from .traced import kernels_of

NO_KERNELS = "none"
NOT_NEEDED = "not needed"
LIMITS = ("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Variables that keep torch's libraries from using what the processor has."""
PROCESSOR = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features")
"""Lines of ``/proc/cpuinfo`` by which torch's libraries choose their code."""
VECTORS = ("sse", "avx", "fma", "f16c", "amx", "asimd", "sve", "sme", "bf16", "i8mm", "neon")
"""How those features begin that change results."""

HASH = re.compile("[0-9a-f]{32}")

Count = Annotated[int, Field(ge=1, le=10**12)]
Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


class EngineRecord(BaseModel):
    """The engine that computed some outer steps, up to the next record's or the last."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    outer_step: Count = 1
    """The first outer step that it computed; one after the last if it made the test alone."""
    engine: Literal["fast", "plain"]
    stacked: bool
    """Whether networks were computed side by side, layer by layer."""
    compiled: bool
    """Whether updates were compiled by torch.compile."""
    traced: bool = False
    """Whether updates were straight-line code, traced once."""
    kernels: Name
    """The hash of the C kernels, or ``none: `` and why."""
    processor: Name
    """Its kind, what torch uses of it, and a hash of its features; or the GPU."""
    threads: Count
    processes: Count
    torch: Name

    __repr__ = titled

    @property
    def has_kernels(self) -> bool:
        """Whether C kernels computed convolutions."""
        return not self.kernels.startswith(NO_KERNELS)

    def __str__(self) -> str:
        ways = ("stacked", "compiled", "traced")
        how = [f"{self.engine} engine", *(way for way in ways if getattr(self, way))]
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        processes = "1 process" if self.processes == 1 else f"{self.processes} processes"
        return ", ".join(
            [
                *how,
                f"kernels {_text(self.kernels)}",
                self.processor,
                threads,
                processes,
                f"torch {self.torch}",
            ]
        )

    def differences(self, now: "EngineRecord") -> list[str]:
        """What differs from another engine and changes results, each as ``name: this → that``."""
        names = [name for name in type(self).model_fields if name not in ("outer_step", "kernels")]
        if self.has_kernels or now.has_kernels:  # the reason why there are none changes nothing
            names.insert(1, "kernels")
        pairs = [(name, getattr(self, name), getattr(now, name)) for name in names]
        return [f"{name}: {_text(was)} → {_text(is_)}" for name, was, is_ in pairs if was != is_]

    def settings(self) -> dict[str, str | int]:
        """The settings that ask for this engine."""
        kernels = "kernels" if self.has_kernels else "torch"
        if self.kernels == f"{NO_KERNELS}: {NOT_NEEDED}":
            kernels = "fast"
        name = "plain" if self.engine == "plain" else kernels
        return {"engine": name, "threads": self.threads, "processes": self.processes}


Engines = tuple[EngineRecord, ...]
"""The engines that computed a result, in order; none if they are not known."""


def continued(engines: Engines, outer_step: int, now: EngineRecord) -> Engines:
    """The engines of a result of which ``now`` computes an outer step.

    Args:
        engines: Those so far.
        outer_step: The outer step.
        now: The engine that computes it.
    """
    if engines and not engines[-1].differences(now):
        return engines
    return (*engines, now.model_copy(update={"outer_step": outer_step}))


def record_of(engine: Engine, whole: Network, threads: int, processes: int) -> EngineRecord:
    """The record of an engine, which is the one in use (:func:`.choice.using`).

    Args:
        engine: What makes the outer steps.
        whole: The network that is tested; of it, the engine may have only the last layers.
        threads: Processor threads of each process.
        processes: How many processes share the work.
    """
    fast = engine if isinstance(engine, FastEngine) else None
    used = [fast.vectorised.stacked, stacked(whole)] if fast else []
    found = [one.kernels for one in used if one]
    if fast and fast.traced:
        found.append(kernels_of(fast.network))
    return EngineRecord(
        engine="fast" if fast else "plain",
        stacked=bool(fast and fast.vectorised.stacked),
        compiled=bool(fast and fast.functions and not fast.functions.failed),
        traced=bool(fast and fast.traced),
        kernels=_kernels(found),
        processor=_processor(whole.device),
        threads=threads,
        processes=processes,
        torch=torch.__version__,
    )


def _text(value: object) -> str:
    """A value as messages have it: the beginning of a hash tells it from others."""
    text = str(value)
    return text[:8] if HASH.fullmatch(text) else text


def _kernels(used: Sequence[Kernels | None]) -> str:
    found = next((one for one in used if one), None)
    if found:
        return str(found)
    return f"{NO_KERNELS}: {NOT_NEEDED if chosen() in ('fast', 'kernels') else TURNED_OFF}"


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    abilities = torch.backends.cpu.get_cpu_capability()
    on = "" if device.type == "cpu" else f" {device.type}"
    return f"{platform.machine()}{on} {abilities} {_features()}"


@cache
def _features() -> str:
    """A hash of what numerical libraries ask of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        lines = [platform.processor()]
    found = [f"{name}={os.environ[name]}" for name in LIMITS if name in os.environ]
    for line in lines:
        name, _, value = (part.strip() for part in line.partition(":"))
        if name in ("flags", "Features"):
            value = " ".join(sorted(one for one in value.split() if one.startswith(VECTORS)))
        if name in PROCESSOR:
            found.append(f"{name}={value}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:8]
