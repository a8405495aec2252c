"""From a configuration, data and a module to a distillation."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from ..artefact.recordable import check_recordable
from ..core.adjoint import Adjoint
from ..core.device import resolve_device, resolve_dtype
from ..core.distiller import Distiller
from ..core.engine import Engine
from ..core.initialization import Initialization
from ..core.network import Network
from ..core.objective import Objective
from ..core.parametrisation import Parametrisation, WithRule
from ..core.variety import ORDINARY, Variety
from ..data import LabelledData
from ..data.labels import as_classes, check_several_classes, from_zero
from ..data.token_ids import check_learnable
from ..engine import Team, chosen, engine_for, using
from ..engine.frozen_prefix import FrozenFeatures, Split, split_frozen
from ..engine.shares import check_shares
from ..engine.team import check_division
from ..pools import check_enough
from .config import RunConfig
from .distillation import Distillation
from .initialization import InitialWeights, other_networks
from .seams import Given, make, make_rule, make_view, with_learned
from .team.processes import Processes

NOTHING = Given()


def prepare(
    config: RunConfig,
    data: LabelledData,
    module: nn.Module,
    given: Given = NOTHING,
    device: torch.device | None = None,
    team: Processes | None = None,
) -> Distillation:
    """Puts a configuration, data and a module together; fills in what follows from them.

    What is given takes precedence over what the configuration names. The number of threads is
    set, since the last bit of a sum depends on it.
    """
    team, config = team or Processes(), config.bundled()
    torch.set_num_threads(config.threads or team.threads())
    device = device or team.device(resolve_device(config.device))
    dtype = None if config.dtype is None else resolve_dtype(config.dtype)
    for one in given.objects:
        one.check_recordable()
    beginning = InitialWeights.of(config, module, given.initialization)
    module = beginning.module
    objective = given.objective or make(Objective, config)
    if objective.has_classes:
        data = from_zero(as_classes(data))
        check_several_classes(data)
    check_learnable(module, data)
    network = Network(module, data.example(), device=device, dtype=dtype)
    check_recordable(network, module, data, config.steps * config.epochs)
    initialization = beginning.initialization(network, data)
    check_enough(initialization, config.test_networks or 1)
    objective.check(network.outputs, data.labels, complete=True)
    held_out = None
    if config.validation:
        data, held_out = data.hold_out(config.validation, config.seed)
    config = config.for_examples(len(data))
    with using(config.engine):
        engine = chosen()
        view = given.view or make_view(config)
        if view:
            view.check(data.input_shape)
        # Frozen layers see other images in every outer step: nothing is to be computed once.
        split = split_frozen(network) if engine != "plain" and view is None else None
        unrolled = split.head if split else network
        distiller = _distiller(config, unrolled, initialization, objective, given, split)
        others = other_networks(config, network, data)
        distiller = _with_engines(
            replace(distiller, whole=network, view=view), others, config, team
        )
    check_division(distiller.networks, team.size)
    if distiller.networks < team.size:
        for each in (unrolled, *others):
            check_shares(each, objective)
    config = replace(
        config,
        networks=distiller.networks,
        device=device.type,
        engine=engine,
        processes=team.size,
        threads=torch.get_num_threads(),
        compiled=distiller.engine.compiled,
        dtype=str(network.dtype).removeprefix("torch."),
        **initialization.resolved_settings(),
    )
    return Distillation(
        config, distiller, network, module, data, held_out, split, team, beginning.notes
    )


def computed_by(
    distillation: Distillation, team: Team, *, compiled: bool | None = None
) -> Distiller:
    """The distiller as a member of another team, or with other updates; to measure it."""
    config, distiller = distillation.config, distillation.distiller
    if compiled is not None:
        config = replace(config, compiled=compiled)
    with using(config.engine):
        others = [engine.network for engine in distiller.variety.others]
        return _with_engines(distiller, others, config, team)


def _distiller(
    config: RunConfig,
    network: Network,
    initialization: Initialization,
    objective: Objective,
    given: Given,
    split: Split | None,
) -> Distiller:
    """Algorithm 1 for what is given, or else for what the configuration names."""
    parametrisation = given.parametrisation or make(Parametrisation, config)
    rule = with_learned(given.rule or make_rule(config), config, network.weights)
    if rule.coefficients is not None:
        parametrisation = WithRule(parametrisation, rule.coefficients)
    return Distiller(
        network,
        initialization,
        objective,
        config,
        given.adjoint or make(Adjoint, config),
        rule,
        FrozenFeatures(parametrisation, split.prefix) if split else parametrisation,
    )


def _with_engines(
    distiller: Distiller, others: Sequence[Network], config: RunConfig, team: Team
) -> Distiller:
    """The distiller with the engines of all its networks, as the machine's settings have it."""

    def engine(network: Network) -> Engine:
        return engine_for(
            network,
            distiller.objective,
            micro_batch=config.micro_batch,
            compiled=bool(config.compiled),
            team=team,
        )

    variety = Variety(
        tuple(engine(network) for network in others),
        tuple(ORDINARY[name] for name in config.ordinary),
        config.jitter,
    )
    return replace(distiller, own_engine=engine(distiller.network), variety=variety)
