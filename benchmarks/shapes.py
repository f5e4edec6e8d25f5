"""BSUFS and the default on tables of several shapes, in multiples of scikit-learn's PCA.

First processor time on one thread, the median of several runs that take turns with those of the
PCA, and the spread (the longest less the shortest, in % of the median) of what varied most. Then
seconds by the clock with one thread and with two, where the machine has as many.
"""

import os
import sys
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


def seconds_of(estimator, X):
    """Return the seconds of a fit, of the processor and by the clock."""
    start = np.array([time.process_time(), time.perf_counter()])
    estimator.fit(X)
    return np.array([time.process_time(), time.perf_counter()]) - start


def measured(X, n_threads):
    """Return the seconds of each estimator: turns x estimators x (processor, clock)."""
    with threadpool_limits(n_threads):
        return np.array(
            [
                [seconds_of(estimator, X) for estimator in ESTIMATORS.values()]
                for _ in range(5 if X.size < 1e7 else 3)
            ]
        )


def main():
    small, ratios, threads = groups_in_factors(50, 20), [], []
    for estimator in (PCA(2), BSUFS(3), ClusterAlignment(3)):
        estimator.fit(small)  # What is imported at the first fit is not measured.
    for n, d in SHAPES:
        X, shape = groups_in_factors(n, d), f"{n} x {d}"
        one = measured(X, 1)
        median, by_clock = np.median(one, axis=0).T
        spread = 100 * np.ptp(one[..., 0], axis=0) / median
        times = [f"{value:.1f}" for value in median[1:] / median[0]]
        ratios.append((shape, f"{median[0]:.2f} s", *times, f"{spread.max():.0f} %"))
        print(*ratios[-1], file=sys.stderr, flush=True)
        if (os.cpu_count() or 1) > 1:
            both = zip(by_clock, np.median(measured(X, 2), axis=0)[:, 1], strict=True)
            threads.append((shape, *(f"{a:.2f} / {b:.2f}" for a, b in both)))
    print(markdown_table(("rows x columns", *ESTIMATORS, "largest spread"), ratios))
    print("\nSeconds by the clock, one thread / two:\n")
    print(markdown_table(("rows x columns", *ESTIMATORS), threads))


if __name__ == "__main__":
    main()
