"""What a selection asks of a table, whether it is held in memory or read in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bsufs._typing import Indices
from bsufs.cli._clustering import Classes, Clustering
from bsufs.cli._console import Reporter
from bsufs.scatter import Scatter
from bsufs.tables import MissingValues, Table

if TYPE_CHECKING:
    from bsufs.cli._whole import WholeInput


@dataclass(frozen=True)
class Features:
    """What there is to select from."""

    names: tuple[str, ...]
    n_rows: int

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)


class Input(ABC):
    """A table ready to select from."""

    table: Table | Features
    missing: MissingValues

    @property
    @abstractmethod
    def whole(self) -> WholeInput:
        """The same table in memory, for what must see all of it at once."""

    @abstractmethod
    def fit(self, selector: Any) -> Indices:
        """Fit a selector and return the columns it selects, best first."""

    @abstractmethod
    def scatter(self, selector: Any) -> Scatter:
        """Return the scatter of the table."""

    @abstractmethod
    def classes(self, label: str) -> Classes | None:
        """Return the classes of the rows that have one, and which rows these are."""

    @abstractmethod
    def clustering(self, best_first: Indices, classes: Classes, seed: int) -> dict[str, Clustering]:
        """Run k-means on the selected columns, and on all where these are in memory."""

    @abstractmethod
    def write(
        self, best_first: Indices, output: str, order: Literal["table", "rank"], force: bool
    ) -> None:
        """Write the reduced table."""


def say_what_was_missing(found: MissingValues, how: str, report: Reporter) -> None:
    """Say what was missing and what was done about it, where anything was."""
    if not found.n_missing and not found.n_infinite:
        return
    done = {
        "median": "filled with medians while selecting",
        "drop-rows": f"{found.n_rows_dropped} rows left out",
        "drop-columns": f"{len(found.columns_dropped)} columns left out",
    }[how]
    report.say(f"{found.n_missing} missing and {found.n_infinite} infinite values: {done}")


def require_two_rows(n_rows: int, path: str) -> None:
    """Raise an error where a table cannot show any variation."""
    if n_rows < 2:
        raise ValueError(f"{path}: at least two rows are needed to see any variation, got 1.")
