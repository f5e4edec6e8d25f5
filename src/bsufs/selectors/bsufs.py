"""BSUFS: PCA with a row penalty and an element penalty, as a feature selector."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array, Indices, Mask
from bsufs._warn import warn_caller
from bsufs.penalties import row_norms
from bsufs.scatter import Scatter
from bsufs.selectors._base import Scored
from bsufs.selectors._columns import find_duplicates
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._parameters import (
    COUNT,
    NOT_NEGATIVE,
    NUMBER_OF_COMPONENTS,
    POSITIVE,
    UNIT_INTERVAL,
    checked_array,
    constraints,
)
from bsufs.selectors._streaming import StreamedSelector
from bsufs.solvers.alternation import (
    AlternationResult,
    Callback,
    Problem,
    Progress,
    proximal_alternation,
)
from bsufs.solvers.components import principal_frame
from bsufs.solvers.path import Iterates, PathResult
from bsufs.solvers.ranking import ScaledModel, below_all_others, rank_by_path
from bsufs.solvers.w_steps import PolarStep, TrustRegionStep, WStep
from bsufs.stiefel import polar_factor


@dataclass(repr=False, eq=False)
class BSUFS(StreamedSelector):
    r"""Bi-sparse unsupervised feature selection.

    Looks for m orthonormal components that explain much variance with few features:

    .. math:: \min_{W'W = I} -\operatorname{tr}(W'SW)
              + \lambda_{row} \sum_i \|w^i\|^p + \lambda_{element} \sum_{ij} |w_{ij}|^q

    with S the scatter matrix of the centered data. The row term drops whole features, the element
    term cleans the components of small entries. By default no weight has to be guessed: the row
    term grows step by step, features leave one after another, and they are ranked by how long they
    survive.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of those not in `never_keep`, or "auto": the
        fewest that explain, by linear regression, as much variance as the components at the start
        do (with a fixed `lambda_row`: the features whose row is not zero).
    %(n_components)s
    lambda_row : "path" or float, default="path"
        Weight of the row penalty, the paper's lambda_1. "path" follows the whole path and ranks by
        survival. A number with ``scale="relative"`` is the threshold it causes, as a share of the
        average row norm sqrt(m/d): 0.3 to 1 is useful. Zero switches the term off.
    lambda_element : float, default=0.5
        Weight of the element penalty, the paper's lambda_2. With ``scale="relative"`` the threshold
        it causes, in units of 1/sqrt(d). Zero switches the term off.
    p : float, default=0.5
        Exponent of the row penalty, from 0 to 1.
    q : float, default=0.5
        Exponent of the element penalty, from 0 to 1.
    beta_row : float, default=10.0
        Tie between W and its row-sparse copy V, the paper's beta_2; relative to ||S||_2.
    beta_element : float, default=1.0
        Tie between W and its element-sparse copy U, the paper's beta_1; relative to ||S||_2.
    tau : float, default=1e-3
        Proximal weight of all three steps; relative to ||S||_2. With zero the proof of convergence
        does not hold.
    scale : {"relative", "absolute"}, default="relative"
        "relative" measures all weights against the data, so that multiplying X by a constant
        changes nothing; "absolute" takes them as the paper's numbers.
    w_step : {"polar", "trust-region"}, default="polar"
        How W is updated: polar steps, or the paper's Riemannian trust region.
    n_polar_steps : int or None, default=1
        Polar steps per iteration; None repeats them until W is stationary.
    init : {"pca", "rotated-pca"} or array of shape (n_features, n_components), default="pca"
        Where W starts: the leading eigenvectors, these after a random rotation, or an orthonormal
        matrix.
    tie_break : {"survival", "index"}, default="survival"
        How features whose row is zero are ranked: by the iteration at which they were eliminated,
        or by column number as the authors' code does (needs a fixed `lambda_row`).
    drop_rate : float, default=0.05
        Share of the remaining features that each step of the path eliminates. While more than 256
        remain, a step eliminates as many as four such steps would.
    %(must_keep)s
    %(never_keep)s
    %(groups)s
    %(adjust_for)s
    %(center_rows)s
    max_iter : int, default=500
        Iterations at most.
    tol : float, default=1e-4
        With a fixed `lambda_row`: stop when the objective changes relatively by less.
    random_state : int, RandomState instance or None, default=None
        Seed of the rotation for ``init="rotated-pca"``; nothing else is random.
    callback : callable, optional
        Called after each iteration with its number, the objective and the iterates (`Progress`);
        return True to stop.
    verbose : int, default=0
        Print a line every tenth iteration (1) or every iteration (2).

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Larger is better. Ranked by survival: the share of the run until the feature was eliminated.
        With ``tie_break="index"``: the norm of its row of V.
    %(fitted)s
    components_ : array of shape (n_components, n_features)
        The orthonormal W, transposed. On the path: at the last step at which as many features
        remain as are selected.
    row_sparse_components_ : array of shape (n_components, n_features)
        Its row-sparse copy V, transposed.
    element_sparse_components_ : array of shape (n_components, n_features)
        Its element-sparse copy U, transposed.
    n_components_ : int
        The number of components.
    %(explained_variance)s
    survival_ : array of int of shape (n_features,)
        The last iteration before the feature was eliminated.
    path_ : dict of arrays
        With ``lambda_row="path"``, of each step: `lambda_row`, the weight in the objective (in
        units of ||S||_2 unless ``scale="absolute"``), `n_alive`, and `component_variance_ratio`,
        the share of the variance that W carries; empty otherwise.
    objective_history_ : array
        The objective at the start and after each iteration; relative to ||S||_2 unless
        ``scale="absolute"``.
    row_gap_history_, element_gap_history_ : arrays
        ||W - V|| and ||W - U|| after each iteration, with a fixed `lambda_row`.
    n_iter_ : int
        Iterations done.
    stopping_reason_ : str
        "converged", "max_iter", "callback" or "path_complete".

    See Also
    --------
    bsufs_path : The whole sparsity path as arrays.

    Notes
    -----
    The number of components is chosen by parallel analysis in its deterministic form: components
    whose eigenvalue exceeds the largest one to expect of independent columns with the same
    variances. It depends on S and the number of samples alone. Where none does, as for columns that
    are not correlated, those above the average eigenvalue count, at most 32.

    Columns are solved in an order that depends on their contents, so the order in which they come
    does not matter. Columns that are perfectly correlated (duplicates, also shifted, negated or in
    other units) are represented by the one of largest variance; the others rank behind all distinct
    columns. Constant columns come last. Which of several columns that play the same part (a column
    and its negative, say) comes first is a matter of that order, which may change when X is negated
    or rows are repeated. With ``tie_break="index"`` ties and duplicates are treated as in the
    authors' code instead.

    Where columns are in `groups`, a group takes the place of a row: :math:`\|w^i\|` becomes the
    Frobenius norm of the rows of the group, groups are eliminated as a whole, and what is said of
    numbers of features holds of groups. With a `budget`, features are taken in the order of their
    survival, and those that no longer fit are skipped.

    The defaults were chosen by measurement, leaving one dataset out at a time. With fixed weights
    the iterates converge to a critical point of the penalized problem; on the path, where the
    weight changes at each step, there is no such theorem.

    The authors' code swaps the two lambdas, stops after 99 iterations whether converged or not, and
    ranks dropped features by index; ``scale="absolute"``, ``max_iter=99`` and ``tie_break="index"``
    give its results.

    References
    ----------
    Xiu, X., Huang, C., Shang, P., Liu, W. (2025). Bi-Sparse Unsupervised Feature Selection. IEEE
    Transactions on Image Processing.

    Dobriban, E., Owen, A. B. (2019). Deterministic parallel analysis: an improved method for
    selecting factors and principal components. JRSS B 81(1).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from bsufs import BSUFS
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(
    ...     load_wine(as_frame=True).data)
    >>> selector = BSUFS(4).fit(X)
    >>> selector.transform(X).shape
    (178, 4)
    """

    n_features_to_select: int | float | str = "auto"
    _: KW_ONLY
    n_components: int | float | str = "auto"
    lambda_row: float | str = "path"
    lambda_element: float = 0.5
    p: float = 0.5
    q: float = 0.5
    beta_row: float = 10.0
    beta_element: float = 1.0
    tau: float = 1e-3
    scale: str = "relative"
    w_step: str = "polar"
    n_polar_steps: int | None = 1
    init: Any = "pca"
    tie_break: str = "survival"
    drop_rate: float = 0.05
    must_keep: Any = None
    never_keep: Any = None
    groups: Any = None
    costs: Any = None
    budget: float | None = None
    adjust_for: Any = None
    center_rows: bool = False
    max_iter: int = 500
    tol: float = 1e-4
    random_state: Any = None
    callback: Callable[[Progress], object] | None = None
    verbose: int = 0

    _accepts_sparse = True
    _parameter_constraints = constraints(
        n_components=NUMBER_OF_COMPONENTS,
        lambda_row=[*NOT_NEGATIVE, StrOptions({"path"})],
        lambda_element=NOT_NEGATIVE,
        p=UNIT_INTERVAL,
        q=UNIT_INTERVAL,
        beta_row=POSITIVE,
        beta_element=POSITIVE,
        tau=NOT_NEGATIVE,
        scale=[StrOptions({"relative", "absolute"})],
        w_step=[StrOptions({"polar", "trust-region"})],
        n_polar_steps=[*COUNT, None],
        init=[StrOptions({"pca", "rotated-pca"}), "array-like"],
        tie_break=[StrOptions({"survival", "index"})],
        drop_rate=[Interval(Real, 0, 1, closed="neither")],
        callback=[callable, None],
        verbose=["verbose"],
    )

    def _fit(self, data: FitData) -> Scored:
        if self.tie_break == "index" and self.lambda_row == "path":
            # It needs the rows that are left at the end.
            raise ValueError(
                "tie_break must be 'survival' when lambda_row is 'path', got 'index'. Give "
                "lambda_row a number to rank as the authors' code does."
            )
        forced, barred = self._forced_and_barred()
        k = self._asked_number(forced, barred)
        problem = ColumnProblem.of(data, barred)
        scatter, order = problem.scatter, problem.order
        numbers, which = self._groups.among(order)
        groups = None if which.size == order.size else numbers
        duplicates = np.zeros(order.size, dtype=bool)
        if self.tie_break == "survival":
            duplicates = find_duplicates(scatter, forced[order], groups)
        values, W = self._first_frame(scatter, order)
        self.n_components_ = W.shape[1]
        model = ScaledModel.of(
            scatter,
            values[0],
            W.shape[1],
            groups,
            p=self.p,
            q=self.q,
            lambda_element=self.lambda_element,
            beta_row=self.beta_row,
            beta_element=self.beta_element,
            tau=self.tau,
            relative=self.scale == "relative",
        )
        solve = self._follow_path if self.lambda_row == "path" else self._alternate
        scores, auto_n_features, when_number_is_known = solve(
            problem, model, W, forced[order], duplicates, k
        )
        return Scored(
            scores=problem.by_column(scores),
            variances=problem.by_column(scatter.diagonal()),
            position=problem.place,
            auto_n_features=auto_n_features,
            ties_by_index=self.tie_break == "index",
            explained_curve=problem.explained_curve,
            when_number_is_known=when_number_is_known,
        )

    def _follow_path(
        self,
        problem: ColumnProblem,
        model: ScaledModel,
        W: Array,
        forced: Mask,
        duplicates: Mask,
        k: int | None,
    ) -> tuple[Array, Callable[[Indices], int], Callable[[int], None]]:
        follow = partial(
            rank_by_path,
            model,
            W,
            forced=forced,
            duplicates=duplicates,
            drop_rate=self.drop_rate,
            w_step=self._make_w_step(),
        )
        scores, path = follow(
            n_keep=k, max_iter=self.max_iter, callback=self._callback(problem.order)
        )
        self._keep_histories(path, model)
        self.path_: dict[str, Any] = {
            "lambda_row": path.lambda_row / model.shrink,
            "n_alive": path.n_alive,
            "component_variance_ratio": path.component_variance_ratio,
        }
        self.survival_ = problem.by_column(path.survival.last_step)

        def auto_n_features(best_first: Indices) -> int:
            return problem.fewest_that_explain(path.component_variance_ratio[0], best_first)

        def keep_iterates(k: int) -> None:
            # Among very many rows the step is found again rather than all of them kept.
            kept = path.at(k) or follow(n_keep=k, max_iter=path.n_iter)[1].at(k)
            assert kept is not None
            self._keep_iterates(problem.order[kept.rows], kept)

        return scores, auto_n_features, keep_iterates

    def _alternate(
        self,
        problem: ColumnProblem,
        model: ScaledModel,
        W: Array,
        forced: Mask,
        duplicates: Mask,
        k: int | None,
    ) -> tuple[Array, Callable[[Indices], int], None]:
        row_weights = None
        if forced.any() or duplicates.any():
            row_weights = np.where(forced, 0.0, np.where(duplicates, np.inf, 1.0))
            if model.groups is not None:
                row_weights = row_weights[np.unique(model.groups, return_index=True)[1]]
        row = model.row(float(self.lambda_row), row_weights)
        result = proximal_alternation(
            Problem(model.scatter, row, model.element, model.tau),
            W,
            first_center=0.0 * W,
            w_step=self._make_w_step(),
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self._callback(problem.order),
        )
        competing = ~forced & ~duplicates
        if competing.any() and not result.V[competing].any():
            wanted = min(max((k or 1) - int(forced.sum()), 1), int(competing.sum()))
            norms = np.sort(row_norms(W, model.groups)[competing])
            keeping = model.lambda_row_that_keeps(norms[-wanted])
            warn_caller(
                f"lambda_row={self.lambda_row:g} is so large that no feature remains: the ranking "
                f"only tells which was eliminated last. lambda_row={keeping:.3g} would keep "
                f"{wanted} at the first iteration; lambda_row='path' needs no number."
            )
        elif result.stopping_reason == "max_iter" and self.tol > 0:
            warn_caller(
                f"BSUFS did not converge in max_iter={self.max_iter} iterations; raise max_iter "
                "or tol.",
                ConvergenceWarning,
            )
        self._keep_histories(result, model)
        self.path_ = {}
        self.survival_ = problem.by_column(result.survival.last_step)
        self._keep_iterates(problem.order, result)
        norms = row_norms(result.V, model.groups)
        scores: Array = norms
        if self.tie_break == "survival":
            constant = model.scatter.diagonal() <= 0
            scores = below_all_others(result.survival.scores(), duplicates, constant)
        return scores, lambda _: int(np.count_nonzero(norms)), None

    def _keep_histories(self, solution: PathResult | AlternationResult, model: ScaledModel) -> None:
        """Set what tells how the solution was found."""
        nothing = np.empty(0)
        self.row_gap_history_ = getattr(solution, "row_gap_history", nothing)
        self.element_gap_history_ = getattr(solution, "element_gap_history", nothing)
        self.objective_history_ = model.in_given_units(solution.objective_history)
        self.n_iter_ = solution.n_iter
        self.stopping_reason_ = solution.stopping_reason

    def _keep_iterates(self, columns: Indices, iterates: Iterates | AlternationResult) -> None:
        """Set the components: those of the columns given, zero for all others."""

        def transposed(A: Array) -> Array:
            full = np.zeros((A.shape[1], self.n_features_in_))
            full[:, columns] = A.T
            return full

        self.components_ = transposed(iterates.W)
        self.row_sparse_components_ = transposed(iterates.V)
        self.element_sparse_components_ = transposed(iterates.U)

    def _first_frame(self, scatter: Scatter, order: Indices) -> tuple[Array, Array]:
        """Return the leading eigenvalues and the frame to start from."""
        if not isinstance(self.init, str):
            W = self._checked_init(order.size)[order]
            return scatter.leading_eigenvectors(1)[0], polar_factor(W)
        values, W = principal_frame(scatter, self.n_components)
        if self.init == "rotated-pca":
            random_state = check_random_state(self.random_state)
            W = W @ polar_factor(random_state.standard_normal((W.shape[1], W.shape[1])))
        return values, W

    def _checked_init(self, most: int) -> Array:
        d = self.n_features_in_
        m = int(self.n_components) if isinstance(self.n_components, Integral) else None
        W = checked_array(
            "init",
            self.init,
            (d, m),
            f"an array of shape (n_features, n_components) = ({d}, {'m' if m is None else m})",
            "Use init='pca' if in doubt.",
        )
        if not 1 <= W.shape[1] <= most:
            raise ValueError(
                f"init must have from 1 to {most} columns, those not in never_keep, "
                f"got {W.shape[1]}. Use init='pca' if in doubt."
            )
        if not np.allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-6):
            raise ValueError(
                "init must have orthonormal columns, but init.T @ init is not the identity. Take "
                "the Q factor of numpy.linalg.qr(init)."
            )
        return W

    def _make_w_step(self) -> WStep:
        if self.w_step == "trust-region":
            return TrustRegionStep()
        return PolarStep(self.n_polar_steps)

    def _callback(self, order: Indices) -> Callback | None:
        """Return what to call after each iteration: a printed line, the caller's, or both."""
        if not self.verbose and self.callback is None:
            return None
        every = {0: self.max_iter + 1, 1: 10}.get(int(self.verbose), 1)

        def after_iteration(progress: Progress) -> object:
            if progress.iteration % every == 0 or (self.verbose and progress.iteration == 1):
                print(
                    f"[BSUFS] iteration {progress.iteration}: objective "
                    f"{progress.objective:.6g}, {progress.n_alive} features remain"
                )
            if self.callback is None:
                return None
            return self.callback(replace(progress, rows=order[progress.rows]))

        return after_iteration


@dataclass(frozen=True)
class SparsityPath:
    """The path of a selection, one entry per step, and the ranking it gives.

    Parameters
    ----------
    lambda_row : array of shape (n_steps,)
        Weight of the row penalty that each step used, in units of ||S||_2 unless
        ``scale="absolute"``.
    n_alive : array of int of shape (n_steps,)
        Features that remain after the step.
    explained_variance_ratio : array of shape (n_steps,)
        Share of the total variance that regression on the n_alive best features explains.
    survival : array of int of shape (n_features,)
        The last step before each feature was eliminated.
    ranking : array of int of shape (n_features,)
        1 for the feature that survived longest.
    """

    lambda_row: Array
    n_alive: Indices
    explained_variance_ratio: Array
    survival: Indices
    ranking: Indices


def bsufs_path(X: Any, *, sample_weight: Any = None, **parameters: Any) -> SparsityPath:
    """Compute the whole sparsity path of `BSUFS`.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The data.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights.
    **parameters
        Parameters of `BSUFS`, except `lambda_row`, `n_features_to_select` and `never_keep`.

    Returns
    -------
    SparsityPath
        Weight, remaining features and explained variance of each step, and the ranking.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs import bsufs_path
    >>> path = bsufs_path(load_digits().data)
    >>> int(path.n_alive[-1])  # as many as there are components
    7
    """
    fixed = {"lambda_row", "n_features_to_select", "never_keep"} & set(parameters)
    if fixed:
        raise TypeError(
            f"bsufs_path follows the whole path and takes no {', '.join(sorted(fixed))}."
        )
    # A share is below one; this one, rounded to whole columns, is all of them.
    selector = BSUFS(1.0 - 1e-12, **parameters).fit(X, sample_weight=sample_weight)
    n_alive = selector.path_["n_alive"]
    return SparsityPath(
        lambda_row=selector.path_["lambda_row"],
        n_alive=n_alive,
        explained_variance_ratio=selector.explained_variance_curve_[n_alive - 1],
        survival=selector.survival_,
        ranking=selector.ranking_,
    )
