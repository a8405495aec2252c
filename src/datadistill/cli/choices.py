"""Flags that several commands share: which data, which network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import ConfigError
from .console import Common

if TYPE_CHECKING:
    from torch import nn

    from ..artefact import DistilledData
    from ..data import LabelledData

MEGABYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class DataChoice(Common):
    """Where the real data come from."""

    data_dir: Path | None = None
    """Data folder. By default $DATADISTILL_DATA, or the user's cache folder."""
    size: int | None = None
    """Height and width to resize images to. By default the data set's own."""
    channels: Literal[1, 3] | None = None
    """1 for grey images, 3 for colour. By default the data set's own."""

    def load(self, name: str, augment: bool | None = None) -> tuple[LabelledData, LabelledData]:
        """Reads the training and the test split."""
        from .. import data

        return data.load(
            name, self.data_dir, size=self.size, channels=self.channels, augment=augment
        )

    def statistics_for(self, distilled: DistilledData, name: str | None) -> LabelledData | None:
        """The data that running statistics are measured on, if some are named."""
        return self.load_for(distilled, name)[0] if name else None

    def load_for(
        self, distilled: DistilledData, name: str, augment: bool | None = None
    ) -> tuple[LabelledData, LabelledData]:
        """Reads both splits as an artefact means them: its shape, its normalization, its classes.

        Args:
            distilled: The artefact.
            name: The name or path of the data.
            augment: Whether training images are augmented.
        """
        from .. import data
        from ..artefact.real_data import image_shape, real_data

        shape = image_shape(distilled.inputs.shape[2:])
        splits = data.load(
            name,
            self.data_dir,
            size=self.size or shape.get("size"),
            channels=self.channels or shape.get("channels"),
            augment=augment,
            normalization=distilled.normalization,
        )
        train, test = (real_data(distilled, split, split.split) for split in splits)
        return train, test


@dataclass(frozen=True, kw_only=True)
class ThreadsChoice(Common):
    """How many CPU threads compute."""

    threads: int | None = None
    """CPU threads. By default as many as torch takes; another number may change the last bits."""

    def set_threads(self) -> None:
        """Sets the number of threads that is asked for, or tells the one that torch takes."""
        import torch

        if self.threads is None:
            self.say(f"For a bit-identical result, use --threads {torch.get_num_threads()}.")
        elif self.threads < 1:
            raise ConfigError(f"threads is {self.threads}.", "Set threads to at least 1.")
        else:
            torch.set_num_threads(self.threads)


@dataclass(frozen=True, kw_only=True)
class PoolChoice(Common):
    """The pool that distilled data are for."""

    pool: Path | None = None
    """Folder of the pool, for distilled data with a random pre-trained initialization."""

    def with_pool(self, distilled: DistilledData) -> DistilledData:
        """The distilled data with their pool, if one is named."""
        return distilled.with_pool(self.pool) if self.pool else distilled


@dataclass(frozen=True, kw_only=True)
class CodeChoice(Common):
    """Python code of the user's own that an artefact names. It runs only if the user names it."""

    objective: str | None = None
    """Your own objective, if the artefact has one: file.py:Class, or package.module:Class."""
    update_rule: str | None = None
    """Your own update rule, likewise."""
    initialization: str | None = None
    """Your own initialization, likewise."""

    def load_artefact(self, path: Path) -> DistilledData:
        """Reads an artefact, with the code that is named for it."""
        from ..artefact import load
        from ..core.objective import Objective
        from ..runs.seams import import_own

        found = import_own(self)
        distilled = load(path)
        own = found.get("objective")
        return replace(distilled, own_objective=own) if isinstance(own, Objective) else distilled


@dataclass(frozen=True, kw_only=True)
class ModelChoice(Common):
    """A network of the user's own for an artefact."""

    model: str | None = None
    """Your own network: package.module:Class or file.py:Class."""
    model_args: tuple[str, ...] = ()
    """Arguments of its constructor, e.g. --model-args width=64 bias=false."""

    def own_module(self) -> nn.Module | None:
        """The network, if one is named."""
        if self.model is None:
            return None
        from .. import models

        return models.find(self.model, {}, models.parse_arguments(self.model_args))
