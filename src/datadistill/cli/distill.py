"""``datadistill distill``: distil a data set into an artefact, in a run folder."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro
from tyro.constructors import StructConstructorSpec, StructFieldSpec, StructTypeInfo

from ..core.settings import Settings
from ..durations import parse_time, time_text
from ..errors import ConfigError, FileError
from ..runs.calls.presets import Preset, described, preset_settings
from ..runs.config import NAMES, RunConfig, config_from
from ..runs.recipes import read_recipe
from ..runs.settings import GROUPS
from ..runs.store.yaml_files import read_config
from ..runs.team.environment import is_worker
from .console import Common, Switch
from .flags import REGISTRY, flags

if TYPE_CHECKING:
    from ..runs.experiment import Experiment
    from ..runs.planning.cost import Cost
    from ..runs.store.folder import RunFolder
    from ..runs.team.processes import Processes

FIRST = (
    *("data", "model", "initialization", "steps", "epochs", "images_per_class", "learning_rate"),
    *("iterations", "time_budget", "run_folder"),
)
"""The settings that people change first, in the order of the help."""
FEW_OUTER_STEPS = 10
"""So short a run is over before its cost is measured."""
Recipe = Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[RECIPE]")]


@dataclass(frozen=True)
class Distill(Common):
    """Distil a data set into a few synthetic images, in a run folder.

    A recipe (datadistill recipes lists them) or a YAML file gives the settings; flags override it.

    Examples:
        datadistill distill digits-fixed
        datadistill distill mnist-fixed-10 --epochs 5 --run runs/longer
        datadistill distill --data mnist --initialization fixed --time-budget 30m
    """

    recipe: Recipe = None
    """Recipe by name, or a YAML file of settings such as a run's config.yaml."""
    preset: Preset = "fast"
    """Settings for a purpose: fast, our own outer schedule; paper, the paper's, which takes many
    times as long; best, what reaches the highest accuracy: learned labels, longer unrolls with
    momentum and more (docs/beyond.md)."""
    run_folder: Annotated[Path | None, tyro.conf.arg(name="run")] = None
    """Folder for checkpoints, metrics and the artefact. By default runs/NAME."""
    dry_run: Switch = False
    """Measure what the run would cost and how fast its network is, and stop."""
    time_budget: str | None = None
    """Finish within this time, e.g. 30m or 1h30m; the schedule is scaled to it."""
    resume: Switch = False
    """Continue the run in this folder, if there is one."""
    overwrite: Switch = False
    """Replace the run in this folder, if there is one."""
    config: RunConfig = field(default_factory=RunConfig)
    named: frozenset[str] = frozenset()  # the settings that stand on the command line
    no_flags: ClassVar[tuple[str, ...]] = ("config", "named")

    def run(self) -> None:
        """Distils, tests once on the test set, and writes the artefact and its picture."""
        from ..runs.experiment import CODE_SETTINGS, load
        from ..runs.follow import follow_torchrun, worker
        from ..runs.planning.division import divided, flags_of, is_divided
        from ..runs.store.tensorboard import check_installed
        from ..runs.team.processes import together

        config = lasting(self.config)
        named = {name: getattr(config, name) for name in CODE_SETTINGS}
        if is_worker():
            follow_torchrun(named)
            return
        if self.resume and self.overwrite:
            raise ConfigError("--resume and --overwrite exclude each other.", "Give one of them.")
        self.config.check_division()
        check_installed(self.config.tensorboard)
        deadline = self.time_budget and time.monotonic() + parse_time(self.time_budget)
        folder = self._folder()
        config, loaded = self._as_before(config, folder), None
        if not is_divided(config):
            loaded, measured = divided(load(config))
            config = loaded.config
            if len(measured) > 1:
                found = "; ".join(map(str, measured))
                self.say(f"Measured here: {found}. Chosen: {flags_of(config)}.")
        with together(config.processes or 1, worker, named=named, debug=self.debug) as team:
            self._lead(loaded or load(config), team, folder, deadline or None)

    def _lead(
        self, loaded: Experiment, team: Processes, folder: RunFolder, deadline: float | None
    ) -> None:
        from ..runs.planning.budget import TimeBudget
        from ..runs.planning.cost import measure_cost
        from ..runs.planning.speed import speed_lines
        from ..runs.run import Run
        from ..runs.store.restore import opened
        from .outcome import show_result

        distillation, train, test = loaded.prepare(team), loaded.train, loaded.test
        config, budget = distillation.config, None
        self.say(
            f"Distilling {len(train):,} examples of {train.name} for {config.model}, "
            f"{config.initialization} initialization: steps {config.steps}, epochs {config.epochs}."
        )
        if self.preset == "best":
            self.say(f"Preset best: {described(config)}")
        self.say(f"Computed by: {distillation.engine_record}.")
        told = not self.quiet and config.iterations > FEW_OUTER_STEPS
        if deadline is not None or self.dry_run or told:
            team.assemble()
            cost = measure_cost(distillation, test)
            if deadline is not None:
                config = self._within(config, cost, deadline - time.monotonic())
                most = distillation.config.iterations if "iterations" in self.named else None
                budget = TimeBudget(deadline - cost.test - cost.validation, most)
            self.say(_cost_text(config, cost))
            for line in speed_lines(distillation, cost) if self.dry_run else ():
                self.say(line)
        if not self.dry_run:
            planned = distillation.with_config(config)
            if self.overwrite:
                folder.clear()
            with self.bars() as progress:
                run = Run(planned, folder, test, budget, self.say, self.warn, progress)
                with opened(folder) as saved:
                    ended = run.go_from(saved)
            show_result(self, ended, folder)

    def with_recipe(self) -> Distill | None:
        """The defaults to parse the flags over again, if a recipe or a preset is named."""
        given = {name: getattr(self.config, name) for name in self.named}
        if self.recipe is None:
            found = preset_settings(self.preset, given)
            return type(self)(config=config_from(found)) if found else None
        recipe = read_recipe(self.recipe, self.preset, given)
        from ..runs.experiment import CODE_SETTINGS, check_no_code

        default = RunConfig()
        said = {name: getattr(self.config, name) for name in CODE_SETTINGS}
        given = {name: value for name, value in said.items() if value != getattr(default, name)}
        # Code that a flag overrides does not run.
        check_no_code(replace(recipe.config, **given), str(recipe.path), said)
        return type(self)(config=recipe.config)

    def _folder(self) -> RunFolder:
        from ..runs.store.folder import RunFolder, free_folder

        if self.run_folder is None:
            config = self.config
            kind = config.model.rpartition(":")[2].lower()
            name = f"{Path(config.data).stem}-{kind}-{config.initialization}"
            recipe = Path(self.recipe or "config").stem
            name = name if recipe == "config" else recipe
            here = self.resume or self.overwrite
            return RunFolder(Path("runs") / name) if here else free_folder(name)
        folder = RunFolder(self.run_folder)
        if not (folder.is_new or self.resume or self.overwrite):
            raise FileError(
                f"There is a run in {folder.path}.",
                "Continue it with --resume, replace it with --overwrite, or choose another --run.",
            )
        return folder

    def _as_before(self, config: RunConfig, folder: RunFolder) -> RunConfig:
        """The settings with the division of the work that the run had before, if it goes on."""
        if not self.resume or folder.is_new:
            return config
        if self.time_budget:
            raise ConfigError(
                f"There is a run in {folder.path}, whose schedule is planned already.",
                "Leave out --time-budget to continue it, or replace it with --overwrite.",
            )
        before = read_config(folder.config)
        return replace(
            config,
            processes=config.processes or before.processes,
            threads=config.threads or before.threads,
        )

    def _within(self, config: RunConfig, cost: Cost, seconds: float) -> RunConfig:
        """The schedule with as many outer steps as fit into the time, or as are asked for."""
        iterations = cost.iterations_within(seconds)
        if iterations < 1:
            raise ConfigError(
                f"The time budget is too short for one outer step ({time_text(cost.outer_step)}) "
                f"and the final test ({time_text(cost.test)}).",
                "Choose a longer --time-budget, or fewer --test-networks.",
            )
        if "iterations" in self.named:
            if config.iterations <= iterations:
                self.say(f"--iterations {config.iterations} ends before the time budget does.")
                return config
            self.say(f"The time budget ends before --iterations {config.iterations} does.")
        return config.scaled(iterations)


@REGISTRY.struct_rule
def _flags(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The flags of ``distill``: those that people change first, then the settings in groups."""
    if info.type not in (Distill, *Distill.__subclasses__()):
        return None
    command: type[Distill] = info.type
    config = info.default.config if isinstance(info.default, Distill) else RunConfig()
    own = {flag.name: flag for flag in flags(command, info.default, skip=command.no_flags)}
    settings = {flag.name: flag for flag in flags(RunConfig, config)}
    common = [field.name for field in fields(Common)]
    names = dict.fromkeys([*FIRST, *(name for name in own if name not in common), *common])
    groups = [
        StructFieldSpec(group.__name__, _titled(group, title), _part(config, group), group.__doc__)
        for title, group in GROUPS.items()
    ]
    first = (settings.get(name) or own[name] for name in names)
    return StructConstructorSpec(partial(_made, command), (*first, *groups))


@REGISTRY.struct_rule
def _group_flags(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The flags of one group of settings, as a mapping."""
    if info.type not in GROUPS.values():
        return None
    return StructConstructorSpec(dict, tuple(flags(info.type, info.default, skip=FIRST)))


def _titled(group: type, title: str) -> Any:
    annotated: Any = Annotated
    return annotated[group, tyro.conf.arg(name=title)]


def _part(config: RunConfig, group: type[Settings]) -> Settings:
    return group(**{field.name: getattr(config, field.name) for field in fields(group)})


def _made(kind: type[Distill], **values: Any) -> Distill:
    """The command from its flags, in which the settings stand in groups."""
    settings = {name: values.pop(name) for name in FIRST if name in NAMES}
    for group in GROUPS.values():
        settings |= values.pop(group.__name__)
    return kind(config=RunConfig(**settings), **values)


def lasting(config: RunConfig) -> RunConfig:
    """Paths that are still right when the run is resumed from another folder."""
    from ..data import DATA_SETS
    from ..runs.initialization import weights_file

    own = config.data not in DATA_SETS and Path(config.data).exists()
    weights = weights_file(config)
    return replace(
        config,
        data=str(Path(config.data).absolute()) if own else config.data,
        data_dir=config.data_dir and config.data_dir.absolute(),
        pool=config.pool and config.pool.absolute(),
        weights=weights and weights.absolute(),
    )


def _cost_text(config: RunConfig, cost: Cost) -> str:
    every = config.validate_every or config.iterations
    total = cost.total(config.iterations, every)
    memory = f"; peak memory {cost.memory / 2**30:.1f} GiB" if cost.memory else ""
    if memory and (config.processes or 1) > 1:
        memory += f" in each of {config.processes} processes"
    return (
        f"Measured here: {time_text(cost.outer_step)} per outer step; {config.iterations:,} outer "
        f"steps with tests take about {time_text(total)}{memory}."
    )
