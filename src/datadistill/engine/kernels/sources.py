"""The C code of the kernels, and how it is compiled."""

from pathlib import Path

NAMES = (
    *("averaging", "convolution", "direct", "last", "normalisation", "pooling", "response"),
    *("windows", "winograd"),
)
SOURCES = [Path(__file__).with_name(f"{name}.c") for name in NAMES]
FLAGS = ["-O3", "-std=gnu11", "-fno-math-errno", "-shared", "-fPIC"]
