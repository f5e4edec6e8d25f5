"""What the page's script shows of every column, in as few bytes as it takes."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bsufs._names import shortened
from bsufs._typing import Array, Mask
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.findings import Reason

# Names are handed on as they are, to be copied; only what no table should hold is cut.
_LONGEST_NAME = 1000
_WORDS = {
    Reason.MUST_KEEP: "must_keep",
    Reason.NEVER_KEEP: "never_keep",
    Reason.ADJUSTED_FOR: "adjust_for",
    Reason.CONSTANT: "constant",
    Reason.DUPLICATE: "duplicate",
    Reason.CORRELATED: "correlated",
    Reason.RANK: "",
}


def columns_of(found: FeatureFindings, others: Mapping[str, Mask]) -> dict[str, Any]:
    """Return the columns of the table of all features, and what the slider shows, best first."""
    closest, correlation = found.closest
    words = list(_WORDS)
    shown: dict[str, Any] = {
        "kept": found.n_selected,
        "names": [
            name if len(name) <= _LONGEST_NAME else shortened(name, _LONGEST_NAME)
            for name in found.names.tolist()
        ],
        "reasons": list(_WORDS.values()),
        "reason": [words.index(reason) for reason in found.reasons.tolist()],
        "closest": (closest + 1).tolist(),
        "correlation": _numbers(100 * correlation, 0),
        "variance": _numbers(100 * found.variance_share, 4, significant=True),
        "explained": _numbers(100 * found.curve, 1),
        # Rounded once, as the tiles above the table are.
        "redundancy": [float(f"{value:.2f}") for value in found.redundancy.tolist()],
        "agreement": [[k, float(f"{value:.2f}")] for k, value in found.agreement.items()],
    }
    if not np.isnan(found.stability.frequency).any():
        shown["again"] = _numbers(100 * found.stability.frequency, 0)
    if not np.isnan(found.cluster_share).any():
        shown["clusters"] = _numbers(100 * found.cluster_share, 0)
    if not scores_are_ranks(found):
        shown["score"] = _numbers(found.scores, 4, significant=True)
    if found.eliminated_at.any():
        shown["step"] = found.eliminated_at.tolist()
    if alike(found.variance_share):
        del shown["variance"]
    if others:
        chosen_by = np.sum(list(others.values()), axis=0)
        shown["others"], shown["methods"] = chosen_by.tolist(), list(others)
    return shown


def scores_are_ranks(found: FeatureFindings) -> bool:
    """Tell whether the scores fall by the same amount from each column to the next."""
    steps = np.diff(found.found.scores[found.found.best_first])
    return bool(steps.size == 0 or np.ptp(steps) <= 1e-9 * np.abs(steps).max())


def alike(shares: Array) -> bool:
    """Tell whether all columns that vary have the same share of the variance."""
    varying = shares[shares > 0]
    return bool(varying.size == 0 or np.ptp(varying) <= 1e-6 * varying.max())


def packed(content: Mapping[str, Any]) -> str:
    """Return JSON, compressed, as letters and digits that no parser of HTML can misread."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")


def _numbers(values: Any, digits: int, significant: bool = False) -> list[float | None]:
    """Return rounded numbers as JSON writes them shortest; None for what is not known."""
    values = np.asarray(values, dtype=np.float64)
    known = np.isfinite(values)
    if significant:
        rounded = [float(f"{value:.{digits}g}") for value in values.tolist()]
    else:
        rounded = (
            np.round(np.where(known, values, 0.0), digits)
            .astype(np.float64 if digits else np.int64)
            .tolist()
        )
    return [
        value if is_known else None for value, is_known in zip(rounded, known.tolist(), strict=True)
    ]
