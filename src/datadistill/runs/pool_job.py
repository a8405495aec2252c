"""From the names on a command line to a pool, by one process or several."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import TypeAdapter

from .. import data, models
from ..core.device import resolve_device
from ..errors import ConfigError
from ..evaluation import DEFAULT_BYTES
from ..pools import Part, Pool
from ..pools.pretraining import Pretraining
from ..pools.settings import PoolChoices, PoolSettings
from ..progress import ProgressCallback, silent
from ..showing import Tell
from .experiment import check_named
from .team.handover import Named
from .team.processes import Processes
from .team.worker import run_worker


@dataclass(frozen=True, kw_only=True)
class PoolJob(PoolChoices):
    """A pool to be made, in names that every process can find.

    Attributes:
        data: Data set by name, a folder of images or an .npz file.
        pool: Folder of the pool.
        data_dir: Data folder.
        size: Height and width to resize images to.
        channels: 1 for grey, 3 for colour images.
        memory: Bound of bytes for the networks that are trained side by side.
    """

    data: str
    pool: Path
    data_dir: Path | None = None
    size: int | None = None
    channels: Literal[1, 3] | None = None
    memory: int = DEFAULT_BYTES

    def __post_init__(self) -> None:
        for name in ("threads", "memory"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}.", "Set it to at least 1.")

    @property
    def named(self) -> Named:
        """The settings that may name Python code."""
        return {"model": self.model, "data": self.data}

    @property
    def wanted(self) -> dict[Part, int]:
        """How many networks each part will have."""
        return {"train": self.networks, "held-out": self.held_out}

    def prepare(self, team: Processes, progress: ProgressCallback = silent) -> Pretraining:
        """Reads the data and makes the network."""
        torch.set_num_threads(self.threads or team.threads())
        device = team.device(resolve_device(self.device))
        train, test = data.load(self.data, self.data_dir, size=self.size, channels=self.channels)
        module = models.find_for(self.model, train.input_shape, train.classes, self.model_args)
        settings = PoolSettings.preset(self.preset, train.name, len(train)).changed(
            **{n: getattr(self, n) for n in ("epochs", "lr", "batch_size", "scheme", "validation")},
            seed=self.seed,
        )
        made = Pretraining.prepare(
            self.pool,
            train,
            module,
            settings,
            test=test,
            device=device,
            memory=self.memory,
            progress=progress,
        )
        made.job = {"job": json.loads(_ADAPTER.dump_json(self))}
        return made

    def make(self, team: Processes, progress: ProgressCallback, tell: Tell | None) -> Pool:
        """Makes or extends the pool, as the process that leads."""
        return self.prepare(team, progress).lead(self.wanted, team, tell)


_ADAPTER = TypeAdapter(PoolJob)


def take_part(team: Processes, named: Named) -> None:
    """Trains a part of the networks that process 0 has found missing, if it begins at all.

    Args:
        team: The processes.
        named: The Python code that the user has named, by setting; no other is imported.
    """
    assert team.link is not None
    content = team.link.receive()
    if content is None:
        return
    told: dict[str, Any] = json.loads(content)
    job = _ADAPTER.validate_python(told["job"])
    check_named(job, named)
    job.prepare(team).follow(content, team)


def worker(handover: bytes) -> None:
    """Takes part as a process that :mod:`.team.launch` has started."""
    run_worker(take_part, handover)
