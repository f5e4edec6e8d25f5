"""Many features, few samples: how time and peak memory grow with d at n = 500."""

import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.timing import markdown_table
from bsufs import BSUFS

N_SAMPLES = 500
SIZES = (25_000, 50_000, 100_000)


def wide_data(d):
    """Return a factor model with noise, made row by row so that making it has no peak."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((20, d))
    X = np.empty((N_SAMPLES, d))
    for row in X:
        row[:] = rng.standard_normal(20) @ loadings + rng.standard_normal(d)
    return X


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_here(d):
    """Fit once; print seconds, and in megabytes X and the peak, less what imports had taken."""
    BSUFS(2).fit(np.random.default_rng(0).standard_normal((20, 30)))
    baseline = peak_megabytes()
    X = wide_data(d)
    start = time.perf_counter()
    BSUFS(100, n_components=20).fit(X)
    seconds = time.perf_counter() - start
    size = X.nbytes / 2**20
    print(seconds, size, peak_megabytes() - baseline)


def main():
    rows, seconds = [], []
    for d in SIZES:
        # A process of its own for each size, so that the peak is that of this fit.
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.wide", str(d)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        spent, size, peak = map(float, output.split())
        seconds.append(spent)
        rows.append((d, f"{spent:.1f}", f"{size:.0f}", f"{peak:.0f}", f"{peak / size:.2f}"))
    slope = np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]
    print(f"\n### n = {N_SAMPLES}, 20 components, k = 100\n")
    header = ("features", "seconds", "X, MB", "peak with X, less the interpreter, MB", "peak / X")
    print(markdown_table(header, rows))
    print(f"\nTime grows like d^{slope:.2f} (target: at most d^1.10); peak target: 3 times X.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure_here(int(sys.argv[1]))
    else:
        main()
