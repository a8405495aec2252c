"""The networks that distilled data are evaluated on: their own, or another architecture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import models
from ..artefact import DistilledData, load
from ..artefact.real_data import real_data, statistics_data
from ..core.device import DeviceLike, resolve_device
from ..core.initialization import RandomInit
from ..core.names import FIXED_NAMES
from ..core.network import Network, Weights
from ..data import LabelledData
from ..data.running_statistics import Statistics
from ..engine.team import Team
from ..errors import ConfigError, DataError, ModelError
from ..pools import at_most, check_enough
from .held_out import HeldOut

HELD_OUT_NETWORKS = 200


@dataclass(frozen=True)
class Learners:
    """Networks to train on distilled data, and the real data to test them on.

    Attributes:
        distilled: The distilled data.
        data: The real data.
        network: The architecture.
        networks: How many networks to train.
        drawn: How weights are drawn where it is not the initialization that was distilled for.
        note: What is unusual about the networks.
    """

    distilled: DistilledData
    data: LabelledData
    network: Network
    networks: int
    drawn: RandomInit | None = None
    note: str = ""

    @classmethod
    def of(
        cls,
        distilled: DistilledData | str | Path,
        data: Any,
        networks: int | None,
        module: nn.Module | None,
        architecture: nn.Module | None,
        device: DeviceLike,
    ) -> "Learners":
        """Puts them together, and refuses what does not fit. See :func:`evaluate`."""
        if not isinstance(distilled, DistilledData):
            distilled = load(distilled)
        data = real_data(
            distilled,
            data,
            input_shape=distilled.inputs.shape[2:],
            has_classes=distilled.objective.has_classes,
        )
        if module is not None and architecture is not None:
            raise ConfigError(
                "Both module and architecture are given.",
                "Pass module for the architecture that was distilled for, or another one as "
                "architecture.",
            )
        fixed = distilled.initialization.fixed and architecture is None
        if networks is None:
            networks = 1 if fixed else HELD_OUT_NETWORKS
            networks = networks if architecture else at_most(distilled.initialization, networks)
        elif architecture is None:
            check_enough(distilled.initialization, networks)
        check_networks(networks, fixed=fixed)
        check_inputs(distilled.inputs.shape[2:], data)
        if architecture is None:
            network, drawn = distilled.network(module, device), None
            note = _weights_note(distilled)
        else:
            network = _other(architecture, distilled, device)
            drawn = RandomInit(distilled.header.initialization.scheme or "xavier-normal")
            name = models.built_in_name(architecture) or network.name
            note = _note(name, distilled, drawn.scheme)
        distilled.objective.check(network.outputs, data.labels, complete=False)
        return cls(distilled, data, network, networks, drawn, note)

    def sample(self, generators: Sequence[torch.Generator]) -> Weights:
        """Draws the initial weights of one network per generator."""
        if self.drawn:
            return self.drawn.sample(self.network, generators)
        return self.distilled.initial_weights(self.network, generators)

    def statistics(self, given: Any) -> Statistics:
        """What the running statistics of the networks are measured on; see :func:`evaluate`."""
        inputs = self.distilled.inputs
        given = statistics_data(self.distilled, given)
        return Statistics.of(given, inputs, self.network)

    def held_out(self, seed: int, memory: int, team: Team) -> HeldOut:
        """The networks of a seed, to be trained and tested in groups."""
        return HeldOut(self.network, self.sample, self.networks, seed, memory, team)


def check_networks(networks: int, *, fixed: bool) -> None:
    """Refuses a number of held-out networks that there cannot be."""
    if networks < 1 or (fixed and networks > 1):
        remedy = (
            "A fixed initialization is one network." if fixed else "Set networks to at least 1."
        )
        raise ConfigError(f"networks is {networks}.", remedy)


def check_inputs(wanted: torch.Size, data: LabelledData) -> None:
    """Refuses real data whose inputs have another shape than the distilled ones."""
    if data.input_shape != wanted:
        raise DataError(
            f"The {data.split} split of {data.name} has inputs of shape "
            f"{tuple(data.input_shape)}; the distilled data have {tuple(wanted)}.",
            "Use data of the kind that was distilled, resized to the same shape.",
        )


def _other(architecture: nn.Module, distilled: DistilledData, device: DeviceLike) -> Network:
    """Another architecture for the same distilled data."""
    network = Network(architecture, distilled.inputs[0], device=resolve_device(device))
    labels = distilled.labels
    if not labels.is_floating_point():
        distilled.objective.check(network.outputs, labels.flatten(), complete=False)
    elif labels[0, 0].numel() != network.outputs.numel():
        raise ModelError(
            f"{network.name} has {network.outputs.numel()} output(s) for an input, but the "
            f"distilled labels have {labels[0, 0].numel()}.",
            "Make it with as many outputs.",
        )
    return network


def _weights_note(distilled: DistilledData) -> str:
    """What is unusual about the initial weights."""
    if distilled.instead:
        used, made_for = distilled.instead.name, distilled.header.initialization.kind
        made = "" if used == made_for else f", from data distilled for a {made_for} one"
        return f"{used} initialization{made}"
    if distilled.has_own_pool:
        return ""
    used, made_for = distilled.pool, distilled.header.initialization.pool
    assert used
    assert made_for
    return f"networks of the pool {used.name}, from data distilled for the pool {made_for.name}"


def _note(name: str, distilled: DistilledData, scheme: str) -> str:
    note = f"{name}, from data distilled for {distilled.header.architecture.name}"
    record = distilled.header.initialization
    if record.kind == RandomInit.name:
        return note
    others = "those of a pool" if record.pool else f"those of {record.kind}"
    if record.kind in FIXED_NAMES:
        others = "the fixed ones"
    return f"{note}; random {scheme} weights, not {others}"
