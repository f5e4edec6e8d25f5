"""The tables of a page, as its template shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bsufs._names import shortened
from bsufs._typing import Mask
from bsufs.inspection.explanation import why
from bsufs.inspection.findings import Findings
from bsufs.inspection.page._figures import overlap_figure
from bsufs.tuning.criteria import CRITERIA

# A name longer than the second is not shown in full anywhere: the page must stay small.
NAME_WIDTH, LONGEST_NAME = 60, 300
_MOST_CANDIDATES = 100
_MEANINGS = {
    "reconstruction": "how much of rows not seen the features explain",
    "permutation_gap": "how much more they explain than where nothing is related",
    "clustering_agreement": "how far k-means finds the clusters that it finds on all features",
    "restart_agreement": "how far restarts of k-means find the same clusters",
    "redundancy": "how far the features repeat one another",
    "stability": "how far the method selects the same on other rows",
    "rank_mean": "the mean of the ranks by the others, from 0 to 1",
}


@dataclass(frozen=True)
class Comparison:
    """Other methods: their numbers, what they select, and what a reader should know.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per method, its name first; shown as it is.
    selections : mapping of str to array of int or bool, default={}
        The columns that each method selects, as numbers or as a mask. From these the page draws
        how far the methods agree, and says of each feature how many others choose it.
    notes : sequence of str, default=()
        Paragraphs below the table, such as what its columns mean.
    baselines : collection of str, default=()
        Methods of the table that are there to be beaten, such as random columns; they are marked.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from bsufs import BSUFS
    >>> from bsufs.inspection import Comparison, make_report
    >>> from bsufs.selectors import MaxVariance
    >>> X = load_iris(as_frame=True).data
    >>> other = MaxVariance(2).fit(X)
    >>> table = pd.DataFrame({"method": ["MaxVariance"], "seconds": [0.001]})
    >>> beside = Comparison(table, {"MaxVariance": other.get_support()})
    >>> "Other methods" in make_report(BSUFS(2).fit(X), X, n_subsamples=2, comparison=beside)
    True
    """

    table: pd.DataFrame
    selections: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    baselines: Collection[str] = ()


def feature_rows(
    found: Findings, others: Mapping[str, Mask], max_rows: int
) -> Iterator[dict[str, Any]]:
    """Go through the rows of the table of features, best first."""
    closest, correlation = found.closest
    for column in found.best_first[:max_rows].tolist():
        name = found.names[column]
        short = shortened(name, NAME_WIDTH)
        yield {
            "rank": found.ranking[column],
            "name": short,
            "full_name": "" if short == name else shortened(name, LONGEST_NAME),
            "kept": found.selected[column],
            "reason": why(found, column),
            "score": found.scores[column],
            "eliminated_at": found.eliminated_at[column] or "",
            "frequency": found.stability.frequency[column],
            "low": found.stability.low[column],
            "high": found.stability.high[column],
            "variance_share": found.variance_share[column],
            "closest": None
            if closest[column] < 0
            else shortened(found.names[closest[column]], NAME_WIDTH),
            "correlation": correlation[column],
            "others": [name for name, mask in others.items() if mask[column]],
        }


def tuning_table(search: Any) -> dict[str, Any] | None:
    """Return how a search came to its settings."""
    candidates = getattr(search, "criteria_", None)
    if candidates is None:
        return None
    candidates = pd.DataFrame(candidates).sort_values("rank", kind="stable")
    decisive = getattr(search.criterion, "name", search.criterion)
    chosen = ", ".join(f"{name}={value!r}" for name, value in search.best_params_.items())
    words = (
        f"{len(candidates)} settings were tried, and what each selects was judged by the data "
        f"alone; no label was seen. {_in_plain(decisive).capitalize()} decided, with "
        f"{search.best_score_:.3f} for {shortened(chosen, 200)}."
    )
    if len(candidates) > _MOST_CANDIDATES:
        words += f" The table shows the best {_MOST_CANDIDATES}."
    first = ["rank", *(name for name in candidates if name != "rank")]
    headings = {name: _candidate_heading(name, decisive) for name in candidates}
    table = _cells(candidates[first].head(_MOST_CANDIDATES).rename(columns=headings))
    table["rows"][0]["kind"] = "best"
    judged = [name for name in candidates if name in CRITERIA and name in _MEANINGS]
    meanings = {_in_plain(name): _MEANINGS[name] for name in judged}
    return {"words": words, "table": table, "meanings": meanings}


def _candidate_heading(name: str, decisive: str) -> str:
    if name == "n_features":
        return "features"
    if name not in CRITERIA:
        return name.removeprefix("param_")
    larger = getattr(CRITERIA[name], "larger_is_better", True)
    role = "decides, " if name == decisive else ""
    return f"{_in_plain(name)} ({role}{'larger' if larger else 'smaller'} is better)"


def _in_plain(name: str) -> str:
    return name.replace("_", " ")


def selection_masks(comparison: Comparison, own: str, support: Mask) -> dict[str, Mask]:
    """Return what each method selects, the one that the page is about first."""
    masks = {own: np.asarray(support, dtype=bool)}
    for name, selection in comparison.selections.items():
        if name != own:
            masks[name] = _mask(name, np.asarray(selection), masks[own].size)
    return masks if len(masks) > 1 else {}


def _mask(name: str, selection: Any, n_features: int) -> Mask:
    mask = np.zeros(n_features, dtype=bool)
    numbers = np.flatnonzero(selection) if selection.dtype == bool else selection
    fits = selection.dtype != bool or selection.shape == mask.shape
    is_number = numbers.dtype.kind in "iu" and numbers.size > 0
    if not fits or not is_number or not np.all((numbers >= 0) & (numbers < n_features)):
        raise ValueError(
            f"comparison.selections[{name!r}] must hold column numbers below {n_features} or a "
            f"mask of as many truth values, got {selection!r}. Pass selector.get_support()."
        )
    mask[numbers] = True
    return mask


def comparison_table(comparison: Comparison, masks: Mapping[str, Mask]) -> dict[str, Any]:
    """Return what the page shows of other methods."""
    table = _cells(comparison.table)
    for row, name in zip(table["rows"], comparison.table.iloc[:, 0], strict=True):
        if name in comparison.baselines:
            row["kind"] = "baseline"
    figure = overlap_figure(masks) if masks else None
    return {"table": table, "notes": comparison.notes, "figure": figure}


def _cells(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as text, with numbers in few digits."""
    return {
        "columns": [shortened(str(column), NAME_WIDTH) for column in frame.columns],
        "rows": [
            {"kind": "", "cells": [_cell(value) for value in row]}
            for row in frame.itertuples(index=False, name=None)
        ],
    }


def _cell(value: Any) -> dict[str, Any]:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return {"text": "\N{EN DASH}", "number": True, "value": ""}
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return {"text": str(value), "number": True, "value": str(value)}
    if isinstance(value, float | np.floating):
        return {"text": f"{value:.4g}", "number": True, "value": repr(float(value))}
    return {"text": shortened(str(value), NAME_WIDTH * 2), "number": False, "value": ""}
