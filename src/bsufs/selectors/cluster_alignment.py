"""ClusterAlignment: columns in which the clusters of the leading components show."""

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
from bsufs.selectors._agreement import agreement_curve, fewest
from bsufs.selectors._base import Scored
from bsufs.selectors._cluster_shares import Clusters, SampleOfRows
from bsufs.selectors._columns import find_duplicates
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._parameters import COUNT, NUMBER_OF_COMPONENTS, constraints
from bsufs.selectors._row_sample import DistinctRows
from bsufs.selectors._streaming import StreamedSelector
from bsufs.solvers.alignment import aligned_columns
from bsufs.solvers.components import noise_edge, principal_frame
from bsufs.solvers.neighbor_units import in_neighbor_units

# No more components than this are looked at, and none for fewer rows than these: their directions
# would follow single rows.
_MOST_COMPONENTS, _ROWS_PER_COMPONENT = 24, 6
# Nor are there more clusters than this, or smaller ones on average.
_MOST_CLUSTERS, _ROWS_PER_CLUSTER = 32, 12
# A column knows of clusters if its share between them is so many standard deviations above chance.
_DEVIATIONS = 4.0
# Columns beyond so many picks are ranked by what each would add at that point.
_MOST_PICKS = 64


@dataclass(repr=False, eq=False)
class ClusterAlignment(StreamedSelector):
    r"""Unsupervised feature selection by the clusters that all columns show together.

    Clustering on selected columns should find what clustering on the whole data can find. So the
    rows are clustered several times in the space of the leading principal components, and columns
    are picked in which these clusters show, without picking the same thing twice. This is what
    ``bsufs select`` does by default: of everything tried without labels it gave the best
    clusterings on seventeen public datasets (see the documentation on choosing without labels).

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto": the fewest whose clusters
        agree with those that were looked for as well as more would, see Notes.
    n_components : int, float or "auto", default="auto"
        Number of components m, as for `BSUFS` but at most 24; clusters are sought among m and among
        as many as the rows allow: a sixth of them, at most 24.
    components : list of int, optional
        Look for clusters in these components alone, counted from 1: ``[3, 4]`` leaves out what the
        first two show. `alternatives` compares several such selections.
    clusters : int, list of int or "auto", default="auto"
        Numbers of clusters to look for; "auto": a twelfth of the rows, at least 2 and at most 32.
    n_runs : int, default=5
        Runs of k-means for each number of components and of clusters.
    n_neighbors : int, default=3
        Neighbors of each row whose differences are the unit of distance.
    %(must_keep)s
    %(never_keep)s
    %(groups)s
    %(adjust_for)s
    %(center_rows)s
    max_samples : int, default=1024
        Cluster at most so many rows, drawn at random; the components are those of all rows. Where
        all rows are clustered, a weight w counts exactly like w copies of its row.
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
    agreement_curve_ : dict of arrays
        With "auto", what decided: some numbers `n_features_to_select`, and the `agreement` of the
        clusters of so many features with those that were looked for, 0 to 1.
    n_clusters_ : list of int
        The numbers of clusters that were looked for.
    n_components_ : int
        Number of components m.
    %(explained_variance)s

    See Also
    --------
    BSUFS : Ranks by survival on the sparsity path.

    Notes
    -----
    Clusters hide where a component that has nothing to do with them holds most of the variance:
    illumination, sequencing depth, a batch. So the scores of the rows on the components are
    whitened, and distances are then measured in units of the differences between near neighbors,
    which mostly are of the same cluster (Art, Gnanadesikan and Kettenring, 1982): with
    :math:`z_i` the whitened scores, the three rows j nearest to i in angle, and D the mean of
    :math:`(z_i - z_j)(z_i - z_j)'` over them, k-means runs on the rows of :math:`Z D^{-1/2}`, each
    scaled to unit length.

    Every run gives a kernel that is :math:`w_c / n_c` between samples of the same cluster c and
    zero elsewhere; the weight :math:`w_c` is 1, less in proportion for clusters smaller than the
    average one, which may be outliers. With their mean T, :math:`x_i' T x_i` is the mean
    between-cluster sum of squares of column i; :math:`b_i` is what of it lies above the expectation
    for a column that knows nothing of the clusters. Columns are picked greedily to maximize

    .. math:: \frac{\sum_{i \in A} b_i}{\bigl\| \sum_{i \in A} x_i x_i' \bigr\|_F},

    the alignment of the kernel of the columns in A with T. The denominator makes a column pay for
    what it repeats and for variance within clusters. Columns whose share is less than four standard
    deviations above chance come behind those that know of the clusters.

    A group of columns counts as one: its kernel is the sum of the kernels of its columns, and it is
    worth the sum of their :math:`b_i`. With a `budget`, each pick is the one that raises the
    alignment most per cost among those that still fit.

    "auto" clusters the rows (512 of them at most) on the best columns alone, by five iterations of
    k-means from one row of each cluster of four clusterings above, and measures the agreement with
    all of these by their mean normalized mutual information. From 128 columns, or all distinct ones
    that vary, the number is halved as long as the agreement is within 0.02 of the best so far; at
    last three quarters of the number found are tried.

    Perfectly correlated columns come behind all distinct ones. Beyond 64 columns (or
    `n_features_to_select`) the rest is ranked by what each would add at that point.

    References
    ----------
    Art, D., Gnanadesikan, R., Kettenring, J. R. (1982). Data-based metrics for cluster analysis.
    Utilitas Mathematica 21A.

    Cristianini, N., Shawe-Taylor, J., Elisseeff, A., Kandola, J. (2001). On kernel-target
    alignment. Advances in Neural Information Processing Systems 14.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs.selectors import ClusterAlignment
    >>> selector = ClusterAlignment(16).fit(load_digits().data)
    >>> selector.transform(load_digits().data).shape
    (1797, 16)
    """

    n_features_to_select: int | float | str = "auto"
    _: KW_ONLY
    n_components: int | float | str = "auto"
    components: Sequence[int] | None = None
    clusters: int | Sequence[int] | str = "auto"
    n_runs: int = 5
    n_neighbors: int = 3
    must_keep: Any = None
    never_keep: Any = None
    groups: Any = None
    costs: Any = None
    budget: float | None = None
    adjust_for: Any = None
    center_rows: bool = False
    max_samples: int = 1024
    random_state: Any = 0

    _accepts_sparse = True
    _parameter_constraints = constraints(
        n_components=NUMBER_OF_COMPONENTS,
        components=["array-like", None],
        clusters=[Interval(Integral, 2, None, closed="left"), "array-like", StrOptions({"auto"})],
        n_runs=COUNT,
        max_samples=[Interval(Integral, 2, None, closed="left")],
    )

    def _fit(self, data: FitData) -> Scored:
        forced, barred = self._forced_and_barred()
        problem = ColumnProblem.of(data, barred)
        scatter, forced = problem.scatter, forced[problem.order]
        self._find_components(scatter)
        sample = data.some_rows(self._sample(), problem)
        targets = list(self._clusterings(sample, scatter))
        found = [Clusters(labels, sample.weight) for labels in targets]
        shares = np.maximum(sample.shares_beyond_chance(found), 0.0) / len(found)
        by_chance = _DEVIATIONS * sum(one.deviation_by_chance for one in found) / len(found)
        self.cluster_shares_ = problem.by_column(shares)
        units = self._groups.among(problem.order)
        asked = self._asked_number(*self._forced_and_barred()) or 0
        knowing = shares > by_chance
        best_first, n_distinct = self._picked(scatter, shares, knowing, forced, units, asked)
        return Scored.by_place(
            problem,
            best_first,
            lambda best: self._fewest_that_agree(best, n_distinct, problem, sample, targets),
        )

    def _fewest_that_agree(
        self,
        best_first: Indices,
        n_distinct: int,
        problem: ColumnProblem,
        sample: SampleOfRows,
        targets: Sequence[Indices],
    ) -> int:
        """Return how many columns it takes to show the clusters as well as more would."""
        places = problem.place[best_first]
        places = places[places < problem.order.size]
        ends = self._groups.ends(problem.order[places])[:n_distinct]
        curve = agreement_curve(lambda n: sample.columns(places[:n]), ends, targets, sample.weight)
        self.agreement_curve_ = {
            "n_features_to_select": np.array(list(curve)),
            "agreement": np.array(list(curve.values())),
        }
        return int(ends[fewest(curve) - 1])

    def _find_components(self, scatter: Scatter) -> None:
        """Decide on the number of components."""
        most = min(_MOST_COMPONENTS, scatter.max_rank, scatter.shape[0])
        values, _ = scatter.leading_eigenvectors(most)
        if isinstance(self.n_components, str):
            edge = noise_edge(scatter.diagonal(), scatter.total_weight)
            values = values[: max(1, int(np.count_nonzero(values > edge)))]
        else:
            values = principal_frame(scatter, self.n_components)[0][:most]
        self.n_components_ = values.size

    def _clusterings(self, sample: SampleOfRows, scatter: Scatter) -> Iterator[Indices]:
        """Cluster the rows by their scores on components, in one view after another."""
        random_state = check_random_state(self.random_state)
        most = min(_MOST_COMPONENTS, scatter.max_rank, scatter.shape[0])
        values, vectors = scatter.leading_eigenvectors(most)
        # Directions without variance have no scores, only rounding.
        rank = max(1, int(np.count_nonzero(values > 1e-12 * values[0])))
        distinct = DistinctRows(sample @ vectors[:, :rank], sample.weight)
        scores, total = distinct.rows, int(distinct.total_weight)
        if len(scores) == 1:
            # The rows drawn are all the same, and show no clusters.
            self.n_clusters_ = [1]
            yield from distinct.of_all(np.zeros((1, 1), dtype=np.intp))
            return
        self.n_clusters_ = self._numbers_of_clusters(total, len(scores))
        for view in self._views(total, rank):
            rows = in_neighbor_units(scores[:, view], self.n_neighbors, distinct.weight)
            for n_clusters in self.n_clusters_:
                runs = batched_kmeans(
                    rows,
                    n_clusters,
                    n_runs=self.n_runs,
                    sample_weight=distinct.weight,
                    random_state=random_state.randint(2**31 - 1),
                )
                yield from distinct.of_all(runs.labels)

    def _views(self, n_rows: int, rank: int) -> list[Indices]:
        """Return the components to look at: those asked for, or those above noise and many."""
        if self.components is None:
            many = most_components(n_rows, rank)
            return [np.arange(size) for size in sorted({min(self.n_components_, many), many})]
        numbers = _whole_numbers(self.components, 1, rank)
        if numbers is None:
            raise ValueError(
                f"components must hold whole numbers from 1 to {rank}, the components that can be "
                f"looked at here, got {self.components!r}. Name others, or leave it at None."
            )
        return [np.array(numbers) - 1]

    def _numbers_of_clusters(self, total_weight: int, n_rows: int) -> list[int]:
        if isinstance(self.clusters, str):
            return [max(2, min(_MOST_CLUSTERS, total_weight // _ROWS_PER_CLUSTER, n_rows))]
        numbers = _whole_numbers(self.clusters, 2, n_rows)
        if numbers is None:
            raise ValueError(
                f"clusters must hold whole numbers from 2 to the {n_rows} different rows that are "
                f"clustered, got {self.clusters!r}. Leave it at 'auto'."
            )
        return numbers

    def _picked(
        self,
        scatter: Scatter,
        shares: Array,
        knowing: Mask,
        forced: Mask,
        units: tuple[Indices, Indices],
        asked: int,
    ) -> tuple[Indices, int]:
        """Return all columns, best first and by the group, and how many groups are distinct."""
        (group, which), diagonal = units, scatter.diagonal()
        # Groups are numbered in the order of their first columns.
        first = np.flatnonzero(np.diff(np.maximum.accumulate(group), prepend=-1))
        target = shares * (diagonal / diagonal.max())
        duplicates = find_duplicates(scatter, forced, group)[first]
        forced, varying = forced[first], np.bincount(group, diagonal) > 0
        knowing = np.bincount(group, knowing) > 0
        last = (duplicates | ~knowing | ~varying) & ~forced
        n_distinct = int(np.count_nonzero((varying & ~duplicates) | forced))
        n_picks = min(int(np.count_nonzero(~last)), max(asked, _MOST_PICKS))
        budget = None if self._budget is None else self._budget.of(which)
        picks, gains = aligned_columns(
            scatter,
            target,
            n_picks if budget is None else which.size,
            forced=forced,
            barred=last,
            groups=group,
            budget=budget,
        )
        rest = np.setdiff1d(np.arange(which.size), picks)
        # Where clusters tell nothing the share decides, however little it is.
        largest_share = np.zeros(which.size)
        np.maximum.at(largest_share, group, shares)
        gains = np.where(knowing, gains, largest_share)
        order = np.concatenate(
            [picks, rest[np.lexsort((rest, -gains[rest], ~knowing[rest], duplicates[rest]))]]
        )
        place = np.argsort(order)[group]
        return np.lexsort((np.arange(group.size), -target, place)), n_distinct


def most_components(n_rows: int, rank: int) -> int:
    """Return how many components so many rows can tell of."""
    return max(1, min(n_rows // _ROWS_PER_COMPONENT, rank, _MOST_COMPONENTS))


def _whole_numbers(value: Any, least: int, most: int) -> list[int] | None:
    """Return the numbers in order, or None where they are anything but whole and in range."""
    try:
        given = np.atleast_1d(np.asarray(value))
    except ValueError:
        return None
    numbers = np.unique(given)
    if (
        given.ndim != 1
        or numbers.size == 0
        or not np.issubdtype(numbers.dtype, np.integer)
        or not least <= numbers[0] <= numbers[-1] <= most
    ):
        return None
    return [int(number) for number in numbers]
