"""Criteria that judge feature sets by the data alone, to choose among them without labels.

A criterion is a small frozen object: its settings, a name, a direction and a formula (all formulas
are in the guide on choosing without labels). What several criteria or feature sets need of the data
is prepared once, in an `EvaluationData`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

from bsufs._typing import Array, Indices, Mask
from bsufs.graphs import in_safe_units, nearest_samples
from bsufs.metrics.kmeans import Labels, batched_kmeans
from bsufs.metrics.label_free import (
    Measure,
    clustering_similarities,
    column_numbers,
    nogueira_stability,
    redundancy,
)
from bsufs.scatter import make_scatter
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import COUNT, POSITIVE, one_of
from bsufs.selectors._row_sample import RowSample
from bsufs.solvers.components import components_above_noise

# Neighbors in more columns than this are those in the space of as many components.
_MOST_COMPONENTS = 50
_SEVERAL = [Interval(Integral, 2, None, closed="left")]


class EvaluationData:
    """A table prepared to judge many sets of its columns: folds, clusterings, number of clusters.

    Everything is computed when first asked for, from the data and the seed alone, so that threads
    may share it. No value depends on the order of the columns.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        All columns, finite numbers; never changed. Selectors share what they have found by passing
        the data of their fit instead.
    random_state : int, default=0
        Seed of whatever is random.
    """

    def __init__(self, X: Any, random_state: int = 0) -> None:
        self.fit_data = X if isinstance(X, FitData) else FitData(check_array(X, dtype=np.float64))
        self.X: Array = in_safe_units(self.fit_data.cleared.X)
        self.random_state = random_state
        self._copy = cache(self._copy)  # type: ignore[method-assign] # once each
        # Two criteria look at the clusterings of a set, and every set is compared with all columns.
        self._labels = lru_cache(maxsize=8)(self._labels)  # type: ignore[method-assign]
        self._nearest = lru_cache(maxsize=8)(self._nearest)  # type: ignore[method-assign]

    def columns(self, features: ArrayLike) -> Indices:
        """Return the numbers of some columns, in an order that depends on their contents alone."""
        numbers = column_numbers(features, self.X.shape[1], "features")
        return numbers[np.argsort(self.fit_data.place[numbers])]

    @cached_property
    def n_clusters(self) -> int:
        """One more than the components above the noise edge: K centers span K - 1 dimensions."""
        return int(min(components_above_noise(self.fit_data.scatter) + 1, self.X.shape[0]))

    def clusterings(self, features: Indices | None, n_clusters: int | str, n_runs: int) -> Labels:
        """Return the clusters that restarts of k-means find on some columns, or on all."""
        K = self.n_clusters if isinstance(n_clusters, str) else n_clusters
        return self._labels(self._key(features), K, n_runs)

    def _key(self, features: Indices | None) -> tuple[int, ...]:
        return tuple((self.fit_data.order if features is None else features).tolist())

    def _labels(self, columns: tuple[int, ...], K: int, n_runs: int) -> Labels:
        part = self.X[:, list(columns)]
        return batched_kmeans(part, K, n_runs=n_runs, random_state=self.random_state).labels

    def held_out_share(
        self, features: Indices, n_folds: int, ridges: Sequence[float], permutation: int = 0
    ) -> float:
        """Return the share of the variance of left-out rows that a ridge regression explains."""
        X, Y, products = self._copy(permutation)
        places, n = self.fit_data.place[features], len(X)
        A, among = X[:, places], products[:, places]
        parts = np.array_split(np.random.default_rng(self.random_state).permutation(n), n_folds)
        held_out = [np.isin(np.arange(n), part) for part in parts if part.size]
        found = [_held_out_errors(A, Y, among, fold, ridges) for fold in held_out]
        errors, total = (sum(column) for column in zip(*found, strict=True))
        return float(1.0 - np.min(errors) / total) if total else 1.0

    def _copy(self, permutation: int) -> tuple[Array, Array, Array]:
        """Return centered or shuffled data X, Y of no more columns with YY' = XX', and Y'X."""
        X = self.X[:, self.fit_data.order]
        X -= X.mean(axis=0)
        if permutation:
            X = np.random.default_rng([self.random_state, permutation]).permuted(X, axis=0)
        Y = X if X.shape[1] <= len(X) else np.asarray(np.linalg.qr(X.T, mode="r")).T
        return X, Y, Y.T @ X

    def neighbors(self, features: Indices | None, count: int, at_most: int) -> Indices:
        """Return the nearest rows of each row of a sample in some columns, or in all."""
        return self._nearest(self._key(features), count, at_most)

    def _nearest(self, columns: tuple[int, ...], count: int, at_most: int) -> Indices:
        X = in_safe_units(RowSample(at_most, self.random_state).of(self.X)[:, list(columns)])
        if len(columns) > _MOST_COMPONENTS:
            scatter = make_scatter(X)
            X = X @ scatter.leading_eigenvectors(min(_MOST_COMPONENTS, scatter.max_rank))[1]
        return nearest_samples(X, min(count + 1, len(X))).others().indices

    def subsample(self, number: int, share: float) -> FitData:
        """Return a random part of the rows, at least two."""
        n = self.X.shape[0]
        draw = np.random.default_rng([self.random_state, number]).permutation(n)
        rows = np.sort(draw[: max(2, round(share * n))])
        return self.fit_data.part(rows)


def _held_out_errors(
    A: Array, Y: Array, among: Array, held_out: Mask, ridges: Sequence[float]
) -> tuple[Array, float]:
    """Return the squared error on held-out rows for each ridge weight, and that of the mean.

    With A and Y centered by the mean of the other rows, ridge regression predicts the held-out rows
    H by A_H (A'A + t I)^-1 A'Y. In the basis of eigenvectors the squared error is a quadratic form
    in the weights w = 1 / (eigenvalue + t), total - 2 w'g + w'Q w, so that one decomposition serves
    every t, and no prediction is ever formed. `among` is Y'A over all rows, whose means are zero.
    """
    A, A_held_out, H = A[~held_out], A[held_out], Y[held_out]
    a, y = A.mean(axis=0), -H.sum(axis=0) / len(A)
    among = among - H.T @ A_held_out - len(A) * np.outer(y, a)
    A, A_held_out, H = A - a, A_held_out - a, H - y
    total = float(np.vdot(H, H))
    if A.shape[1] <= len(A):
        values, basis = linalg.eigh(A.T @ A, check_finite=False)
        left, across = A_held_out @ basis, among @ basis
    else:
        # The same regression by samples: A_H A' (A A' + t I)^-1 Y. A is centered, so Y need not be.
        values, right = linalg.eigh(A @ A.T, check_finite=False)
        left, across = A_held_out @ (A.T @ right), Y[~held_out].T @ right
    scale = float(values.mean()) if values.size else 0.0
    if scale <= 0:
        return np.full(len(ridges), total), total
    linear = np.einsum("ij,ij->j", left, H @ across)
    quadratic = (left.T @ left) * (across.T @ across)
    weights = 1.0 / (np.maximum(values, 0.0)[:, None] + scale * np.asarray(ridges))
    bent = np.einsum("it,it->t", weights, quadratic @ weights)
    return total - 2.0 * (linear @ weights) + bent, total


@dataclass(frozen=True)
class Criterion(ABC):
    """A number that says how good a set of features is, from the data alone.

    A subclass is a frozen dataclass, whose fields are its settings, with a `judge`; with
    `needs_selector` it judges the way the features were selected, and has to repeat it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.tuning.criteria import HeldOutReconstruction, Redundancy
    >>> round(HeldOutReconstruction().score(load_iris().data, [2]), 2)
    0.92
    >>> round(Redundancy().score(load_iris().data, [2, 3]), 2)
    0.96
    """

    name: ClassVar[str]
    larger_is_better: ClassVar[bool] = True
    needs_selector: ClassVar[bool] = False
    # What settings may be, or all of several.
    _allowed: ClassVar[dict[str, list[Any]]] = {}

    def __post_init__(self) -> None:
        for name, allowed in self._allowed.items():
            given = getattr(self, name)
            values = given if isinstance(given, tuple | list) else [given]
            fits = [any(rule.is_satisfied_by(value) for rule in allowed) for value in values]
            if not fits or not all(fits):
                must = " or ".join(map(str, allowed))
                raise ValueError(f"{name} must be {must}, got {given!r}.")

    @abstractmethod
    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        """Judge some columns of prepared data, in the order of `EvaluationData.columns`.

        The selector that selected them is only looked at where the criterion `needs_selector`.
        """

    def score(
        self, X: ArrayLike, features: ArrayLike, *, selector: Any = None, random_state: int = 0
    ) -> float:
        """Judge one set of features of some data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All columns, finite numbers; never changed.
        features : array-like of bool of shape (n_features,), or of int
            The selected columns, as a mask or by number.
        selector : selector, optional
            What selected them, fitted or not; needed by the criteria that repeat the selection.
        random_state : int, default=0
            Seed of whatever is random.

        Returns
        -------
        float
            The value; `larger_is_better` tells its direction.
        """
        data = EvaluationData(X, random_state)
        columns = data.columns(features)
        if columns.size == 0:
            raise ValueError("features must hold at least one column, got none.")
        if self.needs_selector and selector is None:
            raise ValueError(
                f"selector must be given for the criterion {self.name!r}, which repeats the "
                "selection; got None. Pass the selector that found the features."
            )
        return self.judge(data, columns, selector)


@dataclass(frozen=True)
class HeldOutReconstruction(Criterion):
    """How much of the variance of left-out rows a ridge regression on the features explains.

    Parameters
    ----------
    n_folds : int, default=5
        Number of folds.
    ridges : tuple of float, default=(0.001, 0.01, 0.1, 1.0)
        The weights to choose from, in units of the mean eigenvalue; one is used for all folds.
    """

    name = "reconstruction"
    _allowed: ClassVar[dict[str, list[Any]]] = {"n_folds": _SEVERAL, "ridges": POSITIVE}

    n_folds: int = 5
    ridges: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        return data.held_out_share(features, self.n_folds, self.ridges)


@dataclass(frozen=True)
class PermutationGap(HeldOutReconstruction):
    """How much better the features reconstruct the data than data in which nothing is related.

    That is, than copies in which every column is shuffled by itself, so that the features explain
    themselves and nothing else.

    Parameters
    ----------
    n_folds, ridges : int, tuple of float
        As in `HeldOutReconstruction`.
    n_permutations : int, default=3
        Number of shuffled copies.
    """

    name = "permutation_gap"
    _allowed: ClassVar = HeldOutReconstruction._allowed | {"n_permutations": COUNT}

    n_permutations: int = 3

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        shares = [
            data.held_out_share(features, self.n_folds, self.ridges, number)
            for number in range(self.n_permutations + 1)
        ]
        return shares[0] - float(np.mean(shares[1:]))


@dataclass(frozen=True)
class _OfClusterings(Criterion):
    """What the criteria that run k-means share."""

    _allowed: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [*_SEVERAL, *one_of("auto")],
        "n_runs": _SEVERAL,
        "measure": one_of("nmi", "ari"),
    }

    n_clusters: int | Literal["auto"] = "auto"
    n_runs: int = 10
    measure: Measure = "nmi"


@dataclass(frozen=True)
class ClusteringAgreement(_OfClusterings):
    """How far k-means on the features finds the clusters that it finds on all features.

    It is the mean similarity over all pairs of restarts on the one and on the other.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters; "auto" is one more than the principal components above the noise edge.
    n_runs : int, default=10
        Number of restarts.
    measure : {"nmi", "ari"}, default="nmi"
        How two clusterings are compared.
    """

    name = "clustering_agreement"

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        selected, everything = (
            data.clusterings(which, self.n_clusters, self.n_runs) for which in (features, None)
        )
        pairs = [clustering_similarities(one, everything, self.measure) for one in selected]
        return float(np.mean(pairs))


@dataclass(frozen=True)
class RestartAgreement(_OfClusterings):
    """How far restarts of k-means on the features find the same clusters.

    Parameters
    ----------
    n_clusters, n_runs, measure : int, int, str
        As in `ClusteringAgreement`.
    """

    name = "restart_agreement"

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        runs = data.clusterings(features, self.n_clusters, self.n_runs)
        pairs = [
            clustering_similarities(one, runs[number + 1 :], self.measure)
            for number, one in enumerate(runs[:-1])
        ]
        return float(np.mean(np.concatenate(pairs)))


@dataclass(frozen=True)
class NeighborOverlap(Criterion):
    """How many of the nearest neighbors of a row in all columns are so in the features.

    It is the mean share over all rows, in the space of the 50 leading principal components where
    there are more columns than that.

    Parameters
    ----------
    n_neighbors : tuple of int, default=(5, 10, 15, 20, 25, 30)
        The numbers of neighbors to average over; fewer where there are too few rows.
    max_samples : int, default=1024
        At most so many rows, drawn at random.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.tuning.criteria import NeighborOverlap
    >>> round(NeighborOverlap().score(load_iris().data, [2, 3]), 2)
    0.58
    """

    name = "neighbor_overlap"
    _allowed: ClassVar[dict[str, list[Any]]] = {"n_neighbors": COUNT, "max_samples": _SEVERAL}

    n_neighbors: tuple[int, ...] = (5, 10, 15, 20, 25, 30)
    max_samples: int = 1024

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        one, other = (
            data.neighbors(which, max(self.n_neighbors), self.max_samples)
            for which in (features, None)
        )
        same = one[:, :, None] == other[:, None, :]
        numbers = [min(number, one.shape[1]) for number in self.n_neighbors]
        return float(np.mean([same[:, :k, :k].sum() / (len(one) * k) for k in numbers]))


@dataclass(frozen=True)
class Redundancy(Criterion):
    """How strongly the features are correlated: see `bsufs.metrics.redundancy`."""

    name = "redundancy"
    larger_is_better = False

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        return redundancy(data.X[:, features])


@dataclass(frozen=True)
class SubsampleStability(Criterion):
    """How alike the selections on random parts of the rows are.

    It is the `bsufs.metrics.nogueira_stability` of what the same method with the same settings
    selects. It judges the method, not the set, and says nothing about accuracy: choosing by
    variance alone is very stable.

    Parameters
    ----------
    n_subsamples : int, default=10
        Number of subsamples.
    share : float, default=0.8
        Share of the rows in each.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.tuning.criteria import SubsampleStability
    >>> from bsufs.selectors import MaxVariance
    >>> SubsampleStability().score(load_iris().data, [2], selector=MaxVariance())
    1.0
    """

    name = "stability"
    needs_selector = True
    _allowed: ClassVar[dict[str, list[Any]]] = {
        "n_subsamples": _SEVERAL,
        "share": [Interval(Real, 0, 1, closed="neither")],
    }

    n_subsamples: int = 10
    share: float = 0.8

    def judge(self, data: EvaluationData, features: Indices, selector: Any = None) -> float:
        if features.size == data.X.shape[1]:
            return 1.0  # There was nothing to choose, so nothing can differ.
        again = clone(selector).set_params(n_features_to_select=int(features.size))
        parts = (data.subsample(number, self.share) for number in range(self.n_subsamples))
        supports = np.array([clone(again).fit(part).support_ for part in parts])
        # In an order of the columns that does not depend on where they were.
        return nogueira_stability(supports[:, data.fit_data.order]).value


@dataclass(frozen=True)
class RankMean:
    """Several criteria in one: the mean of the ranks that they give to the candidates.

    Ranks go from 0 for the worst to 1 for the best, and equal candidates share the mean of theirs.
    A rank means nothing without the other candidates, so this judges tables, not sets.

    Parameters
    ----------
    criteria : tuple of Criterion
        The criteria, each with a name of its own.

    Examples
    --------
    >>> from bsufs.tuning.criteria import HeldOutReconstruction, RankMean, Redundancy
    >>> both = RankMean((HeldOutReconstruction(), Redundancy()))
    >>> both.combine({"reconstruction": [0.5, 0.7, 0.9], "redundancy": [0.1, 0.1, 0.3]})
    array([0.375, 0.625, 0.5  ])
    """

    name: ClassVar[str] = "rank_mean"
    larger_is_better: ClassVar[bool] = True

    criteria: tuple[Criterion, ...] = (
        HeldOutReconstruction(),
        ClusteringAgreement(),
        RestartAgreement(),
        Redundancy(),
    )

    def __post_init__(self) -> None:
        names = [criterion.name for criterion in self.criteria]
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"criteria must hold at least one criterion, each name once, got {names}."
            )

    def combine(self, values: Mapping[str, ArrayLike]) -> Array:
        """Combine the values of some candidates by name of the criterion: from 0 to 1, the best.

        A value that is not a number counts as the worst. All are 0.5 where no criterion tells the
        candidates apart.
        """
        columns = np.array([oriented(one, values[one.name]) for one in self.criteria])
        n = columns.shape[1]
        ranks = rankdata(columns, axis=1).mean(axis=0) - 1.0
        return np.asarray(ranks / (n - 1.0)) if n > 1 else np.full(1, 0.5)


def oriented(criterion: Criterion | RankMean, values: ArrayLike) -> Array:
    """Return the values of a criterion so that larger is better, NaN being the worst of all."""
    column = np.asarray(values, dtype=np.float64)
    column = column if criterion.larger_is_better else -column
    return np.where(np.isnan(column), -np.inf, column)


CRITERIA: Mapping[str, Criterion | RankMean] = {
    criterion.name: criterion
    for criterion in (
        HeldOutReconstruction(),
        PermutationGap(),
        ClusteringAgreement(),
        RestartAgreement(),
        NeighborOverlap(),
        Redundancy(),
        SubsampleStability(),
        RankMean(),
    )
}


def as_criterion(criterion: str | Criterion | RankMean, parameter: str) -> Criterion | RankMean:
    """Return the criterion that a name stands for, or the object itself."""
    if isinstance(criterion, Criterion | RankMean):
        return criterion
    if isinstance(criterion, str) and criterion in CRITERIA:
        return CRITERIA[criterion]
    raise ValueError(
        f"{parameter} must be one of {', '.join(map(repr, CRITERIA))} or a criterion of "
        f"bsufs.tuning.criteria, got {criterion!r}."
    )


def with_parts(criteria: Iterable[Criterion | RankMean]) -> tuple[Criterion, ...]:
    """Return the criteria that have to be computed: each once, those of combinations included."""
    found: dict[str, Criterion] = {}
    for criterion in criteria:
        for part in criterion.criteria if isinstance(criterion, RankMean) else (criterion,):
            if found.setdefault(part.name, part) != part:
                raise ValueError(
                    f"Two criteria with the name {part.name!r} but different settings were asked "
                    f"for: {found[part.name]} and {part}. Ask for one of them."
                )
    return tuple(found.values())
