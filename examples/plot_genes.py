"""
A panel of genes, and one that is extended
==========================================

Which few genes tell cell types apart? The cells are made up, so that the truth is known: 600 cells
of six types from two donors, and 1500 genes, of which 60 mark a type, 20 mark a donor, and 40
follow the cell cycle.
"""

# %%
# Counts like those of a sequencer: a gene has its level, a cell its depth. They come as an AnnData
# object, sparse.
import anndata
import numpy as np
import pandas as pd
from scipy import sparse

rng = np.random.default_rng(7)
types = np.array(["B", "CD4 T", "CD8 T", "NK", "monocyte", "dendritic"])
n_cells, n_genes = 600, 1500
cell_type = rng.choice(6, size=n_cells, p=[0.2, 0.25, 0.15, 0.15, 0.15, 0.1])
donor = rng.integers(2, size=n_cells)
names = [f"gene{number:04d}" for number in range(n_genes)]
rate = np.tile(rng.gamma(0.6, 1.5, size=n_genes), (n_cells, 1))
for j in range(60):
    names[j] = f"{types[j // 10].replace(' ', '')}-{j % 10 + 1}"
    rate[:, j] = np.where(cell_type == j // 10, rng.uniform(5, 12), rng.uniform(0.2, 0.8))
for j in range(60, 80):
    names[j] = f"donor-{j - 59}"
    rate[:, j] = np.where(donor == j % 2, 12.0, 1.0)
cycle = rng.uniform(size=n_cells)
for j in range(80, 120):
    names[j] = f"cycle-{j - 79}"
    rate[:, j] = 0.5 + 8 * rng.uniform(0.4, 1) * cycle**3
counts = rng.poisson(rate * rng.lognormal(0, 0.3, size=(n_cells, 1)))
adata = anndata.AnnData(
    sparse.csr_matrix(counts.astype(np.float32)),
    obs=pd.DataFrame(
        {"type": types[cell_type], "donor": [f"donor {d + 1}" for d in donor]},
        index=[f"cell{i}" for i in range(n_cells)],
    ),
    var=pd.DataFrame(index=names),
)

# %%
# Fifty genes. The counts are log-normalized on the way, genes of the cell cycle are left out by a
# pattern, and differences between the donors are taken out first. Without `batch_key` genes would
# be selected because they mark a donor.
from bsufs.genes import select_genes

select_genes(adata, 50, normalize=True, never_keep="^cycle")
naive = adata.var_names[adata.var["bsufs_selected"]]
select_genes(adata, 50, normalize=True, never_keep="^cycle", batch_key="donor")
panel = adata.var_names[adata.var["bsufs_selected"]]
for title, genes in (("without batch_key", naive), ("with it", panel)):
    print(f"{title}: {genes.str.startswith('donor').sum()} of 50 genes mark a donor")

# %%
# The panel as a dot plot: color is the mean, size the share of the cells that express a gene. The
# selector was never told the types.
import matplotlib.pyplot as plt

best = adata.var["bsufs_rank"].sort_values().index[:24]
size = np.asarray(adata.X.sum(axis=1)).ravel()
X = np.log1p(adata[:, best].X.toarray() / (size / np.median(size))[:, None])
by_type = pd.DataFrame(X, columns=best).groupby(adata.obs["type"].to_numpy())
means, shares = by_type.mean(), by_type.agg(lambda column: (column > 0).mean())
order = means.idxmax().sort_values(kind="stable").index
figure, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
across, down = np.meshgrid(range(len(best)), range(len(means)))
dots = ax.scatter(
    across, down, s=150 * shares[order].to_numpy() ** 2, c=means[order].to_numpy(), cmap="Blues",
    vmin=0, edgecolors="gray", linewidths=0.4,
)  # fmt: skip
ax.set_xticks(range(len(best)), order, rotation=90, fontsize=8)
ax.set_yticks(range(len(means)), means.index)
ax.set(title="The best 24 of the panel, by type", ylim=(len(means) - 0.5, -0.5))
figure.colorbar(dots, label="mean log expression")
for share in (0.25, 0.5, 1.0):
    ax.scatter([], [], s=150 * share**2, c="lightgray", edgecolors="gray", label=f"{share:.0%}")
figure.legend(title="share of cells", loc="outside right center", frameon=False, fontsize=8)

# %%
# A panel that exists already, with markers of three types alone, is extended to 18 genes. What is
# added speaks of the other types.
old = [f"B-{i}" for i in range(1, 5)] + [f"NK-{i}" for i in range(1, 5)] + ["CD4T-1", "CD4T-2"]
select_genes(adata, 18, normalize=True, batch_key="donor", must_keep=old, never_keep="^cycle")
extended = adata.var_names[adata.var["bsufs_selected"]]
print("added:", *sorted(set(extended) - set(old)))

# %%
# Everything is in the object, as with scanpy: the ranks of all genes, and how they came about. Go
# on with the panel alone, or with ``scanpy.pp.pca(adata, mask_var="bsufs_selected")``.
print(adata.uns["bsufs"]["params"])
print(adata[:, adata.var["bsufs_selected"]])
adata.var["bsufs_rank"].sort_values().head()
