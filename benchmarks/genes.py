"""Gene panels beside scanpy and spapros: what each keeps, in how much time and memory.

    python -m benchmarks.genes                                 pbmc68k_reduced and generated counts
    python -m benchmarks.genes --types                         how well types are told, with noise
    python -m benchmarks.genes --cells 50000 --genes 30000     seconds and peak memory alone

Needs scanpy, with scikit-misc for its third flavor; where spapros is installed its own measures are
shown as well.
"""

import argparse
import json
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
from scipy import sparse

from benchmarks.scale.measure import Clock, forget_peak, peak_megabytes
from benchmarks.timing import markdown_table

PURPOSES = ("clusters", "reconstruction", "neighbors")
FLAVORS = ("seurat", "cell_ranger", "seurat_v3")
N_TYPES, N_BATCHES, MARKERS_OF_TYPE, MARKERS_OF_BATCH = 12, 3, 10, 20
# By how much markers of a type are raised in it, at least and at most.
RAISED = {"even": (8.0, 20.0), "rare": (4.0, 12.0), "nested": (2.5, 5.0)}
N_COMPONENTS = 50


# ----------------------------------------------------------------------------------------- the data


def pbmc():
    """Return scanpy's bundled cells of ten types, log-normalized."""
    import scanpy

    found = scanpy.datasets.pbmc68k_reduced()
    adata = found.raw.to_adata()
    adata.obs["type"] = found.obs["bulk_labels"].astype(str)
    return adata


def generated(n, d, density=0.05, seed=0, kind="even"):
    """Return counts with planted types, batches and dropouts, about so many of them not zero.

    Means are log-normal over genes and depths over cells; types raise genes of their own, batches
    others. An entry is zero as often as one of a negative binomial with dispersion 1/2 is; those
    that are not are drawn from it. Types are even in size, or each is a quarter "rare"r than the
    one before, or "nested": families of three, told apart by weak markers only.
    """
    import anndata
    import pandas as pd

    rng = np.random.default_rng(seed)
    types, batches = rng.integers(N_TYPES, size=n), rng.integers(N_BATCHES, size=n)
    if kind == "rare":
        sizes = 0.75 ** np.arange(N_TYPES)
        types = rng.choice(N_TYPES, size=n, p=sizes / sizes.sum())
    base = rng.lognormal(-1.0, 1.2, size=d)
    marker = np.full(d, "", dtype=object)
    of_type = np.arange(N_TYPES * MARKERS_OF_TYPE)
    of_batch = of_type.size + np.arange(N_BATCHES * MARKERS_OF_BATCH)
    marker[of_type], marker[of_batch] = "type", "batch"
    base[: of_batch[-1] + 1] = rng.lognormal(-1.0, 0.3, size=of_batch[-1] + 1)
    raised = np.ones((N_TYPES, N_BATCHES, d))
    for gene in of_type:
        one = gene % N_TYPES
        if kind == "nested" and gene < of_type.size // 3:
            raised[one // 3 * 3 : one // 3 * 3 + 3, :, gene] = rng.uniform(6.0, 15.0)
        else:
            raised[one, :, gene] = rng.uniform(*RAISED[kind])
    for gene in of_batch:
        raised[:, gene % N_BATCHES, gene] = 8.0
    size = _dispersion_to_reach(density, base)
    blocks = []
    for first in range(0, n, 500):
        rows = slice(first, min(first + 500, n))
        depth = rng.lognormal(0.0, 0.4, size=(rows.stop - first, 1))
        means = (size * depth * base * raised[types[rows], batches[rows]]).astype(np.float32)
        present = rng.random(means.shape, dtype=np.float32) > 1.0 / (1.0 + 0.5 * means) ** 2
        cells, genes = np.nonzero(present)
        counts = rng.poisson(rng.gamma(2.0, means[cells, genes] / 2.0)).clip(1)
        block = (counts.astype(np.float32), (cells, genes))
        blocks.append(sparse.csr_matrix(block, shape=means.shape))
    return anndata.AnnData(
        sparse.vstack(blocks, format="csr"),
        obs=pd.DataFrame(
            {"type": types.astype(str), "batch": batches.astype(str)},
            index=[f"cell{i}" for i in range(n)],
        ),
        var=pd.DataFrame({"marker": marker.astype(str)}, index=[f"gene{i}" for i in range(d)]),
    )


def _dispersion_to_reach(density, base):
    """Return the factor on the means at which about this share of the entries is not zero."""
    factors = np.geomspace(1e-4, 1e2, 200)
    shares = [np.mean(1.0 - 1.0 / (1.0 + 0.5 * factor * base) ** 2) for factor in factors]
    return float(np.interp(density, shares, factors))


# -------------------------------------------------------------------------------------- the methods


def panels(adata, n, batch_key=None):
    """Go through the methods and the genes that each selects, best first, with its seconds."""
    for purpose in PURPOSES:
        yield _timed(f"bsufs, {purpose}", partial(_bsufs, adata, n, purpose, batch_key))
    # The third works on counts.
    for flavor in FLAVORS if "counts" in adata.layers else FLAVORS[:2]:
        yield _timed(f"scanpy, {flavor}", partial(_scanpy, adata, n, flavor, batch_key))
    yield _timed("PCA loadings, as in spapros", lambda: _loadings(adata, n))
    yield _timed("largest variance", lambda: np.argsort(-_variances(adata.X))[:n])


def _timed(name, select):
    with Clock() as clock:
        genes = select()
    return name, genes, clock.seconds


def _bsufs(adata, n, purpose, batch_key):
    from bsufs.genes import select_genes

    found = select_genes(adata, n, purpose=purpose, batch_key=batch_key, copy=True)
    return np.argsort(found.var["bsufs_rank"].fillna(np.inf).to_numpy())[:n]


def _scanpy(adata, n, flavor, batch_key):
    import scanpy

    found = scanpy.pp.highly_variable_genes(
        adata,
        n_top_genes=n,
        flavor=flavor,
        layer="counts" if flavor == "seurat_v3" else None,
        batch_key=batch_key,
        inplace=False,
    )
    return np.flatnonzero(found["highly_variable"].to_numpy())


def _loadings(adata, n):
    """Select by the sum of absolute loadings on 20 components, as spapros does."""
    import scanpy

    found = scanpy.pp.pca(adata, n_comps=20, svd_solver="arpack", copy=True, mask_var=None)
    return np.argsort(-np.abs(found.varm["PCs"]).sum(axis=1))[:n]


def _variances(X):
    squares = X.multiply(X) if sparse.issparse(X) else X**2
    return np.asarray(squares.mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2


# ------------------------------------------------------------------------------------- the measures


class Judge:
    """Measures what panels of some cells are worth."""

    def __init__(self, adata):
        from bsufs.tuning.criteria import EvaluationData

        self.adata = adata
        self.X = adata.X.toarray() if sparse.issparse(adata.X) else np.asarray(adata.X)
        self._data = EvaluationData(self.X)
        self._spapros = {}
        try:
            from spapros.evaluation import metrics
        except ImportError:
            return
        for metric in ("knn_overlap", "cluster_similarity", "gene_corr"):
            settings = metrics.get_metric_default_parameters()[metric]
            shared = metrics.metric_shared_computations(adata, metric=metric, parameters=settings)
            self._spapros[metric] = metrics, settings, shared

    def measures(self, genes):
        """Return all measures of one panel by name."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_score

        from bsufs.metrics import redundancy
        from bsufs.tuning.criteria import NeighborOverlap

        chosen = np.sort(genes)
        found = {
            "neighbor overlap": NeighborOverlap().judge(self._data, self._data.columns(chosen)),
            "types, ACC %": 100
            * cross_val_score(
                LogisticRegression(max_iter=2000), self.X[:, chosen], self.adata.obs["type"], cv=3
            ).mean(),
            "correlation": redundancy(self.X[:, chosen]),
        }
        for metric, (metrics, settings, shared) in self._spapros.items():
            names = self.adata.var_names[chosen].tolist()
            before = metrics.metric_pre_computations(
                names, adata=self.adata, metric=metric, parameters=settings
            )
            computed = metrics.metric_computations(
                names,
                adata=self.adata,
                metric=metric,
                shared_results=shared,
                pre_results=before,
                parameters=settings,
            )
            summary = metrics.metric_summary(computed, metric=metric, parameters=settings)
            found |= {f"spapros {key}": float(value) for key, value in summary.items()}
        if "marker" in self.adata.var:
            kinds = self.adata.var["marker"].to_numpy()[chosen]
            found["type markers, %"] = 100 * np.mean(kinds == "type")
            found["batch markers, %"] = 100 * np.mean(kinds == "batch")
        return found


def accuracies(X, types, n_divisions):
    """Return the accuracy in % of a logistic regression in each of some divisions into 3 folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    model = LogisticRegression(max_iter=2000)
    divisions = (StratifiedKFold(3, shuffle=True, random_state=i) for i in range(n_divisions))
    return [100 * cross_val_score(model, X, types, cv=folds).mean() for folds in divisions]


def tried():
    """Return by name what selects genes for the types, given cells, a number, a key and a seed."""
    found = {
        "clusters": _clusters(),
        "without noise_units": _clusters(noise_units=False),
        "every gene at variance 1": _rescaled(1.0),
        "half way to variance 1": _rescaled(0.5),
        "10 neighbors rather than 3": _clusters(n_neighbors=10),
        "25 runs of k-means rather than 5": _clusters(n_runs=25),
        "clusters, told the types": _told_the_types,
    }
    for numbers in (16, 64, [16, 32, 64]):
        found[f"clusters={numbers}"] = _clusters(clusters=numbers)
    for flavor in FLAVORS[:2]:
        found[f"scanpy, {flavor}"] = partial(_without_seed, _scanpy, flavor)
    found["PCA loadings, as in spapros"] = lambda adata, n, key, seed: _loadings(adata, n)
    found["random"] = lambda adata, n, key, seed: np.random.default_rng(seed).permutation(
        adata.n_vars
    )[:n]
    found["all genes"] = lambda adata, n, key, seed: np.arange(adata.n_vars)
    return found


def _clusters(**parameters):
    def select(adata, n, batch_key, seed):
        from bsufs.genes import select_genes

        found = select_genes(
            adata, n, batch_key=batch_key, random_state=seed, copy=True, **parameters
        )
        return np.flatnonzero(found.var["bsufs_selected"])

    return select


def _rescaled(power):
    """Select genes in units of their own deviation to some power, the rest of it that of noise."""

    def select(adata, n, batch_key, seed):
        units = np.sqrt(_variances(adata.X))
        units = np.where(units > 0, units, 1.0) ** power * _noise(adata) ** (1.0 - power)
        scaled = adata.copy()
        scaled.X = sparse.csr_matrix(adata.X.multiply(1.0 / units))
        return _clusters(noise_units=False)(scaled, n, batch_key, seed)

    return select


def _noise(adata):
    from bsufs.tables._prepare import usual_deviations

    return usual_deviations(np.asarray(adata.X.mean(axis=0)).ravel(), _variances(adata.X))


def _told_the_types(adata, n, batch_key, seed):
    """Select as for clusters, with the types in their place: what perfect clusters would give."""
    from bsufs.scatter import make_scatter
    from bsufs.selectors._cluster_shares import Clusters, LocalRows
    from bsufs.solvers.alignment import aligned_columns

    X = adata.X.toarray() / _noise(adata)
    for batch in adata.obs[batch_key].unique() if batch_key else ():
        rows = (adata.obs[batch_key] == batch).to_numpy()
        X[rows] -= X[rows].mean(axis=0)
    clusters = Clusters(np.unique(adata.obs["type"], return_inverse=True)[1])
    shares = np.maximum(LocalRows.of(X, 0).shares_beyond_chance([clusters]), 0.0)
    scatter = make_scatter(X)
    return aligned_columns(scatter, shares * scatter.diagonal(), n)[0]


def _without_seed(select, flavor, adata, n, batch_key, seed):
    return select(adata, n, flavor, batch_key)


def compare_types(numbers=(50, 100), n_seeds=4, n_divisions=8):
    """Print how well types are told by what was tried, on cells and on generated counts."""
    import scanpy

    cells = [("pbmc68k_reduced", pbmc(), None, n_seeds, n_divisions)]
    for kind in RAISED:
        for seed in range(2):
            adata = generated(1500, 2000, 0.1, seed, kind)
            scanpy.pp.normalize_total(adata)
            scanpy.pp.log1p(adata)
            cells.append((kind, adata, "batch", 2, 1))
    kinds = list(dict.fromkeys(label for label, *_ in cells))
    header = ["", *(f"{kind}, {n} genes" for kind in kinds for n in numbers)]
    rows, judged = [], {}
    for name, select in tried().items():
        found = {}
        for label, adata, batch_key, seeds, divisions in cells:
            types = adata.obs["type"].to_numpy()
            for n in numbers:
                for seed in range(seeds):
                    genes = np.sort(select(adata, n, batch_key, seed))
                    # Many know of no seed, and all genes are the same at every number.
                    panel = (id(adata), genes.tobytes())
                    if panel not in judged:
                        part = adata.X[:, genes].toarray()
                        judged[panel] = accuracies(part, types, divisions)
                    found.setdefault((label, n), []).append(judged[panel])
        print(
            name, {key: np.round(values, 1).tolist() for key, values in found.items()}, flush=True
        )
        rows.append(
            [name, *map(_mean_and_noise, (found[kind, n] for kind in kinds for n in numbers))]
        )
    print(markdown_table(header, rows))


def _mean_and_noise(values):
    """Write the mean, and the deviations over panels and over divisions where there are several."""
    values = np.array(values)
    over = [values.mean(axis=1).std(), values.std(axis=1).mean()]
    return f"{values.mean():.1f} ({over[0]:.1f}; {over[1]:.1f})"


def compare(adata, numbers, batch_key=None, n_random=5):
    """Print one table for each number of genes."""
    judge = Judge(adata)
    for n in numbers:
        rows = []
        for name, genes, seconds in panels(adata, n, batch_key):
            rows.append((name, {**judge.measures(genes), "seconds": seconds}))
        rng = np.random.default_rng(0)
        draws = [
            judge.measures(rng.choice(adata.n_vars, n, replace=False)) for _ in range(n_random)
        ]
        mean = {key: float(np.mean([draw[key] for draw in draws])) for key in draws[0]}
        rows.append((f"random, mean of {n_random}", {**mean, "seconds": float("nan")}))
        keys = list(rows[0][1])
        cells = [[name, *(f"{values[key]:.3g}" for key in keys)] for name, values in rows]
        print(f"\n{n} genes of {adata.n_vars}, {adata.n_obs} cells:\n")
        print(markdown_table(["method", *keys], cells), flush=True)


# ---------------------------------------------------------------------------------- time and memory


def scanpys_way(adata, n):
    """Select highly variable genes and find the components of these."""
    import scanpy

    scanpy.pp.normalize_total(adata)
    scanpy.pp.log1p(adata)
    scanpy.pp.highly_variable_genes(adata, n_top_genes=2000)
    scanpy.pp.pca(adata, n_comps=N_COMPONENTS, mask_var="highly_variable")


def our_way(purpose, batch_key=None):
    def run(adata, n):
        from bsufs.genes import select_genes

        select_genes(adata, n, purpose=purpose, batch_key=batch_key, normalize=True)

    return run


WAYS = {
    "scanpy, HVG + PCA": scanpys_way,
    "bsufs, clusters": our_way("clusters"),
    "bsufs, clusters, batches": our_way("clusters", "batch"),
    "bsufs, neighbors": our_way("neighbors"),
}


def measure(way, path, n):
    """Print seconds and peak memory of one way, in a process of its own; imports do not count."""
    import anndata
    import scanpy  # noqa: F401

    import bsufs.genes  # noqa: F401

    adata = anndata.read_h5ad(path)
    before = peak_megabytes()
    forget_peak()
    with Clock() as clock:
        WAYS[way](adata, n)
    found = {"seconds": clock.seconds, "cpu": clock.cpu_seconds, "peak": peak_megabytes()}
    print(json.dumps({**found, "data": before}))


def scale(n_cells, n_genes, density, n, ways):
    """Print a table of seconds and peak memory on generated counts."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        adata = generated(n_cells, n_genes, density)
        share = adata.X.nnz / np.prod(adata.shape)
        adata.write_h5ad(path)
        del adata
        rows = []
        for way in ways:
            words = [sys.executable, "-m", "benchmarks.genes", "--one", way, "--file", str(path)]
            done = subprocess.run(
                [*words, "--n", str(n)], capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
            rows.append([way, *(f"{found[key]:.1f}" for key in ("seconds", "cpu"))])
            rows[-1].append(f"{found['peak'] / 1024:.2f}")
    print(f"\n{n_cells} cells x {n_genes} genes, {share:.1%} not zero, {n} genes selected:\n")
    print(markdown_table(["way", "seconds", "CPU seconds", "peak memory, GB"], rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, help="measure time and memory on so many cells")
    parser.add_argument("--genes", type=int, default=30_000)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--n", type=int, default=300, help="genes to select with --cells")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--types", action="store_true", help="types alone, with their noise")
    parser.add_argument("--one", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    given = parser.parse_args()
    # scanpy and spapros speak of the future of pandas and anndata.
    warnings.simplefilter("ignore")
    if given.one is not None:
        measure(given.one, given.file, given.n)
    elif given.cells is not None:
        scale(given.cells, given.genes, given.density, given.n, given.ways)
    elif given.types:
        compare_types()
    else:
        import scanpy

        print("### pbmc68k_reduced")
        compare(pbmc(), (50, 100))
        for batch_key in (None, "batch"):
            print(f"\n### Generated counts, {batch_key or 'no'} batch_key")
            adata = generated(2000, 3000, 0.1)
            adata.layers["counts"] = adata.X.copy()
            scanpy.pp.normalize_total(adata)
            scanpy.pp.log1p(adata)
            compare(adata, (100,), batch_key)


if __name__ == "__main__":
    main()
