"""dd.tune: a search over the settings that matter, on held-out training data."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from torch import nn

from ...core.values import one_line
from ...data import LabelledData
from ...durations import parse_time, time_text
from ...errors import ConfigError, NonFiniteError, RunError, ZeroGradientError
from ...files import make, write_atomically
from ...lock import locked
from ...showing import Tell, teller
from ..calls.keywords import Keywords
from ..calls.presets import Preset, preset_settings
from ..config import RunConfig, config_from, differences
from ..planning.budget import TimeBudget
from ..planning.cost import measure_cost
from ..preparation import prepare
from ..resuming import as_planned
from ..run import Run
from ..store.folder import RunFolder
from ..store.yaml_files import read_config, write_yaml
from .space import Search, check_installed, searched
from .trials import Trial, read_trials, write_trials

TRIALS = 20


@dataclass(frozen=True)
class Tuned:
    """What a search has found.

    Attributes:
        config: The best settings.
        reached: What they reached on held-out training data, in a short run.
        trials: All trials, in order.
        recipe: The file with the best settings, for ``datadistill distill``.
    """

    config: RunConfig
    reached: float
    trials: tuple[Trial, ...]
    recipe: Path

    __repr__ = one_line


def tune(
    train: Any,
    module: nn.Module | str,
    *,
    run: str | Path,
    trials: int = TRIALS,
    time_budget: str | float | None = None,
    search: Sequence[str] = (),
    preset: Preset = "fast",
    progress: bool = False,
    **settings: Unpack[Keywords],
) -> Tuned:
    """Searches the few settings that matter by short runs, judged on held-out training data.

    The same call again continues a search that was interrupted. Test data are never used.

    Args:
        train: Real training data, in the forms of :func:`datadistill.distill`.
        module: The network, or its name.
        run: A folder for the trials and the result, ``best.yaml``.
        trials: How many runs are made, at most.
        time_budget: Time for all of them, in seconds or as ``"1h"``: each trial takes an equal part
            of it. By default each makes all outer steps.
        search: The settings to search; all that have a meaning by default.
        preset: Settings below those that are given.
        progress: True to tell what each trial reached, on standard error.
        settings: Fields of :class:`RunConfig`, which the search begins with.
    """
    from ..distilling import found_network, real_data

    check_installed()
    others: dict[str, Any] = {**settings}
    real, _ = real_data(train, None, others)
    network, model = found_network(module, real, others)
    name = str(train) if isinstance(train, str | Path) else real.name
    named = {"data": name, "model": model, **others}
    config = config_from({**preset_settings(preset, named), **named})
    seconds = parse_time(time_budget) if isinstance(time_budget, str) else time_budget
    return Tuning(config, real, network, Path(run), trials, seconds, teller(progress)).go(search)


@dataclass(frozen=True)
class Tuning:
    """A search in a folder.

    Attributes:
        config: The settings that it begins with.
        train: The training data.
        module: The network.
        folder: Where.
        trials: How many runs are made, at most.
        seconds: The time for all of them, if it is limited.
        tell: Receives messages.
    """

    config: RunConfig
    train: LabelledData
    module: nn.Module
    folder: Path
    trials: int
    seconds: float | None
    tell: Tell

    def go(self, names: Sequence[str] = ()) -> Tuned:
        """Makes the trials that are missing, and writes the best settings."""
        if not self.config.validation:
            raise ConfigError("A search needs validation data.", "Set validation, e.g. to 0.1.")
        make(self.folder)
        with locked(self.folder / ".lock"):
            return self._go(names)

    def _go(self, names: Sequence[str]) -> Tuned:
        first = prepare(self.config, self.train, self.module)
        self._check_same()
        search = Search(
            self.config, searched(names, self.config), first.distiller.objective.higher_is_better
        )
        log = self.folder / "trials.jsonl"
        done = read_trials(log)
        while len(done) < self.trials:
            spent = sum(trial.seconds for trial in done)
            share = (self.seconds or math.inf) / self.trials
            if done and self.seconds is not None and self.seconds - spent < share / 2:
                self.tell("The time is up.")
                break
            done.append(self._trial(len(done), search.next(done), share))
            write_trials(log, done)
            self._told(len(done) - 1, done, search)
        return self._written(done, search)

    def _trial(self, number: int, settings: dict[str, Any], seconds: float) -> Trial:
        """Makes one run, or resumes it where it was interrupted."""
        begin = time.monotonic()
        folder = RunFolder(self.folder / "trials" / f"{number:03d}")
        try:
            config = config_from({**self.config.mapping(), **settings})
            reached = self._reached(config, folder, begin + seconds)
        except KeyboardInterrupt as interrupt:
            told = f"{number} trials are kept. Run the same command again to continue."
            raise type(interrupt)(told) from None
        except (NonFiniteError, ZeroGradientError) as error:  # other settings may learn
            self.tell(f"Trial {number} failed: {error.what}")
            reached = None
        return Trial(settings, reached, time.monotonic() - begin)

    def _reached(self, config: RunConfig, folder: RunFolder, until: float) -> float | None:
        distillation = prepare(config, self.train, self.module)
        distillation = distillation.with_config(as_planned(distillation.config, folder))
        budget = None
        if math.isfinite(until):
            cost = measure_cost(distillation, None)
            fit = max(1, cost.iterations_within(until - time.monotonic()))
            if folder.is_new and fit < distillation.config.iterations:
                distillation = distillation.with_config(distillation.config.scaled(fit))
            budget = TimeBudget(until - cost.validation, distillation.config.iterations)
        claim = Run(distillation, folder, None, budget, in_python=True).go().claim
        return None if claim is None else claim.mean

    def _check_same(self) -> None:
        """Refuses to continue a search with other settings; remembers those of a new one."""
        path = self.folder / "config.yaml"
        if not path.exists():
            write_atomically(path, write_yaml(self.config, "What the search begins with."))
        elif changed := differences(read_config(path), self.config):
            raise RunError(
                f"The settings differ from those of the search in {self.folder}: "
                f"{'; '.join(changed)}.",
                "Restore them to continue, or choose another folder.",
            )

    def _told(self, number: int, done: list[Trial], search: Search) -> None:
        trial, best = done[number], search.best(done)
        reached = "failed" if trial.reached is None else f"{trial.reached:.4g}"
        what = ", ".join(f"{name} {value}" for name, value in trial.settings.items())
        mark = " (the best so far)" if best == number else ""
        self.tell(
            f"Trial {number + 1} of {self.trials}: {reached}{mark} in {time_text(trial.seconds)}: "
            f"{what or 'the settings as given'}"
        )

    def _written(self, done: list[Trial], search: Search) -> Tuned:
        best = search.best(done)
        if best is None:
            raise RunError(
                f"All {len(done)} trials failed.",
                "Lower learning_rate or outer_lr, or set clip_norm.",
            )
        trial, path = done[best], self.folder / "best.yaml"
        assert trial.reached is not None
        config = config_from({**self.config.mapping(), **trial.settings})
        told = (
            f"Found by datadistill tune: trial {best + 1} of {len(done)}, which reached "
            f"{trial.reached:.4g} on held-out training data."
        )
        write_atomically(path, write_yaml(config, told))
        return Tuned(config, trial.reached, tuple(done), path)
