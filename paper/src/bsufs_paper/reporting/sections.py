"""What a view hands to the page: cells with a verdict, figures, and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from bsufs_paper.reporting.catalog import Item

CELL_COLUMNS = (
    *("row", "column", "metric", "paper", "paper_sd", "here", "here_sd"),
    *("n_features_paper", "n_features_here", "difference_in_sd", "verdict", "reason"),
)


class Verdict(StrEnum):
    """How a number measured here stands to the one that the paper prints."""

    WITHIN = "within 1 sd"
    ABOVE = "above by more than 1 sd"
    BELOW = "below by more than 1 sd"
    NOT_PRINTED = "not printed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class NamedFigure:
    """A drawing and what it says to those who do not see it."""

    name: str
    figure: Figure
    alternative: str


@dataclass(frozen=True)
class NamedTable:
    """A plain table beside the cells."""

    title: str
    frame: pd.DataFrame


@dataclass(frozen=True)
class Section:
    """One table or figure, made."""

    item: Item
    cells: pd.DataFrame = field(default_factory=lambda: cells_frame([]))
    figures: list[NamedFigure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: list[NamedTable] = field(default_factory=list)
    error: str = ""

    def verdict_counts(self) -> dict[Verdict, int]:
        """Return how many cells have each verdict."""
        counts = self.cells["verdict"].value_counts()
        return {verdict: int(counts[verdict]) for verdict in Verdict if verdict in counts}


def judge(paper: float, paper_sd: float, here: float, here_sd: float) -> tuple[float, Verdict]:
    """Return the difference in standard deviations and what it means."""
    if math.isnan(here):
        return math.nan, Verdict.NOT_RUN
    if math.isnan(paper):
        return math.nan, Verdict.NOT_PRINTED
    spread = paper_sd if not math.isnan(paper_sd) else here_sd
    if math.isnan(spread) or spread == 0:
        difference = here - paper
        if math.isclose(here, paper, abs_tol=1e-9):
            return 0.0, Verdict.WITHIN
        return math.nan, Verdict.ABOVE if difference > 0 else Verdict.BELOW
    in_sd = (here - paper) / spread
    if abs(in_sd) <= 1:
        return in_sd, Verdict.WITHIN
    return in_sd, Verdict.ABOVE if in_sd > 0 else Verdict.BELOW


def make_cell(
    row: str,
    column: str,
    metric: str,
    *,
    paper: float = math.nan,
    paper_sd: float = math.nan,
    here: float = math.nan,
    here_sd: float = math.nan,
    n_features_paper: float = math.nan,
    n_features_here: float = math.nan,
    reason: str = "",
) -> dict[str, Any]:
    """Return one cell, judged."""
    difference, verdict = judge(paper, paper_sd, here, here_sd)
    values = (row, column, metric, paper, paper_sd, here, here_sd)
    kept_reason = reason if verdict is Verdict.NOT_RUN else ""
    rest = (n_features_paper, n_features_here, difference, verdict.value, kept_reason)
    return dict(zip(CELL_COLUMNS, values + rest, strict=True))


def cells_frame(cells: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return cells as a frame."""
    frame = pd.DataFrame(list(cells), columns=list(CELL_COLUMNS))
    numbers = [
        *("paper", "paper_sd", "here", "here_sd"),
        *("n_features_paper", "n_features_here", "difference_in_sd"),
    ]
    return frame.astype(dict.fromkeys(numbers, float))
