"""Ranks of methods over datasets: Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, studentized_range


@dataclass(frozen=True)
class RankComparison:
    """Methods ranked over datasets."""

    ranks: pd.Series
    datasets: tuple[str, ...]
    statistic: float
    p_value: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    r"""Return how far two average ranks must be apart to differ, by Nemenyi's test.

    .. math:: \text{CD} = \frac{q_\alpha}{\sqrt 2} \sqrt{\frac{k (k + 1)}{6 N}}

    with the upper quantile :math:`q_\alpha` of the studentized range of k means and infinitely many
    degrees of freedom.
    """
    quantile = float(studentized_range.ppf(1 - alpha, n_methods, np.inf))
    return quantile / math.sqrt(2) * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def compare_ranks(scores: pd.DataFrame, alpha: float = 0.05) -> RankComparison | None:
    """Rank methods on each dataset and test whether the average ranks differ."""
    complete = scores.dropna(axis="index")
    n_datasets, n_methods = complete.shape
    if n_methods < 3 or n_datasets < 2:
        return None
    values = complete.to_numpy(dtype=float)
    ranks = pd.Series(rankdata(-values, axis=1).mean(axis=0), index=complete.columns)
    ranks = ranks.sort_values(kind="stable")
    statistic = p_value = math.nan
    # Where all methods tie everywhere the correction for ties divides zero by zero.
    if (np.ptp(values, axis=1) > 0).any():
        test = friedmanchisquare(*values.T)
        statistic, p_value = float(test.statistic), float(test.pvalue)
    difference = critical_difference(n_methods, n_datasets, alpha)
    return RankComparison(
        ranks=ranks,
        datasets=tuple(str(name) for name in complete.index),
        statistic=statistic,
        p_value=p_value,
        critical_difference=difference,
        groups=_groups(ranks, difference),
    )


def _groups(ranks: pd.Series, difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the maximal runs of sorted ranks that span no more than the critical difference."""
    groups: list[tuple[str, ...]] = []
    values = ranks.to_numpy()
    last_end = 0
    for start in range(len(values)):
        end = int(np.searchsorted(values, values[start] + difference + 1e-12, side="right"))
        if end - start > 1 and end > last_end:
            groups.append(tuple(str(name) for name in ranks.index[start:end]))
        last_end = max(last_end, end)
    return tuple(groups)
