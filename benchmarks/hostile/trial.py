"""One hostile file: written, used, and judged by what became of it."""

import contextlib
import random
import shutil
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from datadistill.errors import DataDistillError

from . import artefact_kinds, checkpoint_kinds, data_kinds, run_kinds
from .counts import Counts
from .kinds import Kind, NotFiniteError, SilentChangeError

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (*checkpoint_kinds.KINDS, *run_kinds.KINDS, *data_kinds.KINDS)
}
"""Of the campaign: every kind but artefacts, which have their own."""
FUZZED: dict[str, Kind] = {kind.name: kind for kind in artefact_kinds.KINDS} | KINDS
"""Of coverage-guided fuzzing."""
CASES = Path(__file__).parent / "cases"
"""Files that broke a promise once: KIND/NAME."""
SECONDS = 10.0
MEMORY = 2**30


@dataclass
class Place:
    """A folder with a valid file of a kind, which is changed and restored for every trial."""

    kind: Kind

    def __post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.origin = self.folder / "origin"
        self.origin.mkdir()
        self.valid = self.kind.make(self.origin)
        self.content = self.valid.read_bytes()

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def case(self, seed: int, number: int) -> bytes:
        """The bytes of a case, which depend on nothing else."""
        draw = random.Random(f"{seed} {number} {self.kind.name}")
        return self.kind.change(self.content, draw)

    def use(self, content: bytes) -> None:
        """Uses hostile bytes in place of the valid ones; raises what the program raises."""
        self.valid.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of data that are unusual, but used
            self.kind.use(self.valid)

    def judge(self, content: bytes) -> Counts:
        """What became of a hostile file."""
        counts, begin = Counts(tried=1), time.monotonic()
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak of memory starts again
        try:
            self.use(content)
            counts.used = 1
        except DataDistillError as error:
            counts.refused = 1
            if "\x1b" in str(error) or not error.remedy:
                counts.untyped, counts.details = 1, [f"a message like {error!r}"]
        except SilentChangeError:
            counts.silent, counts.details = 1, ["accepted with other content"]
        except NotFiniteError as error:
            counts.not_finite, counts.details = 1, [f"not finite or out of range {error}"]
        except MemoryError:
            counts.over_memory, counts.details = 1, ["out of memory"]
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {str(error)[:200]} ({where.filename}:{where.lineno})"
            counts.untyped, counts.details = 1, [what]
        seconds, peak = time.monotonic() - begin, _peak()
        if seconds > SECONDS:
            counts.over_time, counts.details = 1, [*counts.details, f"{seconds:.1f} s"]
        if peak > MEMORY:
            counts.over_memory = 1
            counts.details = [*counts.details, f"{peak / 2**20:.0f} MiB"]
        return counts


def _peak() -> int:
    """The most memory that this process has used since the peak was last reset."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def keep(kind: str, name: str, content: bytes) -> Path:
    """Keeps a file that broke a promise; the tests use it from then on."""
    path = CASES / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
