"""From the name of a method to a fitted selector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from bsufs._names import did_you_mean
from bsufs.cli._groups import known
from bsufs.cli._options import one_of
from bsufs.selectors import all_selectors
from bsufs.selectors._columns import matching
from bsufs.tables import Table

# Parameters that have options of their own, or make no sense in a shell.
_OWN = ("must_keep", "never_keep", "groups", "costs", "budget", "adjust_for", "center_rows")
_NOT_SETTABLE = {name: f"--{name.replace('_', '-')}" for name in _OWN} | {
    "n_features_to_select": "-k",
    "random_state": "--seed",
    "callback": "",
    "verbose": "",
}


def make_selector(
    method: str,
    number: int | float | str,
    *,
    seed: int,
    jobs: int | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
    keep: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return a selector that is not fitted yet."""
    known = all_selectors()
    name = one_of(method, list(known), "--method")
    selector = known[name](number)
    parameters = selector.get_params()
    # Methods that know nothing of groups take those of the data.
    chosen = {
        option: value
        for option, value in keep.items()
        if value not in (None, []) and (option != "groups" or option in parameters)
    }
    for option in chosen:
        if option not in parameters:
            able = [other for other, kind in known.items() if option in kind().get_params()]
            raise ValueError(
                f"--{option.replace('_', '-')} cannot be used with {name}; methods that know it: "
                f"{', '.join(able)}."
            )
    _check_settings(name, settings, parameters)
    own = {"random_state": seed, "n_jobs": jobs}
    own = {option: value for option, value in own.items() if option in parameters}
    return selector.set_params(**{**chosen, **settings, **own})


def _check_settings(method: str, settings: Iterable[str], parameters: Iterable[str]) -> None:
    valid = [name for name in parameters if name not in _NOT_SETTABLE]
    for name in settings:
        if name in valid:
            continue
        if _NOT_SETTABLE.get(name):
            raise ValueError(f"--set {name} has an option of its own: use {_NOT_SETTABLE[name]}.")
        hint = did_you_mean(name, valid)
        able = [other for other, kind in all_selectors().items() if name in kind().get_params()]
        if able and name not in _NOT_SETTABLE:
            hint = f" Methods that have it: {', '.join(able)}."
        raise ValueError(
            f"--set {name}: {method} has no such parameter.{hint} Valid: "
            f"{', '.join(valid) or 'none'}."
        )


def column_numbers(
    names: Sequence[str], table: Table, option: str, groups: Mapping[str, list[int]]
) -> list[int]:
    """Return the numbers of features given by name, their own or that of their group."""
    place = {**groups, **{name: [number] for number, name in enumerate(table.names)}}
    return [number for name in names for number in known(name, place, option)]


def columns_to_keep(
    given: Any, option: str, table: Table, groups: Mapping[str, list[int]]
) -> list[int]:
    """Return the features that are named or match a pattern."""
    names, pattern = getattr(given, option), getattr(given, f"{option}_matching")
    shown = f"--{option.replace('_', '-')}"
    numbers = column_numbers(names, table, shown, groups)
    if pattern is not None:
        found = np.flatnonzero(matching(f"{shown}-matching", pattern, table.names))
        numbers = list(dict.fromkeys([*numbers, *found.tolist()]))
    return numbers


def check_number(number: int | float | str, table: Table) -> None:
    """Raise an error where more features are wanted than there are."""
    if isinstance(number, int) and number > table.n_features:
        raise ValueError(
            f"-k must be at most {table.n_features}, the number of features in the table, got "
            f"{number}."
        )
