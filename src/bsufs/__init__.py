"""Unsupervised feature selection behind one scikit-learn interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bsufs.selectors import BSUFS, SparsityPath, bsufs_path

__version__ = "0.1.0.dev0"

__all__ = ["BSUFS", "SparsityPath", "__version__", "bsufs_path"]


def __getattr__(name: str) -> Any:
    # Fetched when first used: the command line answers `--help` without scikit-learn.
    if name in __all__:
        from bsufs import selectors

        return getattr(selectors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
