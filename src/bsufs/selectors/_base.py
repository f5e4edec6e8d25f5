"""What all selectors share: validation, ranking, exactly k features, and the fitted attributes."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from bsufs._threads import threads_for
from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import row_norms
from bsufs.selectors._dask_input import check_columns, chosen_columns, is_dask
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._docs import fill_docstring
from bsufs.selectors._groups import Groups, parsed_budget
from bsufs.selectors._html import ShownInNotebooks
from bsufs.selectors._nuisance import adjusted_columns, as_codes
from bsufs.selectors._validation import (
    checked_weight,
    non_finite,
    not_numeric,
    require_positive_weight,
    require_two_rows,
)
from bsufs.solvers.components import components_above_noise, in_units_of, in_units_of_data
from bsufs.solvers.solution import Solution

# What `n_features_to_select` may be, for every selector.
NUMBER_OF_FEATURES = [
    Interval(Integral, 1, None, closed="left"),
    Interval(Real, 0, 1, closed="neither"),
    StrOptions({"auto"}),
]
# With gamma="auto" the penalty of the start is this share of what the start explains: enough to
# move it, not enough to drown the data.
_AUTO_SHARE = 0.1


@dataclass(frozen=True)
class Scored:
    """What a method found out about the features, all in the order of the columns of X."""

    scores: Array
    variances: Array
    position: Indices
    auto_n_features: Callable[[Indices], int]
    ties_by_index: bool = False
    explained_curve: Callable[[Indices], Array] | None = None
    when_number_is_known: Callable[[int], None] | None = None

    @classmethod
    def by_place(
        cls, problem: ColumnProblem, best_first: Indices, auto_n_features: Callable[[Indices], int]
    ) -> Self:
        """Score the columns of a problem, given best first, from 1 down to 0."""
        variances = problem.scatter.diagonal()
        # Constant columns rank last, and so they score.
        best_first = best_first[np.argsort(variances[best_first] <= 0, kind="stable")]
        scores = np.empty(best_first.size)
        scores[best_first] = 1.0 - np.arange(best_first.size) / best_first.size
        return cls(
            scores=problem.by_column(scores),
            variances=problem.by_column(variances),
            position=problem.place,
            auto_n_features=auto_n_features,
            explained_curve=problem.explained_curve,
        )


def in_order_of_rank(
    scores: Array, variances: Array, forced: Mask, barred: Mask, tie_breaks: tuple[Any, ...]
) -> Indices:
    """Return all features, best first."""
    return np.lexsort((*tie_breaks, -scores, variances <= 0, barred, ~forced))


# scikit-learn has no type hints, so its classes are Any to the type checker. What `set_output` asks
# for is left to its own `transform`: a wrapper of ours would compute Dask collections.
class BaseSelector(ShownInNotebooks, SelectorMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """Base class of the selectors: a subclass scores the features, this class does the rest.

    A subclass implements `_fit`, which sets the attributes that are its own and returns the scores
    of all features. It may have the parameters `must_keep` and `never_keep`.

    Ranking: must-keep features first, then by score, larger first; ties go to the larger variance,
    then to an order that depends on the contents of the columns; only columns that are equal entry
    for entry are told apart by their position. Constant columns come after all that vary, and
    never-keep features last.
    """

    _accepts_sparse: bool = False
    # Whether the data may still be cleared of a nuisance, which only what follows from their
    # scatter and `FitData.some_rows` knows of.
    _clears: bool = False
    # A subclass with more parameters names theirs too; one without needs no such table.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES
    }

    # What every fitted selector has.
    n_features_in_: int
    scores_: Array
    ranking_: Indices
    support_: Mask
    # Numbers of columns, or their names where X has names.
    selected_features_: NDArray[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fill_docstring(cls)

    @abstractmethod
    def _fit(self, data: FitData) -> Scored:
        """Score the features of validated data."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Score and rank the features, and select the best."""
        return self._fit_from_scratch(X, None)

    def transform(self, X: Any) -> Any:
        """Reduce X to the selected features.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The data.

        Returns
        -------
        array, data frame, sparse matrix or Dask collection of shape (n_samples, k)
            The selected columns; a Dask collection stays lazy, whatever `set_output` asks for.
        """
        if not is_dask(X):
            # Text to adjust for is never selected, and must not turn numbers into objects.
            return super().transform(as_codes(X, self._option("adjust_for"))[0])
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return chosen_columns(X, self.get_support())

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X, and reduce X to the selected features, lazily where X is a Dask collection."""
        if not is_dask(X):
            return super().fit_transform(X, y, **fit_params)
        return self.fit(X, y, **fit_params).transform(X)

    def _fit_from_scratch(self, X: Any, sample_weight: Any) -> Self:
        self._forget()
        with self._forgetting_on_failure():
            self._validate_params()
            self._fit_to(self._fit_data(X, sample_weight))
        return self

    def _fit_to(self, data: FitData) -> None:
        with threads_for(*data.kept_shape):
            self._finish(self._fit(data))

    def _fit_data(self, X: Any, sample_weight: Any) -> FitData:
        """Return checked data; as they are where somebody else has checked them."""
        if isinstance(X, FitData):
            data = X if self._clears else X.cleared
            if self._accepts_sparse or not sparse.issparse(data.X):
                self._note_columns(data)
                return data
            X = data.X
        X, weight = self._validated(X, sample_weight, reset=True)
        self._set_groups(None)
        require_two_rows(X.shape[0])
        if weight is not None:
            require_positive_weight(weight)
        return FitData(X, weight, self._feature_names())

    def _note_columns(self, data: FitData) -> None:
        self.n_features_in_ = data.n_features
        if data.names is not None:
            self.feature_names_in_ = data.names
        self._set_groups(data.groups)

    def _to_be_cleared(self, data: FitData, texts: Mapping[str, Any]) -> FitData:
        """Return data that say what they are to be cleared of; some columns may have been text."""
        return data

    @contextmanager
    def _forgetting_on_failure(self, keep: frozenset[str] = frozenset()) -> Iterator[None]:
        """Let a failed or interrupted fit leave nothing behind that looks fitted."""
        try:
            yield
        except BaseException:
            self._forget(keep)
            raise

    def _forget(self, keep: frozenset[str] = frozenset()) -> None:
        """Drop everything that an earlier fit has set, but for some attributes."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in keep]:
            delattr(self, name)

    def _validated(self, X: Any, sample_weight: Any, reset: bool) -> tuple[Any, Array | None]:
        """Check data and weights; say in words a user can act on what is wrong."""
        try:
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse=("csr", "csc") if self._accepts_sparse else False,
                dtype=(np.float64, np.float32),
                ensure_all_finite=False,
            )
        except (ValueError, TypeError) as error:
            if "could not convert" in str(error) or "DType" in type(error).__name__:
                raise ValueError(not_numeric(X, error)) from error
            raise
        wrong = non_finite(X)
        if wrong is not None:
            raise wrong.error(self._feature_names())
        if sample_weight is None:
            return X, None
        return X, checked_weight(sample_weight, X.shape[0])

    def _feature_names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _option(self, name: str) -> Any:
        """Return a parameter that not every selector has."""
        return getattr(self, name, None)

    def _set_groups(self, of_data: Any) -> None:
        """Take the groups of the parameter, else those that the data come with."""
        given, names = self._option("groups"), self._feature_names()
        given = of_data if given is None else given
        self._groups = Groups.singletons(self.n_features_in_)
        if given is not None:
            self._groups = Groups.parsed(given, self.n_features_in_, names)
            self.groups_ = self._groups.labels[self._groups.of]
        self._budget = parsed_budget(
            self._option("costs"), self._option("budget"), self._wanted(), self._groups, names
        )

    def _forced_and_barred(self) -> tuple[Mask, Mask]:
        """Return the masks of the must-keep and the never-keep features, in whole groups."""
        forced, barred = (
            self._groups.mask(name, self._option(name), self._feature_names())
            for name in ("must_keep", "never_keep")
        )
        names = self._feature_names()
        adjusted = adjusted_columns(self._option("adjust_for"), self.n_features_in_, names)
        barred = self._groups.closed(barred | adjusted)
        both = np.flatnonzero(forced & barred)
        if both.size:
            which = [int(i) if names is None else str(names[i]) for i in both]
            raise ValueError(
                f"must_keep and {self._leaves_out()} must have no feature in common, but both hold "
                f"{which}. Take it out of one of them."
            )
        if barred.all():
            raise ValueError(
                f"{self._leaves_out()} must leave at least one feature to select, but it holds all "
                f"{barred.size}. Shorten it."
            )
        return forced, barred

    def _leaves_out(self) -> str:
        """Return the parameters that say which features are never selected."""
        return "never_keep" if self._option("adjust_for") is None else "never_keep or adjust_for"

    def _wanted(self) -> int | float | str:
        """Return what the caller passed as the number of features."""
        return self.n_features_to_select

    def _asked_number(self, forced: Mask, barred: Mask) -> int | None:
        """Return how many groups the caller wants, None if that is left to the method."""
        asked = self._wanted()
        if isinstance(asked, str):
            return None
        groups = self._groups
        what = "features" if groups.are_single else "groups"
        n_forced, n_barred = groups.count(forced), groups.count(barred)
        allowed = groups.n_groups - n_barred
        k = int(asked) if isinstance(asked, Integral) else max(1, round(asked * allowed))
        if k > allowed:
            without = f" without the {n_barred} in {self._leaves_out()}" if n_barred else ""
            raise ValueError(
                f"n_features_to_select must be at most the number of {what}{without}, "
                f"{allowed}, got {asked!r}. Ask for fewer, or for 'auto'."
            )
        if k < n_forced:
            raise ValueError(
                f"n_features_to_select must be at least the {n_forced} {what} in must_keep, got "
                f"{asked!r}. Ask for more, or shorten must_keep."
            )
        return k

    def _finish(self, scored: Scored) -> None:
        """Rank the features and set what every fitted selector has."""
        forced, barred = self._forced_and_barred()
        scores = np.array(scored.scores)
        if forced.any() and not forced.all():
            # Must-keep features rank first, so they score above all others.
            gap = float(scores[~forced].max() - scores[forced].min())
            scores[forced] += max(0.0, gap + 1e-12)
        index = np.arange(scores.size)
        ties: Any = (index,) if scored.ties_by_index else (scored.position, -scored.variances)
        best_first = self._groups.gathered(
            in_order_of_rank(scores, scored.variances, forced, barred, ties)
        )
        best_first, k = self._chosen_number(best_first, forced, barred, scored)
        ends = self._groups.ends(best_first)[:k]
        chosen = best_first[: ends[-1]]
        ranking = np.empty(scores.size, dtype=np.intp)
        ranking[best_first] = index + 1
        self.scores_ = scores
        self.ranking_ = ranking
        self.support_ = ranking <= chosen.size
        if scored.when_number_is_known is not None:
            scored.when_number_is_known(k)
        names = self._feature_names()
        self.selected_features_ = chosen if names is None else names[chosen]
        if "groups_" in vars(self):
            self.selected_groups_ = self.groups_[chosen[ends - 1]]
        if scored.explained_curve is not None:
            self.explained_variance_curve_ = scored.explained_curve(chosen)[ends - 1]
            self.explained_variance_ratio_ = float(self.explained_variance_curve_[-1])

    def _chosen_number(
        self, best_first: Indices, forced: Mask, barred: Mask, scored: Scored
    ) -> tuple[Indices, int]:
        """Return how many groups to keep, and the columns so that these come first."""
        groups = self._groups
        n_allowed, n_forced = groups.count(~barred), groups.count(forced)
        if self._budget is not None:
            in_order = groups.of[best_first[groups.ends(best_first)[:n_allowed] - 1]]
            is_paid = self._budget.paid(in_order)
            if not is_paid.any() or not is_paid[:n_forced].all():
                raise ValueError(
                    "budget must pay for all of must_keep, or at least for the cheapest choice, "
                    f"got {self._budget.total:g}. Raise it."
                )
            paid = in_order[is_paid]
            behind = ~np.isin(groups.of[best_first], paid)
            return best_first[np.argsort(behind, kind="stable")], paid.size
        k = self._asked_number(forced, barred)
        if k is None:
            n_columns = scored.auto_n_features(best_first)
            k = int(np.searchsorted(groups.ends(best_first), n_columns)) + 1
            k = min(max(k, n_forced, 1), n_allowed)
        return best_first, k

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags


@dataclass(repr=False, eq=False)
class ScoringSelector(BaseSelector):
    """Base class of the selectors that give each column a score and know no path.

    A subclass implements `_score`; it sees the columns in an order that depends on their contents
    alone, and may set `components_` in that order.

    Parameters
    ----------
    %(n_features_to_select)s
    """

    n_features_to_select: int | float | str = "auto"
    components_: Array = field(init=False)

    @abstractmethod
    def _score(self, data: FitData) -> Array:
        """Return the scores of the columns of `data.ordered`, larger is better."""

    def _fit(self, data: FitData) -> Scored:
        scores = np.asarray(self._score(data), dtype=np.float64)[data.place]
        if "components_" in vars(self):
            self.components_ = self.components_[:, data.place]
        return Scored(
            scores=scores,
            variances=data.variances,
            position=data.place,
            auto_n_features=lambda best_first: _half(best_first.size),
        )

    def _n_to_select(self, n_features: int) -> int:
        """Return how many features will come out, for methods whose scores depend on it."""
        nobody = np.zeros(n_features, dtype=bool)
        asked = self._asked_number(nobody, nobody)
        if asked is None:
            return _half(n_features)
        return max(1, round(asked * n_features / self._groups.n_groups))

    def _n_directions(self, data: FitData, dimension: int) -> int:
        """Return how many directions to look for in a space of the dimension of the samples."""
        limit = max(dimension, 1)
        if isinstance(self.n_components, str):
            return min(components_above_noise(data.scatter), limit)
        if self.n_components > limit:
            raise ValueError(
                f"n_components must be at most {limit}, the number of dimensions that the samples "
                f"span, got {self.n_components}. Ask for fewer, or for 'auto'."
            )
        return int(self.n_components)

    def _keep_gamma(self, explained: float, penalty: float, unit_exponent: int = 0) -> float:
        """Set `gamma_`, the weight of a penalty, and return it in the units in which S is held.

        "auto" makes the penalty of a start its share of what the start explains.
        """
        if isinstance(self.gamma, str):
            gamma = _AUTO_SHARE * explained / penalty or 1.0
            self.gamma_ = float(in_units_of_data(unit_exponent, gamma))
            return gamma
        self.gamma_ = float(self.gamma)
        return in_units_of(unit_exponent, self.gamma_)

    def _keep_history(self, solution: Solution, unit_exponent: int = 0) -> None:
        """Set how a solution was reached, its objective in the units of the data."""
        self.objective_history_ = in_units_of_data(unit_exponent, solution.objective_history)
        self.n_iter_ = solution.n_iter
        self.stopping_reason_ = solution.stopping_reason

    def _keep_frame(self, solution: Solution, unit_exponent: int = 0) -> Array:
        """Set a frame and how it was reached, and return its squared row norms."""
        self.components_ = solution.W.T
        self.n_components_ = solution.W.shape[1]
        self._keep_history(solution, unit_exponent)
        return row_norms(solution.W) ** 2


def _half(n_features: int) -> int:
    return max(1, round(0.5 * n_features))
