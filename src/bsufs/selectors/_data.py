"""The data of a fit, and what follows from them alone: each thing computed once, when asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter import Scatter, make_scatter, safe_unit_exponent
from bsufs.selectors._cluster_shares import LocalRows, SampleOfRows
from bsufs.selectors._columns import canonical_order, column_variances
from bsufs.selectors._nuisance import Nuisance
from bsufs.selectors._row_sample import RowSample
from bsufs.solvers.components import require_variation


class FitData:
    """Checked data, to be fitted and asked by as many as want to: `fit` takes it in place of X.

    Features are numbered as the columns of X, except in `ordered` and `scatter`, which have them in
    an order that depends on their contents alone (see `canonical_order`). What a `nuisance` says is
    taken off `scatter`, `variances`, `columns` and `some_rows`, never off X itself; `groups` are
    for selectors that are given none.
    """

    def __init__(
        self,
        X: Any,
        sample_weight: Array | None = None,
        names: Any = None,
        nuisance: Nuisance | None = None,
        groups: Any = None,
    ) -> None:
        self.nuisance = nuisance
        self.groups = groups
        self.X = X
        self.sample_weight = sample_weight
        self.names = None if names is None else np.asarray(names, dtype=object)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def kept_shape(self) -> tuple[int, int]:
        """Rows and columns of what there is to work on."""
        return self.X.shape[0], self.n_features

    @cached_property
    def order(self) -> Indices:
        """The column that comes first, second and so on in `ordered` and `scatter`."""
        return canonical_order(self.X)

    @cached_property
    def place(self) -> Indices:
        """Where each column of X is in `ordered` and `scatter`."""
        return np.argsort(self.order)

    @cached_property
    def ordered(self) -> Any:
        """The columns in their order."""
        return self.X[:, self.order]

    @cached_property
    def scatter(self) -> Scatter:
        """The scatter operator of `ordered`."""
        if self.nuisance is None:
            return make_scatter(self.X, self.sample_weight, self.order)
        level = self.nuisance.columns.level[self.order]
        return make_scatter(self.X, self.sample_weight, self.order, level, self.regressors)

    @cached_property
    def regressors(self) -> Array:
        """What the columns are adjusted for, orthonormal and in the units of X."""
        assert self.nuisance is not None
        exponent = safe_unit_exponent(float(max(self.X.max(), -self.X.min())))
        return np.ldexp(self.nuisance.basis(self.sample_weight), exponent)

    @cached_property
    def variances(self) -> Array:
        """The variance of each feature, zero where all its entries agree."""
        return column_variances(self.X) if self.nuisance is None else self._scatter_variances()

    def _scatter_variances(self) -> Array:
        scatter = self.scatter
        with np.errstate(over="ignore"):
            squares = np.ldexp(scatter.diagonal(), 2 * scatter.unit_exponent)
        return (squares / scatter.total_weight)[self.place]

    def columns(self, which: Any) -> Array:
        """Return some columns as a dense array, cleared."""
        X = self.X[:, which]
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        if self.nuisance is None:
            return X
        left, right = self._cleared_of
        cleared = X - left @ right[which].T
        cleared[:, self.variances[which] <= 0] = 0.0
        return cleared

    @cached_property
    def _cleared_of(self) -> tuple[Array, Array]:
        """L and R such that X - L R' are the cleared rows."""
        clearing = self.scatter.clearing
        assert clearing is not None
        return clearing.at(self.place).parts(self.X, self.regressors)

    @cached_property
    def cleared(self) -> "FitData":
        """The cleared columns as data of their own, for whoever looks at all of X."""
        if self.nuisance is None:
            return self
        columns = self.columns(slice(None))
        return FitData(columns, self.sample_weight, self.names, groups=self.groups)

    def part(self, rows: Indices) -> "FitData":
        """Return some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        nuisance = None if self.nuisance is None else self.nuisance.part(rows)
        return FitData(self.X[rows], weight, self.names, nuisance, self.groups)

    @cached_property
    def explained_curve(self) -> "ExplainedCurve":
        """Given features, the share of the total variance that the first 1, 2, ... explain."""
        return ExplainedCurve(self.scatter, self.place)

    def some_rows(self, sample: RowSample, problem: "ColumnProblem") -> SampleOfRows:
        """Return a sample of the rows, with the columns of a problem."""
        scatter, weight = problem.scatter, self.sample_weight
        rows = scatter.centered_rows()
        if rows is not None and sample.numbers(len(rows)) is None and weight is None:
            return LocalRows.centered(rows, scatter.diagonal() / scatter.factor)
        numbers: Any = sample.among(self.X.shape[0], weight)
        numbers = slice(None) if numbers is None else numbers
        Z = None if self.nuisance is None else self.regressors[numbers]
        return problem.local_rows(self.X[numbers], Z, None if weight is None else weight[numbers])


class ExplainedCurve:
    """Share of the total variance that regression on the first 1, 2, ... features explains."""

    def __init__(self, scatter: Scatter, place: Indices) -> None:
        self._scatter = scatter
        self._place = place
        self._known: tuple[Indices, Array] = np.empty(0, dtype=np.intp), np.empty(0)

    def __call__(self, features: Indices) -> Array:
        features = np.asarray(features)
        known, curve = self._known
        if features.size > known.size or not np.array_equal(features, known[: features.size]):
            curve = self._scatter.explained_curve(self._place[features])
            self._known = features, curve
        return curve[: features.size]


@dataclass(frozen=True)
class ColumnProblem:
    """The columns that may be selected, without those never kept, in the order they are solved."""

    scatter: Scatter
    order: Indices
    places: Indices
    place: Indices
    explained_curve: ExplainedCurve

    @classmethod
    def of(cls, data: FitData, barred: Mask) -> "ColumnProblem":
        """Return the problem of some data without the columns that are barred."""
        if not barred.any():
            everything = np.arange(data.order.size)
            problem = cls(data.scatter, data.order, everything, data.place, data.explained_curve)
        else:
            places = np.flatnonzero(~barred[data.order])
            order = data.order[places]
            place = np.full(barred.size, order.size)
            place[order] = np.arange(order.size)
            scatter = data.scatter.restricted(places)
            problem = cls(scatter, order, places, place, ExplainedCurve(scatter, place))
        require_variation(problem.scatter)
        return problem

    def local_rows(self, rows: Any, Z: Any, weight: Array | None) -> LocalRows:
        """Return rows of all columns, with their regressors, as a sample of the problem."""
        X, scatter = rows[:, self.order], self.scatter
        taken_off = None if scatter.clearing is None else scatter.clearing.parts(X, Z)
        return LocalRows.of(X, scatter.unit_exponent, weight, taken_off)

    def by_column(self, values: Any) -> Any:
        """Return values in the order of the columns of X, zero for the columns left out."""
        spread = np.zeros((self.place.size, *values.shape[1:]), dtype=values.dtype)
        spread[self.order] = values
        return spread

    def fewest_that_explain(self, goal: float, best_first: Indices) -> int:
        """Return how many of the best features regression needs to explain a share of variance."""
        candidates = best_first[self.place[best_first] < self.order.size]
        size = 32
        while True:
            curve = self.explained_curve(candidates[:size])
            enough = np.flatnonzero(curve >= goal * (1.0 - 1e-9))
            if enough.size:
                return int(enough[0]) + 1
            if size >= candidates.size:
                return int(candidates.size)
            size *= 2
