"""A table of numbers with names: one source of rows, held where it fits into memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bsufs._memory import size_in_words
from bsufs._typing import Array, Indices
from bsufs.tables._arrow import pa
from bsufs.tables._files import TableError, listed
from bsufs.tables._kinds import (
    MOST_MISSING,
    Column,
    Kind,
    LearnedColumn,
    RowNumbers,
    encoded,
    in_words,
)
from bsufs.tables._numbers import NumericColumns, known_texts, numbers
from bsufs.tables._prepare import (
    Missing,
    MissingValues,
    Preparation,
    Scale,
    Survey,
    usual_deviations,
)
from bsufs.tables._rows import ROW_NAMES, Rows, joined, regrouped

# A row of a batch is text, cells, numbers, and copies of these on their way into the scatter.
_BYTES_PER_CELL = 64
# Of which the text that is read ahead may take so many.
_BYTES_AHEAD = 32
# Columns are copied into rows a part at a time, which stays in the caches of a processor.
_CELLS_AT_ONCE = 2**20
# Means and deviations are added up in blocks of one size, so that batches do not matter to a bit.
_ROWS_TO_SURVEY = 1024
# A column is sorted for its median beside a copy of it.
_BYTES_TO_SORT = 16
# With fewer, it takes longer to handle thousands of columns than to parse their cells.
_FEWEST_ROWS = 1024


class Table:
    r"""A table of numbers with names, as `open_table` returns it.

    Attributes
    ----------
    names : tuple of str
        Names of the features, all different.
    columns : tuple of Column
        What each column of the file was taken as, but for those that were to be carried.
    groups : array of int or None
        For each column of the matrix the feature it belongs to: a category has several columns.
        None where every feature is one column.
    scale : {"none", "standard", "noise"}
        Whether the columns are scaled; `why_scaled` says why where that was left to the data.
    missing : MissingValues
        What was missing, and what was done about it; `gaps` has the number for each column.
    is_held : bool
        Whether the numbers are in memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bsufs import BSUFS
    >>> from bsufs.tables import open_table, write_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = path.write_text("id,a,b,c\nu,1,2,0\nv,3,5,0\nw,5,8,1\n")
    >>> table = open_table(path, batch_rows=2, ignore=["id"])
    >>> selector = BSUFS(1).fit_batches(table.batches())
    >>> [table.names[column] for column in selector.selected_features_]
    ['b']
    >>> write_table(table, path.with_name("small.csv"), selector.selected_features_)
    """

    # Columns to adjust for that are groups, whatever they hold.
    batch_key: frozenset[str] = frozenset()

    def __init__(
        self,
        rows: Rows,
        carried_names: tuple[str, ...],
        memory: int,
        missing: Missing | None,
        scale: Scale = "none",
        kinds: Mapping[str, Kind] = MappingProxyType({}),
        strict: bool = True,
        *,
        hold: bool = True,
        batch_rows: int | None = None,
    ) -> None:
        self.rows, self.memory, self.is_held = rows, memory, hold
        self.carried_names, left = carried_names, set(carried_names)
        # Whatever is not known to be something else should be a number.
        self._take_as(
            Column(name, kinds.get(name, "number")) for name in rows.features if name not in left
        )
        self.batch_rows = batch_rows or max(1, memory // (_BYTES_PER_CELL * len(rows.names)))
        self.missing, self.gaps = MissingValues(), dict[str, int]()
        self.scale, self.why_scaled = "none", ""
        self._preparation = Preparation()
        # The numbers, where they are held: as read, and once prepared as a fit takes them.
        self._held: Any = None
        self._is_prepared = False
        if not hold:
            self.rows.read_ahead(_BYTES_AHEAD * self.batch_rows * len(self.rows.names))
        matrix = self.matrix(range(self.n_features)) if hold and not kinds else None
        survey = None
        if matrix is None:
            survey = self._settle_kinds(kinds, strict)
        else:
            self._held = matrix.astype(np.float64, copy=False)
        missing = missing or ("error" if strict else "median")
        if missing != "keep":
            survey = self._settle_missing(missing, strict, survey or self._survey())
        if scale != "none" or self._has_categories:
            self._settle_scale(scale, survey or self._survey())
        if hold:
            (self._held,) = self.batches()
            self._is_prepared = True

    def _take_as(self, columns: Iterable[Column]) -> None:
        """Take the columns of the file as what they are; those that are left out are carried."""
        self.columns = tuple(columns)
        self._features = tuple(column for column in self.columns if column.kind != "left out")
        self.names = tuple(column.name for column in self._features)
        self.n_features = len(self.names)
        left_out = [column for column in self.columns if column.kind == "left out"]
        if self.n_features < 2:
            but = f"{self.n_features} ({in_words(left_out)})" if left_out else self.n_features
            raise self._error(
                f"at least two columns of numbers are needed to select from, got {but}."
            )
        carried = {column.name for column in left_out}.union(self.carried_names)
        self.carried_names = tuple(name for name in self.rows.names if name in carried)
        widths = [column.width for column in self._features]
        self.groups = None if set(widths) == {1} else np.repeat(np.arange(len(widths)), widths)
        self.matrix_names = [name for column in self._features for name in column.matrix_names]
        self.plain_numbers = frozenset(column.name for column in self._features if column.is_plain)
        self._has_categories = any(column.kind == "category" for column in self._features)

    @property
    def n_rows(self) -> int:
        """Number of rows, without those that were left out."""
        return (self.rows.n_rows or 0) - self.missing.n_rows_dropped

    @property
    def notices(self) -> tuple[str, ...]:
        """What the reader of the result should know about how the file was read."""
        source, notices = self.source, list(self.rows.notices)
        if ROW_NAMES in self.rows.row_names:
            notices.append(f"{source}: the first column has no name and is carried as row names.")
        if any(column.kind != "number" or column.why for column in self.columns):
            notices.append(f"{source}: {in_words(self.columns)}.")
        used = {*self.rows.features, *self.carried_names}
        unused = [name for name in self.rows.names if name not in used]
        if unused:
            notices.append(
                f"{source}: {listed(unused)} not used; name it with --label or --ignore to carry "
                f"it{' to other files than .h5ad' if source.endswith(('.h5ad', '.zarr')) else ''}."
            )
        return tuple(notices)

    @property
    def values(self) -> Any:
        """The numbers of all features: an array, or a sparse array where the file holds one."""
        if not self.is_held:
            raise self._error(
                "the whole table is needed, but it is read in batches. Raise --memory."
            )
        return self._held

    @property
    def others(self) -> Any:
        """The carried columns as a pandas data frame."""
        import pandas as pd

        if not self.carried_names:
            return pd.DataFrame(index=range(self.n_rows))
        return pa.Table.from_batches(self.cells(self.carried_names)).to_pandas()

    def known_values(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns to adjust for: numbers, dates as days, or the text of groups.

        A file of text does not say which of its cells are text, so numbers in it are numbers.
        """
        cells, values = pa.Table.from_batches(self.cells(names)), {}
        for name, column in zip(names, cells.columns, strict=True):
            kind, found = column.type, None
            is_text = pa.types.is_dictionary(kind) or "string" in str(kind)
            if name not in self.batch_key and (self.rows.is_text or not is_text):
                as_date = Column(name, "date") if pa.types.is_temporal(kind) else None
                found = numbers(column) if as_date is None else as_date.encode(column)[:, 0]
            if found is None:
                found = np.array(known_texts(column).to_pylist(), dtype=object)
            values[name] = found
        return values

    def batches(self, features: ArrayLike | None = None) -> Iterator[Any]:
        """Go through the numbers as a fit takes them: missing values settled, columns scaled.

        Parameters
        ----------
        features : array-like of int, optional
            Which features, in this order; by default all.

        Yields
        ------
        array of shape (n_rows_in_batch, n_features)
            A batch of rows; of a table that is held, all of them.
        """
        places, first = self.places(features), 0
        if self._is_prepared:
            yield self._held[:, places]
            return
        for values in self._numbers(features):
            ready = self._preparation.apply(values, first, places)
            if ready.shape[0]:
                yield ready
            first += values.shape[0]

    def cells(self, names: Sequence[str]) -> Iterator[Any]:
        """Go through some columns as they are in the file, without rows that were left out.

        Parameters
        ----------
        names : sequence of str
            Names of features or carried columns, in the order wanted.

        Yields
        ------
        pyarrow.RecordBatch
            A batch of rows.
        """
        first = 0
        for batch in self._record_batches(names):
            kept = self._preparation.kept_rows(first, batch.num_rows)
            first += batch.num_rows
            yield batch if kept is None else batch.filter(pa.array(kept))

    def matrix(self, features: Sequence[int]) -> Any:
        """Return some features as the matrix that the file holds, None where it holds columns."""
        matrix = self.rows.matrix([self.names[feature] for feature in features])
        if matrix is None:
            return None
        kept = self._preparation.kept_rows(0, matrix.shape[0])
        return matrix if kept is None else matrix[kept]

    def annotated(self, features: Sequence[int]) -> Any:
        """Return some features with all annotations of the AnnData object that the file holds."""
        adata = getattr(self.rows, "adata", None)
        if adata is None:
            raise self._error(
                "only what was read from a .h5ad or .zarr file can be written to one. Write "
                ".parquet, .npz or .csv."
            )
        place = {name: number for number, name in enumerate(self.rows.features)}
        columns = [place[self.names[feature]] for feature in features]
        kept = self._preparation.kept_rows(0, adata.n_obs)
        return (adata if kept is None else adata[kept])[:, columns].copy()

    def _settle_kinds(self, kinds: Mapping[str, Kind], strict: bool) -> Survey | None:
        """Find out what each column is; what says nothing is carried instead.

        Where all are numbers, what a survey would tell of them is known as well.
        """
        reader = NumericColumns(self.source)
        others = {name for name, kind in kinds.items() if kind != "number"}
        plain = [column for column in self.columns if column.name not in others]
        names = [column.name for column in plain]
        row_numbers, survey = RowNumbers(names), Survey(names, slice(None), is_sparse=False)

        def looked_at() -> Iterator[Array]:
            """Look at the numbers on their way into memory, while the file is read on."""
            for values in regrouped(self._parsed(plain, reader), _ROWS_TO_SURVEY):
                row_numbers.add(values)
                if not reader.bad:
                    survey.add(values)
                yield values

        numbers = None
        if self.is_held and plain:
            numbers = self._stacked(looked_at(), plain)
        elif plain:
            deque(looked_at(), maxlen=0)
        if strict:
            reader.check()
        texts = [c.name for c in self.columns if c.name in reader.bad or c.name in others]
        learned = {name: LearnedColumn() for name in texts}
        for cells in self._record_batches(texts) if texts else ():
            for name, column in learned.items():
                column.add(cells.column(name))
        # What was asked for goes before what a column looks like.
        found = {name: column.decide(name, kinds.get(name)) for name, column in learned.items()}
        n_left = sum(found.get(c.name, c).kind != "left out" for c in self.columns)
        about_rows = {
            name: Column(name, "left out", why)
            for name, why in row_numbers.found().items()
            if name not in kinds and name not in found
        }
        # Of two columns, even one that counts the rows may be meant.
        if not strict and n_left - len(about_rows) >= 2:
            found |= about_rows
        self._take_as(found.get(column.name, column) for column in self.columns)
        places = {name: place for place, name in enumerate(names)}
        if self.is_held:
            self._held = self._joined(numbers, places, set(texts))
        if texts or (survey.gaps and found):
            return None
        survey.keep(np.array([places[name] for name in self.names]))
        return survey

    def _joined(self, numbers: Array | None, places: Mapping[str, int], texts: set[str]) -> Array:
        """Return the matrix of all features, of numbers that were read and cells that were not."""
        if numbers is None:
            return self._stacked(self._parsed(self._features), self._features)
        as_read = [places[name] for name in self.names if name not in texts]
        if len(as_read) == self.n_features == numbers.shape[1]:
            return numbers
        to_encode = [column for column in self._features if column.name in texts]
        widths = [column.width for column in self._features]
        is_text = np.repeat([name in texts for name in self.names], widths)
        values = np.empty((len(numbers), is_text.size))
        values[:, ~is_text] = numbers[:, as_read]
        if to_encode:
            values[:, is_text] = self._stacked(self._parsed(to_encode), to_encode)
        return values

    def places(self, features: ArrayLike | None) -> Any:
        """Return the columns of the matrix that belong to features."""
        if features is None:
            return slice(None)
        numbers = np.asarray(features, dtype=np.intp)
        if self.groups is None:
            return numbers
        ends = (np.searchsorted(self.groups, numbers, side) for side in ("left", "right"))
        ranges = [np.arange(*two) for two in zip(*ends, strict=True)]
        return np.concatenate([np.empty(0, np.intp), *ranges])

    def by_feature(self, columns: Indices) -> tuple[Indices, Indices]:
        """Return the features of columns of the matrix, best first, and where each ends."""
        if self.groups is None:
            return columns, np.arange(columns.size)
        of = self.groups[columns]
        features, last = np.unique(of[::-1], return_index=True)
        ends = of.size - 1 - last
        order = np.argsort(ends)
        return features[order], ends[order]

    def kept_together(self, given: Mapping[Any, Sequence[int]] | None) -> Any:
        """Return the columns of the matrix in each group: of features, as given, or a category."""
        if self.groups is None:
            return given
        given = given or {}
        grouped = {feature for members in given.values() for feature in members}
        widths = np.bincount(self.groups)
        categories = {
            # A group may have the name of a category that is not in it.
            f"{name} (category)" if name in given else name: [feature]
            for feature, name in enumerate(self.names)
            if widths[feature] > 1 and feature not in grouped
        }
        together = {**given, **categories}
        return {name: self.places(members).tolist() for name, members in together.items()}

    def _stacked(self, blocks: Iterable[Array], columns: Sequence[Column]) -> Array:
        """Put blocks of rows into memory that is taken once, or again where it was too little."""
        width = sum(column.width for column in columns)
        values, end = np.empty((self.rows.most_rows, width)), 0
        for block in blocks:
            start, end = end, end + len(block)
            if end > len(values):
                values = np.concatenate([values[:start], np.empty((end, width))])
            values[start:end] = block
        return values[:end]

    def _survey(self) -> Survey:
        """Look at all numbers, as far as they are prepared, in blocks of one size or all."""
        is_sparse = sparse.issparse(self._held)
        firsts = slice(None) if self.groups is None else np.unique(self.groups, True)[1]
        survey, batches = Survey(self.names, firsts, is_sparse), self.batches()
        for values in batches if is_sparse else regrouped(batches, _ROWS_TO_SURVEY):
            survey.add(values)
        return survey

    def _settle_missing(self, how: Missing, strict: bool, survey: Survey) -> Survey | None:
        """Decide what to do about missing values; a survey of what has none stays true."""
        gaps = survey.gaps
        self.gaps |= {self.names[i]: int(gaps.by_column[i]) for i in np.flatnonzero(gaps.by_column)}
        mostly = gaps.by_column > MOST_MISSING * gaps.n_rows
        if how == "median" and not strict and mostly.any():
            self._keep_of_held(np.flatnonzero(~mostly))
            found = {
                self.names[one]: f"{gaps.by_column[one] / gaps.n_rows:.0%} is missing"
                for one in np.flatnonzero(mostly)
            }
            self._take_as(
                replace(one, kind="left out", why=found[one.name]) if one.name in found else one
                for one in self.columns
            )
            return self._settle_missing(how, strict, self._survey())
        if not gaps:
            return survey
        needed = _BYTES_TO_SORT * self.n_rows
        if how == "median" and needed > self.memory and not self.is_held:
            raise self._error(
                f"--missing median sorts a column, which takes {size_in_words(needed)}, more than "
                f"--memory {size_in_words(self.memory)}. Raise --memory, or use --missing "
                "drop-rows or drop-columns."
            )
        problem = gaps.why_not(how)
        if problem:
            raise self._error(problem)
        self.missing, incomplete = gaps.settled(how), np.flatnonzero(gaps.by_column)
        if how == "median":
            self._preparation.medians = self._medians(incomplete)
        elif how == "drop-rows":
            self._preparation.dropped_rows = gaps.rows
        else:
            dropped = set(self.missing.columns_dropped)
            self._keep_of_held(np.flatnonzero(gaps.by_column == 0))
            self._take_as(c for c in self.columns if c.name not in dropped)
        return None

    def _medians(self, features: Indices) -> Array:
        """Return the medians of some features, of as many at a time as fit into memory."""
        at_once = max(1, self.memory // (_BYTES_TO_SORT * self.n_rows))
        medians = np.zeros(len(self.matrix_names))
        for start in range(0, features.size, at_once):
            part = features[start : start + at_once]
            parts = (p.toarray() if sparse.issparse(p) else p for p in self._numbers(part))
            columns = np.concatenate(list(parts)).T
            medians[self.places(part)] = [np.median(cells[np.isfinite(cells)]) for cells in columns]
        return medians

    def _keep_of_held(self, features: Indices) -> None:
        if sparse.issparse(self._held):
            self._held = self._held[:, features]
        elif self.is_held:
            # In the order of rows, so that sums over them are the same to the bit.
            self._held = self._held.take(self.places(features), axis=1)

    def _settle_scale(self, scale: Scale, survey: Survey) -> None:
        """Learn how to bring columns to one scale, where they do not share one."""
        scaler, self.scale = survey.scaler, scale
        immense = [self.matrix_names[one] for one in np.flatnonzero(~np.isfinite(scaler.var_))]
        if immense and scale == "standard":
            raise self._error(
                f"the numbers of {listed(immense)} are too large to have a variance. Leave it out "
                "with --ignore, or use --scale none."
            )
        if immense:
            self.scale = "none"
            self.why_scaled = f"the numbers of {listed(immense)} are too large to have a variance"
        elif scale == "auto":
            kinds = {column.kind for column in self._features}
            self.scale, self.why_scaled = survey.suited_scale(self.names, kinds)
        if self.scale == "noise":
            self.why_scaled = "in log-normalized expression noise goes with the mean"
            if survey.is_below_zero:
                self.scale, self.why_scaled = "none", "below zero, no mean tells of the noise"
        if self.scale == "noise":
            self._preparation.means = np.zeros(scaler.var_.size)
            self._preparation.scales = usual_deviations(scaler.mean_, scaler.var_)
        elif self.scale == "standard" or self._has_categories:
            groups = np.arange(self.n_features) if self.groups is None else self.groups
            is_category = np.array([one.kind == "category" for one in self._features])[groups]
            is_standard = self.scale == "standard"
            self._preparation.scale_by(scaler, groups, is_category, is_standard)

    def _record_batches(self, names: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Go through columns of the file, which must not change in between."""
        file, known, n_rows = self.rows.file, self.rows.n_rows, 0
        file.check_unchanged()
        try:
            most_rows = None if self.is_held else self._rows_at_once(names)
            for batch in self.rows.batches(names, most_rows, numeric):
                if batch.num_rows:
                    n_rows += batch.num_rows
                    file.progress(f"{n_rows:,} of {known:,} rows" if known else f"{n_rows:,} rows")
                    yield batch
        except Exception:
            # What makes no sense may do so because somebody writes to the file.
            file.check_unchanged()
            raise
        file.check_unchanged()
        if n_rows == 0:
            raise self._error(self.rows.empty)
        self.rows.n_rows = n_rows

    def _numbers(self, features: ArrayLike | None = None) -> Iterator[Any]:
        """Go through the numbers as they were read, NaN where a value is missing."""
        if self.is_held:
            yield self._held if features is None else self._held[:, self.places(features)]
        else:
            wanted = range(self.n_features) if features is None else np.asarray(features)
            blocks = self._parsed([self._features[feature] for feature in wanted])
            yield from regrouped(blocks, self.batch_rows)

    def _parsed(
        self, columns: Sequence[Column], reader: NumericColumns | None = None
    ) -> Iterator[Array]:
        """Go through columns as numbers; a reader given remembers which are none."""
        strict, names = reader is None, [column.name for column in columns]
        reader = reader or NumericColumns(self.source)
        n_at_once = self._rows_at_once(names)
        plain = [column.name for column in columns if column.is_plain]
        for cells in joined(self._record_batches(names, plain), 8 * n_at_once * len(names)):
            # Not a few rows by themselves that were left over.
            step = -(-cells.num_rows // max(1, cells.num_rows // n_at_once))
            for start in range(0, cells.num_rows, step):
                values = encoded(cells.slice(start, step), columns, reader)
                if not (strict and reader.bad):
                    yield values
        if strict:
            reader.check()
        # What Arrow has read would stay in its pool during the fit.
        del cells
        pa.default_memory_pool().release_unused()

    def _rows_at_once(self, names: Sequence[str]) -> int:
        return min(self.batch_rows, max(_FEWEST_ROWS, _CELLS_AT_ONCE // len(names)))

    @property
    def source(self) -> str:
        """The file, as messages name it."""
        return self.rows.file.source

    def _error(self, message: str) -> TableError:
        return TableError(f"{self.source}: {message}")
