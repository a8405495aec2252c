"""The few settings that matter, where each is searched, and what to try next."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError, did_you_mean
from ..config import RunConfig
from .trials import Trial

SEARCHED: dict[str, tuple[str | float, ...]] = {
    "labels": ("hard", "soft"),
    "start": ("noise", "k-means"),
    "momentum": (0.0, 0.5, 0.9),
    "averaging": (0.0, 0.9, 0.98),
    "batch_size": (128, 256, 512),
    "betas": ("0.5 0.99", "0.9 0.999"),
    "clip_norm": (0.1, 0.3, 1.0),
}
"""Settings with a few values, each as likely as the others."""
FACTORS = {"learning_rate": 10.0, "outer_lr": 5.0, "rates_lr": 5.0}
"""Settings that are searched around their value, by at most this factor up and down."""
STARTUP = 5
"""Trials that are drawn at random before any is learned from."""


def searched(names: Sequence[str], config: RunConfig) -> tuple[str, ...]:
    """The settings to search: those that are named, or all that have a meaning."""
    known = (*FACTORS, *SEARCHED)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{name} cannot be searched.{did_you_mean(name, known)}",
                f"Choose among: {', '.join(known)}.",
            )
    without = set[str]()
    if config.objective != "classification":
        without |= {"labels", "start"}
    if config.update_rule is not None:
        without.add("momentum")
    return tuple(names) or tuple(name for name in known if name not in without)


@dataclass(frozen=True)
class Search:
    """What is searched, and how to choose the next trial.

    Attributes:
        config: The settings that the search begins with.
        names: The settings that it changes.
        higher_is_better: Whether a larger figure is a better one.
    """

    config: RunConfig
    names: tuple[str, ...]
    higher_is_better: bool

    def next(self, trials: Sequence[Trial]) -> dict[str, Any]:
        """The settings of the next trial: the same whenever it is asked after the same trials.

        The first trial changes nothing, so the best is never worse than what the search began with.
        """
        if not trials:
            return {}
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP, seed=1000 * self.config.seed + len(trials)
        )
        study = optuna.create_study(
            sampler=sampler, direction="maximize" if self.higher_is_better else "minimize"
        )
        places: dict[str, Any] = {name: self._place(name) for name in self.names}
        for trial in trials[1:]:
            failed = trial.reached is None
            state = optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE
            params = {name: _as_param(name, trial.settings[name]) for name in self.names}
            study.add_trial(
                optuna.trial.create_trial(
                    state=state, params=params, distributions=places, value=trial.reached
                )
            )
        found = study.ask(places).params
        return {name: _as_setting(name, found[name]) for name in self.names}

    def _place(self, name: str) -> Any:
        """Where a setting is searched."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        if name in SEARCHED:
            return CategoricalDistribution(SEARCHED[name])
        value: float = getattr(self.config, name) or self.config.outer_lr
        return FloatDistribution(value / FACTORS[name], value * FACTORS[name], log=True)

    def best(self, trials: Sequence[Trial]) -> int | None:
        """The number of the best trial."""
        sign = 1 if self.higher_is_better else -1
        reached = {n: sign * t.reached for n, t in enumerate(trials) if t.reached is not None}
        return max(reached, key=lambda number: reached[number]) if reached else None


def check_installed() -> None:
    """Refuses a search where optuna is not installed."""
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError("optuna is not installed.", "pip install 'datadistill[tune]'")


def _as_setting(name: str, value: Any) -> Any:
    """What a setting is, from what optuna calls it."""
    return [float(word) for word in value.split()] if name == "betas" else value


def _as_param(name: str, value: Any) -> Any:
    return " ".join(map(str, value)) if name == "betas" else value
