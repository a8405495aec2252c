"""A cache folder of the test's own, and a library that tells when it is loaded."""

import shutil
import subprocess
from pathlib import Path

import pytest

from datadistill.engine.kernels.kept import hash_of
from datadistill.notices import warn_once

KEY = "k" * 32
PLANTED = """
#include <fcntl.h>
__attribute__((constructor)) static void run(void) {{ creat("{marker}", 0600); }}
int answer(void) {{ return {answer}; }}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels, empty as yet; warnings that were told before are told again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    warn_once.cache_clear()
    return tmp_path / "cache" / "datadistill" / "kernels"


class Planted:
    """A real library whose constructor leaves a file behind."""

    def __init__(self, folder: Path, answer: int = 1) -> None:
        folder.mkdir()
        self.marker = folder / "marker"
        source, made = folder / "planted.c", folder / "planted.so"
        source.write_text(PLANTED.format(marker=self.marker, answer=answer))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
        self.content = made.read_bytes()
        self.name = f"{KEY}-{hash_of(self.content)}.so"

    @property
    def loaded(self) -> bool:
        return self.marker.exists()


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler: cc")
    return Planted(tmp_path / "planted")
