"""A table in memory: numbers to select from, and the cells they were read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bsufs._typing import Mask
from bsufs.tables._errors import TableError, listed


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers with names, beside the cells that they were read from.

    Parameters
    ----------
    values : array of float64 or sparse array of shape (n_rows, n_features)
        What to compute with.
    names : tuple of str
        Names of the features, all different.
    originals : pyarrow.Table, array or sparse array
        The same columns as they were read: the characters of a text file, the types of the others.
    carried : pyarrow.Table
        Columns that are no features (identifiers, labels), as they were read.
    order : tuple of str
        Names of features and carried columns in the order of the file.
    is_text : bool, default=False
        Whether the cells are the characters of a text file.
    notices : tuple of str, default=()
        What the reader of the result should know about how the file was read.
    """

    values: Any
    names: tuple[str, ...]
    originals: Any
    carried: Any
    order: tuple[str, ...]
    is_text: bool = False
    notices: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)

    @property
    def others(self) -> Any:
        """The carried columns as a pandas data frame."""
        return self.carried.to_pandas()

    def as_read(self, names: Sequence[str]) -> Iterator[Any]:
        """Go through some columns as they were read.

        Parameters
        ----------
        names : sequence of str
            Features and carried columns.

        Yields
        ------
        pyarrow.ChunkedArray or numpy.ndarray
            The cells of a column.
        """
        place = {name: number for number, name in enumerate(self.names)}
        by_column = self.originals.tocsc() if sparse.issparse(self.originals) else self.originals
        for name in names:
            if name not in place:
                yield self.carried.column(name)
            elif self._is_columnar:
                yield by_column.column(place[name])
            elif sparse.issparse(by_column):
                yield by_column[:, [place[name]]].toarray().ravel()
            else:
                yield by_column[:, place[name]]

    @property
    def _is_columnar(self) -> bool:
        # Asking Arrow for the names of its columns would build a list of all of them each time.
        return hasattr(self.originals, "select")

    def features(self, columns: ArrayLike, order: Literal["table", "rank"] = "table") -> Table:
        """Return the table with some of the features, and all carried columns.

        Parameters
        ----------
        columns : array-like of int
            Numbers of the features, best first.
        order : {"table", "rank"}, default="table"
            Whether the columns keep the order of the file, or carried ones come first and the
            features follow as given.

        Returns
        -------
        Table
            The reduced table.
        """
        ranked = [int(column) for column in np.asarray(columns)]
        kept = sorted(ranked) if order == "table" else ranked
        names = tuple(self.names[column] for column in kept)
        if order == "table":
            staying = {*names, *self.carried.column_names}
            columns_in_order = tuple(name for name in self.order if name in staying)
        else:
            columns_in_order = (*self.carried.column_names, *names)
        return replace(
            self,
            values=self.values[:, kept],
            names=names,
            originals=self.originals.select(kept) if self._is_columnar else self.originals[:, kept],
            order=columns_in_order,
        )

    def rows(self, kept: Mask) -> Table:
        """Return the table with some of the rows.

        Parameters
        ----------
        kept : array of bool of shape (n_rows,)
            The rows to keep.

        Returns
        -------
        Table
            The shorter table.
        """
        return replace(
            self,
            values=self.values[kept],
            originals=self.originals.filter(kept) if self._is_columnar else self.originals[kept],
            carried=self.carried.filter(kept) if self.carried.num_columns else self.carried,
        )


def joined(tables: Sequence[Table]) -> Table:
    """Return tables with the same columns one below the other."""
    if len(tables) == 1:
        return tables[0]
    import pyarrow as pa

    return replace(
        tables[0],
        values=np.concatenate([table.values for table in tables]),
        originals=pa.concat_tables([table.originals for table in tables]),
        carried=pa.concat_tables([table.carried for table in tables]),
    )


def check_names(names: Sequence[str], source: str) -> None:
    """Raise an error where names are missing or occur twice."""
    unnamed = [number for number, name in enumerate(names, start=1) if not name]
    if unnamed:
        raise TableError(
            f"{source}: column {unnamed[0]} of {len(names)} has no name (a delimiter too many?). "
            "Give it one, or read the file with --no-header if its first line holds values."
        )
    if len(set(names)) < len(names):
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        twice = [name for name, count in counts.items() if count > 1]
        raise TableError(
            f"{source}: column names must differ, but {listed(twice)} occurs more than once. "
            "Rename them, or read the file with --no-header if its first line holds values."
        )
