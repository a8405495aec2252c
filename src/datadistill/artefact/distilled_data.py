"""DistilledData: the learned images, their labels and rates, and how to use them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from .. import models
from ..core.device import DeviceLike, resolve_device
from ..core.distilled import Steps
from ..core.grad_mode import with_gradients
from ..core.initialization import FixedInit, Initialization, networks_for
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..core.update import UpdateRule, training
from ..core.values import same, short
from ..data import Normalization
from ..data.running_statistics import Statistics
from ..data.whitening import Whitening
from ..engine import engine_for
from ..errors import ArtefactError, PoolError
from ..given import typed
from ..models.description import weights_hash
from ..pools import Pool
from ..pools.initialization import PoolInit as PoolInit  # where it registers
from ..progress import Progress, ProgressCallback, silent
from ..showing import shown
from .architecture import fit
from .checks import built_in_objective, check_labels, cost_of
from .claim import Claim
from .container import write_container
from .cost import Cost
from .finite import checked
from .header import Header
from .notebook import as_html
from .real_data import statistics_data

CARRY_LIMIT = 256 * 2**20
"""Bytes of initial weights and constants above which a file holds only their hash."""


WHITENING = "whitening/"
"""How the names of tensors begin by which real images are whitened."""
STORED = "stored/"
"""How the names of tensors begin from which the inputs are made."""


@dataclass(frozen=True, repr=False)
class DistilledData(Dataset[tuple[Tensor, Tensor]]):
    """Distilled data with all that is needed to use them again.

    It is also a torch ``Dataset`` of (input, label) pairs, for ordinary training.

    Attributes:
        steps: The tensors and their schedule.
        stored: The tensors that the file stores in place of the inputs, if it does.
        whitening: How real images are whitened, if they are.
        header: What they are for and how they were made.
        carried: What belongs to the network: ``initial/…``, the weights of a fixed
            initialization, and ``constants/…``, frozen parameters and buffers.
        module: The network itself, if available.
        own_objective: The objective itself, if available.
        pool: The pool of a random pre-trained initialization, if available.
        instead: Another initialization than the one they are for, if it is to be used.
    """

    steps: Steps
    header: Header
    carried: Weights = field(default_factory=dict[str, Tensor])
    # What is available differs between processes; it does not make the data different.
    module: nn.Module | None = field(default=None, compare=False)
    own_objective: Objective | None = field(default=None, compare=False)
    pool: Pool | None = field(default=None, compare=False)
    instead: Initialization | None = field(default=None, compare=False)
    stored: Weights = field(default_factory=dict[str, Tensor])
    whitening: Whitening | None = None

    __eq__ = same

    @property
    def inputs(self) -> Tensor:
        """The distilled inputs in normalised space, (steps, images, …)."""
        return self.steps.inputs

    @property
    def labels(self) -> Tensor:
        """Their labels, (steps, images) or, as floats, (steps, images, …)."""
        return self.steps.labels

    @property
    def learning_rates(self) -> Tensor:
        """One learning rate for every (epoch, step)."""
        return self.steps.learning_rates

    @property
    def normalization(self) -> Normalization | None:
        """How real inputs are normalised for the networks; None if they need not be."""
        norm = self.header.normalization
        return Normalization((*norm.mean,), (*norm.std,), self.whitening) if norm else None

    @property
    def images(self) -> Tensor:
        """The distilled inputs as pixels, mostly in [0, 1], (steps, images, …)."""
        return self.normalization.undo(self.inputs) if self.normalization else self.inputs

    @property
    def class_names(self) -> list[str] | None:
        """What each class is called, if it has names."""
        return self.header.class_names

    @property
    def claim(self) -> Claim | None:
        """The figure they reach, once it has been measured."""
        return self.header.claim

    @property
    def objective(self) -> Objective:
        """What they were learned to do."""
        return self.own_objective or Objective.from_record(self.header.objective)

    @property
    def rule(self) -> UpdateRule:
        """The update rule of the learners."""
        return UpdateRule.from_record(self.header.update_rule)

    @property
    def initialization(self) -> Initialization:
        """The distribution of initial weights they are for; of a pool, what is held out of it."""
        if self.instead:
            return self.instead
        record, weights = self.header.initialization.record(), self._carried("initial/")
        if weights and ":" in record["name"]:  # a user's own is not needed to use its weights
            return FixedInit(weights=weights, source=record["name"])
        return Initialization.from_record(record).restored(weights, self.pool)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, which are nearly those of the file."""
        own = {**self.steps.tensors, **self.carried}
        return sum(tensor.nbytes for tensor in own.values())

    @property
    def stored_bytes(self) -> int:
        """Bytes of the distilled data in the file: inputs as stored, labels, learning rates."""
        inputs = self.stored.values() if self.stored else [self.inputs]
        return sum(t.nbytes for t in (*inputs, self.labels, self.learning_rates))

    @property
    def cost(self) -> Cost | None:
        """An estimate of what it takes to train one network; None where it is a user's own.

        It is made from shapes alone. Where it is out of proportion to the artefact, the network is
        not built unless the user passes it.
        """
        return cost_of(self.header, self.steps, self.carried)

    def __repr__(self) -> str:
        header, schedule = self.header, self.header.schedule
        reaches = f": {self.claim}" if self.claim else ""
        says = (
            f"{len(self)} images of {header.data} for {header.architecture.name}, "
            f"{header.initialization.kind} initialization, {schedule.steps} step(s) × "
            f"{schedule.epochs} epoch(s){reaches}"
        )
        return f"<DistilledData: {short(says)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the images, their labels and learning rates."""
        return as_html(self.header, self.images, self.labels, self.learning_rates)

    def __len__(self) -> int:
        return self.inputs.shape[0] * self.inputs.shape[1]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{index} is not one of {len(self)} distilled images")
        step, image = divmod(index % len(self), self.inputs.shape[1])
        return self.inputs[step, image], self.labels[step, image]

    def with_claim(self, claim: Claim) -> "DistilledData":
        """Returns the same distilled data with a measured figure."""
        return replace(self, header=self.header.model_copy(update={"claim": claim}))

    def with_pool(self, pool: Pool | str | Path) -> "DistilledData":
        """Returns the same distilled data with a pool, on whose held-out networks to use them.

        Args:
            pool: The pool that was distilled for, or another one of the same architecture. One
                that holds out a network that distillation has seen is refused.
        """
        record = self.header.initialization.pool
        if record is None:
            raise ArtefactError(
                f"These distilled data are for a {self.header.initialization.kind} "
                "initialization, which needs no pool.",
                "Leave the pool out.",
            )
        pool = pool if isinstance(pool, Pool) else Pool(pool)
        pool.check_fits(self.header.architecture, self.inputs.shape[2:])
        for chunk in pool.index.chunks_of("held-out"):
            if record.has_seen_any(chunk.hashes):
                raise PoolError(
                    f"{pool.path / chunk.file_name} holds a network that these distilled data "
                    "were learned with.",
                    "Give a pool whose held-out networks distillation has not seen.",
                )
        return replace(self, pool=pool)

    def with_initialization(self, initialization: Initialization) -> "DistilledData":
        """Returns the same distilled data to be used on other initial weights than they are for.

        Example::

            for_one = dd.load("mnist-fixed-10.safetensors")
            dd.evaluate(for_one.with_initialization(dd.RandomInit()), test)
        """
        return replace(self, instead=initialization)

    @property
    def has_own_pool(self) -> bool:
        """Whether the pool, if one is needed, is available and the one that was distilled for."""
        if self.instead:
            return True
        record = self.header.initialization.pool
        return record is None or bool(self.pool and self.pool.origin.identity == record.identity)

    @typed
    @with_gradients
    def train(
        self,
        module: nn.Module | None = None,
        *,
        seed: int = 0,
        keep_weights: bool = False,
        statistics: Any = None,
        device: DeviceLike = "auto",
        progress: bool | ProgressCallback = False,
    ) -> nn.Module:
        """Trains a network on the distilled data, by the schedule they were made for.

        Dropout is off, as it was in distillation.

        Args:
            module: A module of the same architecture; it is copied, not changed. Only needed
                where the architecture is not built in.
            seed: Which network of a random initialization, or of a pool's held-out ones; and which
                images each update takes, where they are drawn at random.
            keep_weights: Start from the module's own weights, not from the initialization.
            statistics: Real data whose statistics batch normalisation is to use; by default those
                of the distilled images.
            device: Where to train: auto, cpu, cuda or mps.
            progress: True for a bar, or a callback, called after every update.

        Returns:
            A plain trained ``nn.Module`` in eval mode, whose running statistics are set. It takes
            inputs normalised by ``normalization``.

        Raises:
            NonFiniteError: The network has diverged.
        """
        network = self.network(module, device)
        statistics = statistics_data(self, statistics)
        measured = Statistics.of(statistics, self.inputs, network)
        if keep_weights:
            theta0 = network.stack([network.weights])
        else:
            number = seed if self.header.initialization.pool else 0
            generators = networks_for(seed, "trained network", [number])
            theta0 = self.initial_weights(network, generators)
        with shown(progress) as show:
            trained = self.train_networks(network, theta0, show, seed=seed)
        usable = measured.added_to(trained, network)
        return checked(network.module({name: w[0] for name, w in usable.items()}))

    def train_networks(
        self,
        network: Network,
        theta0: Weights,
        progress: ProgressCallback = silent,
        *,
        seed: int = 0,
    ) -> Weights:
        """Trains J networks side by side from stacked initial weights; returns θ_T.

        Args:
            network: The architecture.
            theta0: The initial weights.
            progress: Called after every update.
            seed: Which images each update takes, where they are drawn at random.
        """
        numbers = range(len(next(iter(theta0.values()))))
        steps = self.steps.to(network.device, network.dtype)
        steps = steps.for_networks(seed, "trained network", numbers)
        engine, total = engine_for(network, self.objective), len(steps.schedule)
        trained = theta0
        for t, weights in enumerate(training(self.rule, engine, theta0, steps)):
            trained = weights
            if t:  # θ₀ comes before the first update
                progress(Progress("training", t, total))
        return trained

    def initial_weights(self, network: Network, generators: Sequence[torch.Generator]) -> Weights:
        """Draws the initial weights θ₀ of one network per generator."""
        if self.initialization.fixed and self._left_out:
            return network.stack([network.weights] * len(generators))
        return self.initialization.sample(network, generators)

    def network(self, module: nn.Module | None = None, device: DeviceLike = "auto") -> Network:
        """The architecture as a function of stacked weights, as it was in distillation."""
        architecture = self.header.architecture
        module = module or self.module
        if module is None and not architecture.built_in:
            raise ArtefactError(
                f"These distilled data are for {architecture.name}, which is not built in.",
                "Pass a module of that class: distilled.train(YourModule()), or --model.",
            )
        if module is None:
            if cost := self.cost:  # of a network that nobody but the file has named
                cost.check(architecture.name, self.nbytes)
            module = models.build(architecture.name, architecture.arguments)
        constants, left_out = self._carried("constants/"), self._left_out is not None
        fitted = fit(module, architecture, constants, left_out=left_out)
        network = Network(fitted, self.inputs[0], device=resolve_device(device))
        if objective := built_in_objective(self.header):
            check_labels(self.labels, network.outputs, objective)
        if self._left_out and self._left_out != weights_hash(self._belonging_to(network)):
            raise ArtefactError(
                f"The weights of {type(module).__name__} are not those it was distilled for.",
                "Pass the module with its original weights: they were too large for the file.",
            )
        return network

    @typed
    def save(self, path: str | Path, carry_limit: int = CARRY_LIMIT) -> None:
        """Writes the artefact: one safetensors file, whole or not at all.

        Args:
            path: Where to; an existing file is replaced.
            carry_limit: Bytes of initial weights and constants above which the file holds
                only their hash, and needs the module with its weights to be used.
        """
        header, carried = self.header, self.carried
        if sum(t.numel() * t.element_size() for t in carried.values()) > carry_limit:
            header, carried = header.model_copy(update={"left_out": weights_hash(carried)}), {}
        tensors = {**self.steps.tensors, **carried}
        if self.stored:
            tensors.pop("inputs")
            tensors |= {f"{STORED}{name}": tensor for name, tensor in self.stored.items()}
        if self.whitening:
            whitening = self.whitening.tensors().items()
            tensors |= {f"{WHITENING}{name}": tensor for name, tensor in whitening}
        write_container(Path(path), tensors, header.model_dump(mode="json"))

    @property
    def _left_out(self) -> str | None:
        return None if self.carried else self.header.left_out

    def _carried(self, prefix: str) -> Weights:
        return {n.removeprefix(prefix): t for n, t in self.carried.items() if n.startswith(prefix)}

    def _belonging_to(self, network: Network) -> Weights:
        return belonging(network, network.weights if self.initialization.fixed else {})


def belonging(network: Network, initial: Weights) -> Weights:
    """The tensors of a network that distilled data carry: initial weights and constants."""
    return {
        **{f"initial/{name}": w for name, w in initial.items()},
        **{f"constants/{name}": c for name, c in network.constants.items()},
    }
