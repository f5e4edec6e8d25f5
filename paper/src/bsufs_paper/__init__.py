"""The paper beside the library: its datasets, its experiments, and a report of every number."""

__version__ = "0.1.0.dev0"
