"""From the name of a method to a selector, or to a search around it that chooses its settings."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bsufs._names import did_you_mean
from bsufs.cli._options import one_of
from bsufs.selectors import all_selectors
from bsufs.selectors._data import FitData
from bsufs.tables import Table
from bsufs.tuning import LabelFreeSearch, default_grid

_NOTHING: Mapping[str, Any] = MappingProxyType({})
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
    seed: int,
    jobs: int | None,
    settings: Mapping[str, Any] = _NOTHING,
    keep: Mapping[str, Any] = _NOTHING,
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
            raise ValueError(
                f"--{option.replace('_', '-')} cannot be used with {name}; methods that know it: "
                f"{', '.join(_methods_with(option))}."
            )
    valid = [one for one in parameters if one not in _NOT_SETTABLE]
    for setting in settings:
        if setting not in valid:
            raise ValueError(_not_settable(name, setting, valid))
    own = {"random_state": seed, "n_jobs": jobs}
    own = {option: value for option, value in own.items() if option in parameters}
    return selector.set_params(**chosen, **settings, **own)


def _methods_with(parameter: str) -> list[str]:
    return [name for name, kind in all_selectors().items() if parameter in kind().get_params()]


def _not_settable(method: str, setting: str, valid: list[str]) -> str:
    if _NOT_SETTABLE.get(setting):
        return f"--set {setting} has an option of its own: use {_NOT_SETTABLE[setting]}."
    hint = did_you_mean(setting, valid)
    if setting not in _NOT_SETTABLE and _methods_with(setting):
        hint = f" Methods that have it: {', '.join(_methods_with(setting))}."
    known = ", ".join(valid) or "none"
    return f"--set {setting}: {method} has no such parameter.{hint} Valid: {known}."


def make_search(selector: Any, data: FitData, given: Any) -> LabelFreeSearch:
    """Return a search over the settings of a selector that is not fitted yet."""
    whole = [number for number in given.numbers if isinstance(number, int)]
    # The grid must suit every number of features, so it is that of the smallest.
    selector.set_params(n_features_to_select=min(whole, default=given.numbers[0]))
    tried = default_grid(selector, data)
    grid = {name: values for name, values in tried.items() if name not in given.settings}
    if len(given.numbers) == 1 and all(len(values) < 2 for values in grid.values()):
        raise ValueError(
            f"--tune has nothing to choose from: {type(selector).__name__} has no settings worth "
            "trying that --set leaves open. Give -k several numbers, as in -k 10,20,50, or leave "
            "--tune out."
        )
    search = LabelFreeSearch(
        selector,
        n_features_to_select=given.numbers,
        param_grid=grid,
        random_state=given.seed,
        n_jobs=given.jobs,
    )
    return search if given.criterion is None else search.set_params(criterion=given.criterion)


def check_number(number: int | float | str, table: Table) -> None:
    """Raise an error where more features are wanted than there are."""
    if isinstance(number, int) and number > table.n_features:
        raise ValueError(
            f"-k must be at most {table.n_features}, the number of features in the table, got "
            f"{number}."
        )
