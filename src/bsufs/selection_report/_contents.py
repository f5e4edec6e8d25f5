"""What the page says of a selection, in words and numbers."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Mapping
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

# Standard deviations that differ by more are those of different units.
_MANY_TIMES = 100
_VALUE_WIDTH = 200


@dataclass(frozen=True)
class Tile:
    """A number that tells much, with its words.

    Parameters
    ----------
    number : str
        As shown.
    words : str
        What it is.
    """

    number: str
    words: str


def asked(selector: Any, search: Any) -> dict[str, str]:
    """Return what was asked of a selector.

    Parameters
    ----------
    selector : selector
        The selector.
    search : selector
        The search that found it, or the selector itself.

    Returns
    -------
    dict of str to str
        Lines for a reader.
    """
    d, k = int(selector.n_features_in_), int(np.sum(selector.support_))
    wanted = getattr(selector, "n_features_to_select", k)
    number = f"{wanted}, which gave {k}" if wanted != k else str(k)
    lines = {"Method": type(selector).__name__, "Features to keep": f"{number} of {d}"}
    others = {
        name: value
        for name, value in changed_parameters(selector).items()
        if name != "n_features_to_select"
    }
    words = ", ".join(f"{name}={value}" for name, value in others.items())
    lines["Other settings"] = words or "the defaults"
    if search is not selector:
        lines["Settings chosen by"] = type(search).__name__
    if getattr(selector, "n_components_", None) is not None:
        lines["Components"] = str(selector.n_components_)
    if getattr(selector, "stopping_reason_", None) is not None:
        lines["Ended"] = (
            f"{selector.stopping_reason_.replace('_', ' ')}, after {selector.n_iter_} iterations"
        )
    return lines


def changed_parameters(selector: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them.

    Parameters
    ----------
    selector : selector
        The selector.

    Returns
    -------
    dict of str to str
        Values by name; long ones shortened.
    """
    signature = inspect.signature(type(selector).__init__).parameters
    changed = {}
    for name, value in selector.get_params(deep=False).items():
        words = repr(value)
        if name not in signature or words != repr(signature[name].default):
            changed[name] = shortened(words, _VALUE_WIDTH)
    return changed


def data_in_numbers(X: Any, explanation: pd.DataFrame) -> dict[str, str]:
    """Return what is known of the data.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    explanation : pandas.DataFrame
        What `explain` returned.

    Returns
    -------
    dict of str to str
        Lines for a reader.
    """
    n, d = _num_samples(X), len(explanation)
    share = explanation["variance_share"].to_numpy()
    largest = explanation.iloc[int(share.argmax())]
    lines = {"Rows": f"{n}", "Features": f"{d}", "Constant columns": f"{int((share <= 0).sum())}"}
    copies = explanation["reason"].str.startswith("left out: a copy of").sum()
    lines["Copies of a kept feature"] = f"{int(copies)}"
    if sparse.issparse(X):
        lines["Stored as"] = f"sparse, {X.nnz / (n * d):.2%} of the entries"
    if share.max(initial=0.0) > 0:
        lines["Largest variance"] = (
            f"{shortened(largest['name'], 60)}, {share.max():.2%} of the total"
        )
    return lines


def notes(explanation: pd.DataFrame) -> list[str]:
    """Return what a careful reader should know before trusting the selection.

    Parameters
    ----------
    explanation : pandas.DataFrame
        What `explain` returned.

    Returns
    -------
    list of str
        Sentences.
    """
    found = []
    spread = np.sqrt(explanation["variance_share"].to_numpy())
    spread = spread[spread > 0]
    if spread.size and spread.max() > _MANY_TIMES * np.median(spread):
        times = spread.max() / np.median(spread)
        found.append(
            f"The largest standard deviation of a column is {times:.0f} times the middle one. If "
            "the columns have different units, standardise them first: methods that look at "
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
    """Return the numbers that tell most.

    Parameters
    ----------
    explanation : pandas.DataFrame
        What `explain` returned.
    curve : pandas.DataFrame
        What `explained_variance` returned.
    correlations : array of shape (k, k)
        Correlations among the selected.

    Returns
    -------
    list of Tile
        In order.
    """
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
    """Return the lines of Python that make such a selector.

    Parameters
    ----------
    selector : selector
        The selector.

    Returns
    -------
    str
        A few lines.
    """
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
    """Return the versions of what the numbers depend on.

    Returns
    -------
    dict of str to str
        By name.
    """
    return {
        "bsufs": bsufs.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }


def in_words(lines: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what a caller wants to be said, as text.

    Parameters
    ----------
    lines : mapping or None
        Anything by name.

    Returns
    -------
    dict of str to str
        The same as text that fits on a page.
    """
    return {
        shortened(str(name)): shortened(str(value), _VALUE_WIDTH)
        for name, value in (lines or {}).items()
    }
