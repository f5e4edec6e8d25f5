"""
How many features?
==================

There is no label to tell. Three ways to answer need none: what principal components explain, a
criterion with a tolerance, and the eye.
"""

# %%
# 30 measurements of cell nuclei in 569 images, in different units: standardize them first.
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

nuclei = load_breast_cancer(as_frame=True).data
X = StandardScaler().set_output(transform="pandas").fit_transform(nuclei)

# %%
# **Leave it to the method.** By default `n_features_to_select` is "auto": the fewest columns that
# explain, by linear regression, as much variance as the principal components above the noise do.
from bsufs import BSUFS

selector = BSUFS().fit(X)
print(selector.n_components_, "components;", len(selector.selected_features_), "columns:")
print(*selector.selected_features_, sep="\n")

# %%
# **Look.** What the best 1, 2, ... columns explain, below what as many principal components would:
# no selection can get above that line.
import matplotlib.pyplot as plt

from bsufs.inspection import plot_explained_variance

plot_explained_variance(selector, X)

# %%
# **Ask a criterion.** A search judges each number by rows that it held out. That grows with every
# column as a rule, so it takes the most; `tolerance` takes the fewest that come within that share
# of the range between the worst and the best.
from bsufs import LabelFreeSearch

numbers = list(range(1, 31))
chosen = {}
for tolerance in (0.0, 0.05, 0.2):
    search = LabelFreeSearch(
        BSUFS(),
        param_grid={},
        n_features_to_select=numbers,
        criterion="reconstruction",
        tolerance=tolerance,
    ).fit(X)
    chosen[tolerance] = search.best_params_["n_features_to_select"]

# sphinx_gallery_thumbnail_number = 2
curve = search.criteria_.sort_values("n_features")
figure, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
ax.plot(curve["n_features"], 100 * curve["reconstruction"], "o-", color="#1b2a34", lw=2, ms=5)
for (tolerance, number), color in zip(
    chosen.items(), ["#66737d", "#0072b2", "#d55e00"], strict=True
):
    ax.axvline(number, color=color, ls="--", lw=1.4)
    ax.text(number - 0.3, 14, f"tolerance {tolerance:g}", color=color, rotation=90, ha="right")
ax.set(xlabel="columns", ylabel="variance of held-out rows explained, %", xlim=(0, 31))
ax.set(ylim=(10, 102), title="More columns explain more; a tolerance says when it is enough")
ax.spines[["top", "right"]].set_visible(False)

# %%
# None of these knows what the columns are for. To cluster, more columns than "auto" were usually
# better where it was measured (:doc:`/defaults`); to read, or to pay for each measurement, fewer
# may serve. If there is a task, let the task decide: put the selector into a pipeline, and
# cross-validate the number like any other setting.
print(chosen)
