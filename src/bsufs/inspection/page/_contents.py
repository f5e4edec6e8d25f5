"""What the page says of a selection, in numbers."""

from __future__ import annotations

import inspect
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import bsufs
from bsufs._names import shortened
from bsufs.inspection.findings import Findings, Reason
from bsufs.tuning.criteria import CRITERIA

# Variances that differ by this share are those of columns that were standardized.
_ALIKE = 1e-6
_NAME_WIDTH = 60
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


def changed_parameters(selector: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them."""
    signature = inspect.signature(type(selector).__init__).parameters
    defaults = {name: repr(parameter.default) for name, parameter in signature.items()}
    words = {name: repr(value) for name, value in selector.get_params(deep=False).items()}
    return {name: value for name, value in words.items() if value != defaults.get(name)}


def data_in_numbers(found: Findings) -> dict[str, str]:
    """Return what is known of the data."""
    X, share = found.data.X, found.variance_share
    lines = {
        "Rows": f"{X.shape[0]}",
        "Features": f"{found.n_features}",
        "Constant columns": f"{np.sum(share <= 0)}",
        "Duplicates of a kept feature": f"{np.sum(found.reasons == Reason.DUPLICATE)}",
    }
    if sparse.issparse(X):
        lines["Stored as"] = f"sparse, {X.nnz / (X.shape[0] * X.shape[1]):.2%} of the entries"
    varying = share[share > 0]
    if varying.size > 1 and np.ptp(varying) <= _ALIKE * varying.max():
        lines["Variance"] = "the same in all columns that vary"
    elif varying.size:
        # Of equal ones the better ranked.
        largest = found.best_first[share[found.best_first].argmax()]
        name = shortened(found.names[largest], _NAME_WIDTH)
        lines["Largest variance"] = f"{name}, {share.max():.2%} of the total"
    return lines


def tuning(search: Any) -> dict[str, Any] | None:
    """Return how a search came to its settings."""
    if getattr(search, "criteria_", None) is None:
        return None
    candidates = pd.DataFrame(search.criteria_).sort_values("rank", kind="stable")
    candidates.insert(0, "rank", candidates.pop("rank"))
    decisive = getattr(search.criterion, "name", search.criterion)
    headings = {name: _candidate_heading(name, decisive) for name in candidates}
    return {
        "n_tried": len(candidates),
        "decisive": decisive.replace("_", " ").capitalize(),
        "chosen": ", ".join(f"{name}={value!r}" for name, value in search.best_params_.items()),
        "table": candidates.head(_MOST_CANDIDATES).rename(columns=headings),
        "meanings": {name: _MEANINGS[name] for name in candidates if name in _MEANINGS},
    }


def _candidate_heading(name: str, decisive: str) -> str:
    if name == "n_features":
        return "features"
    if name not in CRITERIA:
        return name.removeprefix("param_")
    larger = getattr(CRITERIA[name], "larger_is_better", True)
    role = "decides, " if name == decisive else ""
    return f"{name.replace('_', ' ')} ({role}{'larger' if larger else 'smaller'} is better)"


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    return {
        "bsufs": bsufs.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
