"""``datadistill pretrain``: make or extend a pool of pre-trained networks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from ..core.seam import split_arguments
from ..errors import ConfigError
from ..hints import command, flag
from ..pools.settings import PoolChoices
from .choices import MEGABYTE, DataChoice
from .console import out

if TYPE_CHECKING:
    from ..pools import Pool
    from ..runs.pool_job import PoolJob
    from ..runs.team.processes import Processes


@dataclass(frozen=True)
class Pretrain(PoolChoices, DataChoice):
    """Train a pool of networks on a data set, many side by side.

    Finished networks are kept: the same command continues an interrupted run, and with more
    --networks or --held-out it extends the pool.

    Examples:
        datadistill pretrain mnist
        datadistill pretrain usps --networks 100 --held-out 50 --pool pools/usps
    """

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    """Data set by name (datadistill data lists them), a folder of images, an .npz or .csv
    file."""
    pool: Path | None = None
    """Folder of the pool. By default pools/DATA-MODEL."""
    memory: int = 1024
    """Memory in megabytes for the networks that are trained side by side."""
    processes: int = 1
    """Processes on this machine that share the networks; torchrun's settings take precedence."""

    def run(self) -> None:
        """Trains what is missing, and prints the accuracies."""
        from ..runs.pool_job import take_part, worker
        from ..runs.team.processes import together

        if self.processes < 1:
            raise ConfigError(f"processes is {self.processes}.", "Set processes to at least 1.")
        job = self._job()
        with together(self.processes, worker, named=job.named, debug=self.debug) as team:
            if team.leads:
                self._tell(self._made(job, team))
            else:
                take_part(team, job.named)

    def _made(self, job: PoolJob, team: Processes) -> Pool:
        with self.bars() as progress:
            made = job.make(team, progress, None if self.quiet else self.say)
        if self.threads is None:
            count = f"--threads {team.threads()} --processes {team.size}"
            self.say(f"For a bit-identical result, use {count}.")
        return made

    def _tell(self, pool: Pool) -> None:
        from ..pools import PARTS

        for part in PARTS:
            if count := pool.count(part):
                tested = _figure(pool.accuracies(part, test=True))
                validated = _figure(pool.accuracies(part))
                reached = f"; {validated} on held-out training data" if validated else ""
                text = f"{count:,} {part} networks: {tested} on test data{reached}"
                out.print(text, markup=False)
        out.print(f"pool: {pool.path}", markup=False)
        use = ("--initialization", "random-pretrained", "--pool", pool.path)
        self.say(f"Use it: {command('distill', '--data', self.data, *self._flags(), *use)}")

    def _flags(self) -> list[object]:
        """What distill must be told of data, network and images, to fit the pool."""
        given = {name: getattr(self, name) for name in ("data_dir", "model", "size", "channels")}
        named = {name: value for name, value in given.items() if value not in (None, "lenet")}
        words: list[object] = [w for name, value in named.items() for w in (flag(name), value)]
        return [*words, "--model-args", *self.model_args] if self.model_args else words

    def _job(self) -> PoolJob:
        from ..data import DATA_SETS
        from ..runs.pool_job import PoolJob

        own = self.data not in DATA_SETS and Path(self.data).exists()
        model, arguments = split_arguments(self.model, self.model_args)
        choices: dict[str, Any] = {**self.choices(), "model": model, "model_args": arguments}
        name = f"{Path(self.data).stem}-{model.rpartition(':')[2].lower()}"
        return PoolJob(
            data=str(Path(self.data).absolute()) if own else self.data,
            data_dir=self.data_dir and self.data_dir.absolute(),
            size=self.size,
            channels=self.channels,
            pool=self.pool or Path("pools") / name,
            memory=self.memory * MEGABYTE,
            **choices,
        )


def _figure(accuracies: Sequence[float]) -> str:
    if not accuracies:
        return ""
    percent = [100 * one for one in accuracies]
    deviation = f" ± {statistics.stdev(percent):.2f}" if len(percent) > 1 else ""
    return f"{statistics.mean(percent):.2f}{deviation} %"
