"""Items of the report, one small file each in `items`, and what a view makes of one: a section."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import pandas as pd
import yaml
from matplotlib.figure import Figure

CELL_COLUMNS = (
    *("row", "column", "metric", "paper", "paper_sd", "here", "here_sd"),
    *("n_features_paper", "n_features_here", "difference_in_sd", "verdict", "reason"),
)


@dataclass(frozen=True)
class Item:
    """A table or figure of the report."""

    id: str
    title: str
    caption: str
    run: str
    view: str
    printed: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_figure(self) -> bool:
        """Whether the drawing is the message, and the numbers are beside it."""
        return self.id.startswith("fig-")


@cache
def _items() -> tuple[Item, ...]:
    folder = files("bsufs_paper.reporting") / "items"
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    return tuple(_item(yaml.safe_load(texts[name])) for name in sorted(texts))


def _item(fields: dict[str, Any]) -> Item:
    printed = fields.pop("printed", ())
    return Item(
        **fields
        | {
            "caption": " ".join(fields["caption"].split()),
            "printed": (printed,) if isinstance(printed, str) else tuple(printed),
            "options": MappingProxyType(fields.get("options") or {}),
        }
    )


def list_items() -> list[Item]:
    """Return every table and figure of the report, in its order."""
    return list(_items())


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
