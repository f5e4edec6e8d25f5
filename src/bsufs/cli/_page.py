"""The report of a command: what the page of the library does not know by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bsufs._threads import at_most_threads
from bsufs.cli._input import Input
from bsufs.cli._script import python_lines

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
    if gaps.in_words():
        facts["Missing values"] = gaps.in_words()
    if given.adjust_for:
        facts["Adjusted for"] = ", ".join(given.adjust_for)
    if given.center_rows:
        facts["Rows"] = "their means over the columns were taken off first"
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
            script=python_lines(given, found, getattr(selector, "best_estimator_", selector)),
            progress=found.console.progress,
        )
    return str(report)
