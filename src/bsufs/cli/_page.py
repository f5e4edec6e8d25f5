"""The report of a command: what the page of the library does not know by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scipy import sparse

from bsufs.cli._input import Input

if TYPE_CHECKING:
    from bsufs.inspection.page import Comparison


def make_page(
    selector: Any,
    found: Input,
    *,
    scale: str,
    about: Mapping[str, str],
    comparison: Comparison | None,
    n_subsamples: int,
    seed: int,
    command: str,
) -> str:
    """Return the report as one HTML page."""
    # Needs an extra that nothing else here does.
    from bsufs.inspection.page import make_report

    missing = found.table.missing
    gaps = {"Missing values": f"{missing.n_missing} missing, {missing.n_infinite} infinite"}
    has_gaps = missing.n_missing or missing.n_infinite
    settings = "with_mean=False" if sparse.issparse(found.data.X) else ""
    scaling = (
        "from sklearn.preprocessing import StandardScaler\n\n"
        f"X = StandardScaler({settings}).fit_transform(X)\n"
    )
    return str(
        make_report(
            selector,
            found.data,
            n_subsamples=n_subsamples,
            random_state=seed,
            comparison=comparison,
            about={"Table": found.path, "Scale": scale, **about, **(gaps if has_gaps else {})},
            command=command,
            preparation=scaling if scale == "standard" else None,
        )
    )
