"""More than one answer: selections that show different groupings of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bsufs._typing import Array, Indices
from bsufs.inspection.findings import features_of, require_columns_of
from bsufs.metrics.kmeans import batched_kmeans
from bsufs.metrics.label_free import clustering_similarities
from bsufs.selectors import ClusterAlignment
from bsufs.selectors._dask_input import is_dask
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors.cluster_alignment import most_components
from bsufs.solvers.neighbor_units import in_neighbor_units

# Components of which an alternative is made. One alone shows little more than a direction; with
# three, the largest of them hides the others.
_GROUP = 2
# Clusters are looked for again in so many parts of the rows, each with this share of them.
_N_PARTS, _PART = 10, 0.8
# What an alternative has in common with a selection that was made by another method.
_SHARED = ("must_keep", "never_keep", "groups", "adjust_for", "center_rows", "random_state")


@dataclass(frozen=True, eq=False)
class Alternative:
    """One of several selections from the same data, and what it shows.

    Parameters
    ----------
    selector : ClusterAlignment
        The fitted selector.
    components : tuple of int
        The principal components in which it looks for clusters, counted from 1.
    variance_share : float
        Share of these components in the total variance.
    cluster_sizes : tuple of int
        Rows in each cluster, the largest first; of a large table, rows of the sample.
    stability : float
        How far the same clusters are found on parts of the rows: the mean adjusted Rand index,
        1 for the same clusters and 0 for chance.
    overlap : float
        Jaccard index of its features, or groups, with the selection.
    overlap_with_others : tuple of float
        The same with each of the other alternatives.
    """

    selector: ClusterAlignment
    components: tuple[int, ...]
    variance_share: float
    cluster_sizes: tuple[int, ...]
    stability: float
    overlap: float
    overlap_with_others: tuple[float, ...]

    @property
    def title(self) -> str:
        """What it looks at, in words."""
        numbers = " and ".join(map(str, self.components))
        return f"component{'s' if len(self.components) > 1 else ''} {numbers}"

    @property
    def selected_features_(self) -> NDArray[Any]:
        """Its features, best first: numbers of columns, or names where X has names."""
        return self.selector.selected_features_

    @property
    def ranking_(self) -> Indices:
        """Rank of every feature, 1 for the best."""
        return self.selector.ranking_

    def document(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what there is to show, as plain values, given the names of all columns of X."""
        best_first = np.argsort(self.ranking_)[: int(self.selector.support_.sum())]
        of, features = features_of(self.selector, names)
        _, first = np.unique(of[best_first], return_index=True)
        return {
            "title": self.title,
            "features": features[best_first[np.sort(first)]].tolist(),
            "variance_share": self.variance_share,
            "cluster_sizes": list(self.cluster_sizes),
            "stability": self.stability,
            "overlap": {"selection": self.overlap, "others": list(self.overlap_with_others)},
        }


def alternatives(selector: Any, X: Any = None, n: int = 3) -> list[Alternative]:
    """Select features in several ways that each show another grouping of the rows.

    Without labels, nobody knows which of several clusterings of a table is wanted, and columns that
    show one hide another. The default looks at all leading components together. Each alternative
    looks at two of them alone: the first at components 1 and 2, the second at 3 and 4, and so on.

    Parameters
    ----------
    selector : selector, array, data frame or sparse matrix
        A fitted selector, beside which the alternatives are put; they select as many features as it
        does, with its settings where it is a `ClusterAlignment`. Or the data alone: then that is
        `ClusterAlignment` as it is.
    X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
        The data that the selector was fitted to.
    n : int, default=3
        How many alternatives; fewer where the data have fewer components, or one for less than six
        rows.

    Returns
    -------
    list of Alternative
        What each selects and shows, in the order of the components.

    Notes
    -----
    For the stability, clusters are found again on ten random parts with 80 % of the rows, in the
    principal components of these rows. Where it is low a grouping may still be real, but other rows
    would show it differently.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs import ClusterAlignment, alternatives
    >>> X = load_digits().data
    >>> selector = ClusterAlignment(8).fit(X)
    >>> [(one.title, round(one.variance_share, 2)) for one in alternatives(selector, X, n=2)]
    [('components 1 and 2', 0.29), ('components 3 and 4', 0.2)]
    """
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n must be a whole number from 1, got {n!r}. 3 is usual.")
    main = None
    if isinstance(selector, BaseEstimator):
        main = getattr(selector, "best_estimator_", selector)
    elif X is None:
        X = selector
    if X is None:
        raise ValueError(
            "X must be the data that the selector was fitted to, got None: a selector does not "
            "keep them. Call alternatives(selector, X)."
        )
    if is_dask(X):
        raise ValueError(
            "X must be in memory, got a Dask collection. Take a random sample of its rows, such as "
            "10000, and compute it."
        )
    template = _template(main)
    data = template._fit_data(X, None)
    main = template.fit(data) if main is None else main
    check_is_fitted(main)
    require_columns_of(main, data)
    number = len(getattr(main, "selected_groups_", main.selected_features_))
    template = clone(template).set_params(n_features_to_select=number, costs=None, budget=None)
    scores, shares = _scores(template, data)
    starts = range(0, min(n * _GROUP, len(shares)), _GROUP)
    groups = [np.arange(start, min(start + _GROUP, len(shares))) for start in starts]
    numbers = [(group + 1).tolist() for group in groups]
    fitted = [clone(template).set_params(components=some).fit(data) for some in numbers]
    return [
        Alternative(
            one,
            tuple(some),
            min(float(shares[group].sum()), 1.0),
            *_clusters(one, scores, group),
            _jaccard(one, main),
            tuple(_jaccard(one, other) for other in fitted if other is not one),
        )
        for one, some, group in zip(fitted, numbers, groups, strict=True)
    ]


def _template(main: Any) -> ClusterAlignment:
    """Return the selector that becomes each alternative, given its components."""
    if isinstance(main, ClusterAlignment):
        template = clone(main)
    else:
        known = {} if main is None else main.get_params(deep=False)
        template = ClusterAlignment(**{name: known[name] for name in _SHARED if name in known})
    # One seed for all that is random here, also where the caller's generator gives another one
    # each time.
    if not isinstance(template.random_state, Integral):
        seed = check_random_state(template.random_state).randint(2**31 - 1)
        template.set_params(random_state=seed)
    return template


def _scores(template: ClusterAlignment, data: FitData) -> tuple[Array, Array]:
    """Return scores of the rows on the components, and the share of each in the variance."""
    template._note_columns(data)
    problem = ColumnProblem.of(data, template._forced_and_barred()[1])
    sample, scatter = data.some_rows(template._sample(), problem), problem.scatter
    most = most_components(sample.n_rows, min(scatter.max_rank, scatter.shape[0]))
    values, vectors = scatter.leading_eigenvectors(most)
    rank = max(1, int(np.count_nonzero(values > 1e-12 * values[0])))
    return sample @ vectors[:, :rank], values[:rank] / scatter.trace()


def _clusters(
    fitted: ClusterAlignment, scores: Array, group: Indices
) -> tuple[tuple[int, ...], float]:
    """Return the sizes of the clusters of all rows, and how far parts of the rows show the same."""
    random = check_random_state(fitted.random_state)

    def labels(scores: Array) -> Indices:
        runs = batched_kmeans(
            in_neighbor_units(scores[:, group], fitted.n_neighbors),
            min(fitted.n_clusters_[0], len(scores)),
            n_runs=fitted.n_runs,
            random_state=random.randint(2**31 - 1),
        )
        return runs.labels[runs.best]

    of_all = labels(scores)
    agreements = np.zeros(_N_PARTS)
    for number in range(_N_PARTS):
        part = random.permutation(len(scores))[: max(2, round(_PART * len(scores)))]
        centered = scores[part] - scores[part].mean(axis=0)
        values, axes = np.linalg.eigh(centered.T @ centered)
        # Parts of the rows may have fewer components, and then show nothing.
        if values[::-1][group[-1]] > 1e-12 * values[-1]:
            again = labels(centered @ axes[:, ::-1])
            agreements[number] = clustering_similarities(of_all[part], again[None, :], "ari")[0]
    sizes = np.sort(np.bincount(of_all))[::-1]
    return tuple(sizes[sizes > 0].tolist()), float(np.mean(agreements))


def _jaccard(one: ClusterAlignment, other: Any) -> float:
    """Return the Jaccard index of the groups that two keep."""
    a, b = (selector.support_[one._groups.first] for selector in (one, other))
    return float(np.sum(a & b) / np.sum(a | b))
