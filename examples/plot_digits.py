"""
Sixteen pixels of handwritten digits
====================================

The digits of scikit-learn are images of 8 x 8 pixels. Which 16 of the 64 pixels are the most
informative? Nobody tells the selectors which digit they look at.
"""

# %%
# Two selectors answer. :class:`~bsufs.selectors.BSUFS` keeps pixels that carry the principal
# components; :class:`~bsufs.selectors.ClusterAlignment`, the default of ``bsufs select``, keeps
# pixels in which the groups that all pixels show together can be seen.
from sklearn.datasets import load_digits

from bsufs import BSUFS, ClusterAlignment

X, digits = load_digits(return_X_y=True)
selectors = {"BSUFS": BSUFS(16).fit(X), "ClusterAlignment": ClusterAlignment(16).fit(X)}

# %%
# Drawn over the average image, both look at the middle, where the digits differ, and leave out the
# border, where all of them are white.
import matplotlib.pyplot as plt

from bsufs.inspection import plot_pixels

figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
for ax, (name, selector) in zip(axes, selectors.items(), strict=True):
    plot_pixels(selector, (8, 8), X=X, ax=ax)
    ax.set_title(f"16 pixels of {name}", fontsize=11)

# %%
# Now the labels, for the first time: cluster the images by the 16 pixels, and see how well the
# clusters match the digits (normalized mutual information, 100 for a perfect match). Random pixels
# are drawn 20 times.
import numpy as np

from bsufs.metrics import batched_kmeans, normalized_mutual_information


def agreement(columns):
    runs = batched_kmeans(X[:, columns], 10, n_runs=10, random_state=0)
    return 100 * normalized_mutual_information(digits, runs.labels[runs.best])


rng = np.random.default_rng(0)
varying = np.flatnonzero(X.std(axis=0) > 0)
found = {name: agreement(selector.support_) for name, selector in selectors.items()}
found["all 64 pixels"] = agreement(slice(None))
random = [agreement(rng.choice(varying, 16, replace=False)) for _ in range(20)]

figure, ax = plt.subplots(figsize=(7.5, 2.8), layout="constrained")
names = ["16 random pixels", *(f"16 pixels of {name}" for name in selectors), "all 64 pixels"]
values = [np.mean(random), *found.values()]
colors = ["#8fa3b3", "#d55e00", "#d55e00", "#0072b2"]
ax.barh(names, values, color=colors, height=0.62)
ax.plot(random, np.zeros(20), "|", color="#1b2a34", markersize=11)
for row, value in enumerate(values):
    ax.text(value + 1 if row else max(random) + 1.5, row, f"{value:.0f}", va="center")
ax.set(xlim=(0, 100), xlabel="agreement of clusters with digits (NMI, %)")
ax.spines[["top", "right"]].set_visible(False)

# %%
# A quarter of the pixels keeps most of what k-means can see. One number of one dataset proves
# little; :doc:`/defaults` and :doc:`/tuning` have the measurements on seven.
for name, value in zip(names, values, strict=True):
    print(f"{name:25s} {value:5.1f}")
