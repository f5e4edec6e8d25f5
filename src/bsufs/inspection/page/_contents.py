"""What the page says of a selection, in words and numbers."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import bsufs
import bsufs.selectors
from bsufs._names import shortened
from bsufs.inspection.findings import Findings, Reason
from bsufs.inspection.page._tables import NAME_WIDTH

# Variances that differ by this share are those of columns that were standardized.
_ALIKE = 1e-6
# Standard deviations that differ by more are those of different units.
_MANY_TIMES = 100
VALUE_WIDTH = 200
_FORCED = {"must_keep": "Always kept", "never_keep": "Never kept"}


class Tile(NamedTuple):
    """A number that tells much, with its words."""

    number: str
    words: str


def asked(found: Findings) -> dict[str, str]:
    """Return what was asked of a selector."""
    selector, k = found.selector, found.n_selected
    wanted = getattr(selector, "n_features_to_select", k)
    # None is for a consensus, which takes the number of its estimator.
    number = str(k) if wanted in (None, k) else f"{wanted}, which gave {k}"
    lines = {"Method": found.method, "Features to keep": f"{number} of {found.n_features}"}
    others = ", ".join(
        f"{name}={value}"
        for name, value in _changed_parameters(selector).items()
        if name not in ("n_features_to_select", *_FORCED)
    )
    lines["Other settings"] = others or "the defaults"
    for heading, mask in zip(_FORCED.values(), found.forced_and_barred, strict=True):
        if mask.any():
            meant = ", ".join(shortened(name, NAME_WIDTH) for name in found.names[mask])
            lines[heading] = shortened(meant, VALUE_WIDTH)
    if found.search is not selector:
        lines["Settings chosen by"] = type(found.search).__name__
    if getattr(selector, "n_components_", None) is not None:
        lines["Components"] = str(selector.n_components_)
    if getattr(selector, "stopping_reason_", None) is not None:
        lines["Ended"] = (
            f"{selector.stopping_reason_.replace('_', ' ')}, after {selector.n_iter_} iterations"
        )
    return lines


def _changed_parameters(selector: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them."""
    signature = inspect.signature(type(selector).__init__).parameters
    changed = {}
    for name, value in selector.get_params(deep=False).items():
        words = repr(value)
        if name not in signature or words != repr(signature[name].default):
            changed[name] = shortened(words, VALUE_WIDTH)
    return changed


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
        name = shortened(found.names[largest], NAME_WIDTH)
        lines["Largest variance"] = f"{name}, {share.max():.2%} of the total"
    return lines


def notes(found: Findings) -> Iterator[str]:
    """Go through what a careful reader should know before trusting the selection."""
    spread = np.sqrt(found.variance_share[found.variance_share > 0])
    if spread.size and spread.max() > _MANY_TIMES * np.median(spread):
        times = spread.max() / np.median(spread)
        yield (
            f"The largest standard deviation of a column is {times:.0f} times the middle one. If "
            "the columns have different units, standardize them first: methods that look at "
            "variance prefer the large ones."
        )
    wavering = int(np.sum(found.stability.frequency[found.chosen] < 0.5))
    if wavering:
        yield (
            f"Of the {found.n_selected} kept features {wavering} would be chosen on less than half "
            "of the subsamples: others could take their place."
        )


def tiles(found: Findings) -> Iterator[Tile]:
    """Go through the numbers that tell most."""
    k, d = found.n_selected, found.n_features
    yield Tile(f"{k}", f"of {d} features kept")
    explained, bound = found.explained[-1], found.bound[-1]
    if not np.isnan(explained):
        most = "" if np.isnan(bound) else f"; as many principal components: {bound:.1%}"
        yield Tile(f"{explained:.1%}", f"of the variance explained by regression{most}")
    if k > 1:
        pairs = np.abs(found.correlations[np.triu_indices(k, 1)])
        words = f"mean absolute correlation among the kept; the largest is {pairs.max():.2f}"
        yield Tile(f"{pairs.mean():.2f}", words)
    frequency = found.stability.frequency[found.chosen].mean()
    if not np.isnan(frequency):
        words = f"of the kept are chosen again on a subsample of the rows; by chance {k / d:.1%}"
        yield Tile(f"{frequency:.0%}", words)


def python_lines(selector: Any) -> str:
    """Return the lines of Python that make such a selector."""
    kind = type(selector)
    public = hasattr(bsufs.selectors, kind.__name__)
    module = "bsufs.selectors" if public else kind.__module__
    settings = ", ".join(f"{name}={value}" for name, value in _changed_parameters(selector).items())
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
