"""
Genes by cells, with genes that must stay
=========================================

A table of gene expression has far more columns than rows, and its owner already knows some of the
genes. This one is made up, so that the truth is known: 240 cells of four kinds and 2000 genes, of
which 60 are markers of a kind, 40 follow the cell cycle, and the rest are noise.
"""

# %%
# Counts like those of a sequencer: a gene has its level, a cell its depth.
import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
n_cells, n_genes = 240, 2000
kinds = np.repeat(["T", "B", "NK", "myeloid"], [90, 70, 50, 30])
level = rng.gamma(0.6, 2.0, size=n_genes)
rate = np.tile(level, (n_cells, 1))
names = [f"gene{number:04d}" for number in range(n_genes)]
for number, kind in enumerate(["T", "B", "NK", "myeloid"]):
    for j in range(15 * number, 15 * number + 15):
        names[j] = f"{kind}-marker{j % 15 + 1}"
        rate[:, j] = np.where(kinds == kind, rng.uniform(6, 20), rng.uniform(0.2, 1))
cycle = rng.uniform(size=n_cells)
for j in range(60, 100):
    names[j] = f"cycle{j - 59}"
    rate[:, j] = 0.5 + 12 * rng.uniform(0.4, 1) * cycle**3
depth = rng.lognormal(0, 0.3, size=(n_cells, 1))
counts = rng.poisson(rate * depth)
names[100:102] = ["CTRL1", "CTRL2"]

# %%
# The usual preparation: divide by the depth of the cell, take logarithms. Counts without it would
# select the genes with the largest numbers. All genes are then in one unit, so they are not
# standardized: that would blow up the noise of genes that are hardly expressed.
size = counts.sum(axis=1, keepdims=True)
table = pd.DataFrame(np.log1p(counts / size * np.median(size)), columns=names)

# %%
# Keep 24 genes. Two controls must be among them, however little they tell, and a known nuisance
# (here genes of the cell cycle) must not: the fit proceeds as if those columns were not there.
from bsufs import ClusterAlignment

selector = ClusterAlignment(
    24,
    must_keep=["CTRL1", "CTRL2"],
    never_keep=[name for name in names if name.startswith("cycle")],
).fit(table)
print("the first eight:", *selector.selected_features_[:8])

# %%
# The reduced table, cells by kind. The selector was never told the kinds.
import matplotlib.pyplot as plt

reduced = selector.set_output(transform="pandas").transform(table)
groups = ["T", "B", "NK", "myeloid", "CTRL"]
group = reduced.columns.str.extract(f"^({'|'.join(groups)})", expand=False)
columns = reduced.columns[pd.Categorical(group, groups).argsort()]
order = pd.Categorical(kinds, groups).argsort()
figure, ax = plt.subplots(figsize=(9, 5.6), layout="constrained")
image = ax.imshow(
    reduced[columns].to_numpy()[order].T, aspect="auto", cmap="Blues", interpolation="nearest"
)
ax.set_yticks(range(len(columns)), columns, fontsize=8)
edges = np.flatnonzero(kinds[order][1:] != kinds[order][:-1]) + 0.5
ax.vlines(edges, -0.5, len(columns) - 0.5, color="#d55e00", lw=1.5)
middles = np.diff([0, *edges, n_cells]) / 2 + [0, *edges]
ax.set_xticks(middles, [kinds[order][int(middle)] for middle in middles])
ax.tick_params(length=0)
ax.set(xlabel="240 cells, by kind", title="24 of 2000 genes")
figure.colorbar(image, label="log expression", shrink=0.7)

# %%
# Why these, and how sure? Each gene gets a reason, and the share of random halves of the cells on
# which it is selected again. The two controls are there because they were asked for. Two other
# genes are noise, and the table gives them away: clusters explain 5 % of them, and hardly any half
# of the cells selects them again. A gene to build on is one that is selected again and again.
from bsufs import explain

why = explain(selector, table, n_subsamples=10)
pd.set_option("display.max_colwidth", None)
why.loc[why["selected"], ["name", "frequency", "reason"]]
