"""Hashes of the data and the network of a run, checked when it is resumed."""

import platform

import torch

from ...core.initialization import Initialization, networks_for
from ...core.network import Network
from ...data import LabelledData
from ...data.fingerprint import data_hash, same_data
from ...errors import RunError
from ...models.description import weights_hash
from ...version import __version__


def fingerprint(
    network: Network,
    initialization: Initialization,
    data: LabelledData,
    held_out: LabelledData | None,
) -> dict[str, str]:
    """Names and hashes of data, network, initial weights and versions."""
    # One network drawn by the initialization stands for all of them.
    theta0 = initialization.sample(network, networks_for(0, "trained network", [0]))
    return {
        "training data": data_hash(data),
        "validation data": data_hash(held_out) if held_out else "",
        "network": weights_hash(network.constants),
        "initial weights": weights_hash(theta0),
        "pool": initialization.digest,
        "datadistill": __version__,
        "torch": torch.__version__,
        "processor": platform.machine(),
    }


def recognised(
    old: dict[str, str], new: dict[str, str], data: LabelledData, held_out: LabelledData | None
) -> dict[str, str]:
    """The new fingerprint, with those hashes of the same data that an earlier version gave."""
    named = {"training data": data, "validation data": held_out}
    same = {n: old[n] for n, own in named.items() if own and n in old and same_data(old[n], own)}
    return {**new, **same}


def check_fingerprint(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Refuses other data or another network; returns what differs and only changes rounding."""
    for name in ("training data", "validation data", "network", "pool", "initial weights"):
        if old.get(name, "") != new.get(name, ""):
            verb = "differs" if name in ("network", "pool") else "differ"
            raise RunError(
                f"The {name} {verb} from the run's.",
                f"Resume with the same data, network and {'pool' if name == 'pool' else 'weights'},"
                " or start a new run.",
            )
    return [rounding(n, new.get(n), was) for n, was in old.items() if new.get(n, "") != was]


def rounding(name: str, now: object, was: object) -> str:
    """A note about a change that affects only rounding."""
    return f"{name} changed from {was} to {now}: results may differ by rounding."
