"""A run folder: the files of one run."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import files
from ...artefact.reader import FILE_NAME
from ...engine import Engines
from ...errors import RunError
from ...lock import locked
from ..config import RunConfig
from .checkpoint import checkpoints_in
from .results import read_results, write_results
from .yaml_files import write_yaml


@dataclass(frozen=True)
class RunFolder:
    """The places of a run's files.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """All settings, as resolved."""
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        """The figures of every outer step."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def distilled(self) -> Path:
        """The artefact."""
        return self.path / FILE_NAME

    @property
    def picture(self) -> Path:
        """The picture of the artefact."""
        return self.path / "distilled.png"

    @property
    def decoded(self) -> Path:
        """The distilled data as text, where they are not images."""
        return self.path / "distilled.md"

    @property
    def best(self) -> Path:
        """The best distilled data on held-out training data."""
        return self.path / "best.safetensors"

    @property
    def last(self) -> Path:
        """The distilled data after the last outer step."""
        return self.path / "last.safetensors"

    @property
    def report(self) -> Path:
        """The page about the run."""
        return self.path / "report.html"

    @property
    def results(self) -> Path:
        """Figures."""
        return self.path / "results.json"

    @property
    def tensorboard(self) -> Path:
        """The folder of TensorBoard's files."""
        return self.path / "tensorboard"

    @property
    def lock(self) -> Path:
        """The file that the process at work holds locked."""
        return self.path / ".lock"

    @property
    def is_new(self) -> bool:
        """Whether there is no run here yet."""
        return not self.config.exists() and not checkpoints_in(self.checkpoints)

    def make(self) -> None:
        """Makes the folders."""
        with files.reporting(self.path):
            files.make(self.checkpoints)

    def clean(self) -> None:
        """Removes what writes that were broken off have left behind; only under the lock."""
        with files.reporting(self.path):
            for leftover in [*files.leftovers(self.path), *files.leftovers(self.checkpoints)]:
                files.remove(leftover)

    def clear(self) -> None:
        """Removes the run's files; others in the folder stay. Refused while a process is at work.

        The configuration and the checkpoints go last: until then it is still a run.
        """
        if self.is_new:
            return
        self.check()
        results = [self.distilled, self.best, self.last, self.picture, self.decoded, self.results]
        logs = [self.report, self.metrics, self.config]
        with locked(self.lock), files.reporting(self.path):
            shutil.rmtree(self.tensorboard, ignore_errors=True)
            for path in [*results, *logs, *self.checkpoints.glob("*")]:
                if path.exists():
                    files.remove(path)

    def check(self) -> None:
        """Refuses a folder with a link to a place outside."""
        home = self.path.resolve()
        places = [self.config, self.metrics, self.checkpoints, self.results, self.lock]
        made = [self.distilled, self.best, self.last, self.report]
        for place in [*places, *made, self.tensorboard]:
            if not place.resolve().is_relative_to(home):
                raise RunError(
                    f"{place} is a link to a place outside the run folder.",
                    "Replace it by the file or folder itself.",
                )

    def write_config(self, config: RunConfig, engines: Engines, repeat: str) -> None:
        """Writes ``config.yaml``.

        Args:
            config: The settings.
            engines: The engines that compute the run, which stand there as comments.
            repeat: How to make such a run again.
        """
        comments = [
            f"All settings of this run. To repeat it: {repeat}",
            *(f"Computed from outer step {one.outer_step} on by: {one}." for one in engines),
        ]
        files.write_atomically(self.config, write_yaml(config, *comments), make_folder=False)

    def read_results(self) -> dict[str, Any]:
        """The sections of ``results.json``; an error if the file is damaged."""
        return read_results(self.results)

    def write_results(self, part: dict[str, Any]) -> None:
        """Writes the run's own section of ``results.json``; the others stay."""
        write_results(self.results, {"run": part}, indent=2, make_folder=False)


def free_folder(name: str) -> RunFolder:
    """``runs/NAME``, or the first of ``runs/NAME-2``, ``-3`` … in which there is no run."""
    number = 1
    while True:
        folder = RunFolder(Path("runs") / (name if number == 1 else f"{name}-{number}"))
        if folder.is_new:
            return folder
        number += 1
