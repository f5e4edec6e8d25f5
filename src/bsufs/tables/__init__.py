"""Tables in and out: from a file to numbers with names, and back with every kept cell as it was."""

from bsufs.tables._files import TableError
from bsufs.tables._open import open_table
from bsufs.tables._prepare import MissingValues
from bsufs.tables._table import Table
from bsufs.tables._write import write_table

__all__ = ["MissingValues", "Table", "TableError", "open_table", "write_table"]
