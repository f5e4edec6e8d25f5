"""What is computed of a selection before a page says anything of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from bsufs._typing import Array
from bsufs.inspection.explanation import (
    SubsampleError,
    explain,
    explained_variance,
    fitted_method,
    selected_correlations,
)
from bsufs.selectors._data import FitData


@dataclass(frozen=True)
class Findings:
    """All that a page shows of one selection."""

    selector: Any
    search: Any
    X: Any
    explanation: pd.DataFrame
    curve: pd.DataFrame
    correlations: Array
    not_measured: str

    @property
    def method(self) -> str:
        """Name of the method."""
        return type(self.selector).__name__

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.explanation)

    @property
    def n_selected(self) -> int:
        """Number of selected features."""
        return len(self.curve)


def find(selector: Any, X: Any, *, n_subsamples: int, **sampling: Any) -> Findings:
    """Explain a selection, and measure it as a whole."""
    method = fitted_method(selector)
    not_measured = "It was not asked for." if n_subsamples == 0 else ""
    try:
        explanation = explain(method, X, n_subsamples=n_subsamples, **sampling)
    except SubsampleError as error:
        explanation = explain(method, X, n_subsamples=0, **sampling)
        not_measured = str(error)
    return Findings(
        selector=method,
        search=selector,
        X=X.X if isinstance(X, FitData) else X,
        explanation=explanation,
        curve=explained_variance(method, X),
        correlations=selected_correlations(method, X),
        not_measured=not_measured,
    )
