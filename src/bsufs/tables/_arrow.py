"""Arrow, which is loaded when it is first used: it is an extra, and takes a while to import."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Module:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


pa: Any = _Module("pyarrow")
arrow_csv: Any = _Module("pyarrow.csv")
compute: Any = _Module("pyarrow.compute")
ipc: Any = _Module("pyarrow.ipc")
parquet: Any = _Module("pyarrow.parquet")
