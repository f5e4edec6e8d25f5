"""Columns as a command names them: groups, costs, and what is always or never kept."""

import csv
from collections.abc import Mapping
from typing import Any

import numpy as np

from bsufs._names import did_you_mean, shortened
from bsufs.selectors._columns import matching
from bsufs.tables import Table

Groups = dict[str, list[int]]
KEPT = ("must_keep", "never_keep")


def column_groups(given: Any, table: Table) -> Groups:
    """Return the numbers of the features of each group."""
    path, mark = vars(given).get("groups"), vars(given).get("group_by")
    if path is not None and mark is not None:
        raise ValueError("--groups and --group-by both say what belongs together: give one.")
    if mark == "":
        raise ValueError("--group-by must be the mark that ends a group name, got nothing.")
    groups: Groups = {}
    if path is not None:
        place = {name: number for number, name in enumerate(table.names)}
        for where, name, group in _pairs(path, "column", "group"):
            groups.setdefault(group, []).append(_known(name, place, where))
    elif mark is not None:
        for number, name in enumerate(table.names):
            # A column whose name is that of a group belongs to it.
            groups.setdefault(name.rpartition(mark)[0] or name, []).append(number)
    return groups


def column_costs(given: Any, table: Table, groups: Groups) -> list[float] | None:
    """Return what each feature costs, None where nothing does."""
    path = vars(given).get("costs")
    if (path is None) != (vars(given).get("budget") is None):
        raise ValueError("--costs and --budget must be given together.")
    if path is None:
        return None
    costs = np.full(table.n_features, np.nan)
    places = _places(table, groups)
    for where, name, cost in _pairs(path, "column", "cost"):
        features = _known(name, places, where)
        try:
            costs[features] = float(cost) / len(features)
        except ValueError:
            raise ValueError(f"{where} a cost must be a number, got {cost!r}.") from None
    if np.isnan(costs).any():
        name = table.names[int(np.isnan(costs).argmax())]
        raise ValueError(
            f"{path}: every column must have a cost, got none for {name!r}. Add it; what is never "
            "kept may cost 1."
        )
    return [float(cost) for cost in costs]


def _pairs(path: str, first: str, second: str) -> list[tuple[str, str, str]]:
    """Read a CSV file of two columns, with or without a line that names them."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must hold lines of text, but {error}.") from error
    found = []
    for number, cells in enumerate(lines, start=1):
        if not any(cells) or (number == 1 and cells == [first, second]):
            continue
        where = f"{path}, line {number}:"
        if len(cells) != 2 or not all(cells):
            raise ValueError(
                f"{where} must hold a {first} and a {second} with a comma between them, got "
                f"{','.join(cells)[:80]!r}."
            )
        found.append((where, cells[0], cells[1]))
    if not found:
        raise ValueError(f"{path}: must hold lines of a {first} and a {second}, got none.")
    return found


def _known(name: str, places: Mapping[str, Any], where: str) -> Any:
    """Return what a name stands for, or say that it is none of a feature."""
    if name not in places:
        hint = did_you_mean(name, places)
        raise ValueError(
            f"{where} {shortened(name, 60)!r} is not among the features to select from.{hint}"
        )
    return places[name]


def _places(table: Table, groups: Groups) -> Groups:
    """Return the features that a name may stand for: itself, or a group."""
    return {**groups, **{name: [number] for number, name in enumerate(table.names)}}


def features_named(given: Any, option: str, table: Table, groups: Groups) -> list[int]:
    """Return the features that --must-keep or --never-keep names, by themselves or a pattern."""
    names = vars(given).get(option) or ()
    pattern = vars(given).get(f"{option}_matching")
    shown, places = f"--{option.replace('_', '-')}", _places(table, groups)
    numbers = [number for name in names for number in _known(name, places, shown)]
    if pattern is not None:
        numbers += np.flatnonzero(matching(f"{shown}-matching", pattern, table.names)).tolist()
    return list(dict.fromkeys(numbers))
