"""Makes the engine in use."""

from ..core.engine import Engine, PlainEngine
from ..core.network import Network
from ..core.objective import Objective
from .choice import chosen
from .fast import FastEngine


def engine_for(network: Network, objective: Objective) -> Engine:
    """The engine in use, for a network and an objective."""
    engine = PlainEngine if chosen() == "plain" else FastEngine
    return engine(network, objective)
