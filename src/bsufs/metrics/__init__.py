"""How good a selection of features is.

`clustering` compares clusters with classes and needs labels; `label_free` looks at the data and
the selections alone; `kmeans` makes the clusters.
"""

from bsufs.metrics.clustering import clustering_accuracy, normalized_mutual_information, purity
from bsufs.metrics.kmeans import KMeansRuns, batched_kmeans
from bsufs.metrics.label_free import Stability, nogueira_stability, reconstruction, redundancy

__all__ = [
    "KMeansRuns",
    "Stability",
    "batched_kmeans",
    "clustering_accuracy",
    "nogueira_stability",
    "normalized_mutual_information",
    "purity",
    "reconstruction",
    "redundancy",
]
