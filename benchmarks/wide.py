"""Many features, few samples: how time and peak memory grow with d at n = 500."""

import itertools
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.timing import markdown_table
from bsufs import BSUFS, ClusterAlignment

N_SAMPLES = 500
SIZES = (25_000, 50_000, 100_000)
METHODS = {
    "BSUFS": lambda: BSUFS(100, n_components=20),
    "ClusterAlignment": lambda: ClusterAlignment(100),
}


def wide_data(d, kind):
    """Return a factor model with noise, made row by row so that making it has no peak."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((20, d))
    X = np.empty((N_SAMPLES, d), dtype=kind)
    for row in X:
        row[:] = rng.standard_normal(20) @ loadings + rng.standard_normal(d)
    return X


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_here(name, kind, d):
    """Fit once; print seconds, and in megabytes X and the peak, less what imports had taken."""
    METHODS[name]().fit(np.random.default_rng(0).standard_normal((150, 120)))
    baseline = peak_megabytes()
    X = wide_data(d, kind)
    start = time.process_time()
    METHODS[name]().fit(X)
    seconds = time.process_time() - start
    size = X.nbytes / 2**20
    print(seconds, size, peak_megabytes() - baseline)


def main():
    rows = []
    for name, kind in itertools.product(METHODS, ("float64", "float32")):
        seconds = []
        for d in SIZES:
            # A process of its own for each size, so that the peak is that of this fit.
            output = subprocess.run(
                [sys.executable, "-m", "benchmarks.wide", name, kind, str(d)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            spent, size, peak = map(float, output.split())
            seconds.append(spent)
            above = f"{peak - size:.0f}", f"{peak / size - 1:.2f}"
            rows.append((name, kind, d, f"{spent:.1f}", f"{size:.0f}", *above))
        slope = np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]
        rows.append((name, kind, "growth of time", f"d^{slope:.2f}", "", "", ""))
    print(f"\n### n = {N_SAMPLES}, k = 100\n")
    header = (
        "method",
        "X",
        "features",
        "seconds",
        "X, MB",
        "peak above X, MB",
        "in multiples of X",
    )
    print(markdown_table(header, rows))
    print("\nTargets: time grows at most like d^1.10; at most 2 times X above X.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure_here(*sys.argv[1:3], int(sys.argv[3]))
    else:
        main()
