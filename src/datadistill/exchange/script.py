"""A stand-alone ``train.py`` of plain PyTorch, which reaches the accuracy of the artefact."""

import ast
import inspect
import keyword
import pprint
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from .. import models
from ..artefact import DistilledData
from ..artefact.checks import built_in_objective
from ..core.initialization import RandomInit, networks_for
from ..core.network import Network
from ..core.objective import Classification, Regression
from ..core.update import UpdateRule
from ..data import LabelledData
from ..data.running_statistics import DISTILLED
from ..data.whitening import EPSILON
from ..errors import ArtefactError, ConfigError
from ..files import write_atomically
from ..reading import read_regular
from . import standalone

OWN = "own_network"
"""The module beside the script that holds a user's own network."""
RULES = {"gradient-descent", "momentum", "nesterov", "adam", "weight-decay", "layer-rates"}
MANY = 200
"""Networks that are trained where the artefact claims nothing."""


@dataclass(frozen=True)
class OwnNetwork:
    """A user's own network, as the command line names it.

    Attributes:
        reference: ``file.py:Class`` or ``package.module:Class``.
        arguments: Arguments of its constructor, each as ``name=value``.
    """

    reference: str
    arguments: Sequence[str] = ()

    def module(self) -> nn.Module:
        """The network."""
        return models.find(self.reference, {}, models.parse_arguments(self.arguments))


def write_script(
    distilled: DistilledData,
    folder: Path,
    test: LabelledData | None = None,
    own: OwnNetwork | None = None,
) -> None:
    """Writes ``train.py`` and ``distilled.safetensors``, and the test data if they are given.

    Args:
        distilled: The distilled data.
        folder: Where to.
        test: Real data to test on, as the networks take them: ``test.safetensors``.
        own: The network, where it is not built in.
    """
    network = distilled.network(own.module() if own else None, "cpu")
    settings = _settings(distilled, network)
    source, call, files = _own_source(own) if own else _source(distilled)
    arguments = distilled.header.architecture.arguments
    given = models.parse_arguments(own.arguments) if own else arguments
    text = SCRIPT.format(
        settings=pprint.pformat(settings, width=96, sort_dicts=False),
        network=source,
        training=_body(standalone),
        make=called(call, given),
    )
    compile(text, "train.py", "exec")
    tensors = _tensors(distilled, network, settings)
    files["distilled.safetensors"] = safetensors.torch.save(tensors)
    if test is not None:
        files["test.safetensors"] = safetensors.torch.save(_test_tensors(test))
    for name, content in {**files, "train.py": text.encode()}.items():
        write_atomically(folder / name, content)


def called(name: str, arguments: Mapping[str, Any]) -> str:
    """The code that calls a class; refuses names of arguments that could be other code."""
    for given in arguments:
        if not given.isidentifier() or keyword.iskeyword(given):
            raise ArtefactError(
                f"An argument of the network is called {given[:100]!r}, which is no Python name.",
                "Name the network yourself: --model file.py:Class --model-args name=value",
            )
    return f"{name}({', '.join(f'{one}={value!r}' for one, value in arguments.items())})"


SCRIPT = '''"""Trains networks on distilled data; needs torch, safetensors and the files beside it.

python train.py [--networks N] [--test test.safetensors] [--output trained.safetensors]
"""

SETTINGS = {settings}

{network}


{training}

if __name__ == "__main__":
    main(lambda: {make}, SETTINGS)
'''


def _rules_in(record: dict[str, Any]) -> Iterator[str]:
    """The names of an update rule and of those inside it."""
    yield record["name"]
    if "rule" in record:
        yield from _rules_in(record["rule"])


def _settings(distilled: DistilledData, network: Network) -> dict[str, Any]:
    """All that the script has to know, in plain Python values."""
    header, claim, norm = distilled.header, distilled.claim, distilled.normalization
    rule, objective = header.update_rule, built_in_objective(header)
    for name in _rules_in(rule):
        if name not in RULES:
            raise ConfigError(
                f"These distilled data have the update rule {name}, which a script does not know.",
                "Export them in another format, or use dd.load(…).train().",
            )
    dtypes = {str(w.dtype) for w in network.weights.values()}
    known = [kind.inner_loss for kind in (Classification, Regression)]
    if objective is None or type(objective).inner_loss not in known or len(dtypes) > 1:
        raise ConfigError(
            "A script can be written for the built-in objectives, and weights of one type.",
            "Export the data in another format, or use dd.load(…).train().",
        )
    record = objective.record()  # that of the header may leave out defaults
    fixed = distilled.initialization.fixed
    networks = 1 if fixed else claim.networks if claim else MANY
    statistics = claim and claim.statistics
    return {
        "about": repr(distilled).strip("<>"),
        "claim": str(claim or "not measured")
        + ("" if statistics in (None, DISTILLED) else f" (here: of the {DISTILLED})"),
        "metric": objective.metric,
        "objective": "classification" if objective.has_classes else "regression",
        "relabelled": {record["attacked"]: record["target"]} if objective.attacks else {},
        "update_rule": UpdateRule.from_record(rule).record(),
        "inner": header.schedule.inner and header.schedule.inner.model_dump(),
        "scheme": header.initialization.scheme,
        "seed": claim.seed if claim else 0,
        "networks": networks,
        "most": 10**6 if _by_scheme(distilled) else networks,
        "mean": [*norm.mean] if norm else None,
        "std": [*norm.std] if norm else None,
        "whitening": EPSILON if norm and norm.whitening else None,
        "dtype": dtypes.pop().removeprefix("torch."),
        "weights": [*network.weights],
    }


def _by_scheme(distilled: DistilledData) -> bool:
    """Whether a script can draw the initial weights: not those of a user's own class."""
    return distilled.initialization.name == RandomInit.name


def _tensors(
    distilled: DistilledData, network: Network, settings: dict[str, Any]
) -> dict[str, Tensor]:
    """Distilled data, the network's constants, and initial weights that cannot be drawn again."""
    found = {
        "inputs": distilled.inputs,
        "labels": distilled.labels,
        "learning_rates": distilled.learning_rates,
        **{f"constants/{name}": value for name, value in network.constants.items()},
    }
    if (norm := distilled.normalization) and norm.whitening:
        found |= {f"whitening/{name}": one for name, one in norm.whitening.tensors().items()}
    if not _by_scheme(distilled):
        drawn = networks_for(settings["seed"], "held-out network", range(settings["networks"]))
        theta0 = distilled.initial_weights(network, drawn)
        found |= {f"initial/{name}": w for name, w in theta0.items()}
    return {name: t.detach().cpu().clone().contiguous() for name, t in found.items()}


def _test_tensors(test: LabelledData) -> dict[str, Tensor]:
    """Real data: pixels as bytes, or inputs as the networks take them."""
    if test.inputs.dtype == torch.uint8:
        everything = torch.arange(len(test)).split(500)
        inputs = torch.cat([test.inputs[indices] for indices in everything])
    else:
        inputs, _ = test.tensors()
    return {"inputs": inputs.contiguous(), "labels": test.labels.contiguous()}


def _source(distilled: DistilledData) -> tuple[str, str, dict[str, bytes]]:
    """The source of a built-in network, and what makes it."""
    architecture = distilled.header.architecture
    if not architecture.built_in:
        raise ArtefactError(
            f"These distilled data are for {architecture.name}, which is not built in.",
            "Name the file of the network: --model file.py:Class",
        )
    kind = models.MODELS[architecture.name]
    return _body(sys.modules[kind.__module__]), kind.__name__, {}


def _own_source(own: OwnNetwork) -> tuple[str, str, dict[str, bytes]]:
    """The import of a user's own network; its file goes beside the script."""
    place, _, name = own.reference.rpartition(":")
    first = name.partition(".")[0]
    if place.endswith(".py"):
        return f"from {OWN} import {first}", name, {f"{OWN}.py": read_regular(Path(place))}
    return f"from {place} import {first}", name, {}


def _body(module: Any) -> str:
    """The source of a module without its documentation, relative imports and registration."""
    text = inspect.getsource(module)
    lines, nodes, kept, end = text.splitlines(), ast.parse(text).body, list[str](), 0
    for node in nodes:
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        begin = min(one.lineno for one in [node, *decorators]) - 1
        above, whole = lines[end:begin], lines[begin : node.end_lineno]
        end = node.end_lineno or end
        documentation = node is nodes[0] and isinstance(node, ast.Expr)
        if not documentation and not (isinstance(node, ast.ImportFrom) and node.level):
            kept += [*above, *(line for line in whole if not line.startswith("@register("))]
    return "\n".join(kept).strip("\n")
