"""Feature selectors, one estimator a file."""

from bsufs.selectors.bsufs import BSUFS, SparsityPath, bsufs_path

__all__ = ["BSUFS", "SparsityPath", "bsufs_path"]
