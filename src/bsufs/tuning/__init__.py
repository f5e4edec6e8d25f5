"""Choosing without labels: criteria, settings, numbers of features, and a consensus of many runs.

Nothing in this package ever sees a label: `bsufs.metrics.clustering` is never imported here.
"""

from bsufs.tuning._settings import default_grid
from bsufs.tuning.consensus import ConsensusSelector
from bsufs.tuning.search import LabelFreeSearch

__all__ = ["ConsensusSelector", "LabelFreeSearch", "default_grid"]
