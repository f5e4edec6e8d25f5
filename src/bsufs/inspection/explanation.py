"""Why each feature was kept or left out, in a table and in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bsufs._extras import needs
from bsufs._names import shortened
from bsufs.inspection._docs import fill_docstring
from bsufs.inspection.findings import Findings, Reason

with needs("bsufs.explain", "tables"):
    import pandas as pd

_NAME_WIDTH = 60


@fill_docstring
def explain(
    selector: Any,
    X: Any,
    *,
    n_subsamples: int = 20,
    subsample: float = 0.5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Explain why each feature was kept or left out, and how certain that is.

    Parameters
    ----------
    %(selector)s
    %(X)s
    %(subsamples)s
    %(feature_names)s

    Returns
    -------
    pandas.DataFrame
        One row per feature, best first; the index is the number of the column. Its columns:

        - `name`; `rank`, 1 for the best; `score`; `selected`;
        - `eliminated_at`: the step of the path (or, with a fixed weight, the iteration) at which
          the feature was eliminated; missing for those that remained to the end, and for methods
          that eliminate none;
        - `frequency`: the share of the random parts of the rows on which a selection of the same
          size includes this feature; `frequency_low`, `frequency_high`: its 95 % interval (Wilson);
        - `variance_share`: its share of the total variance;
        - `cluster_share`: how much of its own variance lies between the clusters that the method
          looks at; missing for methods that look at none;
        - `closest`, `correlation`: the other selected feature that it is most correlated with,
          which represents a feature left out; missing for constant columns;
        - `reason`: the same in plain words.

    Notes
    -----
    The interval is that of the share over all parts of this size of these rows. It says nothing
    about rows that were never seen. A selector does not remember sample weights, so variances and
    correlations give all rows the same weight.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
    Journal of the American Statistical Association 22(158).

    Meinshausen, N., Bühlmann, P. (2010). Stability selection. JRSS B 72(4).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs import BSUFS, explain
    >>> X = load_iris(as_frame=True).data
    >>> table = explain(BSUFS(2).fit(X), X)
    >>> table.loc[3, "reason"]
    'left out: 0.96 correlated with petal length (cm)'
    """
    found = Findings(selector, X, feature_names, n_subsamples, subsample, random_state, n_jobs)
    selector = found.selector
    if found.stability.failure is not None:
        raise found.stability.failure
    closest, correlation = found.closest
    words = [
        f"{'kept' if kept else 'left out'}: {why(found, column)}"
        for column, kept in enumerate(selector.support_.tolist())
    ]
    frame = pd.DataFrame(
        {
            # As objects: a name may hold what no column of text can.
            "name": pd.Series(found.names, dtype=object),
            "rank": selector.ranking_,
            "score": np.asarray(selector.scores_, dtype=np.float64),
            "selected": selector.support_,
            "eliminated_at": pd.arrays.IntegerArray(
                found.eliminated_at.astype(np.int64), found.eliminated_at == 0
            ),
            "frequency": found.stability.frequency,
            "frequency_low": found.stability.low,
            "frequency_high": found.stability.high,
            "variance_share": found.variance_share,
            "cluster_share": found.cluster_share,
            "closest": pd.Series(found.names[closest], dtype=object).mask(closest < 0, None),
            "correlation": correlation,
            "reason": pd.Series(words, dtype=object),
        },
        index=pd.RangeIndex(found.n_features, name="column"),
    )
    return frame.loc[found.best_first]


def why(found: Findings, column: int) -> str:
    """Return in plain words why one feature was kept or left out."""
    kept, rank = found.selector.support_[column], found.selector.ranking_[column]
    closest, correlation = (values[column] for values in found.closest)
    name = shortened(found.names[closest], _NAME_WIDTH)
    match found.reasons[column]:
        case Reason.MUST_KEEP:
            return "always (must_keep)"
        case Reason.NEVER_KEEP:
            return "never to be kept (never_keep)"
        case Reason.ADJUSTED_FOR:
            return "adjusted for (adjust_for)"
        case Reason.CONSTANT:
            return "constant, but no other column was left" if kept else "constant"
        case Reason.DUPLICATE:
            return f"a duplicate of {name} (correlation {correlation:.2f})"
        case Reason.CORRELATED:
            return f"{correlation:.2f} correlated with {name}"
    if kept:
        frequency = found.stability.frequency[column]
        again = "" if np.isnan(frequency) else f", chosen again on {frequency:.0%} of subsamples"
        return f"ranked {rank} of {found.n_features}{_course(found, column)}{again}"
    times = _times(found.n_features * found.variance_share[column])
    like = "" if closest < 0 else f"; closest is {name} ({correlation:.2f})"
    return (
        f"ranked {rank} for {found.n_selected} places{_course(found, column)}, "
        f"{times} the mean variance{like}"
    )


def _course(found: Findings, column: int) -> str:
    """Return what a method with clusters or a path knows of a feature."""
    if not np.isnan(found.cluster_share[column]):
        return f", clusters explain {found.cluster_share[column]:.0%} of it"
    if found.eliminated_at[column]:
        return f", eliminated at step {found.eliminated_at[column]} of {found.selector.n_iter_}"
    if found.selector.support_[column] and found.path is not None:
        return ", remained to the end of the path"
    return ""


def _times(ratio: float) -> str:
    if ratio < 0.01:
        return "less than 0.01 times"
    if 0.95 < ratio < 1.05:
        # As in every table whose columns were standardized.
        return "about"
    return f"{ratio:.2g} times" if ratio < 100 else f"{ratio:.0f} times"
