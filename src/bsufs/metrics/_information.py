"""What two partitions of the same samples have in common: one formula, with labels or without."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import entr

from bsufs._typing import Array

Average = Literal["geometric", "arithmetic"]


def normalized_information(counts: Array, average: Average = "geometric") -> Array:
    """Return the mutual information over a mean of the entropies, for each table of counts."""
    n = counts.sum(axis=(1, 2))[:, None]
    # Divided after they are summed: the share of a single part is 1, to the last digit.
    rows, columns = (_entropy(counts.sum(axis=axis) / n) for axis in (2, 1))
    information = rows + columns - _entropy(counts.reshape(len(counts), -1) / n)
    mean = np.sqrt(rows * columns) if average == "geometric" else (rows + columns) / 2
    trivial = (rows == 0) & (columns == 0)
    found = np.divide(information, mean, out=trivial.astype(np.float64), where=mean > 0)
    # Rounding may leave the range by a last digit.
    return np.asarray(np.clip(found, 0.0, 1.0))


def _entropy(shares: Array) -> Array:
    return np.asarray(entr(shares).sum(axis=1))
