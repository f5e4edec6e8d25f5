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

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from bsufs._linalg import largest_eigenpairs, some_eigenpairs
from bsufs._typing import Array
from bsufs.scatter import DenseScatter, FactoredScatter, Scatter, SparseScatter

# The double-precision spacing at 1 bounds the weights of rows that have vanished, as in the
# reference implementations.
EPS = float(np.finfo(np.float64).eps)
# Up to this size the inverse itself and its eigenvectors cost less than Lanczos with its factor.
_SMALL = 200
# Columns of the identity taken at a time where a sparse factor is multiplied with its transpose.
_BLOCK = 256

Solve = Callable[[Array], Array]


class QuadraticForm(ABC):
    """A symmetric matrix M, to multiply with and to solve with when a diagonal is added."""

    n_features: int
    lower_bound: float

    @abstractmethod
    def product(self, W: Array) -> Array:
        """Return M W."""

    @abstractmethod
    def inverse(self, diagonal: Array) -> Solve:
        """Return the map b -> (M + diag(diagonal))^(-1) b.

        Raises ``numpy.linalg.LinAlgError`` unless M + diag(diagonal) is found positive definite.
        """


class DenseForm(QuadraticForm):
    """M as a d x d matrix."""

    def __init__(self, M: Array, lower_bound: float = 0.0) -> None:
        self.M = M
        self.n_features = M.shape[0]
        self.lower_bound = lower_bound

    def product(self, W: Array) -> Array:
        """Return M W."""
        return self.M @ W

    def inverse(self, diagonal: Array) -> Solve:
        """Return the map b -> (M + diag(diagonal))^(-1) b."""
        total = self.M.diagonal() + diagonal
        if not (total > 0).all():
            raise np.linalg.LinAlgError("the diagonal is not positive")
        # With a unit diagonal the weights, which span many orders of magnitude, do no harm.
        scale = 1.0 / np.sqrt(total)
        matrix = self.M * scale
        matrix *= scale[:, None]
        np.fill_diagonal(matrix, 1.0)
        # The upper factor of the row-major matrix is the lower one of what LAPACK sees: no copy.
        factor = linalg.cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)

        def solve(b: Array) -> Array:
            scaled = b * (scale if b.ndim == 1 else scale[:, None])
            x = linalg.cho_solve((factor, True), scaled, overwrite_b=True, check_finite=False)
            solution: Array = x * (scale if b.ndim == 1 else scale[:, None])
            return solution

        return solve


class FactoredForm(QuadraticForm):
    """M = A'A or M = -A'A with a wide A, for more features than rows of A.

    Solved with by the Woodbury identity, which needs an r x r factor and no d x d array.
    """

    def __init__(self, A: Array, *, negative: bool = False, lower_bound: float = 0.0) -> None:
        self._A = A
        self.n_features = A.shape[1]
        self.sign = -1.0 if negative else 1.0
        self.lower_bound = lower_bound

    def _forth(self, W: Array) -> Array:
        """Return A W."""
        return self._A @ W

    def _back(self, Y: Array) -> Array:
        """Return A'Y."""
        return self._A.T @ Y

    def _gram(self, weight: Array) -> Array:
        """Return A diag(weight) A'."""
        half = self._A * np.sqrt(weight)
        return half @ half.T

    def product(self, W: Array) -> Array:
        """Return M W."""
        return self.sign * self._back(self._forth(W))

    def inverse(self, diagonal: Array) -> Solve:
        """Return the map b -> (M + diag(diagonal))^(-1) b."""
        if not (diagonal > 0).all():
            raise np.linalg.LinAlgError("the diagonal is not positive")
        reciprocal = 1.0 / diagonal
        # (D + s A'A)^(-1) = D^(-1) - s D^(-1) A' (I + s A D^(-1) A')^(-1) A D^(-1), s = 1 or -1,
        # and for positive D the inner matrix is positive definite if and only if the outer one is.
        inner = self.sign * self._gram(reciprocal)
        inner[np.diag_indices_from(inner)] += 1.0
        factor = linalg.cholesky(inner, lower=True, check_finite=False)

        def solve(b: Array) -> Array:
            scaled = b * (reciprocal if b.ndim == 1 else reciprocal[:, None])
            inner_solution = linalg.cho_solve((factor, True), self._forth(scaled))
            correction = self._back(inner_solution)
            correction *= self.sign * (reciprocal if b.ndim == 1 else reciprocal[:, None])
            return scaled - correction

        return solve


class _SparseForm(FactoredForm):
    """M = -S of sparse data with more features than samples; the data stay sparse."""

    def __init__(self, scatter: SparseScatter, lower_bound: float) -> None:
        self._scatter = scatter
        self._root = np.sqrt(scatter.factor)
        self.n_features = scatter.shape[0]
        self.sign = -1.0
        self.lower_bound = lower_bound

    def _forth(self, W: Array) -> Array:
        image: Array = self._root * self._scatter._centered(W)
        return image

    def _back(self, Y: Array) -> Array:
        image: Array = self._root * self._scatter._centered_transpose(Y)
        return image

    def _gram(self, weight: Array) -> Array:
        n = self._scatter._X.shape[0]
        gram = np.empty((n, n))
        for start in range(0, n, _BLOCK):
            columns = np.arange(start, min(start + _BLOCK, n))
            unit = np.zeros((n, columns.size))
            unit[columns, np.arange(columns.size)] = 1.0
            gram[:, columns] = self._forth(weight[:, None] * self._back(unit))
        return 0.5 * (gram + gram.T)


def negative_scatter(scatter: Scatter) -> QuadraticForm:
    """Return M = -S, whose lowest eigenvectors are the leading ones of S."""
    lower = -float(scatter.leading_eigenvectors(1)[0][0])
    if isinstance(scatter, FactoredScatter):
        A = scatter.Xc if scatter.factor == 1.0 else scatter.Xc * np.sqrt(scatter.factor)
        return FactoredForm(A, negative=True, lower_bound=lower)
    if isinstance(scatter, SparseScatter) and scatter.shape[0] > scatter._X.shape[0]:
        return _SparseForm(scatter, lower)
    if isinstance(scatter, DenseScatter):
        return DenseForm(-scatter.factor * scatter.S, lower)
    return DenseForm(-(scatter @ np.eye(scatter.shape[0])), lower)


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
    if not 1 <= m <= d:
        raise ValueError(f"m must be from 1 to n_features = {d}, got {m}.")
    shift, solve = _shifted_inverse(form, diagonal, shift)
    if d <= _SMALL or m > d // 4:
        inverse = solve(np.eye(d))
        values, vectors = some_eigenpairs(0.5 * (inverse + inverse.T), d - m, d - 1)
    else:
        first = np.random.default_rng(0).standard_normal(d)
        if start is not None:
            # Some of everything, in case the eigenvectors have moved out of the old span.
            first = start.sum(axis=1) + 1e-3 / np.sqrt(d) * first
        values, vectors = largest_eigenpairs(solve, d, m, first)
    ascending = np.argsort(-values, kind="stable")
    return shift + 1.0 / values[ascending], vectors[:, ascending]


def _shifted_inverse(
    form: QuadraticForm, diagonal: Array, guess: float | None
) -> tuple[float, Solve]:
    """Return a shift below the lowest eigenvalue, and the map that solves with the shifted matrix.

    The guess comes first; then the bound that Weyl's inequality gives, at a distance that keeps
    the factor well conditioned, further and further off should rounding demand it.
    """
    smallest = float(diagonal.min())
    bound = form.lower_bound + smallest
    margin = 0.01 * abs(form.lower_bound) + 0.1 * abs(smallest)
    margin = max(margin, 1e-13 * (1.0 + abs(bound)))
    shifts = [] if guess is None else [guess]
    shifts += [bound - margin * 10.0**power for power in range(12)]
    for shift in shifts[:-1]:
        try:
            return shift, form.inverse(diagonal - shift)
        except np.linalg.LinAlgError:
            continue
    return shifts[-1], form.inverse(diagonal - shifts[-1])


@dataclass(frozen=True)
class ReweightedResult:
    """What the reweighted iteration found."""

    W: Array
    objective_history: Array
    n_iter: int
    stopping_reason: str


def smoothed_value(gamma: float, p: float) -> Callable[[float, Array], float]:
    """Return the objective that no iteration increases."""
    return lambda trace, squares: trace + gamma * float(((squares + EPS) ** (p / 2)).sum())


def plain_value(gamma: float) -> Callable[[float, Array], float]:
    """Return the objective for p = 1 without eps, by which reference implementations stop."""
    return lambda trace, squares: trace + gamma * float(np.sqrt(squares).sum())


def row_weights(squares: Array, p: float) -> Array:
    """Return the slope of (s + eps)^(p/2), the weights that a row penalty puts on squared norms."""
    weights: Array = (p / 2) * (squares + EPS) ** ((p - 2) / 2)
    return weights


def reweighted_eigenvectors(
    form: QuadraticForm,
    m: int,
    *,
    gamma: float,
    p: float = 1.0,
    start_weights: Array | None = None,
    max_iter: int = 50,
    tol: float | None = 1e-6,
    value: Callable[[float, Array], float] | None = None,
) -> ReweightedResult:
    r"""Minimize tr(W'MW) + gamma sum_i (||w^i||^2 + eps)^(p/2) over orthonormal W.

    Parameters
    ----------
    form : QuadraticForm
        The matrix M.
    m : int
        Number of columns of W.
    gamma : float
        Weight of the row penalty.
    p : float, default=1.0
        Its exponent, above 0, at most 2.
    start_weights : array of shape (d,), optional
        The first weights q; all one by default.
    max_iter : int, default=50
        Iterations at most.
    tol : float or None, default=1e-6
        Stop when the value changes by less, in absolute terms; None never stops early.
    value : callable, optional
        Takes tr(W'MW) and the squared row norms of W; by default the objective above, which no
        iteration increases.

    Returns
    -------
    ReweightedResult
        The frame and how it was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.solvers.reweighted import DenseForm, reweighted_eigenvectors
    >>> M = np.diag([4.0, 1.0, 3.0, 2.0])
    >>> result = reweighted_eigenvectors(DenseForm(M), 2, gamma=0.1)
    >>> np.round((result.W**2).sum(axis=1), 6)
    array([0., 1., 0., 1.])
    """
    value = smoothed_value(gamma, p) if value is None else value
    weights = np.ones(form.n_features) if start_weights is None else start_weights
    W: Array | None = None
    shift: float | None = None
    history: list[float] = []
    reason = "max_iter"
    for _ in range(max_iter):
        eigenvalues, W = lowest_eigenvectors(form, gamma * weights, m, start=W, shift=shift)
        # Near convergence the eigenvalues hardly move: stay a tenth of their spread below them.
        spread = float(eigenvalues[-1] - eigenvalues[0])
        shift = float(eigenvalues[0]) - 0.1 * spread if spread > 0 else None
        squares: Array = np.einsum("ij,ij->i", W, W)
        history.append(value(float(np.vdot(W, form.product(W))), squares))
        if tol is not None and len(history) > 1 and abs(history[-1] - history[-2]) < tol:
            reason = "converged"
            break
        weights = row_weights(squares, p)
    assert W is not None
    return ReweightedResult(
        W=W,
        objective_history=np.array(history),
        n_iter=len(history),
        stopping_reason=reason,
    )
