"""Files of typed columns: Parquet and Feather."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from bsufs.tables._files import RawFile, TableError, unreadable_message
from bsufs.tables._rows import ROW_NAMES, Rows

# A column of a Parquet file is read through a window of so many bytes.
_WINDOW_BYTES = 2**16
# pandas names index columns so where they have no name.
_PANDAS_INDEX = "__index_level_"


class _ColumnarRows(Rows):
    """The rows of a file of typed columns."""

    kind: str

    def __init__(self, file: RawFile) -> None:
        import pyarrow as pa

        self.file = file
        self.empty_message = f"{file.source}: the table has no rows."
        with self._opened() as opened:
            schema = self._look(opened)
        self.names = self.features = tuple(schema.names)
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        self.row_names = tuple(
            name
            for name in schema.names
            if name in index or name == ROW_NAMES or name.startswith(_PANDAS_INDEX)
        )
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        self.has_carriage_returns = not all(
            any(is_kind(kind) for is_kind in numeric) for kind in schema.types
        )

    def batches(self, names: Sequence[str], most_rows: int) -> Iterator[Any]:
        with self._opened() as opened:
            for batch in self._batches(opened, list(names), most_rows):
                yield batch.replace_schema_metadata(None)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file, and say in one line where it is of another kind."""
        import pyarrow as pa

        with self.file.open() as stream:
            try:
                yield self._open(stream)
            except (pa.ArrowException, OSError) as error:
                message = unreadable_message(self.kind, error)
                raise TableError(f"{self.file.source}: {message}") from error
            finally:
                # Pages and dictionaries of many columns would stay in the pool during the fit.
                pa.default_memory_pool().release_unused()

    @abstractmethod
    def _open(self, stream: Any) -> Any: ...

    @abstractmethod
    def _look(self, opened: Any) -> Any:
        """Note what can be known without reading, and return the schema."""

    @abstractmethod
    def _batches(self, opened: Any, names: list[str], most_rows: int) -> Iterator[Any]: ...


class ParquetRows(_ColumnarRows):
    """The rows of a Parquet file, read through a small window on each column."""

    kind = "Parquet"

    def _open(self, stream: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(stream, buffer_size=_WINDOW_BYTES, pre_buffer=False)

    def _look(self, opened: Any) -> Any:
        about = opened.metadata
        self.n_rows = self.most_rows = about.num_rows
        # Sixteen bytes for each cell, or more where the file says so.
        as_numbers = 8 * about.num_rows * about.num_columns
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        as_stored = sum(group.total_byte_size for group in groups)
        self.memory_to_hold = as_numbers + max(as_numbers, as_stored)
        return opened.schema_arrow

    def _batches(self, opened: Any, names: list[str], most_rows: int) -> Iterator[Any]:
        for batch in opened.iter_batches(most_rows, columns=names, use_threads=False):
            # Asked for by name, columns inside others of that name would come as well.
            yield batch.select(names)


class FeatherRows(_ColumnarRows):
    """The rows of a Feather (Arrow) file, as they were written in batches."""

    kind = "Feather (version 2)"

    def _open(self, stream: Any) -> Any:
        from pyarrow import ipc

        return ipc.open_file(stream)

    def _look(self, opened: Any) -> Any:
        return opened.schema

    def _batches(self, opened: Any, names: list[str], most_rows: int) -> Iterator[Any]:
        for number in range(opened.num_record_batches):
            yield opened.get_batch(number).select(names)
