"""The frames that a run leaves behind, whole or in part, and how a table reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pandas as pd

COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "scores": (
            *("run", "dataset", "method", "setting", "parameters", "n_features", "kmeans_init"),
            *("repetition", "acc", "nmi"),
        ),
        "search": (
            *("run", "dataset", "method", "setting", "n_features", "parameters"),
            *("n_repetitions", "acc", "nmi"),
        ),
        "winners": (
            *("run", "dataset", "method", "setting", "parameters", "n_features"),
            *("n_features_nmi", "n_settings", "n_distinct_sets"),
        ),
        "tasks": ("run", "kind", "dataset", "method", "parameters", "status", "reason", "seconds"),
        "datasets": ("run", "dataset", "n_samples", "n_features", "n_classes", "drawn"),
        "recovery": ("run", "dataset", "noise_scale", "method", "draw", "found"),
        "points": (
            *("run", "dataset", "noise_scale", "method", "x", "y", "label"),
            *("x_feature", "y_feature"),
        ),
        "weights": ("run", "dataset", "method", "feature", "component", "value"),
        "correlations": ("run", "dataset", "method", "i", "j", "r"),
        "objective": ("run", "dataset", "iteration", "value", "n_alive"),
        "images": ("run", "dataset", "method", "sample", "row", "column", "value", "selected"),
    }
)

# Tables of the paper, by name.
Printed = Mapping[str, pd.DataFrame]

# The paper's numbers match plain k-means++; other initializations have a table of their own.
KMEANS_INIT = "k-means++"

_UNFINISHED = ("failed", "timeout", "interrupted", "skipped")


@dataclass(frozen=True)
class Results:
    """Everything that was measured; a frame that is absent counts as empty."""

    frames: Mapping[str, pd.DataFrame]
    info: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, columns in COLUMNS.items():
            frame = self.frames.get(name)
            if frame is None or frame.empty:
                continue
            missing = [column for column in columns if column not in frame.columns]
            if missing:
                raise ValueError(
                    f"results[{name!r}] must have the columns {', '.join(columns)}; "
                    f"missing: {', '.join(missing)}. Was it written by another version of bsufs?"
                )

    @cached_property
    def _tasks_of_run(self) -> dict[str, list[tuple[str, ...]]]:
        """Tasks as plain tuples: thousands of cells ask why they are empty."""
        columns = ["dataset", "method", "status", "reason"]
        tasks = self.select("tasks")
        rows = tasks[columns].fillna("").astype(str).itertuples(index=False, name=None)
        by_run: dict[str, list[tuple[str, ...]]] = {}
        for run, row in zip(tasks["run"], rows, strict=True):
            by_run.setdefault(str(run), []).append(row)
        return by_run

    def select(self, name: str, **values: Any) -> pd.DataFrame:
        """Return the rows of a frame whose columns have the given values."""
        frame = self.frames.get(name)
        if frame is None or frame.empty:
            return pd.DataFrame(columns=list(COLUMNS[name]))
        for column, value in values.items():
            frame = frame[frame[column] == value]
        return frame

    def why_missing(self, run: str, dataset: str = "", method: str = "") -> str:
        """Return why there is no result, as the list of tasks has it."""
        # A task that names no dataset or no method stands for all of them.
        tasks = [
            (status, reason)
            for task_dataset, task_method, status, reason in self._tasks_of_run.get(run, [])
            if (not dataset or task_dataset in (dataset, ""))
            and (not method or task_method in (method, ""))
        ]
        for status in _UNFINISHED:
            reasons = [reason for found, reason in tasks if found == status]
            if reasons:
                first = next((reason for reason in reasons if reason), "")
                return f"{status}: {first}" if first else status
        if self.info.get("quick"):
            return "--quick leaves it out"
        return "no scores, although its tasks are done" if tasks else "not asked for (--only)"


def confirmed_rows(
    results: Results, run: str, metric: str, *, kmeans_init: str = KMEANS_INIT
) -> pd.DataFrame:
    """Return the repetitions with fresh seeds at the setting that won the search."""
    scores = results.select("scores", run=run, kmeans_init=kmeans_init)
    winners = results.select("winners", run=run)
    counts = {"acc": "n_features", "nmi": "n_features_nmi"}[metric]
    chosen = {
        (row.dataset, row.method): (row.setting, getattr(row, counts))
        for row in winners.itertuples(index=False)
    }
    kept = []
    for key, rows in scores.groupby(["dataset", "method"], sort=False):
        if key in chosen:
            setting, n_features = chosen[key]
            kept.append(rows[(rows["setting"] == setting) & (rows["n_features"] == n_features)])
        elif len(rows[["setting", "n_features"]].drop_duplicates()) == 1:
            kept.append(rows)
    return pd.concat(kept) if kept else scores.iloc[:0]


def summarize(rows: pd.DataFrame, metric: str, by: tuple[str, ...]) -> pd.DataFrame:
    """Return mean and standard deviation in percent, and how many rows they are of."""
    if rows.empty:
        index = pd.MultiIndex.from_arrays([[] for _ in by], names=by)
        return pd.DataFrame({"mean": [], "sd": [], "n": [], "n_features": []}, index=index)
    percent = rows.assign(score=100 * rows[metric].astype(float))
    groups = percent.groupby(list(by), sort=False)
    return groups.agg(
        mean=("score", "mean"),
        sd=("score", "std"),
        n=("score", "count"),
        n_features=("n_features", "first"),
    )


def confirmed(
    results: Results, run: str, metric: str, *, kmeans_init: str = KMEANS_INIT
) -> pd.DataFrame:
    """Return what stands in a cell: mean and spread at the winner, by dataset and method."""
    rows = confirmed_rows(results, run, metric, kmeans_init=kmeans_init)
    return summarize(rows, metric, ("dataset", "method"))


def expand_parameters(frame: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Return the frame with some of its parameters as columns of numbers."""
    parsed = [
        json.loads(text) if isinstance(text, str) and text else {} for text in frame["parameters"]
    ]
    columns = {
        name: pd.to_numeric(
            pd.Series([entry.get(name) for entry in parsed], index=frame.index, dtype=object),
            errors="coerce",
        ).astype(float)
        for name in names
    }
    return frame.assign(**columns)
