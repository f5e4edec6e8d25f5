"""NeighborAlignment: columns in which the rows have the neighbors that they have in all columns."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter._base import BATCH_BYTES, batches
from bsufs.selectors._base import Scored
from bsufs.selectors._cluster_shares import SampleOfRows
from bsufs.selectors._columns import find_duplicates
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._parameters import COUNT, constraints
from bsufs.selectors._row_sample import DistinctRows
from bsufs.selectors._streaming import StreamedSelector
from bsufs.solvers.alignment import RowsAhead, greedy_ratio
from bsufs.solvers.components import start_frame
from bsufs.solvers.neighborhoods import Neighborhoods

# Columns beyond so many picks are ranked by what each would add at that point.
_MOST_PICKS = 64
# Columns are picked among the so many times as many, and at least these, of the strongest signal.
_CANDIDATES, _LEAST_CANDIDATES = 2, 256


@dataclass(repr=False, eq=False)
class NeighborAlignment(StreamedSelector):
    r"""Unsupervised feature selection that keeps who is near whom.

    For nearest-neighbor graphs, embeddings and searches, which should come out on the selected
    columns as on all: those in which distances tell the neighbors of each row from others around.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", as many as regression needs
        to explain the variance that the components above the noise edge explain.
    n_neighbors : int, default=15
        Neighbors of each row; fewer where there are too few rows.
    n_components : int, default=50
        Neighbors are those in the space of so many leading principal components; with no more
        columns than that, in all columns.
    %(must_keep)s
    %(never_keep)s
    %(adjust_for)s
    %(center_rows)s
    max_samples : int, default=1024
        Look at the neighbors of at most so many rows, drawn at random; the components are those of
        all rows. Where all rows are looked at, a weight w counts exactly like w copies of its row.
    random_state : int, RandomState instance or None, default=0
        Seed of the rows drawn.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        From 1 for the feature picked first down to 0; larger is better.
    %(fitted)s
    neighbor_signals_ : array of shape (n_features,)
        How far neighbors are nearer to each other in each feature than the rows around them, in
        shares of what all features reach together; below zero where they are not.
    n_components_ : int
        Number of components.
    %(explained_variance)s

    See Also
    --------
    ClusterAlignment : Columns in which clusters show.
    ColumnSubset : Columns that predict all others.

    Notes
    -----
    Around each row i are its 4 k nearest rows j in the space of the components, of which the
    nearest k are its neighbors. The squared difference :math:`(x_{ic} - x_{jc})^2` in a column c,
    with its mean over the rows around i taken off and divided by the mean squared distance there,
    makes a vector :math:`f_c` over all such pairs; g is the vector that is larger by 1 for the
    others than for the neighbors. Squared distances in the columns of A are a sum over A. Columns
    are picked greedily to maximize their correlation with g,

    .. math:: \frac{\sum_{c \in A} f_c' g}{\bigl\| \sum_{c \in A} f_c \bigr\|}.

    The denominator makes a column pay for what it repeats and for distances that have nothing to do
    with neighbors. Candidates are the columns of largest :math:`f_c' g`: twice as many as are
    picked, at least 256. Perfectly correlated columns come behind all distinct ones. Beyond 64
    columns (or `n_features_to_select`) the rest is ranked by what each would add at that point.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs.selectors import NeighborAlignment
    >>> selector = NeighborAlignment(16).fit(load_digits().data)
    >>> selector.transform(load_digits().data).shape
    (1797, 16)
    """

    n_features_to_select: int | float | str = "auto"
    _: KW_ONLY
    n_neighbors: int = 15
    n_components: int = 50
    must_keep: Any = None
    never_keep: Any = None
    adjust_for: Any = None
    center_rows: bool = False
    max_samples: int = 1024
    random_state: Any = 0

    _accepts_sparse = True
    _parameter_constraints = constraints(
        n_components=COUNT, max_samples=[Interval(Integral, 2, None, closed="left")]
    )

    def _fit(self, data: FitData) -> Scored:
        forced, barred = self._forced_and_barred()
        problem = ColumnProblem.of(data, barred)
        scatter, forced = problem.scatter, forced[problem.order]
        most = min(self.n_components, scatter.max_rank, scatter.shape[0])
        values, vectors = scatter.leading_eigenvectors(most)
        # Directions without variance have no scores, only rounding.
        self.n_components_ = max(1, int(np.count_nonzero(values > 1e-12 * values[0])))
        sample = data.some_rows(self._sample(), problem)
        scores = sample @ vectors[:, : self.n_components_]
        best_first = self._picked(problem, sample, scores, forced)

        def auto(best: Indices) -> int:
            goal = float(start_frame(scatter, "auto")[0].sum()) / scatter.trace()
            return problem.fewest_that_explain(goal, best)

        return Scored.by_place(problem, best_first, auto)

    def _picked(
        self, problem: ColumnProblem, sample: SampleOfRows, scores: Array, forced: Mask
    ) -> Indices:
        """Return all columns, best first."""
        scatter, d = problem.scatter, forced.size
        distinct = DistinctRows(scores, sample.weight)
        # Where all rows are the same, two of them tell just as little.
        rows = np.resize(distinct.first, max(2, distinct.first.size))
        weight = None if distinct.weight is None else np.resize(distinct.weight, rows.size)
        around = Neighborhoods(scores[rows], self.n_neighbors, weight)
        everything = np.arange(d)
        signals = np.concatenate(
            [
                around.signals(sample.columns(everything[part])[rows])
                for part in batches(d, sample.n_rows)
            ]
        )
        together = float(np.abs(signals.sum())) or 1.0
        self.neighbor_signals_ = problem.by_column(signals / together)
        duplicates = find_duplicates(scatter, forced)
        last = (duplicates | (scatter.diagonal() <= 0)) & ~forced
        n_picks = max(self._asked_number(*self._forced_and_barred()) or 0, _MOST_PICKS)
        n_candidates = max(_CANDIDATES * n_picks, _LEAST_CANDIDATES)
        strongest = np.lexsort((everything, -signals, last, ~forced))[:n_candidates]
        # In the order of the columns, in which ties are broken.
        candidates = np.sort(strongest[~last[strongest]])
        X = sample.columns(candidates)[rows]
        picks, gains = greedy_ratio(
            np.maximum(signals[candidates], 0.0),
            around.squares(X),
            RowsAhead(lambda some: around.products(some, X), BATCH_BYTES // (8 * candidates.size)),
            min(n_picks, candidates.size),
            forced=forced[candidates],
        )
        by_gain = np.full(d, -np.inf)
        by_gain[candidates] = gains
        rest = np.setdiff1d(everything, candidates[picks])
        behind = np.lexsort((rest, -signals[rest], -by_gain[rest], duplicates[rest]))
        return np.concatenate([candidates[picks], rest[behind]])
