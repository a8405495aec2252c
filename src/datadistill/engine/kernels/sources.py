"""The C code of the kernels, and how it is compiled."""

from pathlib import Path

NAMES = (
    *("averaging", "chain", "convolution", "direct", "few", "few_narrow", "lanes", "last"),
    *("normalisation", "pooling", "response", "strips", "windows", "winograd"),
)
SOURCES = [Path(__file__).with_name(f"{name}.c") for name in NAMES]
HEADERS = [
    Path(__file__).with_name(name)
    for name in ("blocks.h", "few.h", "lanes.h", "rows.h", "units.h", "vectors.h")
]
FLAGS = ["-O3", "-std=gnu11", "-fno-math-errno", "-shared", "-fPIC"]
