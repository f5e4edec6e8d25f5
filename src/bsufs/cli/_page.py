"""The report of a command: what the page of the library does not know by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scipy import sparse

from bsufs._threads import at_most_threads
from bsufs.cli._input import Input

if TYPE_CHECKING:
    from bsufs.inspection import Alternative, Comparison


def make_page(
    given: Any,
    found: Input,
    selector: Any,
    comparison: Comparison | None,
    about: Mapping[str, str] | None = None,
    alternatives: Sequence[Alternative] = (),
) -> str:
    """Return the report as one HTML page."""
    # Needs an extra that nothing else here does.
    from bsufs.inspection.page import make_report

    gaps = found.table.missing
    facts = {"Table": given.table, "Scale": found.table.scale, **(about or {})}
    if gaps.n_missing or gaps.n_infinite:
        facts["Missing values"] = f"{gaps.n_missing} missing, {gaps.n_infinite} infinite"
    adjust_for = given.adjust_for
    if adjust_for:
        facts["Adjusted for"] = ", ".join(adjust_for)
    if given.center_rows:
        facts["Rows"] = "their means over the columns were taken off first"
    settings = "with_mean=False" if sparse.issparse(found.data.X) else ""
    scaling = (
        "from sklearn.preprocessing import StandardScaler\n\n"
        f"X = StandardScaler({settings}).fit_transform(X)\n"
    )
    preparation = scaling if found.table.scale == "standard" else ""
    if found.nuisance is not None:
        preparation += (
            f"# What was taken off first: adjust_for=table[{adjust_for}], "
            f"center_rows={given.center_rows}\n"
        )
    with found.console.busy("writing the report"), at_most_threads(given.jobs):
        report = make_report(
            selector,
            found.data,
            n_subsamples=given.subsamples,
            random_state=given.seed,
            comparison=comparison,
            alternatives=alternatives,
            about=facts,
            command=given.command,
            preparation=preparation or None,
            progress=found.console.progress,
        )
    return str(report)
