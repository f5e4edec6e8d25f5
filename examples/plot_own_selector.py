"""
Add your own selector
=====================

A method is one class with one function: given the columns, return a score for each, larger is
better. Everything else comes with the base class: validation and its messages, names, ranking,
ties, ``transform``, ``set_output``.
"""

# %%
# An idea to try: a column that falls into two heaps may split the rows into groups. Score it by its
# best cut, the one that puts most of the variance between the two sides. A single heap of normally
# distributed values reaches 0.64, two far heaps nearly 1.
import numpy as np

from bsufs.selectors import ScoringSelector


class BestCut(ScoringSelector):
    """Score a column by the share of its variance that lies between the sides of its best cut."""

    def __init__(self, n_features_to_select="auto"):
        self.n_features_to_select = n_features_to_select

    def _score(self, data):
        X = data.ordered
        # Relative to its largest entry, no column overflows when squared.
        deviation = X - X.mean(axis=0)
        largest = np.abs(deviation).max(axis=0)
        deviation = np.sort(deviation / np.where(largest > 0, largest, 1), axis=0)
        left = np.arange(1, len(X))[:, None]
        between = np.cumsum(deviation, axis=0)[:-1] ** 2 / (left * (len(X) - left)) * len(X)
        total = np.sum(deviation**2, axis=0)
        return between.max(axis=0) / np.where(total > 0, total, 1)


# %%
# One line tests it: scikit-learn's checks, and those of this library, such as exactly k features,
# any order of the columns, constant columns last, a clear word on missing values.
from bsufs.selectors import check_selector

check_selector(BestCut())

# %%
# It now works wherever a selector does: with names, in pipelines, in searches and reports. Here 4
# of the 13 measurements of wines.
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

wines = load_wine(as_frame=True)
selector = BestCut(4).set_output(transform="pandas").fit(wines.data)
reduced = selector.transform(wines.data)

figure, axes = plt.subplots(1, 4, figsize=(7.6, 3), layout="constrained", sharey=True)
ranked = np.argsort(selector.ranking_)
for ax, column in zip(axes, [*ranked[:3], ranked[-1]], strict=True):
    name = wines.data.columns[column]
    kept = name in reduced
    ax.hist(wines.data[name], bins=24, color="#d55e00" if kept else "#8fa3b3")
    ax.set_title(f"rank {selector.ranking_[column]}: {selector.scores_[column]:.2f}", fontsize=10)
    ax.set_xlabel(name.replace("_", " ").replace(" of diluted wines", ""))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("wines")
figure.suptitle("The three best columns by their best cut, and the worst", fontsize=11)

# %%
# Is it any good? Ask criteria that need no label, beside `BSUFS` and the mean of ten random draws.
import pandas as pd
from sklearn.preprocessing import StandardScaler

from bsufs.selectors import BSUFS, RandomSelector
from bsufs.tuning.criteria import ClusteringAgreement, HeldOutReconstruction

X = StandardScaler().fit_transform(wines.data)
methods = {
    "BestCut": [BestCut(4)],
    "BSUFS": [BSUFS(4)],
    "random columns": [RandomSelector(4, random_state=seed) for seed in range(10)],
}
criteria = {
    "explains of held-out rows": HeldOutReconstruction(),
    "same clusters as all columns": ClusteringAgreement(n_clusters=3),
}
rows = {
    name: {
        question: np.mean([criterion.score(X, method.fit(X).support_) for method in tried])
        for question, criterion in criteria.items()
    }
    for name, tried in methods.items()
}
pd.DataFrame(rows).T.round(2)

# %%
# The idea holds its own here, ahead of chance. One table of 13 columns is a first look and no more:
# ``bsufs-paper run`` compares methods properly, on many datasets with fresh seeds
# (:doc:`/experiments`), and takes a class of your own as it is.
#
# To add a method to the library itself, put the class into a file of its own in ``selectors/``:
# :doc:`/extending` shows it.
