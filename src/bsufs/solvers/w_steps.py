"""The W-step: lower g(W) = -tr(W'SW) - <L, W> over orthonormal frames.

On the Stiefel manifold ||W||^2 = m is constant, so every coupling term (beta/2)||W - U||^2 is
linear in W, and g with L = beta_element U + beta_row V + tau W_k is the paper's W-problem up to a
constant. A W-step takes a frame with its product S W and gives back a better frame with its
product.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from bsufs._typing import Array
from bsufs.stiefel import polar_factor, retraction_factor, symmetric_part, tangent_projection


class Operator(Protocol):
    """What a W-step asks of S: products."""

    def __matmul__(self, W: Array) -> Array:
        """Return S W."""
        ...


def w_objective(W: Array, SW: Array, L: Array) -> float:
    """Return g(W) = -tr(W'SW) - <L, W>."""
    return -float(np.vdot(W, SW) + np.vdot(W, L))


def w_gradient(W: Array, SW: Array, L: Array) -> Array:
    """Return the Riemannian gradient of g: the projection of -2SW - L onto the tangent space."""
    return tangent_projection(W, -2.0 * SW - L)


@dataclass(frozen=True)
class PolarStep:
    """W <- polar(2SW + L): the exact minimizer of a linear upper bound of g.

    S is positive semidefinite, so -tr(W'SW) is concave and lies below its linearization; its
    minimizer over frames is a polar factor. Every step lowers g, and one product with S pays for
    the step and for the objective after it.
    """

    n_steps: int | None = 1
    tol: float = 1e-6
    max_steps: int = 20_000

    @property
    def starts_on_manifold(self) -> bool:
        """Whether the step needs an orthonormal W; a given number of steps needs S W only."""
        return self.n_steps is None

    def __call__(self, scatter: Operator, W: Array, SW: Array, L: Array) -> tuple[Array, Array]:
        """Return the frame after the steps, and its product with S."""
        until_stationary = self.n_steps is None
        standstill = 4.0 * np.finfo(np.float64).eps * np.sqrt(W.size)
        for _ in range(self.max_steps if self.n_steps is None else self.n_steps):
            if until_stationary and np.linalg.norm(w_gradient(W, SW, L)) < self.tol:
                break
            SW = 2.0 * SW
            SW += L
            previous, W = W, polar_factor(SW)
            SW = scatter @ W
            if until_stationary and np.linalg.norm(W - previous) <= standstill:
                break
        return W, SW


@dataclass(frozen=True)
class TrustRegionStep:
    """The paper's Algorithm 2: a Riemannian trust region with truncated conjugate gradients.

    The Hessian is exact, Hess g(W)[M] = P_W(-2SM - M sym(W'(-2SW - L))), at one product with S per
    inner step. The products are linear in their argument, so the retracted frame's product follows
    from those already there; one product at the end takes off the rounding they gathered.
    """

    tol: float = 1e-6
    max_steps: int = 100
    acceptance: float = 0.1
    starts_on_manifold = True

    def __call__(self, scatter: Operator, W: Array, SW: Array, L: Array) -> tuple[Array, Array]:
        """Return a stationary frame of g no higher than W, and its product with S."""
        start, start_product = W, SW
        largest_radius = np.sqrt(W.shape[1])
        radius = largest_radius / 8.0
        value = w_objective(W, SW, L)
        gradient = w_gradient(W, SW, L)
        for _ in range(self.max_steps):
            if np.linalg.norm(gradient) < self.tol:
                break
            step, step_product, model, at_boundary = _truncated_cg(
                scatter, W, SW, L, gradient, radius
            )
            moved = W + step
            factor = retraction_factor(moved)
            trial, trial_product = moved @ factor, (SW + step_product) @ factor
            trial_value = w_objective(trial, trial_product, L)
            # The same small number on both sides lets the ratio tend to one, not to noise, when
            # the decrease falls to the level of rounding.
            slack = 1e3 * np.finfo(np.float64).eps * max(1.0, abs(value))
            ratio = (value - trial_value + slack) / (slack - model)
            if ratio < 0.25 or model > 0:
                radius /= 4.0
            elif ratio > 0.75 and at_boundary:
                radius = min(2.0 * radius, largest_radius)
            if ratio > self.acceptance and model <= 0:
                W, SW, value = trial, trial_product, trial_value
                gradient = w_gradient(W, SW, L)
        if W is start:
            return start, start_product
        W = polar_factor(W)
        return W, scatter @ W


def _truncated_cg(
    scatter: Operator, W: Array, SW: Array, L: Array, gradient: Array, radius: float
) -> tuple[Array, Array, float, bool]:
    """Solve the trust-region model by Steihaug-Toint conjugate gradients.

    Returns the step, its product with S, the model there, and whether it ended on the boundary.
    """
    curvature = symmetric_part(W.T @ (-2.0 * SW - L))
    d, m = W.shape
    step, step_product, step_hessian = np.zeros_like(W), np.zeros_like(W), np.zeros_like(W)
    model = 0.0
    residual, direction = gradient, -gradient
    residual_square = float(np.vdot(residual, residual))
    goal = np.sqrt(residual_square) * min(np.sqrt(residual_square), 0.1)
    for _ in range(d * m - m * (m + 1) // 2):
        direction_product = scatter @ direction
        hessian = _hessian_product(W, curvature, direction, direction_product)
        bend = float(np.vdot(direction, hessian))
        length = residual_square / bend if bend > 0 else 0.0
        leaves = bend <= 0 or np.linalg.norm(step + length * direction) >= radius
        if leaves:
            length = _to_boundary(step, direction, radius)
        next_step = step + length * direction
        next_hessian = step_hessian + length * hessian
        next_model = float(np.vdot(next_step, gradient) + 0.5 * np.vdot(next_step, next_hessian))
        if next_model >= model and not leaves:  # rounding has taken over
            break
        step, step_hessian, model = next_step, next_hessian, next_model
        step_product = step_product + length * direction_product
        if leaves:
            return step, step_product, model, True
        residual = residual + length * hessian
        previous_square, residual_square = residual_square, float(np.vdot(residual, residual))
        if np.sqrt(residual_square) <= goal:
            break
        # Rounding drives the direction off the tangent space; the projection brings it back.
        share = residual_square / previous_square
        direction = tangent_projection(W, share * direction - residual)
    return step, step_product, model, False


def _hessian_product(W: Array, curvature: Array, M: Array, SM: Array) -> Array:
    """Return Hess g(W)[M] for a tangent M, given S M and sym(W'(-2SW - L))."""
    return tangent_projection(W, -2.0 * SM - M @ curvature)


def _to_boundary(step: Array, direction: Array, radius: float) -> float:
    """Return the positive t with ||step + t direction|| = radius."""
    along, square = float(np.vdot(step, direction)), float(np.vdot(direction, direction))
    discriminant = along**2 + square * (radius**2 - float(np.vdot(step, step)))
    return (float(np.sqrt(discriminant)) - along) / square


# A W-step says whether it `starts_on_manifold`: whether it needs an orthonormal W, and not only the
# product S W.
WStep: TypeAlias = PolarStep | TrustRegionStep
