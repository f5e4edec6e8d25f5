"""BSUFS and the default on tables of several shapes, in multiples of scikit-learn's PCA.

Processor time on one thread, the median of several runs that take turns with those of the PCA, and
the spread (the longest less the shortest, in % of the median) of what varied most.
"""

import time

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from benchmarks.timing import markdown_table
from bsufs import BSUFS, ClusterAlignment

SHAPES = (
    (1440, 1024),
    (171, 5748),
    (60, 20_000),
    (1000, 20_000),
    (500, 100_000),
    (20_000, 2000),
    (200_000, 100),
)
ESTIMATORS = {
    "PCA(15)": PCA(15),
    "BSUFS(50)": BSUFS(50),
    "BSUFS()": BSUFS(),
    "ClusterAlignment(50)": ClusterAlignment(50),
    "ClusterAlignment()": ClusterAlignment(),
}


def groups_in_factors(n, d):
    """Return n rows of six groups in twelve factors behind d columns, and noise."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((6, 12))
    factors = centers[rng.integers(0, 6, n)] + rng.standard_normal((n, 12))
    X = rng.standard_normal((n, d))
    X += factors @ rng.standard_normal((12, d))
    return X


def processor_seconds(estimator, X):
    start = time.process_time()
    estimator.fit(X)
    return time.process_time() - start


def main():
    small, rows = groups_in_factors(50, 20), []
    for estimator in (PCA(2), BSUFS(3), ClusterAlignment(3)):
        estimator.fit(small)  # What is imported at the first fit is not measured.
    with threadpool_limits(1):
        for n, d in SHAPES:
            X = groups_in_factors(n, d)
            repeats = 5 if n * d < 1e7 else 3
            seconds = np.array(
                [
                    [processor_seconds(estimator, X) for estimator in ESTIMATORS.values()]
                    for _ in range(repeats)
                ]
            )
            median = np.median(seconds, axis=0)
            spread = 100 * np.ptp(seconds, axis=0) / median
            ratios = [f"{value:.1f}" for value in median[1:] / median[0]]
            rows.append((f"{n} x {d}", f"{median[0]:.2f} s", *ratios, f"{spread.max():.0f} %"))
    print(markdown_table(("rows x columns", *ESTIMATORS, "largest spread"), rows))


if __name__ == "__main__":
    main()
