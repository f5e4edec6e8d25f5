"""Fitting to data that are not all at hand: batches of rows, and Dask collections."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from bsufs._typing import Indices
from bsufs.scatter import Scatter
from bsufs.selectors._base import BaseSelector, Scored
from bsufs.selectors._dask_input import check_columns, scatter_and_order
from bsufs.selectors._row_stream import RowStream
from bsufs.selectors._validation import require_two_rows

# What a batch sets; all else is computed when it is first asked for.
_STREAMED = frozenset({"stream_", "n_features_in_", "feature_names_in_"})


class StreamedSelector(BaseSelector):
    """Base class of the selectors that need little more of many rows than their scatter.

    A subclass has a `partial_fit` that calls `_take_in` and a `fit` that calls `_fit_dask` for Dask
    collections; it implements `_solve_stream` and `_solve_dask`.
    """

    # Names of the fitted attributes, which are there after `partial_fit` as after `fit`.
    _solved: ClassVar[frozenset[str]] = frozenset(
        {
            "scores_",
            "ranking_",
            "support_",
            "selected_features_",
            "explained_variance_curve_",
            "explained_variance_ratio_",
        }
    )

    @abstractmethod
    def _solve_stream(self, stream: RowStream, scatter: Scatter, order: Indices) -> Scored:
        """Score the features of the rows so far, whose scatter is given in an order of its own."""

    @abstractmethod
    def _solve_dask(self, X: Any, scatter: Scatter, order: Indices) -> Scored:
        """Score the features of a Dask collection, given its scatter in an order of its own."""

    def _check_dask(self, X: Any) -> None:
        """Raise an error for settings that a Dask collection cannot have."""

    def _fit_dask(self, X: Any, sample_weight: Any) -> Self:
        self._forget()
        with self._forgetting_on_failure():
            self._validate_params()
            check_columns(self, X, reset=True)
            # What can be wrong with the parameters is said before the data are read.
            self._asked_number(*self._forced_and_barred())
            self._check_dask(X)
            scatter, order = scatter_and_order(X, sample_weight, self._feature_names())
            self._finish(self._solve_dask(X, scatter, order))
        return self

    def _open_stream(self, n_features: int) -> RowStream:
        return RowStream(n_features)

    def _take_in(self, X: Any, sample_weight: Any) -> Self:
        """Validate and take in a batch."""
        stream = vars(self).get("stream_")
        is_first = stream is None
        try:
            self._validate_params()
            X, weight = self._validated(X, sample_weight, reset=is_first)
            self._asked_number(*self._forced_and_barred())
            if stream is None:
                stream = self._open_stream(X.shape[1])
            stream.add(X, weight)
        except BaseException:
            # A batch that cannot be taken in changes nothing; as the first one it leaves nothing.
            if is_first:
                self._forget()
            raise
        self._forget(keep=_STREAMED)
        self.stream_ = stream
        return self

    def __getattr__(self, name: str) -> Any:
        # Reached only when the attribute is not there: after partial_fit, solve on first use.
        stream = vars(self).get("stream_") if name in self._solved else None
        if stream is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._forgetting_on_failure(keep=_STREAMED):
            require_two_rows(stream.n_rows)
            order = stream.canonical_order()
            scatter = stream.scatter().restricted(order)
            self._finish(self._solve_stream(stream, scatter, order))
        return vars(self)[name]

    def __sklearn_is_fitted__(self) -> bool:
        return "support_" in vars(self) or "stream_" in vars(self)
