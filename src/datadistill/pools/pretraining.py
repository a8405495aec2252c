"""Making and extending pools of pre-trained networks; see :mod:`datadistill.pools`."""

import contextlib
import json
import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..core.device import DeviceLike, resolve_device
from ..core.grad_mode import with_gradients
from ..core.network import Network
from ..data import LabelledData, as_data
from ..data.fingerprint import data_hash, same_data
from ..data.labels import as_classes, from_zero, in_order_of
from ..durations import time_text
from ..engine import ALONE, Team
from ..engine.side_by_side import DEFAULT_BYTES
from ..errors import ConfigError, TeamError
from ..given import typed
from ..lock import locked
from ..models.description import describe, weights_hash
from ..progress import Progress, ProgressCallback, silent
from ..showing import Tell, shown, teller
from .chunks import contents_of, write_chunk
from .folder import PoolFolder, Share, missing
from .index import PARTS, DataRecord, Index, Origin, Part, path_of, read_index
from .pool import Pool
from .settings import PoolSettings, Preset
from .training import OBJECTIVE, PoolTrainer

CHUNK_NETWORKS = 16
CHUNK_BYTES = 2**28
TRIAL_UPDATES, TRIAL_SECONDS = 10, 1.0


@typed
@with_gradients
def pretrain(
    train: Any,
    module: nn.Module,
    pool: str | Path,
    *,
    networks: int = 200,
    held_out: int = 100,
    test: Any = None,
    preset: Preset = "quick",
    device: DeviceLike = "auto",
    memory: int = DEFAULT_BYTES,
    progress: bool | ProgressCallback = False,
    tell: Tell | None = None,
    **settings: Any,
) -> Pool:
    """Trains a pool of networks on a data set, many side by side.

    Every finished file of networks is kept: the same call continues, and one that asks for
    more networks extends the pool.

    Args:
        train: Real training data, as for :func:`distill`.
        module: The network: any ``nn.Module`` from inputs to logits. It is not changed.
        pool: The folder of the pool.
        networks: How many networks to distil with.
        held_out: How many others to evaluate on.
        test: Test data, on which accuracies are recorded too; they choose nothing.
        preset: ``quick``, or the ``paper``'s setting for MNIST, USPS, SVHN or CIFAR-10.
        device: Where to compute: auto, cpu, cuda or mps.
        memory: Memory limit in bytes of the networks that are trained side by side.
        progress: True for a bar and messages, or a callback, called after every update.
        tell: Receives messages.
        settings: Fields of :class:`PoolSettings` that differ from the preset: ``epochs``, ``lr``,
            ``batch_size``, ``seed``…

    Returns:
        The pool.
    """
    real = from_zero(as_classes(as_data(train)))
    chosen = PoolSettings.preset(preset, real.name, len(real)).changed(**settings)
    with shown(progress) as show:
        work = Pretraining.prepare(
            Path(pool),
            real,
            module,
            chosen,
            test=None if test is None else _tested(test, real),
            device=resolve_device(device),
            memory=memory,
            progress=show,
        )
        tell = tell or (teller(progress) if progress is True else None)
        return work.lead({"train": networks, "held-out": held_out}, ALONE, tell)


@dataclass
class Pretraining:
    """The making of one pool.

    Attributes:
        folder: Where.
        trainer: What trains them.
        progress: Called after every update.
        job: By what other processes prepare the same.
    """

    folder: PoolFolder
    trainer: PoolTrainer
    progress: ProgressCallback = silent
    job: dict[str, Any] = field(default_factory=dict[str, Any])
    _done: int = field(default=0, init=False)
    _total: int = field(default=0, init=False)
    _accuracies: list[float] = field(default_factory=list[float], init=False)

    @classmethod
    def prepare(
        cls,
        folder: Path,
        train: LabelledData,
        module: nn.Module,
        settings: PoolSettings,
        *,
        test: LabelledData | None = None,
        device: torch.device | None = None,
        memory: int = DEFAULT_BYTES,
        progress: ProgressCallback = silent,
    ) -> "Pretraining":
        """Puts data, a module and settings together, and refuses what does not fit."""
        network = Network(module, train.example(), device=device)
        OBJECTIVE.check(network.outputs, train.labels, complete=True)
        norm = train.normalization
        origin = Origin(
            architecture=describe(network, module),
            constants=weights_hash(network.constants),
            data=DataRecord(
                name=train.name,
                input_shape=[*train.input_shape],
                mean=[*norm.mean] if norm else None,
                std=[*norm.std] if norm else None,
                examples=len(train),
                hash=_hash(folder, train),
            ),
            configuration=settings.mapping(),
        )
        rest, validation = train, None
        if settings.validation:
            rest, validation = train.hold_out(settings.validation, settings.seed)
        trainer = PoolTrainer(network, rest, validation, test, settings, memory)
        return cls(PoolFolder(folder, origin), trainer, progress)

    def lead(self, wanted: dict[Part, int], team: Team, tell: Tell | None) -> Pool:
        """Trains the networks that are missing, with the other processes, and writes the index.

        Args:
            wanted: The number of networks of each part.
            team: The processes; each file is the work of one.
            tell: Receives a message with the plan and an estimate of the time.
        """
        for part, count in wanted.items():
            if count < 0:
                name = "networks" if part == "train" else "held_out"
                raise ConfigError(f"{name} is {count}.", "Set it to at least 0.")
        self.folder.make()
        with locked(self.folder.lock), _going_on():
            index = self.folder.begin()
            left = missing(index, wanted, self._most)
            self._total = self.trainer.updates * sum(len(numbers) for _, numbers in left)
            if tell:
                tell(self._plan(index, left, team.size))
            team.begin(lambda: self._content(left))
            for share in left[:: team.size]:
                self.train(share, team.size)
                index = self.folder.adopt(index)
            team.wait_until_finished()
            self.folder.adopt(index)
        return Pool(self.folder.path)

    def follow(self, content: bytes, team: Team) -> None:
        """Trains this process's part of what process 0 has found missing."""
        told = json.loads(content)
        if told["identity"] != self.folder.origin.identity:
            raise TeamError(
                "The data or the network are not those of process 0.",
                "Give every machine the same data and version of datadistill.",
            )
        team.ready()
        for part, first, end in told["shares"][team.rank :: team.size]:
            self.train((part, range(first, end)), team.size)
        team.finish()

    def _content(self, left: list[Share]) -> bytes:
        """What other processes need to know: the networks that are missing."""
        shares = [(part, numbers.start, numbers.stop) for part, numbers in left]
        content = {**self.job, "identity": self.folder.origin.identity, "shares": shares}
        return json.dumps(content).encode()

    def train(self, share: Share, processes: int = 1) -> None:
        """Trains the networks of one file, and writes it."""
        part, numbers = share

        def report(networks: int) -> None:
            self._done = min(self._done + networks * processes, self._total)
            shown = {"held-out accuracy": _mean(self._accuracies)} if self._accuracies else {}
            self.progress(Progress("pre-training", self._done, self._total, shown))

        found = self.trainer(part, numbers, report)
        self._accuracies += found.validation or []
        contents = contents_of(
            found.weights,
            identity=self.folder.origin.identity,
            part=part,
            first=numbers.start,
            validation=found.validation,
            test=found.test,
        )
        write_chunk(self.folder.path, found.weights, contents)

    @property
    def _most(self) -> int:
        """How many networks a file holds."""
        weights = self.trainer.network.weights.values()
        size = sum(w.numel() * w.element_size() for w in weights)
        return max(1, min(CHUNK_NETWORKS, CHUNK_BYTES // size))

    def _plan(self, index: Index, left: list[Share], processes: int) -> str:
        """What there is to do, and how long it will take."""
        networks = sum(len(numbers) for _, numbers in left)
        there = sum(len(index.numbers(part)) for part in PARTS)
        have = f"{self.folder.path} has {there:,} networks. " if there else ""
        if not left:
            return f"{have}None is missing."
        rounds = math.ceil(len(left) / processes)
        seconds = rounds * self.trainer.updates * self._seconds_per_update(left[0])
        epochs = self.trainer.settings.epochs
        return (
            f"{have}Training {networks:,} networks for {epochs} epoch{'' if epochs == 1 else 's'}, "
            f"about {time_text(seconds)}."
        )

    def _seconds_per_update(self, share: Share) -> float:
        """Seconds of one update of all networks of a file, measured here."""

        def seconds(updates: int) -> float:
            begin = time.perf_counter()
            self.trainer(*share, limit=updates)
            return time.perf_counter() - begin

        seconds(1)  # prepares much that later ones find ready
        beginning = seconds(1)
        updates = 1 if beginning > TRIAL_SECONDS else TRIAL_UPDATES
        return max(seconds(1 + updates) - beginning, 0.0) / updates


@contextlib.contextmanager
def _going_on() -> Generator[None]:
    """Adds to an interrupt how to continue."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)(
            "finished files of networks are kept.\nRun the same command to continue."
        ) from None


def _hash(folder: Path, train: LabelledData) -> str:
    """The hash of the training data; that of the pool, where an earlier version made it of them."""
    if path_of(folder).exists():
        recorded = read_index(folder).origin.data.hash
        if same_data(recorded, train):
            return recorded
    return data_hash(train)


def _tested(test: Any, train: LabelledData) -> LabelledData:
    """Test data in any form, as the training data are: their normalization, their classes."""
    found = as_data(test, split="test", normalization=train.normalization)
    return in_order_of(train.class_names, as_classes(found))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
