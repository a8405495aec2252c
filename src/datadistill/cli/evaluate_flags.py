"""The flags of ``datadistill evaluate``, and which of them exclude each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from ..core.names import DeviceName
from ..errors import ConfigError
from ..runs.team.environment import world_size
from .choices import CodeChoice, DataChoice, ModelChoice, PoolChoice, ThreadsChoice
from .console import Common, Switch

if TYPE_CHECKING:
    from ..evaluation import OrdinaryTraining


@dataclass(frozen=True, kw_only=True)
class Ordinary(Common):
    """Ordinary training: what the images are worth outside their schedule."""

    ordinary: Switch = False
    """Train on the distilled images as on any data set: shuffled minibatches, no schedule."""
    protocol: Literal["ours", "field", "vico"] = "ours"
    """ours: the schedule of the artefact. field: fresh networks, sgd with momentum 0.9 and weight
    decay 0.0005, 1,000 epochs, as DD-Ranking. vico: 300 epochs, the learning rate × 0.1 at half, as
    the code of DC and DSA. The next four flags change them."""
    hard_labels: Switch = False
    """Train on the most probable class of soft labels, not on the labels themselves."""
    scores: Switch = False
    """With --protocol field or vico: DD-Ranking's label-robust and augmentation-robust scores."""
    optimizer: Literal["sgd", "adam"] | None = None
    """Optimizer of ordinary training: sgd with momentum 0.9 (the default), or adam."""
    lr: float | None = None
    """Learning rate of ordinary training. By default 0.01 for sgd, 0.001 for adam."""
    epochs: int | None = None
    """Epochs of ordinary training. 30 by default."""
    batch_size: int | None = None
    """Batch size of ordinary training. 10 by default."""

    def ordinary_training(self) -> OrdinaryTraining | None:
        """Ordinary training, if it is asked for."""
        flags = ("optimizer", "lr", "epochs", "batch_size")
        given = {name: getattr(self, name) for name in flags if getattr(self, name) is not None}
        given |= {"hard_labels": True} if self.hard_labels else {}
        if self.scores and self.protocol == "ours":
            raise ConfigError("--scores needs --protocol field or vico.", "Add one of them.")
        if self.ordinary and self.protocol != "ours":
            raise ConfigError(
                f"--protocol {self.protocol} is ordinary training already.",
                "Leave --ordinary out.",
            )
        if given and not self.ordinary and self.protocol == "ours":
            flag = next(iter(given)).replace("_", "-")
            raise ConfigError(
                f"--{flag} needs --ordinary: distilled data have a schedule of their own.",
                f"Add --ordinary or --protocol field, or leave --{flag} out.",
            )
        if not self.ordinary and self.protocol == "ours":
            return None
        from ..evaluation import PROTOCOLS, OrdinaryTraining

        known = PROTOCOLS.get(self.protocol)
        return replace(known.training if known else OrdinaryTraining(), **given)


@dataclass(frozen=True)
class EvaluateFlags(DataChoice, ModelChoice, PoolChoice, Ordinary, ThreadsChoice, CodeChoice):
    """All flags."""

    artefact: tyro.conf.Positional[Path]
    """An artefact, a run folder, or a name from datadistill artefacts."""
    data: str | None = None
    """Data set to test on. By default the one that was distilled."""
    split: Literal["test", "train"] = "test"
    """Split of the data set."""
    networks: int | None = None
    """Held-out networks. By default 1 for fixed, 200 for random initializations, or all that the
    pool has."""
    seed: int = 0
    """Seed of the held-out networks."""
    initialization: str | None = field(default=None, kw_only=True)
    """random: test networks with random weights, though the data are for a fixed network or a
    pool. Or your own initialization, if the artefact has one."""
    statistics: str | None = None
    """Data set whose training split gives the running statistics of batch normalisation. By default
    they are those of the distilled images; of the training split, for poisoning."""
    per_class: Switch = False
    """Print the figure of each class too."""
    curve: Switch = False
    """Test after every update, and print the curve."""
    memory: int = 1024
    """Memory in megabytes for the networks that are trained side by side."""
    device: DeviceName = "auto"
    """Device to compute on."""
    baselines: Switch = False
    """Compare with real images as training data, K-NN and full training: the paper's table."""
    baseline: tuple[str, ...] = ()
    """With --baselines: your own baselines to compare with, too, as file.py:Class."""
    select: Literal["train", "test"] = "train"
    """Data to choose the baselines' learning rates on: held-out training data, or the test data as
    in the paper."""
    defence: Switch = False
    """For poisoning: measure the attack against caps, smaller learning rates and checks."""
    json: Switch = False
    """Print the result as JSON, with every network's figure."""

    def checked(self) -> OrdinaryTraining | None:
        """Refuses flags that contradict each other; returns ordinary training, if asked for."""
        ordinary = self.ordinary_training()
        if ordinary and self.curve:
            raise ConfigError(
                "--curve cannot be combined with --ordinary.", "Leave one of them out."
            )
        if self.baselines and (ordinary or self.curve or self.per_class or self.split != "test"):
            raise ConfigError(
                "--baselines compares after all updates, on the test data.",
                "Leave --ordinary, --curve, --per-class and --split out.",
            )
        from ..core.initialization import RandomInit

        given = self.initialization or RandomInit.name
        if given != RandomInit.name and ":" not in given:
            raise ConfigError(
                f"--initialization is {given!r}.",
                "Choose random, or name your own as file.py:Class.",
            )
        if self.baselines and self.initialization == RandomInit.name:
            raise ConfigError(
                "--initialization cannot be combined with --baselines.", "Leave one of them out."
            )
        if self.baselines and self.statistics:
            raise ConfigError(
                "--statistics cannot be combined with --baselines.", "Leave one of them out."
            )
        if self.baseline and not self.baselines:
            raise ConfigError("--baseline needs --baselines.", "Add --baselines.")
        if self.select != "train" and not self.baselines:
            raise ConfigError("--select needs --baselines.", "Add --baselines.")
        if self.baselines and world_size() > 1:
            raise ConfigError("--baselines runs in one process.", "Start it without torchrun.")
        if self.memory < 1:
            raise ConfigError(f"memory is {self.memory}.", "Set memory to at least 1 megabyte.")
        return ordinary
