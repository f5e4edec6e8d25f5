"""Choosing without labels: settings, numbers of features, and a consensus of many runs.

Nothing in this package ever sees a label: it may import `bsufs.tuning.criteria` and
`bsufs.metrics.label_free`, never `bsufs.metrics.clustering`.
"""

from bsufs.tuning._settings import default_grid
from bsufs.tuning.consensus import ConsensusSelector
from bsufs.tuning.search import LabelFreeSearch

__all__ = ["ConsensusSelector", "LabelFreeSearch", "default_grid"]
