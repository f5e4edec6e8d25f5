"""Settings chosen without labels: the search around a method, and how it is shown."""

from __future__ import annotations

from typing import Any

from bsufs.cli._console import Console
from bsufs.cli._options import one_of
from bsufs.selectors._data import FitData
from bsufs.tuning import LabelFreeSearch, default_grid
from bsufs.tuning.criteria import CRITERIA

_ROWS_SHOWN = 5
_HEADINGS = {
    "n_features": "k",
    "reconstruction": "held out",
    "clustering_agreement": "clusters agree",
    "restart_agreement": "restarts agree",
}


def criterion_name(name: str) -> str:
    """Return the criterion that a word means."""
    return one_of(name.replace("-", "_"), list(CRITERIA), "--criterion")


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


def tuning_document(search: LabelFreeSearch) -> dict[str, Any]:
    """Return what a search found, for JSON."""
    # A data frame where there is pandas, else a dictionary: both are columns by name.
    columns = {name: list(search.criteria_[name]) for name in search.criteria_}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return {
        "criterion": search.criterion,
        "best_params": search.best_params_,
        "best_score": search.best_score_,
        "candidates": sorted(rows, key=lambda row: int(row["rank"])),
    }


def say_tuning(tuning: dict[str, Any], console: Console) -> None:
    """Show the best candidates."""
    rows = tuning["candidates"]
    best = ", ".join(f"{name}={value}" for name, value in tuning["best_params"].items())
    console.say(f"tried {len(rows)} settings without labels; {tuning['criterion']} chose {best}")
    columns = [name for name in rows[0] if name != "rank"]
    shown, by = rows[:_ROWS_SHOWN], tuning["criterion"].replace("_", " ")
    console.show(
        f"The {len(shown)} best of {len(rows)} settings, by {by}",
        # Without underscores a heading may break, and the table fits into 80 characters.
        [_HEADINGS.get(n, n.removeprefix("param_").replace("_", " ")) for n in columns],
        [[_cell(name, row[name]) for name in columns] for row in shown],
    )


def _cell(name: str, value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) and name in CRITERIA else str(value)
