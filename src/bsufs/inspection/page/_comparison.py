"""Other methods beside the one that a page is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bsufs._typing import Mask


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
