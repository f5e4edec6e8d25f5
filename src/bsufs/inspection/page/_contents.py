"""What the page says of a selection, in words and numbers."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import _num_samples

import bsufs
import bsufs.selectors
from bsufs._names import shortened
from bsufs._typing import Array
from bsufs.inspection.explanation import forced_and_barred
from bsufs.tuning.criteria import CRITERIA

# Standard deviations that differ by more are those of different units.
# Variances that differ by this share are those of columns that were standardized.
_ALIKE = 1e-6
_MANY_TIMES = 100
_VALUE_WIDTH = 200
NAME_WIDTH = 60
_MOST_CANDIDATES = 100
_FORCED = {"must_keep": "Always kept", "never_keep": "Never kept"}
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
class Tile:
    """A number that tells much, with its words."""

    number: str
    words: str


def asked(selector: Any, search: Any, names: Sequence[str]) -> dict[str, str]:
    """Return what was asked of a selector."""
    d, k = int(selector.n_features_in_), int(np.sum(selector.support_))
    wanted = getattr(selector, "n_features_to_select", k)
    # None is for a consensus, which takes the number of its estimator.
    number = str(k) if wanted in (None, k) else f"{wanted}, which gave {k}"
    lines = {"Method": type(selector).__name__, "Features to keep": f"{number} of {d}"}
    others = {
        name: value
        for name, value in changed_parameters(selector).items()
        if name not in ("n_features_to_select", *_FORCED)
    }
    words = ", ".join(f"{name}={value}" for name, value in others.items())
    lines["Other settings"] = words or "the defaults"
    for heading, mask in zip(_FORCED.values(), forced_and_barred(selector), strict=True):
        if mask.any():
            meant = [
                shortened(names[column], NAME_WIDTH) for column in np.flatnonzero(mask).tolist()
            ]
            lines[heading] = shortened(", ".join(meant), _VALUE_WIDTH)
    if search is not selector:
        lines["Settings chosen by"] = type(search).__name__
    if getattr(selector, "n_components_", None) is not None:
        lines["Components"] = str(selector.n_components_)
    if getattr(selector, "stopping_reason_", None) is not None:
        lines["Ended"] = (
            f"{selector.stopping_reason_.replace('_', ' ')}, after {selector.n_iter_} iterations"
        )
    return lines


@dataclass(frozen=True)
class Tuning:
    """How a search came to its settings."""

    words: str
    table: pd.DataFrame
    meanings: dict[str, str]


def tuning(search: Any) -> Tuning | None:
    """Return how settings were chosen."""
    candidates = getattr(search, "criteria_", None)
    if candidates is None:
        return None
    candidates = pd.DataFrame(candidates).sort_values("rank", kind="stable")
    decisive = getattr(search.criterion, "name", search.criterion)
    chosen = ", ".join(f"{name}={value!r}" for name, value in search.best_params_.items())
    judged = [name for name in candidates if name in CRITERIA]
    words = (
        f"{len(candidates)} settings were tried, and what each selects was judged by the data "
        f"alone; no label was seen. {_in_plain(decisive).capitalize()} decided, with "
        f"{search.best_score_:.3f} for {shortened(chosen, _VALUE_WIDTH)}."
    )
    if len(candidates) > _MOST_CANDIDATES:
        words += f" The table shows the best {_MOST_CANDIDATES}."
    headings = {name: _candidate_heading(name, decisive) for name in candidates}
    first = ["rank", *(name for name in candidates if name != "rank")]
    return Tuning(
        words,
        candidates[first].head(_MOST_CANDIDATES).rename(columns=headings),
        {_in_plain(name): _MEANINGS[name] for name in judged if name in _MEANINGS},
    )


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


def changed_parameters(selector: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them."""
    signature = inspect.signature(type(selector).__init__).parameters
    changed = {}
    for name, value in selector.get_params(deep=False).items():
        words = repr(value)
        if name not in signature or words != repr(signature[name].default):
            changed[name] = shortened(words, _VALUE_WIDTH)
    return changed


def data_in_numbers(X: Any, explanation: pd.DataFrame) -> dict[str, str]:
    """Return what is known of the data."""
    n, d = _num_samples(X), len(explanation)
    share = explanation["variance_share"].to_numpy()
    largest = explanation.iloc[int(share.argmax())]
    lines = {"Rows": f"{n}", "Features": f"{d}", "Constant columns": f"{int((share <= 0).sum())}"}
    copies = explanation["reason"].str.startswith("left out: a copy of").sum()
    lines["Copies of a kept feature"] = f"{int(copies)}"
    if sparse.issparse(X):
        lines["Stored as"] = f"sparse, {X.nnz / (n * d):.2%} of the entries"
    varying = share[share > 0]
    if varying.size > 1 and np.ptp(varying) <= _ALIKE * varying.max():
        lines["Variance"] = "the same in all columns that vary"
    elif varying.size:
        lines["Largest variance"] = (
            f"{shortened(largest['name'], NAME_WIDTH)}, {share.max():.2%} of the total"
        )
    return lines


def notes(explanation: pd.DataFrame) -> list[str]:
    """Return what a careful reader should know before trusting the selection."""
    found = []
    spread = np.sqrt(explanation["variance_share"].to_numpy())
    spread = spread[spread > 0]
    if spread.size and spread.max() > _MANY_TIMES * np.median(spread):
        times = spread.max() / np.median(spread)
        found.append(
            f"The largest standard deviation of a column is {times:.0f} times the middle one. If "
            "the columns have different units, standardize them first: methods that look at "
            "variance prefer the large ones."
        )
    frequency = explanation["frequency"]
    wavering = int((explanation["selected"] & (frequency < 0.5)).sum())
    if wavering:
        found.append(
            f"Of the {int(explanation['selected'].sum())} kept features {wavering} would be chosen "
            "on less than half of the subsamples: others could take their place."
        )
    return found


def tiles(explanation: pd.DataFrame, curve: pd.DataFrame, correlations: Array) -> list[Tile]:
    """Return the numbers that tell most."""
    kept = explanation["selected"]
    k, d = int(kept.sum()), len(kept)
    shown = [Tile(f"{k}", f"of {d} features kept")]
    explained, bound = curve["explained"].iloc[-1], curve["bound"].iloc[-1]
    if not np.isnan(explained):
        most = "" if np.isnan(bound) else f"; as many principal components: {bound:.1%}"
        shown.append(Tile(f"{explained:.1%}", f"of the variance explained by regression{most}"))
    if k > 1:
        pairs = np.abs(correlations[np.triu_indices(k, 1)])
        shown.append(
            Tile(
                f"{pairs.mean():.2f}",
                f"mean absolute correlation among the kept; the largest is {pairs.max():.2f}",
            )
        )
    frequency = explanation["frequency"][kept].mean()
    if not np.isnan(frequency):
        shown.append(
            Tile(
                f"{frequency:.0%}",
                f"of the kept are chosen again on a subsample of the rows; by chance {k / d:.1%}",
            )
        )
    return shown


def python_lines(selector: Any) -> str:
    """Return the lines of Python that make such a selector."""
    kind = type(selector)
    public = hasattr(bsufs.selectors, kind.__name__)
    module = "bsufs.selectors" if public else kind.__module__
    settings = ", ".join(f"{name}={value}" for name, value in changed_parameters(selector).items())
    return (
        f"from {module} import {kind.__name__}\n\n"
        f"selector = {kind.__name__}({settings}).fit(X)\n"
        "selector.transform(X)"
    )


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    return {
        "bsufs": bsufs.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }


def in_words(lines: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what a caller wants to be said, as text."""
    return {
        shortened(str(name)): shortened(str(value), _VALUE_WIDTH)
        for name, value in (lines or {}).items()
    }
