"""What the page's script shows of every column, in as few bytes as it takes."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bsufs._names import shortened
from bsufs._typing import Array, Mask
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.findings import Reason
from bsufs.selectors._html import are_ranks

# Names are handed on as they are, to be copied; only what no table should hold is cut.
_LONGEST_NAME = 1000


def columns_of(found: FeatureFindings, others: Mapping[str, Mask]) -> dict[str, Any]:
    """Return the columns of the table of all features, and what the slider shows, best first."""
    closest, correlation = found.closest
    reasons = list(Reason)
    # As many decimals as give the largest share three digits.
    decimals = max(0, 2 - math.floor(math.log10(100 * found.variance_share.max() or 1.0)))
    shown: dict[str, Any] = {
        "kept": found.n_selected,
        "names": [
            name if len(name) <= _LONGEST_NAME else shortened(name, _LONGEST_NAME)
            for name in found.names.tolist()
        ],
        "reasons": [reason.value for reason in reasons],
        "reason": [reasons.index(reason) for reason in found.reasons.tolist()],
        "closest": (closest + 1).tolist(),
        "correlation": _numbers(100 * correlation, 0),
        "stands": [found.stands_for[rank].size for rank in range(found.n_selected)],
        "variance": _numbers(100 * found.variance_share, decimals),
        "decimals": decimals,
        "explained": _numbers(100 * found.curve, 1),
        # Rounded once, as the tiles above the table are.
        "redundancy": [float(f"{value:.2f}") for value in found.redundancy.tolist()],
        "agreement": [[k, float(f"{value:.2f}")] for k, value in found.agreement.items()],
    }
    if not np.isnan(found.stability.frequency).any():
        shown["again"] = _numbers(100 * found.stability.frequency, 0)
    if not np.isnan(found.cluster_share).any():
        shown["clusters"] = _numbers(100 * found.cluster_share, 0)
    if not are_ranks(found.found.scores):
        shown["score"] = _numbers(found.scores)
    if found.eliminated_at.any():
        shown["step"] = found.eliminated_at.tolist()
    if alike(found.variance_share[found.variance_share > 0]):
        del shown["variance"]
    if others:
        chosen_by = np.sum(list(others.values()), axis=0)
        shown["others"], shown["methods"] = chosen_by.tolist(), list(others)
    return shown


def alike(values: Array) -> bool:
    """Tell whether shares are the same, relative to the largest."""
    return bool(values.size == 0 or np.ptp(values) <= 1e-6 * values.max())


def packed(content: Mapping[str, Any]) -> str:
    """Return JSON, compressed, as letters and digits that no parser of HTML can misread."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")


def _numbers(values: Array, decimals: int | None = None) -> list[float | None]:
    """Return numbers with few decimals, or four digits, as JSON writes them; None for unknown."""
    known = np.isfinite(values)
    if decimals is None:
        rounded = [float(f"{value:.4g}") for value in values.tolist()]
    else:
        near = np.round(np.where(known, values, 0.0), decimals)
        rounded = near.astype(np.float64 if decimals else np.int64).tolist()
    return [value if sure else None for value, sure in zip(rounded, known.tolist(), strict=True)]
