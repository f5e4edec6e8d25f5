"""Choose the settings of a selector, and the number of features, without labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from bsufs._typing import Array, Indices, Mask
from bsufs.selectors._base import NUMBER_OF_FEATURES, BaseSelector
from bsufs.selectors._data import FitData
from bsufs.selectors.cluster_alignment import ClusterAlignment
from bsufs.tuning._settings import (
    Setting,
    as_seed,
    checked_settings,
    default_grid,
    in_threads,
    selector_inside,
    with_most_components,
)
from bsufs.tuning.criteria import (
    CRITERIA,
    Criterion,
    EvaluationData,
    RankMean,
    as_criterion,
    oriented,
    with_parts,
)


@dataclass(frozen=True)
class _Candidate:
    """A setting, the unfitted selector that has it, and what this selected."""

    setting: Setting
    selector: BaseSelector
    support: Mask


# scikit-learn has no type hints, so its classes are Any to the type checker.
class LabelFreeSearch(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose the settings of a selector by a criterion that sees the data alone.

    Every setting of a grid selects features; each distinct set is judged once by every criterion
    asked for; one criterion decides. The search is a selector itself: it selects what the best
    setting selects.

    Parameters
    ----------
    estimator : selector, optional
        The method to tune, one of `bsufs.selectors`; `ClusterAlignment()` by default.
    n_features_to_select : int, float, "auto", list of these, or None, default=None
        How many features to keep; as the estimator says by default. Of a list the criterion
        chooses one (see Notes).
    param_grid : dict or list of dicts, optional
        Names of parameters of the estimator with lists of values, as in scikit-learn. By default a
        small grid that suits the method and the data: for `BSUFS` the number of components around
        that above the noise edge, `p` and `beta_row`.
    criterion : str or criterion object, default="restart_agreement"
        What decides: "reconstruction", "permutation_gap", "clustering_agreement",
        "restart_agreement", "redundancy", "stability", "rank_mean", or an object of
        `bsufs.tuning.criteria` with settings of its own.
    report : "all", or sequence of str or criterion objects, default=()
        Criteria to compute besides, for the table only.
    tolerance : float, default=0.0
        With several numbers of features: take the fewest whose value lies within this share of
        the range between the worst and the best candidate.
    random_state : int, RandomState instance or None, default=0
        Seed of folds, permutations, subsamples and starts, and of the estimator where it has none.
    n_jobs : int, optional
        Threads to work with; the result is the same for any number.

    Attributes
    ----------
    criteria_ : pandas.DataFrame or dict of arrays
        A row for each setting: its parameters (`param_...`), `n_features`, the value of every
        criterion, and `rank`, 1 for the best by the one that decides. A data frame where pandas is
        installed.
    best_index_ : int
        The row of the setting that was chosen.
    best_params_ : dict
        Its parameters, with `n_features_to_select`.
    best_score_ : float
        Its value by the criterion that decides.
    best_estimator_ : selector
        The selector with these settings, fitted.
    scores_ : array of shape (n_features,)
        Those of the best estimator; larger is better.
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    Reconstruction as a rule grows with the number of features, so it takes the most of a list;
    `tolerance` makes it stop where more features bring little. Of candidates that are equal by the
    criterion, the one with fewest features is taken, then the first in the grid; the default grid
    begins with the settings that the estimator has.

    Columns are judged in an order that depends on their contents, so the order in which they come
    does not matter.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bsufs.selectors import BSUFS
    >>> from bsufs.tuning import LabelFreeSearch
    >>> X = StandardScaler().fit_transform(load_wine().data)
    >>> search = LabelFreeSearch(BSUFS(4), param_grid={"p": [0.0, 1.0]}).fit(X)
    >>> search.transform(X).shape
    (178, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [BaseSelector, None],
        "n_features_to_select": [*NUMBER_OF_FEATURES, list, tuple, np.ndarray, None],
        "param_grid": [dict, list, None],
        "criterion": [str, Criterion, RankMean],
        "report": [str, list, tuple],
        "tolerance": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: BaseSelector | None = None,
        *,
        n_features_to_select: Any = None,
        param_grid: Any = None,
        criterion: str | Criterion | RankMean = "restart_agreement",
        report: Any = (),
        tolerance: float = 0.0,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.param_grid = param_grid
        self.criterion = criterion
        self.report = report
        self.tolerance = tolerance
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Try the settings, judge what they select, and keep the best.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            The data: finite numbers, at least two rows.
        y : None
            Not used; there for the scikit-learn interface.

        Returns
        -------
        self
            The fitted search.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._validate_params()
        decisive = as_criterion(self.criterion, "criterion")
        criteria = [decisive, *self._reported(decisive)]
        parts = with_parts(criteria)
        seed = as_seed(self.random_state)
        estimator = ClusterAlignment() if self.estimator is None else self.estimator
        estimator = selector_inside(estimator, seed)
        data = _checked(X, estimator)
        grid = default_grid(estimator, data) if self.param_grid is None else self.param_grid
        candidates = self._candidates(estimator, data, checked_settings(grid, estimator))
        values = self._judged(candidates, parts, EvaluationData(data, seed))
        for criterion in criteria:
            if isinstance(criterion, RankMean):
                values[criterion.name] = criterion.combine(values)
        sizes = np.array([np.count_nonzero(candidate.support) for candidate in candidates])
        quality = oriented(decisive, values[decisive.name])
        best = _best(quality, sizes, self.tolerance)

        chosen = candidates[best]
        fitted = clone(chosen.selector).fit(data)
        self.criteria_ = _table(candidates, sizes, values, quality, best)
        self.best_index_ = best
        number = chosen.selector.n_features_to_select
        self.best_params_ = {**chosen.setting, "n_features_to_select": number}
        self.best_score_ = float(values[decisive.name][best])
        self.best_estimator_ = fitted
        self.scores_, self.ranking_ = fitted.scores_, fitted.ranking_
        self.support_, self.selected_features_ = fitted.support_, fitted.selected_features_
        self.n_features_in_ = fitted.n_features_in_
        if data.names is not None:
            self.feature_names_in_ = fitted.feature_names_in_
        return self

    def _reported(self, decisive: Criterion | RankMean) -> list[Criterion | RankMean]:
        """Return the criteria that are computed for the table only."""
        if not isinstance(self.report, str):
            return [as_criterion(criterion, "report") for criterion in self.report]
        if self.report != "all":
            raise ValueError(
                "report must be 'all' or a list of names of criteria, got "
                f"{self.report!r}. For a single one pass [{self.report!r}]."
            )
        # A criterion that decides with settings of its own stands for the one of its name.
        own = {part.name: part for part in with_parts([decisive])}
        singles = (one for one in CRITERIA.values() if isinstance(one, Criterion))
        return [own.get(criterion.name, criterion) for criterion in singles]

    def _sizes(self, estimator: BaseSelector) -> list[Any]:
        """Return the numbers of features to try."""
        asked = self.n_features_to_select
        if asked is None:
            return [estimator.n_features_to_select]
        if not isinstance(asked, list | tuple | np.ndarray):
            return [asked]
        if len(asked) == 0:
            raise ValueError(
                "n_features_to_select must hold at least one number of features, got an empty "
                "list. Leave it out to take the estimator's."
            )
        return [size.item() if isinstance(size, np.generic) else size for size in asked]

    def _candidates(
        self, estimator: BaseSelector, data: FitData, settings: Sequence[Setting]
    ) -> list[_Candidate]:
        """Select with every number of features and every setting."""
        requests = [
            (setting, clone(estimator).set_params(n_features_to_select=size, **setting))
            for size in self._sizes(estimator)
            for setting in settings
        ]

        def select(request: tuple[Setting, BaseSelector]) -> _Candidate:
            setting, selector = request
            try:
                return _Candidate(setting, selector, clone(selector).fit(data).support_)
            except (TypeError, ValueError) as error:
                # Where the estimator as it is fails too, the setting is not to blame.
                size = selector.n_features_to_select
                clone(estimator).set_params(n_features_to_select=size).fit(data)
                raise ValueError(
                    "param_grid must hold settings with which the estimator can be fitted, but "
                    f"{setting} is none. Correct it or take it out. The reason: {error}"
                ) from error

        first = with_most_components([selector for _, selector in requests])
        return in_threads(select, requests, self.n_jobs, first)

    def _judged(
        self, candidates: Sequence[_Candidate], criteria: Sequence[Criterion], data: EvaluationData
    ) -> dict[str, Array]:
        """Return the values of every criterion, each distinct set of features judged once."""

        def judged(by: Sequence[Criterion], some: Iterable[_Candidate]) -> list[list[float]]:
            def judge(candidate: _Candidate) -> list[float]:
                features = data.columns(candidate.support)
                return [criterion.judge(data, features, candidate.selector) for criterion in by]

            return in_threads(judge, some, self.n_jobs)

        of_sets = [criterion for criterion in criteria if not criterion.needs_selector]
        of_selectors = [criterion for criterion in criteria if criterion.needs_selector]
        distinct = {candidate.support.tobytes(): candidate for candidate in candidates}
        by_set = dict(zip(distinct, judged(of_sets, distinct.values()), strict=True))
        by_candidate = zip(candidates, judged(of_selectors, candidates), strict=True)
        rows = [by_set[candidate.support.tobytes()] + own for candidate, own in by_candidate]
        names = [criterion.name for criterion in (*of_sets, *of_selectors)]
        values = dict(zip(names, np.transpose(rows), strict=True))
        return {criterion.name: values[criterion.name] for criterion in criteria}

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        support: Mask = self.support_
        return support


def _checked(X: Any, estimator: BaseSelector) -> FitData:
    """Check the data as the estimator does."""
    if sparse.issparse(X.X if isinstance(X, FitData) else X):
        raise TypeError(
            "X must be dense, since the criteria look at whole columns; got a sparse matrix. Pass "
            "X.toarray() if it fits into memory."
        )
    data: FitData = clone(estimator)._fit_data(X, None)
    return data


def _best(quality: Array, sizes: Indices, tolerance: float) -> int:
    """Return the candidate to take: of those that are good enough the one with fewest features."""
    top = float(quality.max())
    finite = quality[np.isfinite(quality)]
    reach = tolerance * (top - float(finite.min())) if finite.size else 0.0
    fewest = sizes[quality >= top - reach].min()
    return int(np.argmax(np.where(sizes == fewest, quality, -np.inf)))


def _table(
    candidates: Sequence[_Candidate],
    sizes: Indices,
    values: dict[str, Array],
    quality: Array,
    best: int,
) -> Any:
    """Return a row per candidate, as a data frame where there is pandas."""
    # The one that was taken comes first among equals.
    rows = np.arange(sizes.size)
    rank = np.argsort(np.lexsort((rows, rows != best, -quality))) + 1
    names = dict.fromkeys(name for candidate in candidates for name in candidate.setting)
    columns: dict[str, Any] = {}
    for name in names:
        column = np.empty(sizes.size, dtype=object)
        for row, candidate in enumerate(candidates):
            column[row] = candidate.setting.get(name)
        columns[f"param_{name}"] = column
    columns |= {"n_features": sizes, **values, "rank": rank}
    if find_spec("pandas") is None:
        return columns
    import pandas

    return pandas.DataFrame(columns).infer_objects()
