"""Files of typed columns: Parquet and Feather."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from typing import Any

from bsufs._extras import needs
from bsufs.tables._arrow import ipc, pa, parquet
from bsufs.tables._files import PARQUET, RawFile, TableError, listed, reading
from bsufs.tables._rows import ROW_NAMES, Rows

# A column of a Parquet file is read through a window of so many bytes.
_WINDOW_BYTES = 2**16
# pandas names index columns so where they have no name.
_PANDAS_INDEX = "__index_level_"


class ColumnarRows(Rows):
    """The rows of a file of typed columns; only Parquet files are read in parts."""

    def __init__(self, file: RawFile, kind: str) -> None:
        self.file = file
        self._is_parquet = kind in PARQUET
        with self._opened() as opened:
            schema = opened.schema_arrow if self._is_parquet else opened.schema
            if self._is_parquet:
                about = opened.metadata
                self.n_rows = self.most_rows = about.num_rows
                # Sixteen bytes for each cell, or more where the file says so.
                as_numbers = 8 * about.num_rows * about.num_columns
                groups = map(about.row_group, range(about.num_row_groups))
                as_stored = sum(group.total_byte_size for group in groups)
                self.memory_to_hold = as_numbers + max(as_numbers, as_stored)
        self.names = self.features = tuple(schema.names)
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        self.row_names = tuple(
            name
            for name in schema.names
            if name in index or name == ROW_NAMES or name.startswith(_PANDAS_INDEX)
        )

    def batches(
        self, names: Sequence[str], most_rows: int | None, numeric: Collection[str] = ()
    ) -> Iterator[Any]:
        wanted = list(names)
        with self._opened() as opened:
            batches: Any
            if not self._is_parquet:
                batches = map(opened.get_batch, range(opened.num_record_batches))
            elif most_rows is None:
                # Column by column: in batches, the readers of all columns are open at a time.
                batches = opened.read(wanted).to_batches()
            else:
                batches = opened.iter_batches(most_rows, columns=wanted, use_threads=False)
            for batch in batches:
                # Asked for by name, columns inside others of that name would come as well.
                yield batch.select(wanted).replace_schema_metadata(None)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file, and say in one line where it is of another kind."""
        kind = "Parquet" if self._is_parquet else "Feather (version 2)"
        broken = (pa.ArrowException, OSError)
        with self.file.open_in_arrow() as own, reading(self.file.source, kind, broken):
            if self._is_parquet:
                yield parquet.ParquetFile(own, buffer_size=_WINDOW_BYTES, pre_buffer=False)
            else:
                yield ipc.open_file(own)


class FrameRows(Rows):
    """The rows of a data frame that is in memory: of pandas, polars or Arrow."""

    def __init__(self, frame: Any) -> None:
        # No bytes are behind it, only the name that messages have.
        self.file = RawFile(io.BytesIO(), 1.0)
        self.file.source = "the table"
        if hasattr(frame, "to_arrow"):
            self._table = frame.to_arrow()
        elif isinstance(frame, pa.Table):
            self._table = frame
        else:
            self._table = _from_pandas(frame)
        self.names = self.features = tuple(self._table.column_names)
        self.row_names = ()
        self.n_rows = self.most_rows = self._table.num_rows

    def batches(
        self, names: Sequence[str], most_rows: int | None, numeric: Collection[str] = ()
    ) -> Iterator[Any]:
        yield from self._table.select(list(names)).to_batches()


def excel_rows(file: RawFile, sheet: str | None) -> Rows:
    """Return the rows of a sheet of a workbook, the first by default."""
    import pandas as pd

    with needs("reading .xlsx files", "excel"):
        import_module("openpyxl")
    with file.open() as stream, reading(file.source, "spreadsheet"):
        sheets = pd.ExcelFile(stream, engine="openpyxl")
        names = [str(name) for name in sheets.sheet_names]
        if sheet is not None and sheet not in names:
            raise TableError(
                f"{file.source}: --array must name a sheet, got {sheet!r}; there are "
                f"{listed(names)}."
            )
        frame = sheets.parse(sheet or 0)
    rows = FrameRows(frame)
    rows.file = file
    return rows


def _from_pandas(frame: Any) -> Any:
    """Return a data frame of pandas in Arrow; cells of several kinds become text."""
    import pandas as pd

    frame = pd.DataFrame(frame)
    columns = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        try:
            columns.append(pa.array(column, from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            texts = [None if pd.isna(cell) is True else str(cell) for cell in column]
            columns.append(pa.array(texts, pa.string()))
    return pa.table(columns, names=[str(name) for name in frame.columns])
