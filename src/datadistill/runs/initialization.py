"""From the names in a configuration to the networks and initial weights that they name."""

import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from .. import models
from ..core.initialization import FixedInit, Initialization
from ..core.names import PRETRAINED_NAMES
from ..core.network import Network
from ..core.seam import split_arguments
from ..data import LabelledData, data_folder
from ..errors import ConfigError
from ..hints import command
from ..models.description import describe, weights_hash
from ..models.freezing import train_only
from ..models.trained import looks_trained
from ..models.weights import load_weights, place_weights
from ..pools import Pool, PoolInit
from .config import RunConfig
from .seams import make


@dataclass(frozen=True)
class InitialWeights:
    """Where learners begin: the module, with weights that were loaded, and what is told of them.

    Attributes:
        module: The module; a copy, if weights were loaded into it.
        config: The configuration.
        given: The initialization, where it is known already.
        source: Where the module's weights come from, if they were loaded.
        fresh: Weights that were not in what was loaded, and are drawn instead.
        notes: What the user should know of them.
    """

    module: nn.Module
    config: RunConfig
    given: Initialization | None = None
    source: str | None = None
    fresh: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, config: RunConfig, module: nn.Module, given: Initialization | None = None
    ) -> "InitialWeights":
        """Reads what a configuration names, unless the initialization is given."""
        if given is not None:
            return cls(module, config, given, notes=unused_weights(module, given))
        _check_flags(config)
        if config.initialization == "fixed-pretrained":
            return cls._fixed_pretrained(config, copy.deepcopy(module))
        if config.initialization == PoolInit.name:
            assert config.pool
            pool = PoolInit(Pool(config.pool), config.pool_networks, config.pool_noise)
            return cls(module, config, pool)
        made = make(Initialization, config)
        return cls(module, config, made, notes=unused_weights(module, made))

    @classmethod
    def _fixed_pretrained(cls, config: RunConfig, module: nn.Module) -> "InitialWeights":
        how = {"reset_head": config.reset_head, "partial": config.partial}
        if weights := weights_file(config):
            report = load_weights(module, weights, **how)
            source = weights.name
        else:
            assert config.pool
            fixed = Pool(config.pool).fixed(config.init_seed)
            assert fixed.weights
            assert fixed.source
            report = place_weights(module, fixed.weights, f"The {fixed.source},", **how)
            source = fixed.source
        fresh = (*report.missing, *report.mismatched)
        notes = (f"{source}: {report}.",)
        if config.trained:
            train_only(module, config.trained)
            _check_learned(module, source, (*report.reset, *fresh))
        return cls(module, config, source=source, fresh=fresh, notes=notes)

    def initialization(self, network: Network, data: LabelledData) -> Initialization:
        """The initialization, for a network made of the module; refuses a pool that does not fit.

        Args:
            network: The network.
            data: The real data, whose inputs it takes.
        """
        if self.given is None:
            config = self.config
            weights = network.weights
            if self.fresh:
                drawn = FixedInit(config.init_seed, config.scheme)
                found = drawn.sample(network, [torch.Generator()])
                weights = weights | {name: found[name][0] for name in self.fresh if name in found}
            return FixedInit(config.init_seed, config.scheme, weights, self.source)
        pool = getattr(self.given, "pool", None)
        if pool is not None:
            architecture = describe(network, self.module)
            pool.check_fits(architecture, data.input_shape, weights_hash(network.constants))
        return self.given


def unused_weights(module: nn.Module, initialization: Initialization) -> tuple[str, ...]:
    """What to tell of a module that looks trained, where its weights are not used."""
    if not (initialization.draws_anew and looks_trained(module)):
        return ()
    return (
        f"{type(module).__name__} looks trained, but its weights are not used: the "
        f"{initialization.name} initialization draws new ones. To start from the module's weights, "
        "pass initialization=dd.FixedInit.of(module), or weights from a file as fixed-pretrained.",
    )


def weights_file(config: RunConfig) -> Path | None:
    """The file of weights that a configuration names: from here, or else in the data folder."""
    if config.weights is None or config.weights.exists():
        return config.weights
    below = data_folder(config.data_dir) / config.weights
    return below if below.exists() else config.weights


def _check_learned(module: nn.Module, source: str, new: tuple[str, ...]) -> None:
    """Refuses to freeze weights that nobody has trained."""
    frozen = [n for n, p in module.named_parameters() if n in new and not p.requires_grad]
    if frozen:
        layer = frozen[0].rpartition(".")[0]
        raise ConfigError(
            f"{frozen[0]} does not come from {source} and would be frozen as it is.",
            f"Train that layer too: add {layer} to trained.",
        )


def _check_flags(config: RunConfig) -> None:
    """Refuses settings that contradict the initialization, or that it lacks."""
    kind = config.initialization
    pretrained = kind in PRETRAINED_NAMES
    if pretrained and config.pool is None and (kind[0] == "r" or config.weights is None):
        raise ConfigError(
            f"A {kind} initialization needs networks that were trained before.",
            ("Set" if kind[0] == "r" else "Set weights to a .safetensors or .pth file, or")
            + f" pool to the folder of a pool; make one: {command('pretrain', 'DATA')}",
        )
    meaningless = {
        "pool": config.pool is not None and not pretrained,
        "pool_networks": config.pool_networks is not None and kind != "random-pretrained",
        "pool_noise": bool(config.pool_noise) and kind != "random-pretrained",
        "weights": config.weights is not None and kind != "fixed-pretrained",
        "reset_head": config.reset_head and kind != "fixed-pretrained",
        "partial": config.partial and kind != "fixed-pretrained",
        "trained": bool(config.trained) and kind != "fixed-pretrained",
    }
    for name, wrong in meaningless.items():
        if wrong:
            raise ConfigError(
                f"{name} has no meaning for a {kind} initialization.",
                "Leave it out, or choose a pre-trained initialization.",
            )
    if config.pool is not None and config.weights is not None:
        raise ConfigError("Both pool and weights are given.", "Give one of them.")


def other_networks(config: RunConfig, network: Network, data: LabelledData) -> list[Network]:
    """Makes the networks that ``architectures`` names, for data and on the device of a network."""
    if config.architectures and config.initialization != "random":
        raise ConfigError(
            f"architectures has no meaning for a {config.initialization} initialization.",
            "Leave it out, or set initialization to random.",
        )
    return [_network(text, network, data) for text in config.architectures]


def _network(text: str, network: Network, data: LabelledData) -> Network:
    name, arguments = split_arguments(text)
    if ":" in name:
        raise ConfigError(
            f"architectures names Python code, {name}.", "Name built-in networks, e.g. mlp."
        )
    module = models.find_for(name, data.input_shape, data.classes, arguments)
    return Network(module, data.example(), device=network.device, dtype=network.dtype)
