"""Makes the engine in use."""

from ..core.engine import Engine, PlainEngine
from ..core.network import Network
from ..core.objective import Objective
from ..errors import ConfigError
from .choice import chosen
from .fast import FastEngine
from .kernels import kernels
from .team import ALONE, Team


def engine_for(
    network: Network,
    objective: Objective,
    *,
    micro_batch: int | None = None,
    compiled: bool = False,
    team: Team = ALONE,
) -> Engine:
    """The engine in use, for a network and an objective.

    Args:
        network: The architecture.
        objective: What is descended and measured.
        micro_batch: Images to compute at a time; the plain engine takes all.
        compiled: Whether updates are compiled; by the fast engine alone.
        team: The members among which networks are divided; the plain engine is one process.
    """
    if chosen() == "kernels":
        check_kernels(network)
    if chosen() != "plain":
        return FastEngine(network, objective, micro_batch=micro_batch, compiled=compiled, team=team)
    if team.size > 1:
        raise ConfigError(
            "The plain engine is one process.", "Leave processes out, or use the fast engine."
        )
    return PlainEngine(network, objective)


def check_kernels(network: Network) -> None:
    """Refuses to compute without C kernels, where the user asks for them."""
    if network.device.type != "cpu":
        raise ConfigError(
            f"There are no C kernels for {network.device.type}.", "Leave --engine kernels out."
        )
    found = kernels(network.dtype)
    if found.functions is None:
        raise ConfigError(
            f"The engine is to use C kernels, and there are none: {found.reason}.",
            f"{found.remedy} Or choose --engine fast or torch, which change the last bits.".strip(),
        )
