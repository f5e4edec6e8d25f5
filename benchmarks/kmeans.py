"""Fifty restarts of k-means at once against fifty calls of scikit-learn, on one BLAS thread."""

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from threadpoolctl import threadpool_limits

from benchmarks.timing import best_seconds, coil20_or_stand_in, markdown_table
from bsufs.metrics import batched_kmeans

N_RUNS = 50
N_CLUSTERS = 20
MAX_ITER = 200


def selected_columns():
    """Return the 100 columns of largest variance of COIL20, or of data of its size."""
    name, X = coil20_or_stand_in()
    return f"{name}, 1440 x 100", np.ascontiguousarray(X[:, np.argsort(-X.var(axis=0))[:100]])


def overlapping_blobs():
    """Return twenty Gaussian blobs that overlap."""
    rng = np.random.default_rng(0)
    blobs = 0.5 * rng.standard_normal((N_CLUSTERS, 100))
    X = blobs[rng.integers(N_CLUSTERS, size=1440)] + rng.standard_normal((1440, 100))
    return "blobs, 1440 x 100", X


def plain_starts(X):
    """Return centers by plain k-means++: one candidate each."""
    return [
        kmeans_plusplus(X, N_CLUSTERS, n_local_trials=1, random_state=run)[0]
        for run in range(N_RUNS)
    ]


def one_by_one(X, starts):
    """Return scikit-learn's models, fitted one after another."""
    settings = {"n_init": 1, "algorithm": "lloyd", "max_iter": MAX_ITER, "tol": 0}
    return [KMeans(N_CLUSTERS, init=start, **settings).fit(X) for start in starts]


def compare(name, X):
    """Return two rows: from given centers, and with the seeding in the time."""
    starts = np.stack(plain_starts(X))
    rival_seconds, models = best_seconds(lambda: one_by_one(X, starts), repeats=5)
    seconds, runs = best_seconds(
        lambda: batched_kmeans(X, N_CLUSTERS, init=starts, max_iter=MAX_ITER), repeats=5
    )
    seeded_rival, _ = best_seconds(lambda: one_by_one(X, plain_starts(X)))
    seeded, _ = best_seconds(
        lambda: batched_kmeans(X, N_CLUSTERS, n_runs=N_RUNS, max_iter=MAX_ITER, random_state=0)
    )
    equal = np.mean([(models[run].labels_ == runs.labels[run]).all() for run in range(N_RUNS)])
    return [
        row(name, "given", rival_seconds, seconds, f"{equal:.0%} of runs"),
        row(name, "plain k-means++, in the time", seeded_rival, seeded, "other seeds"),
    ]


def row(name, start, rival, ours, equal):
    """Return one line of the table."""
    return [name, start, f"{1e3 * rival:.0f}", f"{1e3 * ours:.0f}", f"{rival / ours:.1f}", equal]


def main():
    header = ["data", "starts", "scikit-learn, ms", "bsufs, ms", "ratio", "same labels"]
    with threadpool_limits(1):
        rows = compare(*selected_columns()) + compare(*overlapping_blobs())
    print(f"{N_RUNS} runs, {N_CLUSTERS} clusters, until no sample changes cluster.\n")
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
