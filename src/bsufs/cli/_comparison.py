"""Several methods on one table: what each selects, and what that is worth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bsufs._typing import Indices
from bsufs.cli import _methods as methods
from bsufs.cli._console import complain
from bsufs.cli._input import Classes, Input, cluster, selected_best_first
from bsufs.cli._limit import TOO_SLOW, within
from bsufs.cli._options import one_of
from bsufs.metrics import redundancy
from bsufs.metrics.label_free import redundancy_of_features
from bsufs.selectors import all_selectors
from bsufs.selectors._data import FitData
from bsufs.tuning.criteria import (
    ClusteringAgreement,
    EvaluationData,
    HeldOutReconstruction,
    NeighborOverlap,
)

if TYPE_CHECKING:
    from bsufs.inspection.page import Comparison

BASELINE = "RandomSelector"
# One draw of random columns says little; a mean of so many is a baseline.
_BASELINE_DRAWS = 10
# What stands above the columns on a terminal, where there is room for some, and on a page.
_HEADINGS = {
    "method": ("method", "method"),
    "n_features": ("k", "features"),
    "seconds": ("seconds", "seconds"),
    "explained_variance": ("explained", "explained, %"),
    "held_out": ("", "held-out, %"),
    "redundancy": ("redundancy", "redundancy"),
    "agreement": ("", "agreement, %"),
    "neighbors": ("neighbors", "neighbors, %"),
    "overlap": ("overlap", "overlap, %"),
    "accuracy": ("ACC", "ACC, %"),
    "information": ("NMI", "NMI, %"),
}


@dataclass(frozen=True)
class Outcome:
    """What came of one method."""

    row: dict[str, Any]
    selector: Any = None
    chosen: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))


class MethodComparison:
    """Runs methods on one table, and measures what their selections are worth."""

    def __init__(self, given: Any, found: Input, classes: Classes | None) -> None:
        self.given, self.found, self.classes = given, found, classes
        self.outcomes: list[Outcome] = []
        with found.console.busy("computing the scatter matrix"):
            # What all methods share is not to be counted among the seconds of the first.
            found.compute_scatter()
            self._evaluation = EvaluationData(found.sampled, given.seed)
        self.n_rows = len(self._evaluation.X)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines of all methods."""
        return [outcome.row for outcome in self.outcomes]

    @property
    def first(self) -> Outcome | None:
        """The first method that succeeded, with which the others are compared."""
        return next((one for one in self.outcomes if one.selector is not None), None)

    @property
    def sampled(self) -> list[str]:
        """Where a sample of the rows stood for all of them."""
        every = self.found.table.n_rows or 0
        if self.n_rows >= every:
            return []
        rows = f"{self.n_rows:,} of {every:,} rows"
        fewer = [row["method"] for row in self.rows if (row["n_rows"] or every) < every]
        judged = f"held-out, redundancy and agreement: {rows} (--all-rows takes all)"
        return [*(f"{name}: {rows}" for name in fewer), judged]

    def run(self, names: Sequence[str], number: int | float | str) -> None:
        """Run methods one after another; the first that succeeds decides how many features."""
        for place, name in enumerate(names, start=1):
            if self.first is not None:
                chosen = self.first.chosen
                number = len(getattr(self.first.selector, "selected_groups_", chosen))
            with self.found.console.busy(f"{name} ({place} of {len(names)})"):
                self._run(name, number)

    def _run(self, name: str, number: int | float | str) -> None:
        """Select with one method and measure it; where it fails, say so in its line."""
        seed, jobs = self.given.seed, self.given.jobs
        try:
            fresh = [
                methods.make_selector(name, number, seed + draw, jobs)
                for draw in range(_BASELINE_DRAWS if name == BASELINE else 1)
            ]
            data = self._data_for(fresh[0])
            fitted, seconds = within(self.given.limit, _fitted, fresh, data)
        except ValueError as error:
            self.outcomes.append(Outcome(self._row(name, error=str(error))))
            return
        self.found.console.progress("judging what it selected")
        self.add(name, fitted, seconds, data.X.shape[0])

    def _data_for(self, selector: Any) -> FitData:
        """Return what to fit a selector to: if it looks for neighbors, a sample of the rows."""
        # What can be fitted to a stream looks for the neighbors of a few rows at most.
        is_streamed = hasattr(selector, "fit_batches")
        if "n_neighbors" in selector.get_params() and not is_streamed:
            return self.found.sampled
        return self.found.data_for(selector)

    def add(self, name: str, fitted: Sequence[Any], seconds: float, n_rows: int | None) -> None:
        """Measure what a method selected, in the mean over several draws."""
        draws = [selected_best_first(selector) for selector in fitted]
        measured = [self._measures(chosen) for chosen in draws]
        means = {key: float(np.mean([one[key] for one in measured])) for key in measured[0]}
        n_features = self.found.table.by_feature(draws[0])[0].size
        sizes = {"n_features": n_features, "n_rows": n_rows, "draws": len(draws)}
        row = self._row(name, seconds=seconds, **sizes, **means)
        self.outcomes.append(Outcome(row, fitted[0], draws[0]))

    def _row(self, name: str, **known: Any) -> dict[str, Any]:
        keys = ["n_features", "n_rows", "seconds", "draws", "explained_variance", "held_out"]
        keys += ["redundancy", "agreement", "neighbors", "overlap"]
        keys += [] if self.classes is None else ["accuracy", "information"]
        return {"method": name} | dict.fromkeys([*keys, "error"]) | known

    def _measures(self, chosen: Indices) -> dict[str, float]:
        columns, found = self._evaluation.columns(chosen), self.found.data
        first = chosen if self.first is None else self.first.chosen
        # A category is one column, however many it has in the matrix.
        own, others = (self.found.table.by_feature(one)[0] for one in (chosen, first))
        measures = {
            "explained_variance": float(found.scatter.explained_curve(found.place[chosen])[-1]),
            "held_out": HeldOutReconstruction().judge(self._evaluation, columns),
            "redundancy": self._redundancy(chosen),
            "agreement": ClusteringAgreement().judge(self._evaluation, columns),
            "neighbors": NeighborOverlap().judge(self._evaluation, columns),
            "overlap": np.intersect1d(own, others).size / np.union1d(own, others).size,
        }
        if self.classes is not None:
            measures |= cluster(found.cleared.X[:, chosen], self.classes, self.given.seed)
        return measures

    def _redundancy(self, chosen: Indices) -> float:
        X, groups = self._evaluation.X, self.found.table.groups
        if groups is None:
            return redundancy(X[:, chosen])
        by_feature = chosen[np.argsort(groups[chosen], kind="stable")]
        return float(redundancy_of_features(X[:, by_feature], groups[by_feature])[-1])


def _fitted(selectors: Sequence[Any], data: FitData) -> tuple[list[Any], float]:
    """Fit selectors, and return the seconds that each took on average."""
    start = time.perf_counter()
    fitted = [selector.fit(data) for selector in selectors]
    return fitted, (time.perf_counter() - start) / len(fitted)


def method_names(words: Sequence[str], option: str) -> list[str]:
    """Return the names of methods as they are written, each of which must occur once."""
    names = [one_of(word, list(all_selectors()), option) for word in words]
    if len(set(names)) < len(names):
        raise ValueError(f"{option} must differ, got {', '.join(names)}.")
    return names


def others_than(method: str, words: Sequence[str]) -> list[str]:
    """Return the methods to set beside one, with random columns at their end."""
    others = method_names(words, "--compare")
    if method in others:
        raise ValueError(f"--compare must name other methods than --method, got {method} in both.")
    return others if BASELINE in (method, *others) else [*others, BASELINE]


def complain_of_failures(rows: Sequence[dict[str, Any]], kind: str) -> bool:
    """Say which methods failed, and return whether any did, or none came to an end."""
    failed = [row for row in rows if row["error"] is not None]
    # Who sets a limit reckons with it.
    slow = [row["error"].startswith(TOO_SLOW) for row in failed]
    for row, is_slow in zip(failed, slow, strict=True):
        complain(f"{row['method']}: {row['error']}", "warning: " if is_slow else kind)
    return not all(slow) or len(failed) == len(rows)


def short_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells for a terminal."""
    shown = {key: short for key, (short, _) in _HEADINGS.items() if short and key in rows[0]}
    cells = [[_cell(key, row[key], row["error"]) for key in shown] for row in rows]
    return list(shown.values()), cells


def _cell(key: str, value: Any, error: str | None) -> str:
    if error is not None and value is None:
        return TOO_SLOW if error.startswith(TOO_SLOW) else "failed"
    if key in ("method", "n_features"):
        return str(value)
    if key in ("accuracy", "information"):
        return f"{100 * value:.1f}"
    return f"{value:.3f}"


def page_comparison(compared: MethodComparison, tuned: bool = False) -> Comparison:
    """Return the comparison as a report shows it: what the page is about comes first."""
    import pandas as pd

    from bsufs.inspection.page import Comparison

    outcomes = sorted(compared.outcomes, key=lambda outcome: outcome is not compared.first)
    rows = [outcome.row for outcome in outcomes]
    shown = {key: heading for key, (_, heading) in _HEADINGS.items() if key in rows[0]}
    table = pd.DataFrame(
        {heading: [_rounded(heading, row[key]) for row in rows] for key, heading in shown.items()}
    )
    first = rows[0]["method"]
    notes = [
        f"The others have their default settings and keep as many features as {first}."
        + (f" The seconds of {first} are those of all settings that were tried." if tuned else ""),
        "Explained: share of the variance that regression on the selected columns explains; "
        "held-out: the same on rows that the regression has not seen. Redundancy: mean absolute "
        "correlation of the selected. Agreement: how far k-means on the selected columns finds the "
        "clusters that it finds on all. Neighbors: how many of the nearest rows in all columns are "
        f"so in the selected. Overlap: Jaccard index with {first}. None of these knows of labels.",
    ]
    if "accuracy" in rows[0]:
        notes.append(
            "ACC and NMI compare the clusters of k-means with the labels, which no method saw."
        )
    if any(row["method"] == BASELINE for row in rows):
        notes.append(
            f"{BASELINE} is the baseline, the mean of {_BASELINE_DRAWS} draws of random columns: a "
            "method that is not better has found nothing."
        )
    notes += [f"A sample of the rows, {said}." for said in compared.sampled]
    notes += [f"{row['method']} failed: {row['error']}" for row in rows if row["error"] is not None]
    selections = {
        outcome.row["method"]: outcome.chosen
        for outcome in outcomes
        # One draw of random columns is not what the table shows the mean of.
        if outcome.selector is not None and outcome.row["method"] != BASELINE
    }
    return Comparison(table, selections, notes, baselines=(BASELINE,))


def _rounded(heading: str, value: Any) -> Any:
    if value is None or heading in ("method", "features"):
        return value
    return round(100 * value, 1) if heading.endswith("%") else round(value, 3)
