"""Unsupervised feature selection behind one scikit-learn interface."""

__version__ = "0.1.0.dev0"
