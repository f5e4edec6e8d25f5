"""The report of a command, and the lines of Python that do what it did."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bsufs._threads import at_most_threads
from bsufs.cli._columns import KEPT, column_costs, features_named
from bsufs.cli._input import Input, read_as
from bsufs.tables import open_table

if TYPE_CHECKING:
    from bsufs.inspection import Alternative, Comparison
    from bsufs.inspection._features import FeatureFindings


def findings_of(given: Any, found: Input, fitted: Any) -> FeatureFindings:
    """Return what a report and reasons tell of a selection."""
    from bsufs.inspection._features import FeatureFindings
    from bsufs.inspection.findings import Findings

    with found.console.busy("looking at what was selected"), at_most_threads(given.jobs):
        return FeatureFindings(
            Findings(
                fitted,
                found.data,
                n_subsamples=given.subsamples,
                random_state=given.seed,
                progress=found.console.progress,
            )
        )


def make_page(
    given: Any,
    found: Input,
    findings: FeatureFindings,
    comparison: Comparison | None,
    about: Mapping[str, str] | None = None,
    alternatives: Sequence[Alternative] = (),
) -> str:
    """Return the report as one HTML page."""
    # Needs an extra that nothing else here does.
    from bsufs.inspection.page._page import page_of

    facts = {"Table": given.table, "Scale": found.table.scale, **(about or {})}
    if found.table.missing.in_words():
        facts["Missing values"] = found.table.missing.in_words()
    if given.adjust_for:
        facts["Adjusted for"] = ", ".join(given.adjust_for)
    if given.batch_key:
        facts["Batches"] = f"their means were taken off first ({', '.join(given.batch_key)})"
    if given.center_rows:
        facts["Rows"] = "their means over the columns were taken off first"
    with found.console.busy("writing the report"), at_most_threads(given.jobs):
        return page_of(
            findings,
            python_lines(given, found, findings.selector),
            comparison=comparison,
            alternatives=alternatives,
            about=facts,
            command=given.command,
        )


def python_lines(given: Any, found: Input, selector: Any) -> str:
    """Return the lines that select the same columns of the same file."""
    read = read_as(given) | {"memory": None, "whole_for": "TableSelector"}
    arguments = [repr(given.table), *_differing(read, open_table)]
    settings = _differing(_parameters(given, found, selector), type(selector).__init__)
    name, caution = type(selector).__name__, ""
    if found.nuisance is not None and "adjust_for" not in selector.get_params():
        caution = f"# {name} cannot take off by itself what {found.cleared_by} did.\n"
    return (
        f"{caution}from bsufs import TableSelector\nfrom bsufs.selectors import {name}\n"
        "from bsufs.tables import open_table\n\n"
        f"table = open_table({', '.join(arguments)})\n"
        f"selector = TableSelector({name}({', '.join(settings)})).fit(table)\n"
        "selector.selected_features_"
    )


def _parameters(given: Any, found: Input, selector: Any) -> dict[str, Any]:
    """Return the parameters of a selector, those of columns by their names in the table."""
    table, names = found.table, found.table.names
    costs = column_costs(given, table, found.groups)
    by_name = {
        "groups": {label: [names[one] for one in found.groups[label]] for label in found.groups},
        "costs": None if costs is None else dict(zip(names, costs, strict=True)),
        "adjust_for": list(dict.fromkeys([*given.adjust_for, *given.batch_key])),
        "center_rows": given.center_rows,
    }
    for option in KEPT:
        by_name[option] = [names[one] for one in features_named(given, option, table, found.groups)]
    own = selector.get_params(deep=False)
    return own | {name: value for name, value in by_name.items() if name in own}


def _differing(values: dict[str, Any], function: Any) -> list[str]:
    """Return those that are not the defaults of a function, as its call has them."""
    defaults = inspect.signature(function).parameters
    shown = {name: value for name, value in values.items() if value not in (None, [], {}, ())}
    return [f"{name}={value!r}" for name, value in shown.items() if value != defaults[name].default]
