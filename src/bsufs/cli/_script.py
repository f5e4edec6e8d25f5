"""Lines of Python that do what a command did."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from bsufs.cli._input import Input
from bsufs.cli._options import parse_kinds
from bsufs.tables import open_table


def python_lines(given: Any, found: Input, selector: Any) -> str:
    """Return the lines that select the same columns of the same file."""
    arguments = [repr(given.table), *_differing(_reading(given), open_table)]
    settings = _differing(_parameters(given, found, selector), type(selector).__init__)
    name = type(selector).__name__
    return (
        f"from bsufs import TableSelector\nfrom bsufs.selectors import {name}\n"
        "from bsufs.tables import open_table\n\n"
        f"table = open_table({', '.join(arguments)})\n"
        f"selector = TableSelector({name}({', '.join(settings)})).fit(table)\n"
        "selector.selected_features_"
    )


def _reading(given: Any) -> dict[str, Any]:
    """Return how the table was read, in the words of `open_table`."""
    return {
        "scale": str(given.scale),
        "ignore": given.ignore,
        "label": given.label,
        "adjust_for": given.adjust_for,
        "missing": None if given.missing is None else str(given.missing),
        "kinds": parse_kinds(given),
        "strict": given.strict,
        "transpose": given.transpose,
        "file_format": given.file_format,
        "delimiter": "\t" if given.delimiter == "\\t" else given.delimiter,
        "header": not given.no_header,
        "array": given.array,
        "names_from": given.names_from,
        "whole_for": "TableSelector",
    }


def _parameters(given: Any, found: Input, selector: Any) -> dict[str, Any]:
    """Return the parameters of a selector, those of columns by their names in the table."""
    table, own = found.table, selector.get_params(deep=False)
    parameters = {name: value for name, value in own.items() if name != "groups"}
    names = np.array(table.names, dtype=object)
    for option in ("must_keep", "never_keep"):
        if own.get(option) is not None:
            features, _ = table.by_feature(np.array(own[option], dtype=np.intp))
            parameters[option] = names[features].tolist()
    if found.groups is not None and "groups" in own:
        parameters["groups"] = {
            label: names[members].tolist() for label, members in found.groups.items()
        }
    if own.get("costs") is not None:
        of = np.arange(names.size) if table.groups is None else table.groups
        costs = np.bincount(of, own["costs"]).tolist()
        parameters["costs"] = dict(zip(names.tolist(), costs, strict=True))
    if "adjust_for" in own:
        parameters["adjust_for"] = given.adjust_for or None
        parameters["center_rows"] = given.center_rows
    return parameters


def _differing(values: dict[str, Any], function: Any) -> list[str]:
    """Return those that are not the defaults of a function, as its call has them."""
    defaults = inspect.signature(function).parameters
    shown = {name: value for name, value in values.items() if value not in (None, [], {}, ())}
    return [f"{name}={value!r}" for name, value in shown.items() if value != defaults[name].default]
