"""Groups and costs of columns, as a command is given them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from bsufs._names import did_you_mean, shortened

Groups = dict[str, list[int]]


def column_groups(given: Any, names: Sequence[str]) -> Groups | None:
    """Return the numbers of the columns of each group; None where there are no groups."""
    path, mark = getattr(given, "groups", None), getattr(given, "group_by", None)
    if path is not None and mark is not None:
        raise ValueError("--groups and --group-by both say what belongs together: give one.")
    groups: Groups = {}
    if path is not None:
        place = {name: number for number, name in enumerate(names)}
        for line, name, group in _pairs(path, ("column", "group")):
            groups.setdefault(group, []).append(known(name, place, f"{path}, line {line}:"))
    elif mark is not None:
        if not mark:
            raise ValueError("--group-by must be the mark that ends a group name, got nothing.")
        for number, name in enumerate(names):
            # A column whose name is that of a group belongs to it.
            groups.setdefault(name.rpartition(mark)[0] or name, []).append(number)
    else:
        return None
    return groups


def column_costs(given: Any, names: Sequence[str], groups: Groups | None) -> list[float] | None:
    """Return what each column costs; None where nothing does."""
    if (given.costs is None) != (given.budget is None):
        raise ValueError("--costs and --budget must be given together.")
    if given.costs is None:
        return None
    members = {**(groups or {}), **{name: [number] for number, name in enumerate(names)}}
    costs: dict[int, float] = {}
    for line, name, cost in _pairs(given.costs, ("column", "cost")):
        where = f"{given.costs}, line {line}"
        columns = known(name, members, f"{where}:")
        try:
            each = float(cost) / len(columns)
        except ValueError:
            raise ValueError(f"{where}: a cost must be a number, got {cost!r}.") from None
        costs |= dict.fromkeys(columns, each)
    for number, name in enumerate(names):
        if number not in costs:
            raise ValueError(
                f"{given.costs}: every column must have a cost, got none for {name!r}. Add it; "
                "what is never kept may cost 1."
            )
    return [costs[number] for number in range(len(names))]


def _pairs(path: str, heads: tuple[str, str]) -> list[tuple[int, str, str]]:
    """Read a CSV file of two columns, with or without a line that names them."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must hold lines of text, but {error}.") from error
    found = []
    for number, cells in enumerate(lines, start=1):
        if not any(cells) or (number == 1 and cells == list(heads)):
            continue
        if len(cells) != 2 or not all(cells):
            raise ValueError(
                f"{path}, line {number}: must hold a {heads[0]} and a {heads[1]} with a comma "
                f"between them, got {','.join(cells)[:80]!r}."
            )
        found.append((number, cells[0], cells[1]))
    if not found:
        raise ValueError(f"{path}: must hold lines of a {heads[0]} and a {heads[1]}, got none.")
    return found


def known(name: str, places: dict[str, Any], where: str) -> Any:
    """Return what a name stands for, or say that it is none of a feature."""
    if name not in places:
        hint = did_you_mean(name, places)
        raise ValueError(
            f"{where} {shortened(name, 60)!r} is not among the features to select from.{hint}"
        )
    return places[name]
