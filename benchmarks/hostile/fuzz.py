"""Coverage-guided fuzzing of every reader with atheris (``pip install -e .[fuzz]``).

Each kind gets its share of the time in a process of its own. Inputs that reach new lines of
datadistill are kept in a corpus, and are changed further by libFuzzer and by our own mutations.
The next run continues with the corpus if it is given the same folder.
"""

import importlib.util
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .counts import Counts

MEMORY = 2048  # megabytes
SEEDS = 50


def run(minutes: float, kinds: list[str], corpus: Path | None = None) -> Counts:
    """Fuzzes all kinds, or some, for a time.

    Args:
        minutes: How long, in all.
        kinds: Which; all by default.
        corpus: Where inputs that reach new lines are kept, a folder for each kind.
    """
    if importlib.util.find_spec("atheris") is None:
        sys.exit("Fuzzing needs atheris: pip install -e .[fuzz]")
    from .trial import FUZZED, keep

    total, chosen = Counts(), kinds or list(FUZZED)
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            seconds = max(round(60 * minutes / len(chosen)), 5)
            seeds = (corpus or Path(folder, "corpus")) / re.sub(r"[^a-z0-9]+", "-", name)
            runs, message = _fuzzed(name, Path(folder), seeds, seconds)
            broken = sorted(Path(folder).glob("broken-*"))
            for path in broken:
                place = keep(name, path.name.removeprefix("broken-")[-16:], path.read_bytes())
                total.details.append(f"{name}: {message}; kept as {place}")
            total.add(Counts(tried=runs, untyped=len(broken)))
            kept = sum(1 for _ in seeds.iterdir())
            said = f"{runs:,} inputs, {kept:,} in the corpus, {len(broken)} broke a promise"
            print(f"{name}: {said}", flush=True)
            if not runs:
                total.details.append(f"{name}: nothing was tried: {message}")
                total.add(Counts(untyped=1))
    return total


def _fuzzed(name: str, folder: Path, seeds: Path, seconds: int) -> tuple[int, str]:
    """Fuzzes one kind; returns how many inputs were tried, and the last error."""
    seeds.mkdir(parents=True, exist_ok=True)
    options = [
        *(f"-max_total_time={seconds}", "-timeout=10", f"-rss_limit_mb={MEMORY}"),
        *(f"-artifact_prefix={folder}/broken-", "-print_final_stats=1", "-max_len=1000000"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.hostile.fuzz", name, str(seeds), *options],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    lines = done.stderr.splitlines()
    runs = [line.split()[-1] for line in lines if "number_of_executed_units" in line]
    errors = [line for line in [*lines, *done.stdout.splitlines()] if "Error" in line]
    if not runs and done.returncode:
        return 0, done.stderr[-500:]
    return int(runs[-1]) if runs else 0, errors[-1] if errors else ""


def main() -> None:
    """The process that fuzzes one kind: its name, the corpus, then options of libFuzzer."""
    import atheris  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

    fuzzer: Any = atheris
    with fuzzer.instrument_imports(include=["datadistill"]):
        from .trial import FUZZED, Place

    place = Place(FUZZED[sys.argv[1]])
    corpus = Path(sys.argv[2])
    (corpus / "valid").write_bytes(place.content)
    for number in range(SEEDS):
        (corpus / str(number)).write_bytes(place.case(0, number))

    def try_one(content: bytes) -> None:
        counts = place.judge(content)
        if counts.failed:
            raise AssertionError(f"Error: {counts.details}")

    def mutate(content: bytes, size: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if draw.random() < 0.5:
            return fuzzer.Mutate(content, size)
        try:
            return place.kind.change(content, draw)[:size]
        except Exception:  # it is no longer what our mutations know
            return fuzzer.Mutate(content, size)

    fuzzer.Setup(sys.argv[:1] + sys.argv[2:], try_one, custom_mutator=mutate)
    fuzzer.Fuzz()


if __name__ == "__main__":
    main()
