"""Why each feature was kept or left out, in a table and in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bsufs._extras import needs
from bsufs._names import shortened
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.findings import Findings, Reason
from bsufs.metrics.label_free import standardized
from bsufs.selectors._docs import fill_docstring
from bsufs.table_selector import TableSelector

with needs("bsufs.explain", "tables"):
    import pandas as pd

_NAME_WIDTH, _SHORT_WIDTH = 60, 28
# So many of the columns that one stands for are named.
_MOST_NAMED = 3
# A mean so many standard deviations from that of all rows is high or low.
_APART = 0.7
# Share of columns chosen again, corrected for chance, from which a selection is stable, and from
# which it is in part: the bounds that Nogueira, Sechidis and Brown (2018) take from Fleiss.
_STABLE, _PARTLY_STABLE = 0.75, 0.4
# Of random selections at most this share may do as well.
_SIGNIFICANT = 0.05


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
        One row per feature, best first; the index is the number of the column. A `TableSelector`
        is explained by column of the table, without those that were left out as no features. Its
        columns:

        - `name`; `group`, where features are kept in groups; `rank`, 1 for the best; `score`;
          `selected`;
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
    found: Any = Findings(selector, X, feature_names, n_subsamples, subsample, random_state, n_jobs)
    columns, groups = np.arange(found.n_features), found.groups
    if isinstance(selector, TableSelector):
        found = FeatureFindings(found)
        columns = found.folded(selector.columns_of_matrix)
        groups = found.groups if found.n_others.any() else None
    if found.stability.failure is not None:
        raise found.stability.failure
    (closest, correlation), steps = found.closest, found.eliminated_at
    words = _reasons(found)
    frame = pd.DataFrame(
        {
            # As objects: a name may hold what no column of text can.
            "name": pd.Series(found.names, dtype=object),
            "rank": found.ranking,
            "score": np.asarray(found.scores, dtype=np.float64),
            "selected": found.support,
            "eliminated_at": pd.arrays.IntegerArray(steps.astype(np.int64), steps == 0),
            "frequency": found.stability.frequency,
            "frequency_low": found.stability.low,
            "frequency_high": found.stability.high,
            "variance_share": found.variance_share,
            "cluster_share": found.cluster_share,
            "closest": pd.Series(found.names[closest], dtype=object).mask(closest < 0, None),
            "correlation": correlation,
            "reason": pd.Series(words, dtype=object),
        }
    )
    if groups is not None:
        frame.insert(1, "group", pd.Series(groups, dtype=object))
    return frame.set_index(pd.Index(columns, name="column")).iloc[found.best_first]


def reasons_by_feature(found: FeatureFindings) -> dict[str, str]:
    """Return by name why each feature was kept or left out; a category is one feature."""
    return dict(zip(found.names.tolist(), _reasons(found), strict=True))


def represented(found: FeatureFindings, width: int) -> dict[str, str]:
    """Return by name which features each selected one stands for, on a short line."""
    lines = {}
    for feature in np.flatnonzero(found.support).tolist():
        others = found.stands_for[feature].tolist()
        first = [shortened(found.names[other], width) for other in others[:1]]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        lines[found.names[feature]] = "".join(first) + more
    return lines


def _reasons(found: Findings | FeatureFindings) -> list[str]:
    return [
        f"{'kept' if kept else 'left out'}: {why(found, column)}"
        for column, kept in enumerate(found.support.tolist())
    ]


def why(found: Findings | FeatureFindings, column: int) -> str:
    """Return in plain words why one feature was kept or left out."""
    kept, company = found.support[column], _company(found, column)
    closest, correlation = (values[column] for values in found.closest)
    name = shortened(found.names[closest], _NAME_WIDTH)
    match found.reasons[column]:
        case Reason.MUST_KEEP:
            return "always (must_keep)"
        case Reason.NEVER_KEEP:
            return "never to be kept (never_keep)"
        case Reason.ADJUSTED_FOR:
            return "adjusted for (adjust_for)"
        case Reason.CONSTANT if kept:
            return f"constant, but {f'kept{company}' if company else 'no other column was left'}"
        case Reason.CONSTANT:
            return "constant"
        case Reason.DUPLICATE:
            return f"a duplicate of {name} (correlation {correlation:.2f})"
        case Reason.CORRELATED:
            return f"{correlation:.2f} correlated with {name}"
    course = _course(found, column)
    if kept:
        return _represented(found, column) + course + (f"; kept{company}" if company else "")
    times = _times(found.n_features * found.variance_share[column])
    like = "" if closest < 0 else f"; closest is {name} ({correlation:.2f})"
    places = f"ranked {found.ranking[column]} for {found.n_selected} places"
    return f"{places}{company}{course}, {times} the mean variance{like}"


def _company(found: Findings | FeatureFindings, column: int) -> str:
    """Return with which others a feature is kept or left out."""
    n_others = found.n_others[column]
    if n_others == 0:
        return ""
    label = shortened(str(found.groups[column]), _NAME_WIDTH)
    return f" with group {label} ({n_others} other{'s' if n_others > 1 else ''})"


def _represented(found: Findings | FeatureFindings, column: int, on_page: bool = False) -> str:
    """Return which columns a selected one stands for."""
    columns, words = found.stands_for[column], []
    if not columns.size:
        return "no column left out is notably correlated with it"
    for other in columns[:_MOST_NAMED].tolist():
        name = shortened(found.names[other], _SHORT_WIDTH if on_page else _NAME_WIDTH)
        number = f"{found.closest[1][other]:.2f}"
        if on_page:
            # Isolated, so that a name that is read from the right does not turn what follows.
            name = name if name.isascii() else f"\u2068{name}\u2069"
            number = number.replace("-", "\N{MINUS SIGN}")
        words.append(f"{name} ({number})")
    n_more = columns.size - len(words)
    return f"stands for {listed([*words, f'{n_more} more'] if n_more else words)}"


def _course(found: Findings | FeatureFindings, column: int) -> str:
    """Return what a method with clusters or a path knows of a feature."""
    if not np.isnan(found.cluster_share[column]):
        return f", clusters explain {found.cluster_share[column]:.0%} of it"
    if found.eliminated_at[column]:
        return f", eliminated at step {found.eliminated_at[column]} of {found.selector.n_iter_}"
    if found.support[column] and found.path is not None:
        return ", remained to the end of the path"
    return ""


def _times(ratio: float) -> str:
    if ratio < 0.01:
        return "less than 0.01 times"
    if 0.95 < ratio < 1.05:
        # As in every table whose columns were standardized.
        return "about"
    return f"{ratio:.2g} times" if ratio < 100 else f"{ratio:.0f} times"


def portrait(found: FeatureFindings, rank: int) -> str:
    """Return what only the selected feature of a rank, counted from 0, does for the selection."""
    is_free = found.reasons[rank] is Reason.RANK
    sentences = [
        _represented(found, rank, on_page=True) if is_free else f"kept: {why(found, rank)}",
        _clusters_told_apart(found, rank),
    ]
    lost = found.unique_shares[rank]
    if not np.isnan(lost):
        less = f"{100 * lost:.1f} percentage points" if lost >= 0.0005 else "next to nothing"
        sentences.append(f"without it, the selection explains {less} less of the variance")
    return " ".join(f"{words[0].upper()}{words[1:]}." for words in sentences if words)


def _clusters_told_apart(found: FeatureFindings, rank: int) -> str:
    if found.clusters is None:
        return ""
    values, levels = found.values_of(rank)
    labels, sizes = found.clusters.labels, found.clusters.sizes
    if levels:
        counts = np.zeros((sizes.size, len(levels)))
        np.add.at(counts, (labels, values.astype(int)), 1)
        most = zip(
            counts.argmax(axis=1).tolist(), (counts.max(axis=1) / sizes).tolist(), strict=True
        )
        parts = [
            f"{shortened(levels[level], _SHORT_WIDTH)} ({share:.0%}) in cluster {cluster}"
            for cluster, (level, share) in enumerate(most, start=1)
        ]
        return f"most often {listed(parts)}"
    means = np.bincount(labels, standardized(values[:, None])[:, 0]) / sizes * np.sqrt(values.size)
    parts = [
        f"{word} in {listed([str(number) for number in which.tolist()], 'cluster')}"
        for word, is_so in (("high", means >= _APART), ("low", means <= -_APART))
        if (which := np.flatnonzero(is_so) + 1).size
    ]
    return ", ".join(parts) if parts else "much the same in all clusters"


class Verdict(NamedTuple):
    """How sure a selection is: a sentence, and whether it is good news."""

    words: str
    is_good: bool


def verdict(found: FeatureFindings) -> Verdict:
    """Say in words how stable a selection is, and whether random columns do as well."""
    k, d = found.n_selected, found.n_features
    if k == d:
        return Verdict("All columns were kept: there was no choice to be sure of.", True)
    sentences, is_good = [], True
    frequency = float(found.stability.frequency[found.chosen].mean())
    by_chance = found.by_chance
    beyond_chance = (frequency - by_chance) / (1.0 - by_chance)
    if not np.isnan(frequency):
        is_good = beyond_chance >= _PARTLY_STABLE
        word = "stable" if beyond_chance >= _STABLE else "partly stable"
        word = word if is_good else "not stable"
        sentences.append(
            f"The choice is {word}: on {found.subsample:.0%} of the rows, {frequency:.0%} of the "
            f"columns are chosen again; by chance {by_chance:.1%}."
        )
    chance = found.chance
    if chance is not None:
        n_worse = chance.n_worse(not np.isnan(found.cluster_share).any())
        n = chance.explained_by_chance.size
        if n_worse >= (1 - _SIGNIFICANT) * n:
            random = "A random column does" if k == 1 else f"{k} random columns do"
            sentences.append(f"{random} worse in {n_worse} of {n} draws, on rows not seen.")
            stands_for = [others.size for others in found.stands_for.values()]
            if beyond_chance < _PARTLY_STABLE and np.median(stands_for) >= 1:
                sentences.append("Many columns say the same: others could take their places.")
        else:
            is_good = False
            word = "No better" if n_worse <= n / 2 else "Hardly better"
            sentences.append(
                f"{word} than random columns: they do as well in {n - n_worse} of {n} draws, on "
                "rows not seen. See whether another method or number of columns tells more."
            )
    return Verdict(" ".join(sentences), is_good)


def listed(words: Sequence[str], kind: str = "") -> str:
    """Return words as a sentence lists them, with what they are before them."""
    text = ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
    return f"{kind}{'s' if len(words) > 1 else ''} {text}" if kind else text
