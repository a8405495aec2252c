"""``datadistill distill``: distil a data set into an artefact, in a run folder."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from ..data import DATA_SETS
from ..durations import parse_time, time_text
from ..errors import ConfigError, FileError
from ..runs import RunConfig
from ..runs.config import PAPER, config_from
from ..runs.experiment import CODE_SETTINGS, Experiment, check_no_code, load
from ..runs.follow import follow_torchrun, worker
from ..runs.initialization import weights_file
from ..runs.planning.cost import Cost, measure_cost
from ..runs.planning.division import divided, is_divided
from ..runs.recipes import Preset, read_recipe
from ..runs.run import Run
from ..runs.store.folder import RunFolder, free_folder
from ..runs.team.processes import Processes, is_worker, together
from .console import Common, Switch
from .outcome import show_result

Recipe = Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[RECIPE]")]


@dataclass(frozen=True)
class Distill(Common):
    """Distil a data set into a few synthetic images, in a run folder.

    A recipe (datadistill recipes lists them) or a YAML file gives the settings, and flags go before
    both. Examples: datadistill distill digits-fixed;
    datadistill distill --data mnist --initialization fixed --time-budget 30m
    """

    recipe: Recipe = None
    """Recipe by name, or a YAML file of settings such as a run's config.yaml."""
    preset: Preset = "fast"
    """Whose outer schedule: ours, or the paper's, which takes many times as long."""
    run_folder: Annotated[Path | None, tyro.conf.arg(name="run")] = None
    """Folder for checkpoints, figures and the artefact; runs/NAME by default."""
    dry_run: Switch = False
    """Say what the run would cost, and stop there."""
    time_budget: str | None = None
    """End after this time, e.g. 30m or 1h30m, with the schedule scaled to it."""
    config: RunConfig = field(default_factory=RunConfig)

    def run(self) -> None:
        """Distils, tests once on the test set, and writes the artefact and its picture."""
        if is_worker():
            follow_torchrun()
            return
        self.config.check_division()
        deadline = self.time_budget and time.monotonic() + parse_time(self.time_budget)
        folder = self._folder()
        config, loaded = _lasting(self.config), None
        if not is_divided(config):
            loaded, measured = divided(load(config))
            config = loaded.config
            if len(measured) > 1:
                self.say(f"Measured here: {'; '.join(map(str, measured))}.")
        with together(config.processes or 1, worker, debug=self.debug) as team:
            self._lead(loaded or load(config), team, folder, deadline or None)

    def _lead(
        self, loaded: Experiment, team: Processes, folder: RunFolder, deadline: float | None
    ) -> None:
        distillation, train, test = loaded.prepare(team), loaded.train, loaded.test
        config, until = distillation.config, None
        self.say(
            f"Distilling {len(train):,} examples of {train.name} for {config.model}, "
            f"{config.initialization} initialization: steps {config.steps}, epochs {config.epochs}."
        )
        if deadline is not None or self.dry_run or not self.quiet:
            team.assemble()
            cost = measure_cost(distillation, test)
            if deadline is not None:
                config = _within(config, cost, deadline - time.monotonic())
                until = deadline - cost.test - cost.validation
            self.say(_cost_text(config, cost))
        if not self.dry_run:
            planned = distillation.with_config(config)
            with self.bars() as progress:
                run = Run(planned, folder, test, until, self.say, self.warn, progress)
                distilled = run.go()
            show_result(self, distilled, folder)

    def with_recipe(self) -> "Distill | None":
        """What the flags have to be read over again, if a recipe or a preset is named."""
        if self.recipe is None:
            return None if self.preset == "fast" else Distill(config=config_from(PAPER))
        recipe = read_recipe(self.recipe, self.preset)
        said = {name: getattr(self.config, name) for name in CODE_SETTINGS}
        check_no_code(recipe.config, str(recipe.path), said)
        return Distill(config=recipe.config)

    def _folder(self) -> RunFolder:
        if self.run_folder is None:
            config = self.config
            kind = config.model.rpartition(":")[2].lower()
            name = f"{Path(config.data).stem}-{kind}-{config.initialization}"
            recipe = Path(self.recipe or "config").stem
            return free_folder(name if recipe == "config" else recipe)
        folder = RunFolder(self.run_folder)
        if not folder.is_new:
            raise FileError(
                f"There is a run in {folder.path}.",
                f"Go on with it: datadistill resume {folder.path}; or name another --run.",
            )
        return folder


def _lasting(config: RunConfig) -> RunConfig:
    """Paths that are still right when the run is resumed from another folder."""
    own = config.data not in DATA_SETS and Path(config.data).exists()
    weights = weights_file(config)
    return replace(
        config,
        data=str(Path(config.data).absolute()) if own else config.data,
        data_dir=config.data_dir and config.data_dir.absolute(),
        pool=config.pool and config.pool.absolute(),
        weights=weights and weights.absolute(),
    )


def _within(config: RunConfig, cost: Cost, seconds: float) -> RunConfig:
    """The same schedule with as many outer steps as fit into the time."""
    iterations = cost.iterations_within(seconds)
    if iterations < 1:
        raise ConfigError(
            f"Not one outer step ({time_text(cost.outer_step)}) fits into the time budget beside "
            f"the test at the end ({time_text(cost.test)}).",
            "Give a longer --time-budget, or fewer --test-networks.",
        )
    return config.scaled(iterations)


def _cost_text(config: RunConfig, cost: Cost) -> str:
    every = config.validate_every or config.iterations
    total = cost.total(config.iterations, every)
    memory = f"; memory at its peak {cost.memory / 2**30:.1f} GiB" if cost.memory else ""
    if memory and (config.processes or 1) > 1:
        memory += f" in each of {config.processes} processes"
    return (
        f"Measured here: {time_text(cost.outer_step)} an outer step, {config.iterations:,} of them "
        f"and the tests about {time_text(total)}{memory}."
    )
