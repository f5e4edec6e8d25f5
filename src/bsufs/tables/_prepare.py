"""What is done to numbers before a fit: missing values settled, columns scaled.

All of it is learned batch by batch, so that it is the same whether a table is held or streamed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices, Mask
from bsufs.tables._files import listed

Missing = Literal["error", "keep", "median", "drop-rows", "drop-columns"]
Scale = Literal["auto", "none", "standard", "noise"]


@dataclass(frozen=True)
class MissingValues:
    """What was missing, and what was done about it.

    Parameters
    ----------
    n_missing, n_infinite : int
        How many values were missing, and how many infinite; both are treated alike.
    n_rows_dropped : int
        Rows left out, by "drop-rows".
    columns_dropped : tuple of str
        Columns left out, by "drop-columns".
    """

    n_missing: int = 0
    n_infinite: int = 0
    n_rows_dropped: int = 0
    columns_dropped: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Return such as "1 value is missing and 2 values are infinite", or nothing."""
        return " and ".join(
            f"{count} {'value is' if count == 1 else 'values are'} {word}"
            for count, word in ((self.n_missing, "missing"), (self.n_infinite, "infinite"))
            if count
        )


class Gaps:
    """Counts over batches of rows what is missing or infinite."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.n_rows = self.n_missing = self.n_infinite = 0
        self.by_column = np.zeros(len(names), dtype=np.int64)
        self._first = (0, 0)
        self._rows: list[Indices] = []

    def add(self, values: Any) -> None:
        """Look at a batch."""
        if sparse.issparse(values):
            stored = values.tocoo()
            bad = ~np.isfinite(stored.data)
            rows, columns, cells = stored.row[bad], stored.col[bad], stored.data[bad]
        else:
            rows, columns = np.nonzero(~np.isfinite(values))
            cells = values[rows, columns]
        if rows.size:
            if not self:
                self._first = (int(rows[0]) + self.n_rows, int(columns[0]))
            n_infinite = int(np.isinf(cells).sum())
            self.n_infinite += n_infinite
            self.n_missing += rows.size - n_infinite
            self.by_column += np.bincount(columns, minlength=self.by_column.size)
            self._rows.append(np.unique(rows) + self.n_rows)
        self.n_rows += values.shape[0]

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def rows(self) -> Indices:
        """The rows that have any."""
        return np.concatenate(self._rows)

    def settled(self, how: Missing) -> MissingValues:
        """Return what is missing, and what is left out for it."""
        return MissingValues(
            self.n_missing,
            self.n_infinite,
            self.rows.size if how == "drop-rows" else 0,
            self._named(self.by_column > 0) if how == "drop-columns" else (),
        )

    def why_not(self, how: Missing) -> str:
        """Return why it cannot be settled so, or nothing."""
        found = self.settled(how).in_words()
        if how == "error":
            row, column = self._first
            return (
                f"{found}, the first in row {row + 1} of column {self.names[column]!r}. Say what "
                "to do with --missing median, drop-rows or drop-columns."
            )
        empty = self._named(self.by_column == self.n_rows)
        if how == "median" and empty:
            return (
                f"--missing median needs a value in every column, but {listed(empty)} has none. "
                "Use --missing drop-columns, or leave it out with --ignore."
            )
        if how == "drop-rows" and self.rows.size == self.n_rows:
            return (
                f"{found}, and every row has a gap: --missing drop-rows would leave none. Try "
                "drop-columns or median."
            )
        n_kept = int(np.count_nonzero(self.by_column == 0))
        if how == "drop-columns" and n_kept < 2:
            return (
                f"{found}: --missing drop-columns would leave {n_kept} of {len(self.names)} "
                "columns. Try drop-rows or median."
            )
        return ""

    def _named(self, columns: Mask) -> tuple[str, ...]:
        return tuple(self.names[column] for column in np.flatnonzero(columns).tolist())


# Columns do not share a unit if one of them varies so many times as much as the median one, or has
# more than this share of all variance.
_TIMES_THE_MEDIAN, _SHARE_OF_VARIANCE = 10.0, 0.5
# But for counts and the like: more than this share of a table of many columns is zero.
_MOSTLY_ZERO, _MANY_COLUMNS = 0.5, 100


def suited_scale(
    variances: Array, smallest: Array, filled: float, names: Sequence[str]
) -> tuple[Scale, str]:
    """Return whether columns of numbers share no unit and are to be scaled, and why.

    `smallest` has the smallest entry of each column, `filled` is the share that is not zero.
    """
    largest = int(variances.argmax())
    if filled < 1.0 - _MOSTLY_ZERO and variances.size >= _MANY_COLUMNS and smallest[largest] == 0.0:
        return "none", "most entries are zero, as in counts"
    varying = variances[variances > 0]
    if varying.size > 2:
        times = float(np.sqrt(varying.max() / np.median(varying)))
        share = float(varying.max() / varying.sum())
        if times > _TIMES_THE_MEDIAN:
            return "standard", f"{names[largest]!r} varies {times:,.0f} times as much as others"
        if share > _SHARE_OF_VARIANCE:
            return "standard", f"{names[largest]!r} alone has {share:.0%} of the variance"
    return "none", "the columns vary alike"


class Survey:
    """One look at all numbers, by batches of rows: what is missing, and how much each varies."""

    def __init__(self, names: Sequence[str], firsts: Any, is_sparse: bool) -> None:
        # scikit-learn takes a while to import.
        from sklearn.preprocessing import StandardScaler

        # Of a category, the first column tells what is missing.
        self.gaps, self._firsts = Gaps(names), firsts
        self.scaler, self._is_sparse = StandardScaler(with_mean=not is_sparse), is_sparse
        self._n_filled: Any = 0
        self._smallest: Any = np.inf

    def add(self, values: Any) -> None:
        """Look at a batch."""
        self.gaps.add(values[:, self._firsts])
        if self.gaps.n_infinite:
            values = _filled(values, np.full(values.shape[1], np.nan))
        with np.errstate(over="ignore", invalid="ignore"):
            self.scaler.partial_fit(values)
            entries = values.data if self._is_sparse else values
            # Gaps that are kept are passed over.
            smallest = np.fmin.reduce(entries, axis=0, initial=np.inf)
            self._smallest = np.minimum(self._smallest, smallest)
        if not self._is_sparse:
            self._n_filled = self._n_filled + np.count_nonzero(values, axis=0)

    def keep(self, columns: Indices) -> None:
        """Forget all other columns, which have no gaps."""
        self.gaps.names = [self.gaps.names[column] for column in columns.tolist()]
        self.gaps.by_column = self.gaps.by_column[columns]
        self._n_filled, self._smallest = self._n_filled[columns], self._smallest[columns]
        for learned in ("mean_", "var_", "scale_"):
            setattr(self.scaler, learned, getattr(self.scaler, learned)[columns])

    @property
    def is_below_zero(self) -> bool:
        """Whether an entry is."""
        return bool(np.min(self._smallest) < 0.0)

    def suited_scale(self, names: Sequence[str], kinds: Collection[str]) -> tuple[Scale, str]:
        """Return whether to scale the columns, of these kinds, and why."""
        if set(kinds) != {"number"}:
            return "standard", "numbers, dates and categories have no unit in common"
        if self._is_sparse:
            return "none", "the table is sparse"
        filled = float(np.mean(self._n_filled)) / self.gaps.n_rows
        return suited_scale(self.scaler.var_, self._smallest, filled, names)


# Groups of columns of similar means, whose usual noise is told.
_NOISE_GROUPS, _LEAST_IN_GROUP = 20, 10


def usual_deviations(means: Array, variances: Array) -> Array:
    """Return the standard deviation usual for columns of each mean, 1 where none is known."""
    known = np.flatnonzero((means > 0) & (variances > 0))
    if not known.size:
        return np.ones(means.size)
    known = known[np.argsort(means[known], kind="stable")]
    groups = np.array_split(known, max(1, min(_NOISE_GROUPS, known.size // _LEAST_IN_GROUP)))
    middles = [float(np.median(np.log(means[group]))) for group in groups]
    levels = [float(np.median(np.log(variances[group]))) for group in groups]
    usual = np.ones(means.size)
    usual[known] = np.exp(0.5 * np.interp(np.log(means[known]), middles, levels))
    return usual


@dataclass
class Preparation:
    """What to do to every batch: rows to leave out, medians to fill in, means and scales."""

    dropped_rows: Indices | None = None
    medians: Array | None = None
    means: Any = None
    scales: Any = None

    def kept_rows(self, first: int, n_rows: int) -> Mask | None:
        """Return which rows of a batch stay, None for all."""
        if self.dropped_rows is None:
            return None
        begin, end = np.searchsorted(self.dropped_rows, [first, first + n_rows])
        kept = np.ones(n_rows, dtype=bool)
        kept[self.dropped_rows[begin:end] - first] = False
        return kept

    def scale_by(self, scaler: Any, groups: Indices, is_category: Mask, is_standard: bool) -> None:
        """Bring columns to variance 1, those of a category together.

        Where numbers keep their unit, a category varies as much as the median of them.
        """
        together = np.sqrt(np.bincount(groups, scaler.var_)[groups])
        scales = np.where(is_category & (together > 0), together, scaler.scale_)
        means = scaler.mean_
        if not is_standard:
            # Numbers near the largest have no deviation.
            known = scaler.scale_[~is_category & np.isfinite(scaler.scale_)]
            usual = np.median(known) if known.size else 1.0
            scales = np.where(is_category, scales / usual, 1.0)
            means = np.where(is_category, means, 0.0)
        self.means, self.scales = means, scales

    def apply(self, values: Any, first: int, places: Any) -> Any:
        """Return a batch of some columns as a fit takes it."""
        kept = self.kept_rows(first, values.shape[0])
        if kept is not None:
            values = values[kept]
        if self.medians is not None:
            values = _filled(values, self.medians[places])
        if self.scales is None:
            return values
        if sparse.issparse(values):
            scaled = values.copy()
            scaled.data *= (1.0 / self.scales[places])[scaled.indices]
            return scaled
        # In two steps, so that there is one copy.
        scaled = values - self.means[places]
        scaled /= self.scales[places]
        return scaled


def _filled(values: Any, medians: Array) -> Any:
    if not sparse.issparse(values):
        return np.where(np.isfinite(values), values, medians)
    # Stored entries are replaced where they are: nothing else of the matrix changes.
    filled = values.copy()
    bad = ~np.isfinite(filled.data)
    filled.data[bad] = medians[filled.indices[bad]]
    return filled
