"""What is found out about one selection: each thing when it is first asked for, and only once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from bsufs._typing import Array, Indices, Mask
from bsufs.inspection._clusters import RowClusters, find_clusters
from bsufs.metrics.label_free import standardized, wilson_interval
from bsufs.scatter import make_scatter, safe_unit_exponent
from bsufs.selectors._columns import column_variances
from bsufs.selectors._data import FitData
from bsufs.selectors._docs import fill_docstring
from bsufs.selectors._nuisance import adjusted_columns, as_codes
from bsufs.solvers.components import common_level_in_words
from bsufs.table_selector import TableSelector

# Column blocks of about this many bytes, so that temporary arrays stay small beside X.
_BLOCK_BYTES = 32 * 2**20
# Correlations that agree to this many decimals are the same: the better ranked feature stands.
_DECIMALS = 12
# Below this a correlation is no reason to leave a feature out.
_NOTABLE = 0.5
# From here on a column adds nothing to the other.
_DUPLICATE = 1.0 - 1e-9
# More principal components than this are cheap only where the data have a short side.
_CHEAP_COMPONENTS = 200
_SHORT_SIDE = 1000
# Refits choose among this many columns, those that rank best on all rows.
MOST_CANDIDATES = 5000
# What happens with fewer or more features is looked at up to this many, or as many as are selected.
_MOST_NUMBERS = 200
# So many features are described one by one.
MOST_PORTRAITS = 60
# Selections larger than this are not judged beside random ones.
_LARGEST_JUDGED = 500
# Columns that random selections are drawn from.
_POOL = 2000
# Standard deviations of this ratio of the largest to the median are those of different units.
_WILD = 100


class SubsampleError(ValueError):
    """The selector cannot be fitted to a part of the rows."""


class Reason(Enum):
    """Why a feature was kept or left out, in the words of the page."""

    MUST_KEEP = "always kept"
    NEVER_KEEP = "never kept"
    ADJUSTED_FOR = "adjusted for"
    CONSTANT = "constant"
    DUPLICATE = "duplicate"
    CORRELATED = "correlated"
    RANK = ""


class Stability(NamedTuple):
    """How often each feature is selected again, with its interval, or why nobody knows."""

    frequency: Array
    low: Array
    high: Array
    failure: SubsampleError | None = None


class Chance(NamedTuple):
    """What refits and as many random columns reach on rows that the refits did not see."""

    explained: Array
    explained_by_chance: Array
    agreement: Array
    agreement_by_chance: Array

    def n_worse(self, by_clusters: bool) -> int:
        """Return how often chance does worse: by the variance explained, or the clusters found.

        Where the clusters are so plain that both find them all, the variance decides.
        """
        worse = self.explained_by_chance < self.explained
        if by_clusters:
            behind = self.agreement - self.agreement_by_chance
            worse = (behind > 1e-9) | (worse & (np.abs(behind) <= 1e-9))
        return int(np.sum(worse))


def features_of(selector: Any, names: Any) -> tuple[Indices, NDArray[np.object_]]:
    """Return the number of the feature of each column, and its name.

    The columns of a group are a category where each is named like the group, with "=" and a value.
    """
    names = np.array([str(name) for name in names], dtype=object)
    of, groups = np.arange(names.size), selector._groups
    if groups.labels.dtype == object:
        for number in np.flatnonzero(np.bincount(groups.of) > 1).tolist():
            members = np.flatnonzero(groups.of == number)
            # A category may have the name of another group.
            label = str(groups.labels[number]).removesuffix(" (category)")
            if all(name.startswith(f"{label}=") for name in names[members].tolist()):
                of[members], names[members] = members[0], label
    return of, names


class Judged:
    """What follows in the same way for columns and for features from what is found of each."""

    @cached_property
    def stands_for(self: Any) -> dict[int, Indices]:
        """Those left out that each selected one represents, most correlated first."""
        closest, similarity = self.closest[0], np.abs(self.closest[1])
        left_out = np.flatnonzero(~self.support & (similarity >= _NOTABLE))
        left_out = left_out[np.lexsort((left_out, -similarity[left_out], closest[left_out]))]
        starts = np.searchsorted(closest[left_out], np.sort(self.chosen))
        parts = np.split(left_out, starts[1:])
        return dict(zip(np.sort(self.chosen).tolist(), parts, strict=True))

    @cached_property
    def reasons(self: Any) -> NDArray[np.object_]:
        """The `Reason` of each."""
        forced, barred = self.forced_and_barred
        left_out, similarity = ~self.support, np.abs(self.closest[1])
        reasons = np.full(self.n_features, Reason.RANK, dtype=object)
        # What comes later weighs more.
        reasons[left_out & (similarity >= _NOTABLE)] = Reason.CORRELATED
        reasons[left_out & (similarity >= _DUPLICATE)] = Reason.DUPLICATE
        reasons[self.variance_share <= 0] = Reason.CONSTANT
        reasons[barred] = Reason.NEVER_KEEP
        reasons[self.is_adjusted_for] = Reason.ADJUSTED_FOR
        reasons[self.support & forced] = Reason.MUST_KEEP
        return reasons


@fill_docstring
@dataclass(eq=False)
class Findings(Judged):
    """All that explanations, plots and reports show of one selection.

    Parameters
    ----------
    %(selector)s
    X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
        The data it was fitted to. Only what follows from the selector is known without them.
    %(feature_names)s
    %(subsamples)s
    notes : sequence of str, default=()
        Sentences that a reader should see first.
    progress : callable, optional
        Called after each refit with how far they are, such as "refit 3 of 20".

    Attributes
    ----------
    names, support, ranking, scores, groups, n_others : array of shape (n_features,)
        Of each column its name, whether it is selected, its rank, its score, the label of its group
        and the number of others in it; `groups` is None where each column is by itself.
    is_adjusted_for, cluster_share : array of shape (n_features,)
        Which columns the others are cleared of, and how much of each lies between the clusters; NaN
        for methods that look at none.
    best_first, chosen, ends : array of int
        Numbers of all columns and of the selected ones, best first; how many columns the best
        1, 2, ... features have, a category being one feature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs import BSUFS
    >>> from bsufs.inspection import Findings
    >>> X = load_iris().data
    >>> Findings(BSUFS(2).fit(X), X).correlations.round(2)
    array([[1.  , 0.87],
           [0.87, 1.  ]])
    """

    selector: Any
    X: Any = None
    feature_names: Sequence[str] | None = None
    n_subsamples: int = 20
    subsample: float = 0.5
    random_state: Any = 0
    n_jobs: int | None = None
    notes: Sequence[str] = ()
    progress: Callable[[str], None] = lambda detail: None
    # Whether sentences name options as a shell takes them.
    in_shell = False

    def __post_init__(self) -> None:
        if self.n_subsamples < 0:
            raise ValueError(
                f"n_subsamples must be 0 (to skip the refits) or more, got {self.n_subsamples}."
            )
        if not 0 < self.subsample < 1:
            raise ValueError(
                "subsample must be a share of the rows between 0 and 1, got "
                f"{self.subsample}. 0.5 is usual."
            )
        if isinstance(self.selector, TableSelector):
            self.X = None if self.X is None else self.selector.fitted_data(self.X)
            self.selector = self.selector.selector_
        self.search = self.selector
        self.selector = selector = getattr(self.search, "best_estimator_", self.search)
        check_is_fitted(selector)
        self._look_at(selector)
        if isinstance(self.X, FitData):
            require_columns_of(selector, self.X)
            self.data: FitData = self.X
        elif self.X is not None:
            X, texts = as_codes(self.X, getattr(selector, "adjust_for", None))
            X = validate_data(
                selector,
                X,
                reset=False,
                accept_sparse=("csr", "csc"),
                dtype=(np.float64, np.float32),
                ensure_min_samples=2,
            )
            data = FitData(X, names=self._names_in, groups=self.groups)
            self.data = clone(selector)._to_be_cleared(data, texts)

    def _look_at(self, selector: Any) -> None:
        """Take over what a selector says without the data, and the names."""
        self.method = type(selector).__name__
        self.n_features = d = selector.n_features_in_
        self.support, self.ranking = selector.support_, selector.ranking_
        self.scores = selector.scores_
        self.n_selected = int(np.sum(self.support))
        self.best_first = np.argsort(self.ranking)
        self.chosen = self.best_first[: self.n_selected]
        self.groups: Any = getattr(selector, "groups_", None)
        chosen = getattr(selector, "selected_groups_", selector.selected_features_)
        self.n_selected_groups = len(chosen)
        of = selector._groups.of
        self.n_others = np.bincount(of)[of] - 1
        self.forced_and_barred: tuple[Mask, Mask] = selector._forced_and_barred()
        self._names_in = getattr(selector, "feature_names_in_", None)
        adjust_for = getattr(selector, "adjust_for", None)
        self.is_adjusted_for = adjusted_columns(adjust_for, d, self._names_in)
        # Methods may look at no clusters, and may follow no path, or one without a step.
        self.cluster_share: Array = getattr(selector, "cluster_shares_", np.full(d, np.nan))
        path = getattr(selector, "path_", {})
        self.path: Any = path if len(path.get("n_alive", ())) else None
        names = self.feature_names
        if names is None:
            names = [f"x{i}" for i in range(d)] if self._names_in is None else self._names_in
        if len(names) != d:
            raise ValueError(
                f"feature_names must have a name for each of the {d} features, got {len(names)}."
            )
        self.names = np.array([str(name) for name in names], dtype=object)
        self._feature, self.feature_names_of_columns = features_of(selector, self.names)
        changes = np.flatnonzero(np.diff(self._feature[self.best_first])) + 1
        self.ends = np.append(changes, d)

    @property
    def by_chance(self) -> float:
        """How often a feature is selected where chance decides."""
        n_groups = self.candidates.size if self.groups is None else self.selector._groups.n_groups
        return self.n_selected_groups / n_groups

    @cached_property
    def eliminated_at(self) -> Indices:
        """Step at which each feature was eliminated; 0 for those that were not."""
        survival = getattr(self.selector, "survival_", None)
        if survival is None:
            return np.zeros(self.n_features, dtype=np.intp)
        # Features that must not be kept took no part, so they were not eliminated either.
        remained = (survival >= self.selector.n_iter_) | self.forced_and_barred[1]
        return np.where(remained, 0, survival + 1)

    @cached_property
    def variance_share(self) -> Array:
        """Share of each feature in the total variance."""
        X = self.data.X
        exponent = safe_unit_exponent(float(max(X.max(), -X.min())))
        if self.data.nuisance is None and (exponent or sparse.issparse(X)):
            # In units in which no square overflows, and as exact as for dense columns.
            blocks = (np.ldexp(part, -exponent) for _, part in self._blocks(X.shape[0]))
            variances = np.concatenate([column_variances(block) for block in blocks])
        else:
            variances = self.data.variances
        return variances / (variances.sum() or 1.0)

    @cached_property
    def foremost(self) -> Indices:
        """Numbers of the columns that smaller or somewhat larger selections hold, best first."""
        k = self.n_selected
        most = int(np.sum(~self.forced_and_barred[1]))
        number = max(k, min(most, max(2 * k, 10), _MOST_NUMBERS))
        return self.best_first[: self.ends[np.searchsorted(self.ends, number)]]

    @cached_property
    def _standardized(self) -> Array:
        """The selected columns, centered and of unit length, best first."""
        return standardized(self.data.columns(self.chosen))

    @cached_property
    def closest(self) -> tuple[Indices, Array]:
        """The other selected column that each is most correlated with, -1 for none, and how far."""
        feature = self._feature
        closest, correlation = [], []
        for block, part in self._blocks(max(self.data.X.shape[0], self.n_selected)):
            among = self._standardized.T @ standardized(part)
            strength = np.round(np.abs(among), _DECIMALS)
            # No column is close to itself, nor to others of its category.
            strength[feature[self.chosen][:, None] == feature[block]] = 0.0
            best = strength.argmax(axis=0)[None, :]
            found = strength.max(axis=0) > 0
            closest.append(np.where(found, self.chosen[best[0]], -1))
            correlation.append(np.where(found, np.take_along_axis(among, best, axis=0)[0], np.nan))
        return np.concatenate(closest), np.clip(np.concatenate(correlation), -1.0, 1.0)

    def _blocks(self, height: int) -> Iterator[tuple[slice, Array]]:
        """Cut X into blocks of columns, dense, such that an array of that height stays small."""
        data = self.data
        if sparse.issparse(data.X):
            # Columns of a row-wise matrix are slow to cut out.
            by_column, data = data, copy.copy(data)
            data.X = sparse.csc_array(by_column.X)
        for block in gen_batches(self.n_features, max(1, _BLOCK_BYTES // (8 * height))):
            yield block, data.columns(block)

    @cached_property
    def correlations(self) -> Array:
        """Correlations among the selected features, best first."""
        correlations: Array = np.clip(self._standardized.T @ self._standardized, -1.0, 1.0)
        np.fill_diagonal(correlations, 1.0)
        return correlations

    @cached_property
    def curve(self) -> Array:
        """Share of the variance that the best 1, 2, ... features explain, beyond the selected."""
        # Of data that do not vary nothing is left to explain.
        if self.data.scatter.trace() <= 0:
            return np.ones(self.foremost.size)
        return self.data.explained_curve(self.foremost)

    @property
    def explained(self) -> Array:
        """Share of the variance that the best 1, 2, ... selected features explain."""
        return self.curve[: self.n_selected]

    @property
    def bound(self) -> Array:
        """Share of the variance that no 1, 2, ... selected features can exceed."""
        return self.ceiling[: self.n_selected]

    @cached_property
    def ceiling(self) -> Array:
        """Share of the variance that no 1, 2, ... features can exceed; NaN where it costs much."""
        scatter, k = self.data.scatter, self.foremost.size
        total = scatter.trace()
        if total <= 0:
            return np.ones(k)
        n_cheap = k if min(self.data.X.shape) <= _SHORT_SIDE else min(k, _CHEAP_COMPONENTS)
        n_components = min(n_cheap, scatter.max_rank)
        values = scatter.leading_eigenvalues(n_components)
        bound: Array = np.full(k, 1.0 if n_components == scatter.max_rank else np.nan)
        bound[:n_components] = np.minimum(np.cumsum(values) / total, 1.0)
        return bound

    @cached_property
    def redundancy(self) -> Array:
        """Mean absolute correlation among the best 1, 2, ... features; 0 for a single one."""
        Z = standardized(self.data.columns(self.foremost))
        added = np.array([np.abs(Z[:, :i].T @ Z[:, i]).sum() for i in range(Z.shape[1])])
        pairs = np.arange(Z.shape[1]) * np.arange(1, Z.shape[1] + 1) / 2
        return np.minimum(np.cumsum(added) / np.maximum(pairs, 1), 1.0)

    @cached_property
    def unique_shares(self) -> Array:
        """Share of the variance that is lost without each of the best selected features."""
        n_first = min(self.n_selected, MOST_PORTRAITS)
        if self.n_selected > _LARGEST_JUDGED or self.data.scatter.trace() <= 0:
            return np.full(n_first, np.nan)
        return self.data.scatter.unique_shares(self.data.place[self.chosen], n_first)

    @cached_property
    def clusters(self) -> RowClusters | None:
        """Clusters of the rows by all columns."""
        return find_clusters(self.data)

    @cached_property
    def rows_of_foremost(self) -> Array:
        """The rows that were clustered, in the best columns."""
        return self._rows_clustered(self.foremost)

    def _rows_clustered(self, columns: Indices) -> Array:
        """Return the rows that were clustered, in some columns; few columns of all at a time."""
        rows = slice(None) if self.clusters is None else self.clusters.rows
        size = max(1, _BLOCK_BYTES // (8 * self.data.X.shape[0]))
        parts = [columns[batch] for batch in gen_batches(columns.size, size)]
        return np.hstack([self.data.columns(part)[rows] for part in parts])

    @cached_property
    def agreement(self) -> dict[int, float]:
        """How far k-means on the best features finds the clusters, by their number."""
        if self.clusters is None:
            return {}
        selected, most = np.searchsorted(self.ends, [self.n_selected, self.foremost.size]) + 1
        numbers = np.unique([*np.geomspace(1, most, 10).round().astype(int), selected])
        return {
            number: self.clusters.agreement(self.rows_of_foremost[:, : self.ends[number - 1]])
            for number in numbers.tolist()
        }

    @cached_property
    def chance(self) -> Chance | None:
        """Each refit beside as many random columns, on rows that it did not see.

        On the rows that it saw, any selection does better than chance, also in noise. None where
        there is no choice or no refit to judge.
        """
        k, clusters, groups = self.n_selected_groups, self.clusters, self.selector._groups
        barred = self.forced_and_barred[1] | (self.variance_share <= 0)
        # Numbered by contents: the order of the columns in the table does not matter.
        varying = self.data.order[~barred[self.data.order]]
        open_to_choice = groups.among(varying)[1]
        if clusters is None or self.n_selected > _LARGEST_JUDGED or k >= open_to_choice.size:
            return None
        random = np.random.default_rng(0)
        if open_to_choice.size > _POOL:
            open_to_choice = random.choice(open_to_choice, _POOL, replace=False)
        varying = varying[np.isin(groups.of[varying], open_to_choice)]
        refits = self._refits[0]
        chosen = [self.candidates[support] for _, support in refits]
        pool = np.unique(np.concatenate([varying, *chosen]))
        X = self._rows_clustered(pool)
        reached = []
        for (seen, _), columns in zip(refits, chosen, strict=True):
            unseen = ~np.isin(clusters.rows, seen)
            drawn = random.choice(open_to_choice, k, replace=False)
            by_chance = varying[np.isin(groups.of[varying], drawn)]
            if np.unique(clusters.labels[unseen]).size < 2:
                continue
            rows, part = X[unseen], RowClusters(clusters.rows[unseen], clusters.labels[unseen])
            scatter = make_scatter(rows)
            for which in (columns, by_chance):
                place = np.searchsorted(pool, which)
                share = scatter.explained_share(place) if scatter.trace() > 0 else 1.0
                reached.append((share, part.agreement(rows[:, place])))
        if not reached:
            return None
        explained, agreement = np.array(reached).T
        return Chance(explained[::2], explained[1::2], agreement[::2], agreement[1::2])

    @cached_property
    def note(self) -> str | None:
        """A sentence on a level that all rows share, where there is one; None otherwise."""
        is_clear = self.data.nuisance is not None
        return None if is_clear else common_level_in_words(self.data.scatter, self.in_shell)

    @cached_property
    def hints(self) -> list[str]:
        """What a reader should know before trusting the selection."""
        hints = [*self.notes, *filter(None, [self.note])]
        spread = np.sqrt(self.variance_share[self.variance_share > 0])
        if spread.size and spread.max() > _WILD * np.median(spread):
            hints.append(
                f"The largest standard deviation of a column is "
                f"{spread.max() / np.median(spread):.0f} times the median. If the columns have "
                "different units, standardize them first: methods that look at variance prefer "
                "the large ones."
            )
        return hints

    @cached_property
    def candidates(self) -> Indices:
        """Numbers of the columns that refits choose among, in the order of the table."""
        known = self.selector.get_params(deep=False)
        is_free = "must_keep" in known or not any(mask.any() for mask in self.forced_and_barred)
        # What columns are adjusted for may be columns of X, which must stay.
        is_free &= self.data.nuisance is None
        is_free &= self.groups is None and known.get("budget") is None
        most = max(MOST_CANDIDATES, 2 * self.n_selected) if is_free else self.n_features
        return np.sort(self.best_first[:most])

    @cached_property
    def stability(self) -> Stability:
        """How often each feature is selected again on random parts of the rows."""
        refits, failure = self._refits
        if not refits:
            unknown = np.full(self.n_features, np.nan)
            return Stability(unknown, unknown, unknown, failure)
        frequency = np.zeros(self.n_features)
        frequency[self.candidates] = np.mean([support for _, support in refits], axis=0)
        return Stability(frequency, *wilson_interval(frequency, self.n_subsamples))

    @cached_property
    def _refits(self) -> tuple[list[tuple[Indices, Mask]], SubsampleError | None]:
        """The rows of each random part and the candidates selected on it, or why there are none."""
        # Drawn before the work is shared out: the answer does not depend on who does it.
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_subsamples)
        data, which = self.data, self.candidates
        if which.size < self.n_features:
            names = None if data.names is None else data.names[which]
            data = FitData(data.X[:, which], data.sample_weight, names)
        # Threads share X; most of a fit is linear algebra, which does not hold up the others.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        refits = []
        try:
            for refit in parallel(delayed(self._support_on_part)(data, int(s)) for s in seeds):
                refits.append(refit)
                self.progress(f"refit {len(refits)} of {self.n_subsamples}")
        except SubsampleError as error:
            return [], error
        return refits, None

    def _support_on_part(self, data: FitData, seed: int) -> tuple[Indices, Mask]:
        random, n = np.random.default_rng(seed), data.X.shape[0]
        n_rows = min(n, max(2, round(self.subsample * n)))
        rows = np.sort(random.choice(n, n_rows, replace=False))
        part = data.part(rows)
        fresh = clone(self.selector)
        # As many features as here, or for as much, and nothing said meanwhile.
        is_paid = getattr(fresh, "budget", None) is not None
        wanted: dict[str, Any] = {
            "n_features_to_select": "auto" if is_paid else self.n_selected_groups,
            "callback": None,
            "verbose": 0,
            "random_state": int(random.integers(np.iinfo(np.int32).max)),
        }
        if self.candidates.size < self.n_features:
            forced, barred = (mask[self.candidates] for mask in self.forced_and_barred)
            wanted |= {"must_keep": np.flatnonzero(forced), "never_keep": np.flatnonzero(barred)}
        known = fresh.get_params(deep=False)
        fresh.set_params(**{name: value for name, value in wanted.items() if name in known})
        if sparse.issparse(part.X) and not fresh.__sklearn_tags__().input_tags.sparse:
            part.X = part.X.toarray()
        try:
            support: Mask = fresh.fit(part).support_
        except ValueError as error:
            raise SubsampleError(
                f"{self.method} cannot be fitted to {n_rows} of the {n} rows: {error} Raise "
                "subsample, or set n_subsamples=0."
            ) from error
        return rows, support


def require_columns_of(selector: Any, data: FitData) -> None:
    """Refuse data that a selector cannot have been fitted to."""
    if data.n_features != selector.n_features_in_:
        raise ValueError(
            f"X must have the {selector.n_features_in_} features that the selector was fitted to, "
            f"got {data.n_features}."
        )


def around_the_cut(n_selected: int, n_features: int, most: int) -> slice:
    """Return the ranks on both sides of the place where the selection ends, counted from 0."""
    end = min(n_features, max(most, n_selected + max(1, most // 3)))
    return slice(max(0, end - most), end)


def check_image_shape(image_shape: tuple[int, int], n_features: int) -> tuple[int, int]:
    """Return the height and width of an image, if the features fill it."""
    if len(image_shape) != 2 or image_shape[0] * image_shape[1] != n_features:
        raise ValueError(
            f"image_shape must be (rows, columns) with rows * columns = {n_features}, the number "
            f"of features, got {tuple(image_shape)}."
        )
    return int(image_shape[0]), int(image_shape[1])
