"""Tables in and out: from a file to numbers with names, and back with every kept cell as it was."""

from bsufs.tables._atomic import check_target, write_atomically
from bsufs.tables._errors import TableError
from bsufs.tables._missing import MissingValues, resolve_missing
from bsufs.tables._read import read_table
from bsufs.tables._stream import TableStream, memory_to_hold, stream_table
from bsufs.tables._table import Table
from bsufs.tables._write import check_output, write_batches, write_table

__all__ = [
    "MissingValues",
    "Table",
    "TableError",
    "TableStream",
    "check_output",
    "check_target",
    "memory_to_hold",
    "read_table",
    "resolve_missing",
    "stream_table",
    "write_atomically",
    "write_batches",
    "write_table",
]
