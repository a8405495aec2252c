"""The other networks that distilled data are learned for."""

from .. import models
from ..core.network import Network
from ..core.seam import parse
from ..data import LabelledData
from ..errors import ConfigError
from .config import RunConfig


def other_networks(config: RunConfig, network: Network, data: LabelledData) -> list[Network]:
    """Makes the networks that ``architectures`` names, for data and on the device of a network."""
    if config.architectures and config.initialization != "random":
        raise ConfigError(
            f"architectures has no meaning for a {config.initialization} initialization.",
            "Leave it out, or set initialization to random.",
        )
    return [_network(text, network, data) for text in config.architectures]


def _network(text: str, network: Network, data: LabelledData) -> Network:
    name, values = parse(text)
    if ":" in name:
        raise ConfigError(
            f"architectures names Python code, {name}.", "Name built-in networks, e.g. mlp."
        )
    arguments = [f"{argument}={value}" for argument, value in values.items()]
    module = models.find_for(name, data.input_shape, data.classes, arguments)
    return Network(module, data.example(), device=network.device, dtype=network.dtype)
