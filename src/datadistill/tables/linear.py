"""The bound of the linear case, measured: linear regression distilled by the general engine."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from ..core.adjoint import StoredGraph
from ..core.distilled import Step
from ..core.distiller import Distiller
from ..core.initialization import RandomInit, networks_for
from ..core.network import Network
from ..core.objective import Regression
from ..core.settings import DistillerConfig
from ..core.values import one_line
from ..errors import ConfigError
from ..given import typed
from ..models.description import weights_hash
from ..progress import Progress, ProgressCallback
from ..showing import shown
from ..theory import best_below, distilled_for_any_start, expected_excess, gd_step, loss, minimum
from ..theory.linear import spectral_bound
from ..version import __version__
from .linear_settings import HALVINGS, HELD_OUT_STARTS, ITERATIONS
from .result_cache import ResultCache


@dataclass(frozen=True)
class LinearPoint:
    """What M distilled images reach, all relative to the least loss that there is.

    Attributes:
        images: M.
        engine: Expected excess of the engine's distilled data over p(θ₀), in closed form.
        held_out: Their mean excess over held-out random θ₀.
        worst: The largest of these.
        theory: The least expected excess that is possible: 0 from M = D on.
        bound: What no update within M dimensions can be below.
        distance: ‖A − I‖ of the engine's step, which is 0 where it works for every θ₀.
        learning_rate: η̃ in the paper's loss, whose gradient is half that of the mean square.
    """

    images: int
    engine: float
    held_out: float
    worst: float
    theory: float
    bound: float
    distance: float
    learning_rate: float


POINT = TypeAdapter(LinearPoint)
Shown = Callable[[int, float], None]
"""Called with the number of outer steps that are done, and the loss."""


@dataclass(frozen=True)
class LinearBound:
    """The loss after one step against the number of distilled images.

    Attributes:
        data: The name of the real data.
        examples: N.
        dimensions: D.
        least_loss: L(θ*).
        untrained: Mean excess of θ₀ itself, relative to it.
        starts: How many held-out θ₀ were measured.
        seed: Number of all random streams.
        points: One for each M, ascending.
    """

    data: str
    examples: int
    dimensions: int
    least_loss: float
    untrained: float
    starts: int
    seed: int
    points: tuple[LinearPoint, ...]

    __repr__ = one_line

    def as_json(self) -> dict[str, Any]:
        """All figures in plain types."""
        return asdict(self)


@dataclass(frozen=True)
class LinearProblem:
    """Linear regression: d, (N, D), and t, (N,), in float64; θ₀ by Xavier's normal scheme."""

    name: str
    d: Tensor
    t: Tensor

    @property
    def network(self) -> Network:
        """The inputs times θ, as the engine has it."""
        return Network(nn.Linear(self.d.shape[1], 1, bias=False).double(), self.d)

    @property
    def mean(self) -> Tensor:
        """μ = 0."""
        return torch.zeros_like(self.d[0])

    @property
    def covariance(self) -> Tensor:
        """Σ = 2 / (D + 1) · I, of a layer with D inputs and one output."""
        dimension = self.d.shape[1]
        return 2 / (dimension + 1) * torch.eye(dimension).to(self.d)

    def starts(self, count: int, seed: int) -> Tensor:
        """Held-out θ₀, (count, D)."""
        network = self.network
        generators = networks_for(seed, "held-out network", range(count))
        (theta0,) = RandomInit().sample(network, generators).values()
        return theta0[:, 0]


def diabetes() -> LinearProblem:
    """442 patients, 10 measurements, the disease a year later (Efron and others 2004)."""
    from sklearn.datasets import load_diabetes  # slow to import

    inputs, targets = load_diabetes(return_X_y=True)
    return LinearProblem("diabetes", *(_standard(torch.tensor(x)) for x in (inputs, targets)))


@typed
def linear_bound(
    problem: LinearProblem,
    *,
    images: Sequence[int] | None = None,
    iterations: int = ITERATIONS,
    seed: int = 0,
    results: Path | None = None,
    progress: bool | ProgressCallback = False,
) -> LinearBound:
    """Distils linear regression into M images for each M, and compares with the closed form.

    Args:
        problem: The real data.
        images: Which M; 1 to D + 2 by default.
        iterations: Outer steps for each.
        seed: Number of all random streams.
        results: A ``results.json`` in which every M is saved at once, so that an interrupted call
            can be continued.
        progress: True for a bar, or a callback, called after every outer step.
    """
    d, t = problem.d, problem.t
    images = range(1, d.shape[1] + 3) if images is None else images
    if iterations < 1:
        raise ConfigError(f"iterations is {iterations}.", "Set iterations to at least 1.")
    theta0, least = problem.starts(HELD_OUT_STARTS, seed), loss(d, t, minimum(d, t))
    points: list[LinearPoint] = []
    data = weights_hash({"d": d, "t": t})
    cache = ResultCache.read(results, {"data": data, "datadistill": __version__}, "points")
    with shown(progress) as show:
        for done, count in enumerate(images):

            def report(outer_step: int, value: float, done: int = done) -> None:
                now, total = done * iterations + outer_step, len(images) * iterations
                show(Progress("distilling", now, total, {"loss": value}))

            def compute(count: int = count, report: Shown = report) -> LinearPoint:
                step = distil(problem, count, iterations=iterations, seed=seed, shown=report)
                return _point(problem, step, theta0)

            key = {"images": count, "iterations": iterations, "seed": seed}
            points.append(cache.get(key, compute, POINT))
    untrained = (loss(d, t, theta0).mean() - least) / least
    return LinearBound(
        data=problem.name,
        examples=len(d),
        dimensions=d.shape[1],
        least_loss=float(least),
        untrained=float(untrained),
        starts=len(theta0),
        seed=seed,
        points=tuple(points),
    )


def distil(
    problem: LinearProblem,
    images: int,
    *,
    iterations: int = ITERATIONS,
    seed: int = 0,
    shown: Shown = lambda _step, _loss: None,
) -> Step:
    """Algorithm 1 by the general engine, with all real data at every outer step."""
    config = DistillerConfig(
        steps=1,
        epochs=1,
        images_per_class=images,
        iterations=iterations,
        networks=16,
        batch_size=len(problem.d),
        learning_rate=1.0,
        outer_lr=0.3,
        # A short memory of the gradient's size, as it falls by many orders of magnitude.
        betas=(0.9, 0.95),
        decay_every=max(1, iterations // HALVINGS),
        seed=seed,
    )
    # The graph of one update is small: there is no need to build it twice.
    adjoint = StoredGraph()
    distiller = Distiller(problem.network, RandomInit(), Regression(), config, adjoint)
    state, batch = distiller.init(problem.d.shape[1:], problem.t), (problem.d, problem.t[:, None])
    for _ in range(iterations):
        state, metrics = distiller.step(state, batch)
        shown(state.outer_step, metrics.loss)
    x = distiller.distilled(state)
    # The mean square is twice the paper's loss, and so is its gradient.
    return Step(x.inputs[0], x.labels[0, :, 0], 2 * x.learning_rates[0, 0])


@contextlib.contextmanager
def one_thread() -> Generator[None]:
    """Networks so small that threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _point(problem: LinearProblem, step: Step, theta0: Tensor) -> LinearPoint:
    d, t, images = problem.d, problem.t, len(step.inputs)
    gaussian = problem.mean, problem.covariance
    least, enough = loss(d, t, minimum(d, t)), images >= d.shape[1]
    best = distilled_for_any_start(d, t, images) if enough else best_below(d, t, *gaussian, images)
    bound = spectral_bound(d, t, *gaussian, images)[0] if not enough else torch.zeros(())
    excess = loss(d, t, gd_step(theta0, step)) - least
    a = step.learning_rate / images * step.inputs.T @ step.inputs
    relative = {
        "engine": expected_excess(d, t, step, *gaussian),
        "held_out": excess.mean(),
        "worst": excess.max(),
        "theory": expected_excess(d, t, best, *gaussian),
        "bound": bound,
    }
    return LinearPoint(
        images,
        **{name: float(value / least) for name, value in relative.items()},
        distance=float(torch.linalg.matrix_norm(a - torch.eye(d.shape[1]).to(d))),
        learning_rate=float(step.learning_rate),
    )


def _standard(values: Tensor) -> Tensor:
    """Mean 0 and deviation 1 of every column."""
    return (values - values.mean(0)) / values.std(0, correction=0)
