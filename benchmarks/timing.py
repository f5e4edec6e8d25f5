"""Small tools shared by the benchmarks: best-of timing, tables, data of the right size."""

import os
import time
from pathlib import Path

import numpy as np
from scipy.io import loadmat


def best_seconds(task, repeats=3):
    """Return the shortest of several runs, and what the last one returned."""
    shortest = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = task()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest, result


def markdown_table(header, rows):
    """Return rows as a Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def coil20_or_stand_in():
    """Return COIL20 (1440 x 1024) from the folder BSUFS_DATA, or data of its size and spectrum."""
    folder = os.environ.get("BSUFS_DATA")
    path = Path(folder) / "COIL20.mat" if folder else None
    if path is not None and path.exists():
        return "COIL20", loadmat(path)["X"].astype(np.float64)
    rng = np.random.default_rng(0)
    n, d = 1440, 1024
    left = np.linalg.qr(rng.standard_normal((n, d)))[0]
    right = np.linalg.qr(rng.standard_normal((d, d)))[0]
    # The singular values of COIL20 fall about like rank^-0.8, the first one near 117.
    return "stand-in", (left * (117.0 * np.arange(1, d + 1) ** -0.8)) @ right.T
