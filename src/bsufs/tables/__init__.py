"""Tables in and out: from a file to numbers with names, and back with every kept cell as it was."""

from bsufs.tables._files import TableError
from bsufs.tables._kinds import Column
from bsufs.tables._open import open_table, prepare
from bsufs.tables._prepare import MissingValues
from bsufs.tables._table import Table
from bsufs.tables._write import write_table

__all__ = ["Column", "MissingValues", "Table", "TableError", "open_table", "prepare", "write_table"]
