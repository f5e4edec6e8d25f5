"""Choose the settings of a selector, and the number of features, without labels."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from bsufs._typing import Array, Indices, Mask
from bsufs.selectors._base import NUMBER_OF_FEATURES, BaseSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import UNIT_INTERVAL, constraints
from bsufs.selectors.cluster_alignment import ClusterAlignment
from bsufs.tuning._settings import (
    WRAPPING,
    Setting,
    WrappingSelector,
    checked_settings,
    default_grid,
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


@dataclass(repr=False, eq=False)
class LabelFreeSearch(WrappingSelector):
    """Choose the settings of a selector by a criterion that sees the data alone.

    The search is a selector itself: it selects what the best setting of a grid selects.

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
    %(fitted)s

    Notes
    -----
    Reconstruction as a rule grows with the number of features, so it takes the most of a list;
    `tolerance` makes it stop where more features bring little. Of candidates that are equal by the
    criterion, the one with fewest features is taken, then the first in the grid, which by default
    begins with the settings that the estimator has. The order of the columns does not matter.

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

    estimator: BaseSelector | None = None
    _: KW_ONLY
    n_features_to_select: Any = None
    param_grid: Any = None
    criterion: str | Criterion | RankMean = "restart_agreement"
    report: Any = ()
    tolerance: float = 0.0
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints = constraints(
        **WRAPPING,
        n_features_to_select=[*NUMBER_OF_FEATURES, list, tuple, np.ndarray, None],
        criterion=[str, Criterion, RankMean],
        report=[str, list, tuple],
        tolerance=UNIT_INTERVAL,
    )
    _default_estimator = ClusterAlignment

    def _fit_data(self, X: Any, sample_weight: Any) -> FitData:
        if sparse.issparse(X.X if isinstance(X, FitData) else X):
            raise TypeError(
                "X must be dense, since the criteria look at whole columns; got a sparse matrix. "
                "Pass X.toarray() if it fits into memory."
            )
        return super()._fit_data(X, sample_weight)

    def _fit(self, data: FitData) -> Any:
        decisive = as_criterion(self.criterion, "criterion")
        criteria = [decisive, *self._reported(decisive)]
        parts = with_parts(criteria)
        estimator, seed = self._seeded()
        grid = default_grid(estimator, data) if self.param_grid is None else self.param_grid
        sizes, settings = self._sizes(estimator), checked_settings(grid, estimator)
        selectors = [
            clone(estimator).set_params(n_features_to_select=size, **setting)
            for size in sizes
            for setting in settings
        ]
        settings *= len(sizes)
        supports = self._in_threads(
            lambda number: self._support(selectors[number], settings[number], data),
            range(len(selectors)),
            with_most_components(selectors),
        )
        values = self._judged(selectors, supports, parts, EvaluationData(data, seed))
        for criterion in criteria:
            if isinstance(criterion, RankMean):
                values[criterion.name] = criterion.combine(values)
        counts = np.array([self._groups.count(support) for support in supports])
        quality = oriented(decisive, values[decisive.name])
        best = _best(quality, counts, self.tolerance)
        # The one that is taken comes first among equals.
        number = np.arange(counts.size)
        rank = np.argsort(np.lexsort((number, number != best, -quality))) + 1

        self.criteria_ = _table(settings, {"n_features": counts, **values, "rank": rank})
        self.best_index_ = best
        size = selectors[best].n_features_to_select
        self.best_params_ = {**settings[best], "n_features_to_select": size}
        self.best_score_ = float(values[decisive.name][best])
        self.best_estimator_ = clone(selectors[best]).fit(data)
        return self.best_estimator_

    def _finish(self, scored: Any) -> None:
        """Take over what the best estimator has found."""
        found = vars(scored)
        for name in ("scores_", "ranking_", "support_", "selected_features_"):
            setattr(self, name, found[name])
        if "groups_" in found:
            self.groups_, self.selected_groups_ = found["groups_"], found["selected_groups_"]

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
        known = {**CRITERIA, **{part.name: part for part in with_parts([decisive])}}
        return [criterion for criterion in known.values() if isinstance(criterion, Criterion)]

    def _sizes(self, estimator: BaseSelector) -> list[Any]:
        """Return the numbers of features to try."""
        asked = self.n_features_to_select
        if not isinstance(asked, list | tuple | np.ndarray):
            return [estimator.n_features_to_select if asked is None else asked]
        if len(asked) == 0:
            raise ValueError(
                "n_features_to_select must hold at least one number of features, got an empty "
                "list. Leave it out to take the estimator's."
            )
        return [size.item() if isinstance(size, np.generic) else size for size in asked]

    def _support(self, selector: BaseSelector, setting: Setting, data: FitData) -> Any:
        """Return what a selector with some setting selects."""
        try:
            return clone(selector).fit(data).support_
        except (TypeError, ValueError) as error:
            # Where the estimator as it is fails too, the setting is not to blame.
            size = selector.n_features_to_select
            clone(self._inside()).set_params(n_features_to_select=size).fit(data)
            raise ValueError(
                "param_grid must hold settings with which the estimator can be fitted, but "
                f"{setting} is none. Correct it or take it out. The reason: {error}"
            ) from error

    def _judged(
        self, selectors: list[Any], supports: list[Mask], criteria: Any, data: EvaluationData
    ) -> dict[str, Array]:
        """Return the values of every criterion, each distinct set of features judged once."""
        values: dict[str, Array] = {one.name: np.empty(len(supports)) for one in criteria}
        distinct: dict[bytes, list[int]] = {}
        for number, support in enumerate(supports):
            distinct.setdefault(support.tobytes(), []).append(number)

        def judge(alike: list[int]) -> None:
            features = data.columns(supports[alike[0]])
            for criterion in criteria:
                judged = alike if criterion.needs_selector else alike[:1]
                found = [criterion.judge(data, features, selectors[number]) for number in judged]
                values[criterion.name][alike] = found

        self._in_threads(judge, distinct.values())
        return values


def _best(quality: Array, sizes: Indices, tolerance: float) -> int:
    """Return the candidate to take: of those that are good enough the one with fewest features."""
    top = float(quality.max())
    finite = quality[np.isfinite(quality)]
    reach = tolerance * (top - float(finite.min())) if finite.size else 0.0
    fewest = sizes[quality >= top - reach].min()
    return int(np.argmax(np.where(sizes == fewest, quality, -np.inf)))


def _table(settings: Sequence[Setting], values: dict[str, Any]) -> Any:
    """Return a row per setting, as a data frame where there is pandas."""
    columns = {
        f"param_{name}": np.fromiter((setting.get(name) for setting in settings), dtype=object)
        for name in dict.fromkeys(name for setting in settings for name in setting)
    }
    columns |= values
    if find_spec("pandas") is None:
        return columns
    import pandas

    return pandas.DataFrame(columns).infer_objects()
