"""Unsupervised feature selection behind one scikit-learn interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bsufs.inspection import alternatives, explain, make_report
    from bsufs.purposes import select
    from bsufs.selectors import BSUFS, ClusterAlignment, NeighborAlignment, SparsityPath, bsufs_path
    from bsufs.table_selector import TableSelector
    from bsufs.tuning import ConsensusSelector, LabelFreeSearch

__version__ = "0.1.0.dev0"

__all__ = [
    "BSUFS",
    "ClusterAlignment",
    "ConsensusSelector",
    "LabelFreeSearch",
    "NeighborAlignment",
    "SparsityPath",
    "TableSelector",
    "__version__",
    "alternatives",
    "bsufs_path",
    "explain",
    "make_report",
    "select",
]

# Fetched when first used: the command line answers `--help` without scikit-learn.
_HOMES = {
    "ClusterAlignment": "bsufs.selectors",
    "BSUFS": "bsufs.selectors",
    "ConsensusSelector": "bsufs.tuning",
    "LabelFreeSearch": "bsufs.tuning",
    "NeighborAlignment": "bsufs.selectors",
    "SparsityPath": "bsufs.selectors",
    "TableSelector": "bsufs.table_selector",
    "alternatives": "bsufs.inspection",
    "bsufs_path": "bsufs.selectors",
    "explain": "bsufs.inspection",
    "make_report": "bsufs.inspection",
    "select": "bsufs.purposes",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
