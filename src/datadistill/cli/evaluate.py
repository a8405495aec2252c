"""``datadistill evaluate``: how well distilled data train networks."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..progress import ProgressCallback
from ..runs.team.environment import world_size
from .choices import MEGABYTE, DataChoice
from .console import going_on, out
from .evaluate_flags import EvaluateFlags

if TYPE_CHECKING:
    from torch import nn

    from ..artefact import DistilledData
    from ..data import LabelledData
    from ..evaluation import Evaluation, OrdinaryTraining
    from ..pools import Pool
    from ..runs.team.processes import Processes


@dataclass(frozen=True)
class Evaluate(EvaluateFlags):
    """Train networks on distilled data and test them on real data.

    By default the network that the data were distilled for. Any other is trained with --model: a
    built-in one by name, or your own as package.module:Class.

    Examples:
        datadistill evaluate runs/digits-fixed
        datadistill evaluate runs/digits-fixed --baselines
        datadistill evaluate runs/digits-fixed --ordinary --model mlp
    """

    def run(self) -> None:
        """Evaluates and prints mean ± standard deviation over networks."""
        ordinary = self.checked()
        from .artefacts import artefact_at, as_run_says

        distilled = self.load_artefact(artefact_at(self.artefact))
        self.set_threads()
        as_run_says(self, distilled)._of_protocol()._measure(distilled, ordinary)

    def _of_protocol(self) -> Evaluate:
        """The command with the networks that its protocol asks for."""
        if self.protocol == "ours":
            return self
        from ..evaluation import PROTOCOLS

        networks = self.networks or PROTOCOLS[self.protocol].networks
        return replace(self, networks=networks, initialization=self.initialization or "random")

    def _measure(self, distilled: DistilledData, ordinary: OrdinaryTraining | None) -> None:
        from ..core.initialization import RandomInit
        from ..runs.team.processes import together
        from .artefacts import data_name
        from .figures import class_table, curve_table
        from .outcome import stored_text

        if self.initialization == RandomInit.name:
            scheme = distilled.header.initialization.scheme
            distilled = distilled.with_initialization(RandomInit(scheme or "xavier-normal"))
        elif not (self.baselines and distilled.header.initialization.kind == "fixed-pretrained"):
            distilled = self.with_pool(distilled)
        poisonous = distilled.objective.attacks
        if self.defence and not poisonous:
            raise ConfigError(
                f"--defence needs data distilled for poisoning; these are for "
                f"{distilled.objective.text}.",
                "Leave --defence out, or name another artefact.",
            )
        # Baselines see what distillation saw.
        augment = distilled.header.configuration.get("augment") if self.baselines else None
        name = data_name(self.data, self.artefact, distilled, distilled.header.data)
        train, test = self.load_for(distilled, name, augment)
        if poisonous and not (ordinary or self.curve or self.per_class):
            self._attack(distilled, train, test if self.split == "test" else train)
            return
        if self.baselines:
            self._compare(distilled, train, test)
            return
        if self.scores and ordinary:
            self._score(distilled, train, test, ordinary)
            return
        with together() as team, self.bars() as progress:
            data = test if self.split == "test" else train
            real = data, self.statistics_for(distilled, self.statistics)
            results = self._evaluate(distilled, real, ordinary, team, progress)
        if self.json:
            out.print_json(json.dumps(self._as_json(results)))
            return
        out.print(str(results[-1]), markup=False)
        self.say(stored_text(distilled))
        if self.curve:
            out.print(curve_table(results, distilled))
        if self.per_class:
            out.print(class_table(results[-1]))

    def _score(
        self,
        distilled: DistilledData,
        train: LabelledData,
        test: LabelledData,
        training: OrdinaryTraining,
    ) -> None:
        """Prints DD-Ranking's scores, and the accuracies that they are made of."""
        from ..tables import measure_robustness
        from .figures import robustness_table

        with self.bars() as progress:
            found = measure_robustness(
                distilled,
                train,
                test,
                training,
                networks=self.networks or 1,
                module=self._module(distilled),
                seed=self.seed,
                device=self.device,
                progress=progress,
            )
        if self.json:
            out.print_json(json.dumps({"artefact": str(self.artefact), **found.as_json()}))
        else:
            out.print(f"{training}; {self.networks} network(s) each", markup=False)
            out.print(robustness_table(found))

    def _attack(self, distilled: DistilledData, train: LabelledData, data: LabelledData) -> None:
        """Prints the effect of poisoning; with baselines and defences if they are asked for."""
        from ..evaluation import victims_of
        from .artefacts import results_of
        from .poisoning import measure_attack, write_attack

        if world_size() > 1 or self.select != "train":
            raise ConfigError(
                "Poisoning is evaluated in one process, with baselines chosen on training data.",
                "Start it without torchrun, and leave --select out.",
            )
        settings: dict[str, Any] = {
            "networks": self.networks,
            "module": self._module(distilled),
            "seed": self.seed,
            # Those that are attacked were trained on real data.
            "statistics": self.statistics_for(distilled, self.statistics) or train,
            "device": self.device,
            "memory": self.memory * MEGABYTE,
        }
        results = results_of(self.artefact)
        with going_on(), self.bars() as progress:
            victims = victims_of(distilled, data, **settings, progress=progress)
            outcome = measure_attack(
                distilled.steps,
                train,
                victims,
                baselines=self.baselines,
                own=self.baseline,
                defence=self.defence,
                results=results,
            )
        if self.baselines or self.defence:
            write_attack(results, outcome.as_json())
        if self.json:
            out.print_json(json.dumps(outcome.as_json()))
        else:
            outcome.print()

    def _compare(self, distilled: DistilledData, train: LabelledData, test: LabelledData) -> None:
        """Prints the baseline table; what is finished is kept and not computed again."""
        from ..artefact.real_data import image_shape
        from ..pools import Pool
        from ..tables import TableSettings, baseline_table
        from .artefacts import results_of
        from .table import print_baselines

        results = results_of(self.artefact)
        pool = distilled.pool or (Pool(self.pool) if self.pool else None)
        choice = replace(self, **image_shape(distilled.inputs.shape[2:]))
        source = source_data(distilled, pool, test.name, choice) if pool else None
        with going_on(), self.bars() as progress:
            table = baseline_table(
                replace(distilled, module=self._module(distilled) or distilled.module),
                train,
                test,
                baselines=self.baseline,
                settings=TableSettings(
                    select=self.select,
                    networks=self.networks,
                    seed=self.seed,
                    device=self.device,
                    memory=self.memory * MEGABYTE,
                ),
                source=source,
                results=results,
                progress=progress,
            )
        if self.json:
            out.print_json(json.dumps(table.summary()))
        else:
            print_baselines(table)
        self.say(f"All figures: {results}")

    def _evaluate(
        self,
        distilled: DistilledData,
        real: tuple[LabelledData, LabelledData | None],
        ordinary: OrdinaryTraining | None,
        team: Processes,
        progress: ProgressCallback,
    ) -> list[Evaluation]:
        from ..core.device import resolve_device
        from ..evaluation import evaluate, evaluate_ordinary, learning_curve
        from .artefacts import is_architecture_of

        (data, statistics), module = real, self._module(distilled)
        own = module is None or is_architecture_of(module, distilled)
        settings: dict[str, Any] = {
            "networks": self.networks,
            "module": module if own else None,
            "architecture": None if own else module,
            "seed": self.seed,
            "statistics": statistics,
            "device": str(team.device(resolve_device(self.device))),
            "memory": self.memory * MEGABYTE,
            "team": team,
            "progress": progress,
        }
        if ordinary:
            return [evaluate_ordinary(distilled, data, ordinary, **settings)]
        if self.curve:
            return learning_curve(distilled, data, **settings)
        return [evaluate(distilled, data, **settings)]

    def _module(self, distilled: DistilledData) -> nn.Module | None:
        """The network that is named, made for the distilled images if it is built in."""
        if self.model is None:
            return None
        from .. import models

        known = distilled.header.architecture.arguments
        classes = known.get("classes") or len(distilled.class_names or ()) or 10
        return models.find_for(self.model, distilled.inputs.shape[2:], classes, self.model_args)

    def _as_json(self, results: list[Evaluation]) -> dict[str, Any]:
        from .figures import as_json

        last = {"artefact": str(self.artefact), **as_json(results[-1])}
        return {**last, "curve": [as_json(one) for one in results]} if self.curve else last


def source_data(
    distilled: DistilledData, pool: Pool, target: str, choice: DataChoice
) -> LabelledData | None:
    """The training data of a pool that was made from another data set than the target."""
    from ..data import DATA_SETS
    from ..tables.adaptation import check_source

    name = pool.origin.data.name
    if name == target or name not in DATA_SETS:  # data without a name cannot be loaded
        return None
    source, _ = choice.load(name)
    check_source(distilled, pool, source)
    return source
