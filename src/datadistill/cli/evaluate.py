"""``datadistill evaluate``: how well distilled data train networks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from ..core.names import DeviceName
from ..errors import ConfigError
from ..progress import ProgressCallback
from ..runs.team.environment import world_size
from .choices import MEGABYTE, CodeChoice, DataChoice, ModelChoice, PoolChoice
from .console import Common, Switch, going_on, out

if TYPE_CHECKING:
    from torch import nn

    from ..artefact import DistilledData
    from ..data import LabelledData
    from ..evaluation import Evaluation, OrdinaryTraining
    from ..pools import Pool
    from ..runs.team.processes import Processes


@dataclass(frozen=True, kw_only=True)
class Ordinary(Common):
    """Ordinary training: what the images are worth outside their schedule."""

    ordinary: Switch = False
    """Train on the distilled images as on any data set: shuffled minibatches, no schedule."""
    protocol: Literal["ours", "field", "vico"] = "ours"
    """ours: the schedule of the artefact. field: fresh networks, sgd with momentum 0.9 and weight
    decay 0.0005, 1,000 epochs, as DD-Ranking. vico: 300 epochs, the learning rate × 0.1 at half, as
    the code of DC and DSA. The next four flags change them."""
    hard_labels: Switch = False
    """Train on the most probable class of soft labels, not on the labels themselves."""
    scores: Switch = False
    """With --protocol field or vico: DD-Ranking's label-robust and augmentation-robust scores."""
    optimizer: Literal["sgd", "adam"] | None = None
    """Optimizer of ordinary training: sgd with momentum 0.9 (the default), or adam."""
    lr: float | None = None
    """Learning rate of ordinary training. By default 0.01 for sgd, 0.001 for adam."""
    epochs: int | None = None
    """Epochs of ordinary training. 30 by default."""
    batch_size: int | None = None
    """Batch size of ordinary training. 10 by default."""

    def ordinary_training(self) -> OrdinaryTraining | None:
        """Ordinary training, if it is asked for."""
        flags = ("optimizer", "lr", "epochs", "batch_size")
        given = {name: getattr(self, name) for name in flags if getattr(self, name) is not None}
        given |= {"hard_labels": True} if self.hard_labels else {}
        if self.scores and self.protocol == "ours":
            raise ConfigError("--scores needs --protocol field or vico.", "Add one of them.")
        if self.ordinary and self.protocol != "ours":
            raise ConfigError(
                f"--protocol {self.protocol} is ordinary training already.",
                "Leave --ordinary out.",
            )
        if given and not self.ordinary and self.protocol == "ours":
            flag = next(iter(given)).replace("_", "-")
            raise ConfigError(
                f"--{flag} needs --ordinary: distilled data have a schedule of their own.",
                f"Add --ordinary or --protocol field, or leave --{flag} out.",
            )
        if not self.ordinary and self.protocol == "ours":
            return None
        from ..evaluation import PROTOCOLS, OrdinaryTraining

        known = PROTOCOLS.get(self.protocol)
        return replace(known.training if known else OrdinaryTraining(), **given)


@dataclass(frozen=True)
class Evaluate(DataChoice, ModelChoice, PoolChoice, Ordinary, CodeChoice):
    """Train networks on distilled data and test them on real data.

    By default the network that the data were distilled for. Any other is trained with --model: a
    built-in one by name, or your own as package.module:Class.

    Examples:
        datadistill evaluate runs/digits-fixed
        datadistill evaluate runs/digits-fixed --baselines
        datadistill evaluate runs/digits-fixed --ordinary --model mlp
    """

    artefact: tyro.conf.Positional[Path]
    """An artefact, a run folder, or a name from datadistill artefacts."""
    data: str | None = None
    """Data set to test on. By default the one that was distilled."""
    split: Literal["test", "train"] = "test"
    """Split of the data set."""
    networks: int | None = None
    """Held-out networks. By default 1 for fixed, 200 for random initializations, or all that the
    pool has."""
    seed: int = 0
    """Seed of the held-out networks."""
    initialization: str | None = field(default=None, kw_only=True)
    """random: test networks with random weights, though the data are for a fixed network or a
    pool. Or your own initialization, if the artefact has one."""
    statistics: str | None = None
    """Data set whose training split gives the running statistics of batch normalisation. By default
    they are those of the distilled images; of the training split, for poisoning."""
    per_class: Switch = False
    """Print the figure of each class too."""
    curve: Switch = False
    """Test after every update, and print the curve."""
    memory: int = 1024
    """Memory in megabytes for the networks that are trained side by side."""
    threads: int | None = None
    """CPU threads. By default as many as torch takes; another number may change the last bits."""
    device: DeviceName = "auto"
    """Device to compute on."""
    baselines: Switch = False
    """Compare with real images as training data, K-NN and full training: the paper's table."""
    baseline: tuple[str, ...] = ()
    """With --baselines: your own baselines to compare with, too, as file.py:Class."""
    select: Literal["train", "test"] = "train"
    """Data to choose the baselines' learning rates on: held-out training data, or the test data as
    in the paper."""
    defence: Switch = False
    """For poisoning: measure the attack against caps, smaller learning rates and checks."""
    json: Switch = False
    """Print the result as JSON, with every network's figure."""

    def run(self) -> None:
        """Evaluates and prints mean ± standard deviation over networks."""
        ordinary = self._checked()
        from .artefacts import artefact_at, as_run_says

        distilled = self.load_artefact(artefact_at(self.artefact))
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
        self._set_threads()
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

    def _set_threads(self) -> None:
        """Sets the number of threads that is asked for, or tells the one that torch takes."""
        import torch

        if self.threads is None:
            self.say(f"For a bit-identical result, use --threads {torch.get_num_threads()}.")
        else:
            torch.set_num_threads(self.threads)

    def _checked(self) -> OrdinaryTraining | None:
        """Refuses flags that contradict each other; returns ordinary training, if asked for."""
        ordinary = self.ordinary_training()
        if ordinary and self.curve:
            raise ConfigError(
                "--curve cannot be combined with --ordinary.", "Leave one of them out."
            )
        if self.baselines and (ordinary or self.curve or self.per_class or self.split != "test"):
            raise ConfigError(
                "--baselines compares after all updates, on the test data.",
                "Leave --ordinary, --curve, --per-class and --split out.",
            )
        from ..core.initialization import RandomInit

        given = self.initialization or RandomInit.name
        if given != RandomInit.name and ":" not in given:
            raise ConfigError(
                f"--initialization is {given!r}.",
                "Choose random, or name your own as file.py:Class.",
            )
        if self.baselines and self.initialization == RandomInit.name:
            raise ConfigError(
                "--initialization cannot be combined with --baselines.", "Leave one of them out."
            )
        if self.baselines and self.statistics:
            raise ConfigError(
                "--statistics cannot be combined with --baselines.", "Leave one of them out."
            )
        if self.baseline and not self.baselines:
            raise ConfigError("--baseline needs --baselines.", "Add --baselines.")
        if self.select != "train" and not self.baselines:
            raise ConfigError("--select needs --baselines.", "Add --baselines.")
        if self.baselines and world_size() > 1:
            raise ConfigError("--baselines runs in one process.", "Start it without torchrun.")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads is {self.threads}.", "Set threads to at least 1.")
        if self.memory < 1:
            raise ConfigError(f"memory is {self.memory}.", "Set memory to at least 1 megabyte.")
        return ordinary

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
