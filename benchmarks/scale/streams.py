"""Streams of batches that are thrown away, and the same data in memory."""

import numpy as np

from benchmarks.scale.measure import Clock, forget_peak, peak_megabytes

BATCH_ROWS = 10_000
N_COMPONENTS = 20
N_SELECTED = 50


def batches(n, d):
    """Generate a factor model with noise batch by batch; nothing of it is kept."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((N_COMPONENTS, d)) * np.linspace(3, 1, N_COMPONENTS)[:, None]
    for start in range(0, n, BATCH_ROWS):
        rows = min(BATCH_ROWS, n - start)
        X = rng.standard_normal((rows, d))
        X += rng.standard_normal((rows, N_COMPONENTS)) @ loadings
        yield X


def _stream(n, d, fit):
    """Fit to all batches; measure that alone, and the generation apart."""
    generating, all_of_it = Clock(), Clock()
    baseline = peak_megabytes()

    def timed():
        source = batches(n, d)
        while True:
            with generating:
                X = next(source, None)
            if X is None:
                return
            yield X

    with all_of_it:
        fit(timed())
    return {
        "seconds": all_of_it.seconds - generating.seconds,
        "cpu_seconds": all_of_it.cpu_seconds - generating.cpu_seconds,
        "generation_seconds": generating.seconds,
        "peak_mb": peak_megabytes(),
        "baseline_mb": baseline,
    }


def stream_bsufs(n, d):
    from bsufs import BSUFS

    return _stream(n, d, BSUFS(N_SELECTED, n_components=N_COMPONENTS).fit_batches)


def stream_default(n, d):
    from bsufs import ClusterAlignment

    return _stream(n, d, ClusterAlignment(N_SELECTED, n_components=N_COMPONENTS).fit_batches)


def stream_incremental_pca(n, d):
    from sklearn.decomposition import IncrementalPCA

    pca = IncrementalPCA(N_COMPONENTS)
    return _stream(n, d, lambda parts: [pca.partial_fit(X) for X in parts])


def memory_bsufs(n, d):
    """Fit at once, what fits in memory."""
    from bsufs import BSUFS

    return _at_once(n, d, BSUFS(N_SELECTED, n_components=N_COMPONENTS))


def memory_default(n, d):
    from bsufs import ClusterAlignment

    return _at_once(n, d, ClusterAlignment(N_SELECTED, n_components=N_COMPONENTS))


def memory_sparse_pca(n, d):
    """Fit at once: its mini-batches are of features, and it takes no stream of rows."""
    from sklearn.decomposition import MiniBatchSparsePCA

    return _at_once(n, d, MiniBatchSparsePCA(N_COMPONENTS, random_state=0))


def _at_once(n, d, estimator):
    X = np.empty((n, d))
    row = 0
    for batch in batches(n, d):
        X[row : row + len(batch)] = batch
        row += len(batch)
    forget_peak()
    with Clock() as fitting:
        estimator.fit(X)
    return {
        "seconds": fitting.seconds,
        "cpu_seconds": fitting.cpu_seconds,
        "peak_mb": peak_megabytes(),
        "input_mb": X.nbytes / 2**20,
    }
