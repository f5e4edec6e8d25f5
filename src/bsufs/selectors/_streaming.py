"""Fitting to data that are not all at hand: batches of rows, and Dask collections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Mask
from bsufs.scatter import ScatterAccumulator
from bsufs.selectors._base import BaseSelector
from bsufs.selectors._cluster_shares import SampleOfRows
from bsufs.selectors._columns import ContentKey
from bsufs.selectors._dask_input import DaskData, check_columns, is_dask
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._nuisance import (
    KnownColumns,
    Nuisance,
    adjusted_columns,
    as_codes,
    given_regressors,
    named_regressors,
    names_columns,
)
from bsufs.selectors._row_sample import RowSample
from bsufs.selectors._validation import require_positive_weight, require_two_rows

# What a batch sets; all else is found by the fit that follows.
_STREAMED = frozenset({"stream_", "n_features_in_", "feature_names_in_", "groups_"})


class StreamedSelector(BaseSelector):
    """Base class of the selectors that need little more of many rows than their scatter."""

    _clears = True
    # Parameters of the subclasses.
    adjust_for: Any
    center_rows: bool

    def _sample(self) -> Any:
        """Return where the rows go that the method wants to look at; None if it wants none."""
        size = self._option("max_samples")
        return None if size is None else RowSample(size, self._option("random_state"))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Score and rank the features, and select the best.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            The data: finite numbers, at least two rows. The columns of a Dask array with more of
            them than rows stay with the workers; otherwise S is summed over blocks of rows.
        y : None
            Not used; there for the scikit-learn interface.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights; a weight w counts like w copies of the row.

        Returns
        -------
        self
            The fitted selector.
        """
        return self._fit_from_scratch(X, sample_weight)

    def _fit_data(self, X: Any, sample_weight: Any) -> FitData:
        if not is_dask(X):
            X, texts = as_codes(X, self.adjust_for)
            return self._to_be_cleared(super()._fit_data(X, sample_weight), texts)
        check_columns(self, X, reset=True)
        # What can be wrong with the parameters is said before the data are read.
        self._set_groups(None)
        self._asked_number(*self._forced_and_barred())
        known, names = self._known_columns(), self._feature_names()
        return DaskData(X, sample_weight, names, known, self._values_to_adjust_for)

    def _to_be_cleared(self, data: FitData, texts: Mapping[str, Any]) -> FitData:
        asked = self.adjust_for is not None or self.center_rows
        if data.nuisance is not None or not asked:
            return data
        self._note_columns(data)
        known, weight = self._known_columns(), data.sample_weight
        if known.adjusted.any():
            values = named_regressors(data.X, known.adjusted, data.names, texts, weight)
        else:
            values = self._values_to_adjust_for(data.X.shape[0], weight)
        nuisance = Nuisance(known, values)
        return FitData(data.X, data.sample_weight, data.names, nuisance, data.groups)

    def _values_to_adjust_for(self, n_rows: int, weight: Array | None) -> Array:
        """Return the regressors that are no columns of X."""
        if self.adjust_for is None or names_columns(self.adjust_for):
            return np.empty((n_rows, 0))
        given = self.adjust_for.compute() if is_dask(self.adjust_for) else self.adjust_for
        return given_regressors(given, n_rows, weight)

    def _known_columns(self) -> KnownColumns:
        """Return the columns of X that are adjusted for, or centered row by row."""
        barred = self._forced_and_barred()[1]
        adjusted = adjusted_columns(self.adjust_for, barred.size, self._feature_names())
        return KnownColumns(adjusted, ~barred & bool(self.center_rows))

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Fit to rows that come in batches; equal to `fit` on all of them, for any batching.

        Of dense batches only sums are kept (or the rows, while there are fewer of them than
        features), and a sample of rows where the method looks at single rows.

        Parameters
        ----------
        batches : iterable of arrays, data frames or sparse matrices
            Batches of rows, all with the same columns.

        Returns
        -------
        self
            The fitted selector.
        """
        self._forget()
        with self._forgetting_on_failure():
            for batch in batches:
                self._take_in(batch, None)
            if "stream_" not in vars(self):
                raise ValueError("batches must hold at least one batch of rows, got none.")
            self._fit_stream()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in a batch of rows, and fit to all rows so far, for any batching.

        A fit takes time: with many batches, of which only the last result is wanted, use
        `fit_batches`. `fit` keeps no rows: a first `partial_fit` after it starts anew. As long as
        the rows so far cannot be fitted (a single row, or nothing that varies), there are no
        fitted attributes.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            A batch of rows.
        y : None
            Not used; there for the scikit-learn interface.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights of the rows of the batch.

        Returns
        -------
        self
            The selector.
        """
        self._take_in(X, sample_weight)
        # With too little to go by the next batch may help, and whoever wants features is told.
        with suppress(ValueError), self._forgetting_on_failure(keep=_STREAMED):
            self._fit_stream()
        return self

    def _take_in(self, X: Any, sample_weight: Any) -> None:
        stream = vars(self).get("stream_")
        # A batch that cannot be taken in changes nothing; as the first one it leaves nothing.
        kept = frozenset(vars(self)) if stream else frozenset()
        with self._forgetting_on_failure(kept):
            self._validate_params()
            X, weight = self._validated(X, sample_weight, reset=stream is None)
            self._set_groups(None)
            self._asked_number(*self._forced_and_barred())
            if stream is None:
                stream = self._new_stream()
            stream.add(X, weight)
        self._forget(keep=_STREAMED)
        self.stream_ = stream

    def _new_stream(self) -> RowStream:
        if self.adjust_for is not None and not names_columns(self.adjust_for):
            raise ValueError(
                "adjust_for must name columns of X where rows come in batches, whose rows nobody "
                f"knows beforehand, got {type(self.adjust_for).__name__}. Put its numbers into "
                "columns of the batches (groups as columns of zeros and ones) and name these, or "
                "pass all rows to fit."
            )
        return RowStream(self._known_columns(), self._sample())

    def _fit_stream(self) -> None:
        require_two_rows(self.stream_.n_rows)
        self._fit_to(self.stream_.data())

    def _get_support_mask(self) -> Mask:
        if "stream_" in vars(self) and "support_" not in vars(self):
            with self._forgetting_on_failure(keep=_STREAMED):
                self._fit_stream()
        return super()._get_support_mask()

    def __sklearn_is_fitted__(self) -> bool:
        return "support_" in vars(self) or "stream_" in vars(self)


class RowStream:
    """Rows that arrive in batches: sparse ones are kept, of dense ones sums and a sample."""

    def __init__(self, known: KnownColumns, sample: RowSample | None) -> None:
        n_features = known.adjusted.size
        self.known = known
        self.sample: Any = sample
        self.n_rows = 0
        self.key = ContentKey(n_features)
        self.sums = ScatterAccumulator(n_features)
        self._sparse: list[tuple[Any, Array | None]] = []
        self._data: FitData | None = None

    def add(self, X: Any, sample_weight: Array | None) -> None:
        if self.n_rows and sparse.issparse(X) != bool(self._sparse):
            raise ValueError(
                "partial_fit must get all batches dense or all sparse, got both. Convert the "
                "batches to one kind."
            )
        self._data = None
        self.n_rows += X.shape[0]
        # The caller may reuse the memory of the batch and of its weights.
        sample_weight = None if sample_weight is None else sample_weight.copy()
        if sparse.issparse(X):
            self._sparse.append((sparse.csr_array(X, copy=True), sample_weight))
            return
        self.key.add(X)
        self.sums.add(X.copy(), sample_weight)
        if self.sample is not None:
            self.sample.add(X, sample_weight)

    def data(self) -> FitData:
        """Return the rows so far as data to fit; valid until the next batch comes in."""
        if self._data is None:
            self._data = self._joined() if self._sparse else StreamData(self)
        return self._data

    def _joined(self) -> FitData:
        """Return all sparse rows, which are one batch from here on."""
        X = sparse.vstack([batch for batch, _ in self._sparse], format="csr")
        weight, known, nuisance = None, self.known, None
        if any(weights is not None for _, weights in self._sparse):
            weight = np.concatenate(
                [np.ones(batch.shape[0]) if w is None else w for batch, w in self._sparse]
            )
            require_positive_weight(weight)
        self._sparse = [(X, weight)]
        if known.adjusted.any() or known.centered.any():
            nuisance = Nuisance(known, named_regressors(X, known.adjusted, None, {}, weight))
        return FitData(X, weight, nuisance=nuisance)


class StreamData(FitData):
    """Dense rows of a stream: their scatter and a sample of them, never all."""

    def __init__(self, stream: RowStream) -> None:
        super().__init__(None)
        self._stream = stream
        self.order = stream.key.order()
        self._named = stream.known.named(self.order)
        joint = stream.sums.scatter().restricted(np.concatenate([self.order, self._named]))
        self.scatter = stream.known.cleared(joint, self.order)
        self.variances = self._scatter_variances()

    @property
    def n_features(self) -> int:
        return self.order.size

    @property
    def kept_shape(self) -> tuple[int, int]:
        # Of many rows no more than S is kept.
        return min(self._stream.n_rows, self.n_features), self.n_features

    def some_rows(self, sample: RowSample, problem: ColumnProblem) -> SampleOfRows:
        # Those that the stream has drawn.
        drawn = self._stream.sample
        rows = drawn.rows()
        return problem.local_rows(rows, rows[:, self._named], drawn.weights())
