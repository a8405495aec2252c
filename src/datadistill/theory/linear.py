"""The linear case (section 3.3 of the paper): linear regression and one step.

Real data are d, (N, D), and t, (N,); the loss is L(θ) = ‖dθ − t‖² / 2N with the Hessian
H = dᵀd / N. M distilled images d̃, (M, D), with targets t̃, (M,), and a learning rate η̃ turn
θ₀ into

    θ₁ = θ₀ − (η̃/M) d̃ᵀ(d̃θ₀ − t̃) = (I − A) θ₀ + b,  A = (η̃/M) d̃ᵀd̃,  b = (η̃/M) d̃ᵀt̃.

The derivations are in ``docs/linear-theory.md``. Compute in float64.
"""

import math

import torch
from torch import Tensor

from ..core.distilled import Step
from ..core.random import stream
from ..errors import ConfigError, DataError

STARTS = 3
"""Random starts of :func:`best_below`, beside the spectral one."""


def loss(d: Tensor, t: Tensor, theta: Tensor) -> Tensor:
    """L(θ) = ‖dθ − t‖² / 2N, for each θ of (…, D)."""
    return (theta @ d.T - t).square().mean(-1) / 2


def hessian(d: Tensor) -> Tensor:
    """H = dᵀd / N: L(θ) − L(θ*) = ½ (θ − θ*)ᵀ H (θ − θ*)."""
    return d.T @ d / len(d)


def minimum(d: Tensor, t: Tensor) -> Tensor:
    """θ*: the least-squares solution, which is unique as the columns of d are independent."""
    if torch.linalg.matrix_rank(d) < d.shape[1]:
        raise DataError(
            f"The {d.shape[1]} columns of the data are not independent.",
            "Remove features that follow from others, or add examples.",
        )
    return torch.linalg.lstsq(d, t[:, None], driver="gelsd").solution[:, 0]


def gd_step(theta0: Tensor, step: Step) -> Tensor:
    """θ₁ = θ₀ − (η̃/M) d̃ᵀ(d̃θ₀ − t̃), for each θ₀ of (…, D)."""
    residuals = theta0 @ step.inputs.T - step.labels
    return theta0 - step.learning_rate / len(step.inputs) * residuals @ step.inputs


def distilled_for_any_start(
    d: Tensor, t: Tensor, images: int | None = None, learning_rate: float = 1.0
) -> Step:
    """Distilled data from which one step reaches the global minimum, whatever θ₀ is.

    θ₁ = (I − A) θ₀ + b is θ* for every θ₀ if and only if A = I and b = θ*: d̃ = √(M/η̃) Q with
    orthonormal columns Q, and t̃ = d̃θ*. Here Q is the identity; images beyond D are zero.

    Args:
        d: Real inputs.
        t: Their targets.
        images: M, at least D, which is the default.
        learning_rate: η̃, any positive number.
    """
    dimension = d.shape[1]
    images = dimension if images is None else images
    if images < dimension:
        raise ConfigError(
            f"{images} images cannot reach the minimum from every start: A has rank {images}, and "
            f"the identity has rank {dimension}.",
            f"Set images to at least {dimension}, or use best_below.",
        )
    inputs = math.sqrt(images / learning_rate) * torch.eye(images, dimension).to(d)
    return Step(inputs, inputs @ minimum(d, t), d.new_tensor(learning_rate))


def unreachable_start(d: Tensor, t: Tensor, step: Step, excess: float = 1.0) -> Tensor:
    """A θ₀ from which fewer than D distilled images leave the loss far above its minimum.

    A step moves θ₀ within the span of the images only. Along n, with d̃n = 0, it changes nothing:
    nᵀθ₁ = nᵀθ₀. So from θ₀ = θ* + c·n it ends with nᵀ(θ₁ − θ*) = c, and all such weights have
    L(θ₁) − L(θ*) ≥ c² / (2 nᵀH⁻¹n).

    Args:
        d: Real inputs.
        t: Their targets.
        step: Any distilled data.
        excess: The least amount by which the loss is to exceed its minimum.
    """
    _, values, rows = torch.linalg.svd(step.inputs)
    rank = int((values > values.max() * torch.finfo(d.dtype).eps * d.shape[1]).sum())
    if rank == d.shape[1]:
        raise ConfigError(
            f"These {len(step.inputs)} images span all {rank} dimensions.",
            "Only fewer images than dimensions have a start that they cannot improve enough.",
        )
    n = rows[-1]
    c = (2 * excess * n @ torch.linalg.solve(hessian(d), n)).sqrt()
    return minimum(d, t) + c * n


def expected_excess(d: Tensor, t: Tensor, step: Step, mean: Tensor, covariance: Tensor) -> Tensor:
    """E[L(θ₁)] − L(θ*) over θ₀ ~ N(μ, Σ).

    θ₁ − θ* is Gaussian with the mean m = (I − A) μ + b − θ* and the covariance (I − A) Σ (I − A);
    half its second moment in the metric of H is ½ mᵀHm + ½ tr(H (I − A) Σ (I − A)).
    """
    return _expected_excess(hessian(d), minimum(d, t), step, mean, covariance)


def _expected_excess(
    h: Tensor, theta_star: Tensor, step: Step, mean: Tensor, covariance: Tensor
) -> Tensor:
    a = step.learning_rate / len(step.inputs) * step.inputs.T @ step.inputs
    kept = torch.eye(len(h)).to(h) - a  # I − A
    m = gd_step(mean, step) - theta_star
    return (m @ h @ m + torch.trace(h @ kept @ covariance @ kept)) / 2


def spectral_bound(
    d: Tensor, t: Tensor, mean: Tensor, covariance: Tensor, images: int
) -> tuple[Tensor, Tensor]:
    """A bound of the expected excess that no step with so few images is below, and its subspace.

    θ₁ − θ₀ lies in a subspace U of dimension M. In the coordinates φ = H^½ (θ − θ*), where the
    excess is ½ ‖φ‖², the best any update within U can do is to remove the part of φ₀ in H^½ U; the
    rest has ½ tr((I − Π) S), S = H^½ (Σ + δδᵀ) H^½ with δ = μ − θ*. So the best U is spanned by
    H^−½ v for the M leading eigenvectors v of S, and the bound is half the sum of the other
    eigenvalues.

    A gradient step reaches it where that projection is a symmetric A: where H and Σ commute and δ
    is 0 or an eigenvector of both.

    Returns:
        The bound, and a basis of U with orthonormal columns, (D, M).
    """
    values, vectors = torch.linalg.eigh(hessian(d))
    root = vectors * values.sqrt() @ vectors.T
    delta = mean - minimum(d, t)
    spectrum, leading = torch.linalg.eigh(root @ (covariance + torch.outer(delta, delta)) @ root)
    u = torch.linalg.solve(root, leading[:, -images:])
    rest = spectrum[: d.shape[1] - images].clamp_min(0)
    return rest.sum() / 2, torch.linalg.qr(u).Q


def best_below(
    d: Tensor, t: Tensor, mean: Tensor, covariance: Tensor, images: int, seed: int = 0
) -> Step:
    """The best distilled data of fewer than D images for θ₀ ~ N(μ, Σ), with η̃ = 1.

    With A = WᵀW for W = d̃/√M, the best targets follow from W (see :func:`_with_targets`); W is
    found by descent from the subspace of :func:`spectral_bound`, where it ends at once if the
    bound can be reached, and from a few random ones.

    Args:
        d: Real inputs.
        t: Their targets.
        mean: μ, (D,).
        covariance: Σ, (D, D).
        images: M, below D.
        seed: Number of the random starts.
    """
    if not 1 <= images < d.shape[1]:
        raise ConfigError(
            f"images is {images}.",
            f"Set it from 1 to {d.shape[1] - 1}; from {d.shape[1]} on, distilled_for_any_start is "
            "exact.",
        )
    random = stream(seed, "linear theory", images)
    starts = [torch.randn(d.shape[1], images, generator=random).to(d) for _ in range(STARTS)]
    spectral = spectral_bound(d, t, mean, covariance, images)[1]
    bases = [spectral, *(torch.linalg.qr(one).Q for one in starts)]
    h, theta_star = hessian(d), minimum(d, t)
    found = [_descend(h, theta_star, mean, covariance, basis.T) for basis in bases]
    return min(found, key=lambda one: one[0])[1]


def _descend(
    h: Tensor, theta_star: Tensor, mean: Tensor, covariance: Tensor, start: Tensor
) -> tuple[float, Step]:
    """Minimises the expected excess over W from a start, (M, D)."""
    w = start.clone().requires_grad_()
    search = torch.optim.LBFGS(
        [w],
        max_iter=300,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        search.zero_grad()
        step = _with_targets(h, theta_star, mean, w)
        excess = _expected_excess(h, theta_star, step, mean, covariance)
        excess.backward()
        return excess

    search.step(closure)  # pyright: ignore[reportArgumentType]
    step = _with_targets(h, theta_star, mean, w.detach())
    return float(_expected_excess(h, theta_star, step, mean, covariance)), step


def _with_targets(h: Tensor, theta_star: Tensor, mean: Tensor, w: Tensor) -> Step:
    """The step d̃ = √M W, η̃ = 1 with the best targets.

    Targets move the mean of θ₁ alone: m = δ + Wᵀν with t̃ = √M (Wμ + ν). The nearest to 0 in the
    metric of H is at ν = −(WHWᵀ)⁻¹ WHδ.
    """
    root = math.sqrt(len(w))
    nu = -torch.linalg.solve(w @ h @ w.T, w @ h @ (mean - theta_star))
    return Step(root * w, root * (w @ mean + nu), w.new_tensor(1.0))
