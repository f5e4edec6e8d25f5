"""Every selector on data of the size of USPS (1000 x 256) and Isolet (1560 x 617).

Beside each: the processor seconds of the reference implementation on USPS, read from the folder
BSUFS_REFERENCE (GNU Octave, another machine, the settings of the first run in the file), and
what other Python packages take for the same method in the same run.
"""

import json
import os
import warnings
from pathlib import Path

import numpy as np
from fastcan import FastCan
from scipy.io import loadmat
from skfeature.function.similarity_based import lap_score
from skfeature.function.sparse_learning_based import MCFS as sk_mcfs
from skfeature.function.sparse_learning_based import UDFS as sk_udfs
from skfeature.utility.construct_W import construct_W
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from benchmarks.timing import best_seconds, markdown_table
from bsufs.selectors import all_selectors

N_FEATURES = 50
# Name of the selector, name of the reference file.
REFERENCE = {
    "BSUFS": "BSUFS",
    "LaplacianScore": "LapScore",
    "MCFS": "MCFS",
    "UDFS": "UDFS",
    "SOGFS": "SOGFS",
    "RNE": "RNE",
    "SPCAFS": "SPCAFS",
    "FSPCA": "FSPCA",
    "SPCAPSD": "SPCA-PSD",
    "FENPCAFS": "FEN-PCAFS",
}


def stand_in(n, d):
    """Return a factor model with noise, of the shape asked for."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((n, 20)) * np.linspace(3, 0.5, 20)
    return factors @ rng.standard_normal((20, d)) / np.sqrt(20) + 0.5 * rng.standard_normal((n, d))


def datasets():
    """Return name, number of classes and data; the files of BSUFS_DATA where they are."""
    folder = Path(os.environ.get("BSUFS_DATA", ""))
    usps, isolet = folder / "USPS.mat", folder / "Isolet.mat"
    if not (os.environ.get("BSUFS_DATA") and usps.exists() and isolet.exists()):
        return [("1000 x 256", 10, stand_in(1000, 256)), ("1560 x 617", 26, stand_in(1560, 617))]
    stored = loadmat(usps)
    X = np.hstack([stored["Train_DAT"], stored["Test_DAT"]]).T.astype(float)
    labels = np.hstack([stored["trainlabels"].ravel(), stored["testlabels"].ravel()])
    first = np.concatenate([np.flatnonzero(labels == c)[:100] for c in np.unique(labels)])
    return [("USPS", 10, X[first]), ("Isolet", 26, loadmat(isolet)["X"].astype(float))]


def reference_seconds(name):
    """Return the seconds of the first reference run on USPS, an empty string where unknown."""
    folder = os.environ.get("BSUFS_REFERENCE")
    path = Path(folder or "") / f"{REFERENCE.get(name, '')}_USPS.json"
    if not folder or not path.exists():
        return ""
    return f"{json.loads(path.read_text())['runs'][0]['octave_seconds']:.2f}"


def rivals(X, classes):
    """Return what other packages offer, as name of the selector and a call."""

    def affinity():
        return construct_W(X, neighbor_mode="knn", k=5, weight_mode="heat_kernel", t=1.0)

    scores = PCA(classes).fit_transform(X)
    return {
        "LaplacianScore": lambda: lap_score.lap_score(X, W=affinity()),
        "MCFS": lambda: sk_mcfs.mcfs(
            X, n_selected_features=N_FEATURES, W=affinity(), n_clusters=classes
        ),
        "UDFS": lambda: sk_udfs.udfs(X, k=5, gamma=0.1, n_clusters=classes),
        "ColumnSubset": lambda: FastCan(N_FEATURES, verbose=0).fit(X, scores),
    }


def main():
    header = ["selector"]
    columns = [list(all_selectors())]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dataset, classes, X in datasets():
            ours = {}
            for name, selector in all_selectors().items():
                estimator = selector(N_FEATURES)
                if "n_components" in estimator.get_params():
                    estimator.set_params(n_components=classes)
                repeats = 3 if name not in ("SOGFS", "RNE", "NLGMS") else 1
                ours[name], _ = best_seconds(lambda e=estimator, X=X: e.fit(X), repeats)
            others = {name: best_seconds(call, 1)[0] for name, call in rivals(X, classes).items()}
            header += [f"{dataset}, s", "rival, s", "ratio"]
            columns += [
                [f"{ours[name]:.3f}" for name in ours],
                [f"{others[name]:.2f}" if name in others else "" for name in ours],
                [f"{others[name] / ours[name]:.1f}" if name in others else "" for name in ours],
            ]
    header.append("reference on USPS, s, another machine")
    columns.append([reference_seconds(name) for name in columns[0]])
    print(f"\n### All selectors, k = {N_FEATURES}, one BLAS thread\n")
    print(markdown_table(header, list(zip(*columns, strict=True))))
    print(
        "\nRivals: skfeature-chappers (Laplacian score, MCFS, UDFS), fastcan on the principal "
        "components (beside the greedy column subset)."
    )


if __name__ == "__main__":
    main()
