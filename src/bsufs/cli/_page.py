"""The report of a command: what the page of the library does not know by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy import sparse

from bsufs.cli._whole import WholeInput
from bsufs.inspection.page import Comparison, make_report


def make_page(
    selector: Any,
    found: WholeInput,
    *,
    about: Mapping[str, str],
    comparison: Comparison | None,
    n_subsamples: int,
    seed: int,
    command: str,
) -> str:
    """Return the report as one HTML page."""
    lines = dict(about)
    if found.missing.n_missing or found.missing.n_infinite:
        lines["Missing values"] = (
            f"{found.missing.n_missing} missing, {found.missing.n_infinite} infinite"
        )
    return str(
        make_report(
            selector,
            found.X,
            feature_names=found.table.names,
            n_subsamples=n_subsamples,
            random_state=seed,
            comparison=comparison,
            about=lines,
            command=command,
            preparation=_lines_that_scale(found.X) if found.is_scaled else None,
        )
    )


def _lines_that_scale(X: Any) -> str:
    settings = "with_mean=False" if sparse.issparse(X) else ""
    return (
        "from sklearn.preprocessing import StandardScaler\n\n"
        f"X = StandardScaler({settings}).fit_transform(X)\n"
    )
