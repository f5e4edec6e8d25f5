"""Row-sparse frames by reweighting: a sequence of eigenproblems with a changing diagonal.

Minimizes tr(W'MW) + gamma sum_i (||w^i||^2 + eps)^(p/2) over frames W. The penalty is concave in
||w^i||^2, so its tangent there majorizes it, and the minimizer of the majorizer is the m lowest
eigenvectors of M + gamma diag(q) with q_i = (p/2)(||w^i||^2 + eps)^((p-2)/2): no step increases the
objective.

As rows vanish their weights grow to eps^((p-2)/2), and the matrix to entries of 1e11. All
eigenvalues that matter are at its other end, so the eigenproblem is solved for the inverse: there
the huge weights are tiny numbers, Lanczos converges in a few steps, and rounding is relative to the
eigenvalues that matter. A shift just below the lowest eigenvalue keeps them apart; that the shift
is below is proved by the Cholesky factor.
"""

from contextlib import suppress

import numpy as np

from bsufs._linalg import Map, largest_eigenpairs
from bsufs._typing import Array
from bsufs.solvers.forms import QuadraticForm
from bsufs.solvers.solution import History, Solution

# The double-precision spacing at 1 bounds the weights of rows that have vanished, as in the
# reference implementations.
EPS = float(np.finfo(np.float64).eps)


def lowest_eigenvectors(
    form: QuadraticForm,
    diagonal: Array,
    m: int,
    *,
    start: Array | None = None,
    shift: float | None = None,
) -> tuple[Array, Array]:
    """Return the m lowest eigenvalues of M + diag(diagonal) and their eigenvectors."""
    d = form.n_features
    shift, solve = _shifted_inverse(form, diagonal, shift)
    # Some of everything, in case the eigenvectors have moved out of the old span.
    first = 1e-3 / np.sqrt(d) * np.random.default_rng(0).standard_normal(d)
    if start is not None:
        first += start.sum(axis=1)
    values, vectors = largest_eigenpairs(solve, d, m, first)
    return shift + 1.0 / values, vectors


def _shifted_inverse(
    form: QuadraticForm, diagonal: Array, guess: float | None
) -> tuple[float, Map]:
    """Return a shift below the lowest eigenvalue, and the map that solves with the rest."""
    smallest = float(diagonal.min())
    bound = form.lower_bound + smallest
    margin = 0.01 * abs(form.lower_bound) + 0.1 * abs(smallest)
    margin = max(margin, 1e-13 * (1.0 + abs(bound)))
    shifts = [] if guess is None else [guess]
    shifts += [bound - margin * 10.0**power for power in range(12)]
    for shift in shifts:
        with suppress(np.linalg.LinAlgError):
            return shift, form.inverse(diagonal - shift)
    raise np.linalg.LinAlgError("no shift makes the matrix positive definite")


def row_weights(squares: Array, p: float) -> Array:
    """Return the slope of (s + eps)^(p/2), the weights that a row penalty puts on squared norms."""
    return np.asarray((p / 2) * (squares + EPS) ** ((p - 2) / 2))


def reweighted_eigenvectors(
    form: QuadraticForm,
    m: int,
    *,
    gamma: float,
    p: float = 1.0,
    start_weights: Array | None = None,
    max_iter: int = 50,
    tol: float | None = 1e-6,
    plain_value: bool = False,
) -> Solution:
    """Minimize tr(W'MW) + gamma sum_i (||w^i||^2 + eps)^(p/2) over orthonormal W.

    The first weights q are all one unless given. Stops when the value changes by less than `tol`,
    in absolute terms; None never stops early. The value is the objective, which no iteration
    increases, or, with `plain_value`, that for p = 1 without eps, whatever p is, by which the
    reference implementations stop.
    """
    if form.dimension == 0:
        # Nothing varies, so no feature is better than another.
        return Solution(np.zeros((form.n_features, m)), np.zeros(0), 0, "converged")
    weights = np.ones(form.n_features) if start_weights is None else start_weights
    W: Array = np.empty((form.n_features, 0))
    shift: float | None = None
    history = History(tol)
    for _ in range(max_iter):
        eigenvalues, W = lowest_eigenvectors(form, gamma * weights, m, start=W, shift=shift)
        # Near convergence the eigenvalues hardly move: stay a tenth of their spread below them.
        spread = float(eigenvalues[-1] - eigenvalues[0])
        shift = float(eigenvalues[0]) - 0.1 * spread if spread > 0 else None
        squares: Array = np.einsum("ij,ij->i", W, W)
        penalty = np.sqrt(squares) if plain_value else (squares + EPS) ** (p / 2)
        value = float(np.vdot(W, form.product(W))) + gamma * float(penalty.sum())
        if history.settled(value):
            break
        weights = row_weights(squares, p)
    return history.solution(W)
