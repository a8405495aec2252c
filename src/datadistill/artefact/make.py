"""From steps of distilled data and what they are for to :class:`DistilledData`."""

import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from ..core.distilled import Steps
from ..core.initialization import Initialization, networks_for
from ..core.network import Network, Weights
from ..core.objective import Objective
from ..core.parametrisation import Parametrisation
from ..core.update import UpdateRule
from ..data import LabelledData
from ..engine import Engines
from ..models.description import describe
from ..version import __version__
from .container import NEWEST, SCHEMA_VERSION
from .distilled_data import DistilledData, belonging
from .header import (
    Header,
    InitializationRecord,
    InnerRecord,
    NormalizationRecord,
    Schedule,
)


def make(
    steps: Steps,
    *,
    network: Network,
    module: nn.Module,
    initialization: Initialization,
    objective: Objective,
    rule: UpdateRule,
    data: LabelledData,
    configuration: dict[str, Any],
    engines: Engines = (),
    parametrisation: Parametrisation | None = None,
    stored: Mapping[str, Tensor] = MappingProxyType({}),
) -> DistilledData:
    """Puts distilled data together with all that is needed to use them again.

    Args:
        steps: The learned tensors.
        network: The network as distillation used it.
        module: The module it was made from.
        initialization: The distribution of initial weights.
        objective: What the data were learned to do.
        rule: The update rule of the learners.
        data: The real data they come from.
        configuration: All settings they were made with.
        engines: The engines that computed them, in order.
        parametrisation: How their inputs are made of what is stored in place of them.
        stored: What is stored in place of the inputs; empty if they are stored themselves.
    """
    norm = data.normalization
    epochs, count = steps.learning_rates.shape
    header = Header(
        schema_version=NEWEST if stored or (norm and norm.whitening) else SCHEMA_VERSION,
        architecture=describe(network, module),
        initialization=InitializationRecord.model_validate(initialization.record()),
        objective=_plain(objective.record()),
        update_rule=_plain(rule.record()),
        parametrisation=_plain(parametrisation.record()) if parametrisation and stored else None,
        schedule=Schedule(
            steps=count,
            epochs=epochs,
            images=steps.inputs.shape[1],
            inner=steps.inner and InnerRecord(**vars(steps.inner)),
        ),
        normalization=NormalizationRecord(mean=[*norm.mean], std=[*norm.std]) if norm else None,
        class_names=[*data.class_names] if data.class_names else None,
        data=data.name,
        claim=None,
        configuration=_plain(configuration),
        engines=engines,
        versions={
            "datadistill": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    )
    initial: Weights = {}
    if initialization.fixed:
        theta0 = initialization.sample(network, networks_for(0, "trained network", [0]))
        initial = {name: w[0] for name, w in theta0.items()}
    stored = {name: tensor.cpu() for name, tensor in stored.items()}
    tensors = {name: tensor.cpu() for name, tensor in steps.tensors.items()}
    if parametrisation and stored:
        tensors["inputs"] = parametrisation.inputs(stored)
    return DistilledData(
        replace(steps, **tensors),
        header,
        {name: t.cpu() for name, t in belonging(network, initial).items()},
        module,
        objective,
        getattr(initialization, "pool", None),
        stored=stored,
        whitening=norm.whitening if norm else None,
    )


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """The same as a file gives it back."""
    return json.loads(json.dumps(record))
