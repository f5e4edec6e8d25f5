"""
How far to trust a selection
============================

Would the same columns be selected from other rows? Two columns that say the same can take each
other's place without harm; a column that comes and goes by chance is another matter. Refits on
random halves of the rows show which is which.
"""

# %%
# 200 rows: three groups of columns follow three hidden factors, 20 columns are noise.
import numpy as np
import pandas as pd

rng = np.random.default_rng(3)
factors = rng.standard_normal((200, 3)) * [2.2, 1.8, 1.5]
groups = [factors[:, [i]] + rng.normal(0, 0.5, (200, 4)) for i in range(3)]
noise = rng.normal(0, 0.8, (200, 20))
names = [f"{letter}{j}" for letter in "abc" for j in range(1, 5)]
names += [f"noise{j}" for j in range(1, 21)]
X = pd.DataFrame(np.hstack([*groups, noise]), columns=names)

# %%
# We ask for six columns, although there are three factors. `explain` fits again on 40 random halves
# of the rows and says how often each column is selected again, with a 95 % interval.
from bsufs import BSUFS, explain
from bsufs.inspection import plot_stability

selector = BSUFS(6).fit(X)
why = explain(selector, X, n_subsamples=40)
ax = plot_stability(why, max_features=18)

# %%
# A column that is left out and often selected on halves is a substitute: the reason says for which.
pd.set_option("display.max_colwidth", None)
why[["name", "selected", "frequency", "reason"]].head(14)

# %%
# One number for the whole: the stability of Nogueira, Sechidis and Brown, 1 for selections that
# never change and 0 for chance; beside it, how much of the variance the six columns explain.
import matplotlib.pyplot as plt

from bsufs.metrics import nogueira_stability, reconstruction
from bsufs.selectors import ClusterAlignment, ColumnSubset, MaxVariance, RandomSelector

methods = [RandomSelector, ColumnSubset, MaxVariance, BSUFS, ClusterAlignment]
halves = [rng.choice(200, 100, replace=False) for _ in range(30)]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for row, method in enumerate(methods):
    masks = [
        method(6, **({"random_state": number} if method is RandomSelector else {}))
        .fit(X.iloc[half])
        .support_
        for number, half in enumerate(halves)
    ]
    found = nogueira_stability(masks)
    explained = np.mean([reconstruction(X, mask) for mask in masks])
    color = "#d55e00" if "BSUFS" in method.__name__ else "#66737d"
    ax.errorbar(
        found.value,
        row,
        xerr=[[found.value - found.lower], [found.upper - found.value]],
        fmt="o",
        color=color,
        capsize=3,
    )
    ax.text(1.06, row, f"explains {explained:.0%}", va="center", fontsize=9, color="#66737d")
ax.set_yticks(range(len(methods)), [method.__name__ for method in methods])
ax.set(xlim=(-0.1, 1.02), ylim=(-0.6, len(methods) - 0.4), xlabel="stability over halves, 95 %")
ax.axvline(0, color="#dde3e8", zorder=0)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Greedy columns explain a little more here and change far more from half to half. And stable is not
# the same as good: variance alone is the most stable of all, because it keeps the largest columns
# over and over, whether they say the same or not, and explains the least but for chance. Stability
# is a reason to doubt, never a proof. An average over many runs, with a bound on false selections
# under stated assumptions, is :class:`~bsufs.tuning.ConsensusSelector`; :doc:`/tuning` says what
# the bound means.
