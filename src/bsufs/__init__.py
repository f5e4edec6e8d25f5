"""Unsupervised feature selection behind one scikit-learn interface."""

from bsufs.selectors import BSUFS, SparsityPath, bsufs_path

__version__ = "0.1.0.dev0"

__all__ = ["BSUFS", "SparsityPath", "__version__", "bsufs_path"]
