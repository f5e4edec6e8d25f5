"""AlignedBSUFS: columns that show the clusters of all columns, weighted by survival on the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array, Indices, Mask
from bsufs.metrics.kmeans import batched_kmeans
from bsufs.scatter import Scatter
from bsufs.selectors._base import Scored
from bsufs.selectors._cluster_shares import Clusters, SampleOfRows
from bsufs.selectors._columns import find_duplicates
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._parameters import (
    COUNT,
    NOT_NEGATIVE,
    NUMBER_OF_COMPONENTS,
    UNIT_INTERVAL,
    constraints,
)
from bsufs.selectors._row_sample import RowSample
from bsufs.selectors._streaming import StreamedSelector
from bsufs.solvers.alignment import aligned_columns
from bsufs.solvers.components import principal_frame
from bsufs.solvers.ranking import Weights, rank_by_path

# Clusters of fewer rows than this, on average, follow the noise of single rows.
_ROWS_PER_CLUSTER = 12
# A column knows of clusters if its share between them is so many standard deviations above chance.
_DEVIATIONS = 4.0
# Columns beyond so many picks are ranked by what each would add at that point.
_MOST_PICKS = 128


@dataclass(repr=False, eq=False)
class AlignedBSUFS(StreamedSelector):
    r"""Unsupervised feature selection by the clusters that all columns show together.

    Clustering on selected columns should find what clustering on the whole data can find. So the
    rows are clustered many times in the space of the leading principal components, and columns are
    picked in which these clusters show, without picking the same thing twice; a column that
    survives long on the path of `BSUFS` counts a little more. This is what ``bsufs select`` does by
    default: of everything tried without labels it gave the best clusterings on the public datasets
    of the paper (see the documentation on choosing without labels).

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", as many as regression needs
        to explain the variance that the components explain.
    n_components : int, float or "auto", default="auto"
        Number of components m, as for `BSUFS`; clusters are sought among m and among 2m.
    clusters : int, list of int or "auto", default="auto"
        Numbers of clusters to look for; "auto": m + 1 and 2m + 1, but no more than a twelfth of the
        rows (and no fewer than two).
    n_runs : int, default=10
        Runs of k-means for each number of components and of clusters.
    flattening : float, default=0.5
        How much components of small variance are lifted: 0 leaves distances as they are in the
        data, 1 makes all components count alike.
    scaling : float, default=0.5
        How much columns of large variance are taken down before their inner products are compared:
        they are divided by (sd + median sd) to this power.
    survival_power : float, default=0.25
        Power of the `BSUFS` score that multiplies what a column shows of the clusters; 0 leaves
        the path out of it.
    %(must_keep)s
    %(never_keep)s
    max_samples : int, default=4096
        Cluster at most so many rows, drawn at random; the path sees all.
    random_state : int, RandomState instance or None, default=0
        Seed of k-means and of the rows drawn.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        From 1 for the feature picked first down to 0; larger is better.
    %(fitted)s
    cluster_shares_ : array of shape (n_features,)
        Share of the variance of each feature that lies between clusters, beyond what chance gives
        and with small clusters counting less, averaged over all clusterings; 0 to 1.
    n_clusters_ : list of int
        The numbers of clusters that were looked for.
    n_components_ : int
        Number of components m.
    survival_ : array of int of shape (n_features,)
        The last step of the path before each feature was eliminated.
    path_ : dict
        Of `BSUFS`: a number for each step under "lambda_row", "n_alive" and
        "component_variance_ratio".
    n_iter_ : int
        Number of steps of the path.
    %(explained_variance)s

    See Also
    --------
    BSUFS : The path alone; also for weighted rows.

    Notes
    -----
    With U and s the left singular vectors and singular values of the centered data, k-means runs
    :math:`\ell` on the rows of :math:`U_r \operatorname{diag}(s_r)^{1 - f}` for r = m, 2m and each
    number of clusters; f is the flattening. Every run gives a kernel that is :math:`w_c / n_c`
    between samples of the same cluster c and zero elsewhere; the weight :math:`w_c` is 1, less in
    proportion for clusters smaller than the average one, which may be outliers. With their mean T,
    :math:`x_i' T x_i` is the mean between-cluster sum of squares of column i; :math:`b_i` is what
    of it lies above the expectation for a column that knows nothing of the clusters. Columns are
    picked greedily to maximize

    .. math:: \frac{\sum_{i \in A} a_i^2 b_i \sigma_i^{\eta}}
        {\bigl\| \sum_{i \in A} a_i^2 x_i x_i' \bigr\|_F},
        \qquad a_i = (\mathrm{sd}_i + \operatorname{median} \mathrm{sd})^{-c},

    with the score :math:`\sigma_i` of `BSUFS`, which is at least 1/2 for columns that are no
    duplicates, :math:`\eta` = `survival_power` and c = `scaling`. Without the middle factor this is
    the alignment of the kernel of the columns in A with T. The denominator makes a column pay for
    what it repeats and for variance within clusters. Columns whose share is less than four standard
    deviations above chance would cost next to nothing where they are small, and say nothing: they
    come behind those that know of the clusters, by their score of `BSUFS`.

    The picks cost a product with X each; k-means a product of a row's components with the centers.
    Perfectly correlated columns come behind all distinct ones. Beyond 128 columns (or
    `n_features_to_select`) the rest is ranked by what each would add at that point.

    References
    ----------
    Cristianini, N., Shawe-Taylor, J., Elisseeff, A., Kandola, J. (2001). On kernel-target
    alignment. Advances in Neural Information Processing Systems 14.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs.selectors import AlignedBSUFS
    >>> selector = AlignedBSUFS(16).fit(load_digits().data)
    >>> selector.transform(load_digits().data).shape
    (1797, 16)
    """

    n_features_to_select: int | float | str = "auto"
    _: KW_ONLY
    n_components: int | float | str = "auto"
    clusters: int | Sequence[int] | str = "auto"
    n_runs: int = 10
    flattening: float = 0.5
    scaling: float = 0.5
    survival_power: float = 0.25
    must_keep: Any = None
    never_keep: Any = None
    max_samples: int = 4096
    random_state: Any = 0

    _accepts_sparse = True
    _parameter_constraints = constraints(
        n_components=NUMBER_OF_COMPONENTS,
        clusters=[Interval(Integral, 2, None, closed="left"), "array-like", StrOptions({"auto"})],
        n_runs=COUNT,
        flattening=UNIT_INTERVAL,
        scaling=UNIT_INTERVAL,
        survival_power=NOT_NEGATIVE,
        max_samples=[Interval(Integral, 2, None, closed="left")],
    )

    def _sample(self) -> RowSample:
        return RowSample(self.max_samples, self.random_state)

    def _fit(self, data: FitData) -> Scored:
        forced, barred = self._forced_and_barred()
        problem = ColumnProblem.of(data, barred)
        scatter, forced = problem.scatter, forced[problem.order]
        duplicates = find_duplicates(scatter, forced)
        values, W = principal_frame(scatter, self.n_components)
        self.n_components_ = W.shape[1]
        model = Weights().scaled_to(scatter, values[0], W.shape[1])
        survival, path = rank_by_path(model, W, forced=forced, duplicates=duplicates)
        self.n_iter_ = path.n_iter
        self.survival_ = problem.by_column(path.survival.last_step)
        self.path_ = {
            "lambda_row": path.lambda_row,
            "n_alive": path.n_alive,
            "component_variance_ratio": path.component_variance_ratio,
        }
        shares, by_chance = self._shares_between_clusters(
            data.some_rows(self._sample(), problem.places), scatter
        )
        self.cluster_shares_ = problem.by_column(shares)
        best_first = self._picked(scatter, shares, shares > by_chance, survival, forced, duplicates)
        scores = np.empty(best_first.size)
        scores[best_first] = 1.0 - np.arange(best_first.size) / best_first.size
        goal = path.component_variance_ratio[0]
        return Scored(
            scores=problem.by_column(scores),
            variances=problem.by_column(scatter.diagonal()),
            position=problem.place,
            auto_n_features=lambda best_first: problem.fewest_that_explain(goal, best_first),
            explained_curve=problem.explained_curve,
        )

    def _shares_between_clusters(
        self, sample: SampleOfRows, scatter: Scatter
    ) -> tuple[Array, float]:
        """Return mean shares of variance between clusters, and how large chance may make them."""
        found = [Clusters(labels) for labels in self._clusterings(sample, scatter)]
        deviation = sum(clusters.deviation_by_chance for clusters in found)
        shares = np.maximum(sample.shares_beyond_chance(found), 0.0)
        return shares / len(found), _DEVIATIONS * deviation / len(found)

    def _clusterings(self, sample: SampleOfRows, scatter: Scatter) -> Iterator[Indices]:
        random_state = check_random_state(self.random_state)
        m, n = self.n_components_, sample.n_rows
        limit = min(scatter.max_rank, scatter.shape[0])
        values, vectors = scatter.leading_eigenvectors(min(2 * m, limit))
        # Directions without variance have no scores, only rounding.
        rank = max(1, int(np.count_nonzero(values > 1e-14 * values[0])))
        lengths = np.sqrt(values[:rank])
        scores = (sample @ vectors[:, :rank]) * (lengths / lengths[0]) ** -self.flattening
        self.n_clusters_ = self._numbers_of_clusters(m, n)
        for size in sorted({min(m, rank), rank}):
            for n_clusters in self.n_clusters_:
                seed = random_state.randint(2**31 - 1)
                runs = batched_kmeans(
                    scores[:, :size], n_clusters, n_runs=self.n_runs, random_state=seed
                )
                yield from runs.labels

    def _numbers_of_clusters(self, m: int, n_rows: int) -> list[int]:
        if isinstance(self.clusters, str):
            most = max(2, n_rows // _ROWS_PER_CLUSTER)
            return sorted({min(m + 1, most), min(2 * m + 1, most)})
        try:
            given = np.atleast_1d(np.asarray(self.clusters))
        except ValueError:
            given = np.empty((0, 0))
        numbers = np.unique(given)
        if (
            given.ndim != 1
            or numbers.size == 0
            or not np.issubdtype(numbers.dtype, np.integer)
            or not 2 <= numbers[0] <= numbers[-1] <= n_rows
        ):
            raise ValueError(
                f"clusters must hold whole numbers from 2 to the {n_rows} rows that are "
                f"clustered, got {self.clusters!r}. Leave it at 'auto'."
            )
        return [int(number) for number in numbers]

    def _picked(
        self,
        scatter: Scatter,
        shares: Array,
        knowing: Mask,
        survival: Array,
        forced: Mask,
        duplicates: Mask,
    ) -> Indices:
        """Return all columns, best first."""
        diagonal = scatter.diagonal()
        sd = np.sqrt(diagonal / diagonal.max())
        scale = (sd + np.median(sd[sd > 0])) ** -self.scaling
        target = shares * (sd * scale) ** 2 * survival**self.survival_power
        last = (duplicates | ~knowing | (diagonal <= 0)) & ~forced
        asked = self._asked_number(forced, np.zeros_like(forced)) or 0
        n_picks = min(int(np.count_nonzero(~last)), max(asked, _MOST_PICKS))
        picks, gains = aligned_columns(scatter, target, scale, n_picks, forced=forced, barred=last)
        rest = np.setdiff1d(np.arange(forced.size), picks)
        # Where clusters tell nothing the path decides.
        gains = np.where(knowing, gains, survival)
        return np.concatenate(
            [picks, rest[np.lexsort((rest, -gains[rest], ~knowing[rest], duplicates[rest]))]]
        )
