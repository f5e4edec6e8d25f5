"""The report of a wide table: how long it takes beside the fit, and how large it is.

Run as ``python -m benchmarks.page``. Seconds of processor time.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bsufs import BSUFS, ClusterAlignment, make_report
from bsufs.inspection import Findings, findings
from bsufs.selectors._data import FitData


def _clusters(n: int, d: int, strength: float) -> Any:
    """Return noise, with six clusters in 500 of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[:, :500] += strength * rng.normal(size=(6, 500))[rng.integers(0, 6, n)]
    return X


def main() -> None:
    """Print both tables."""
    print("| table | fit, s | page, s | ratio | page, MB |\n|---|---|---|---|---|")
    for n in (200, 1000):
        data = FitData(_clusters(n, 50_000, 2.0), names=[f"gene_{i:05d}" for i in range(50_000)])
        start = time.process_time()
        selector = ClusterAlignment(50).fit(data)
        fit = time.process_time() - start
        start = time.process_time()
        page = str(make_report(selector, data))
        took = time.process_time() - start
        size = len(page.encode("utf-8")) / 1e6
        print(f"| {n} x 50 000 | {fit:.1f} | {took:.1f} | {took / fit:.1f} | {size:.2f} |")
    print("\n| method, 200 x 20 000 | clusters | among all | among 5000 |\n|---|---|---|---|")
    most = findings.MOST_CANDIDATES
    for method in (ClusterAlignment, BSUFS):
        for words, strength in (("strong", 2.0), ("weak", 0.7), ("none", 0.0)):
            X = _clusters(200, 20_000, strength)
            selector = method(50).fit(X)
            shares = []
            for findings.MOST_CANDIDATES in (X.shape[1], most):
                found = Findings(selector, X, n_subsamples=8)
                shares.append(f"{found.stability.frequency[found.chosen].mean():.2f}")
            print(f"| {method.__name__} | {words} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
