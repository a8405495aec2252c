"""Libraries that come with an installed package, compiled for the common processors.

    python -m datadistill.engine.kernels.shipped

compiles them into the package, before a wheel is built from it. At run time the one for the most
able of the levels is taken that the host has. Where there is none, e.g. in a checkout, the code is
compiled on the host.
"""

import platform
import subprocess
import sys
from pathlib import Path

from .kept import hash_of
from .sources import FLAGS, HEADERS, SOURCES

FOLDER = Path(__file__).with_name("built")
CPUINFO = Path("/proc/cpuinfo")
V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = {"x86-64-v4": V4, "x86-64-v3": V3, "x86-64-v2": {"sse4_2", "ssse3", "popcnt"}}
"""The levels of x86-64, the most able first, with what tells that a processor has them."""


def shipped(real: str, folder: Path = FOLDER) -> bytes | None:
    """The library for the host and a floating-point type, if one of these sources is there."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    for level in levels():
        path = folder / _name(real, level)
        if path.is_file():
            return path.read_bytes()
    return None


def levels() -> list[str]:
    """The levels that the host has, the most able first."""
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return []
    flags = {*next((line.split() for line in lines if line.startswith("flags")), [])}
    return [level for level, needed in LEVELS.items() if needed <= flags]


def compile_for(real: str, level: str, folder: Path = FOLDER, compiler: str = "cc") -> Path:
    """Compiles one of them; returns the file.

    Raises:
        subprocess.CalledProcessError: If the compiler fails.
    """
    folder.mkdir(exist_ok=True)
    path = folder / _name(real, level)
    flags = [*FLAGS, f"-march={level}", f"-DREAL={real}"]
    subprocess.run([compiler, *flags, "-o", str(path), *map(str, SOURCES), "-lm"], check=True)
    return path


def _name(real: str, level: str) -> str:
    content = b"".join(source.read_bytes() for source in (*SOURCES, *HEADERS))
    return f"{hash_of(content)}-{real}-{level}.so"


if __name__ == "__main__":
    for each in LEVELS:
        compile_for("float", each)
        compile_for("double", each)
