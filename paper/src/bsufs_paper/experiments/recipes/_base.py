"""What all recipes share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from bsufs_paper.experiments.recipes._judging import Judging
from bsufs_paper.experiments.specs import Method, Spec
from bsufs_paper.experiments.store import ResultStore, Status
from bsufs_paper.experiments.tasks import Task, canonical_json

# Tables by name.
Frames = dict[str, pd.DataFrame]


class Recipe(ABC):
    """From settings to tasks, and from results to tables."""

    name: ClassVar[str]
    # Whether the settings may be the winners of another run, and so chosen by labels.
    may_use_winners: ClassVar[bool] = False
    # What `options` of the spec must have.
    needed_options: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, spec: Spec, store: ResultStore, others: Mapping[str, Recipe], judging: Judging
    ) -> None:
        if spec.winners_of is not None and not self.may_use_winners:
            raise ValueError(
                f"the run {spec.name!r} must not have winners_of: its recipe {self.name!r} uses "
                "settings as they are. Take the recipe 'single', or leave winners_of out."
            )
        missing = [name for name in self.needed_options if name not in spec.options]
        if missing:
            raise ValueError(
                f"options of the run {spec.name!r} must have {', '.join(missing)}: its recipe "
                f"{self.name!r} needs them."
            )
        self.spec = spec
        self.store = store
        self.judging = judging
        self._others = others

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return the tasks that can be named by now, and ask for scores."""

    @abstractmethod
    def frames(self) -> Frames:
        """Return what there is."""

    @abstractmethod
    def described(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Yield the tasks of each method and dataset, with the labels of their rows."""

    @cached_property
    def probes(self) -> dict[str, Task]:
        """The tasks that look whether the datasets are there, by name."""
        return {name: Task.of("dataset", dataset=name) for name in self.spec.datasets}

    def datasets(self) -> list[str]:
        """Return the datasets that are there."""
        return [name for name, probe in self.probes.items() if self.store.done(probe) is not None]

    def n_features(self, dataset: str) -> int:
        """Return how many features a dataset has."""
        frame = self.store.done(self.probes[dataset])
        assert frame is not None  # asked for datasets that are there
        return int(frame["n_features"].iloc[0])

    def settings(self, method: Method, dataset: str) -> list[dict[str, Any]] | None:
        """Return the settings of a method: its own, or the one that won in another run."""
        if self.spec.winners_of is None:
            return method.settings_for(dataset)
        return self._others[self.spec.winners_of].winning_setting(method, dataset)

    def winning_setting(self, method: Method, dataset: str) -> list[dict[str, Any]] | None:
        """Return the winning setting of a method, for a run that uses it."""
        raise ValueError(
            f"winners_of names the run {self.spec.name!r}, whose recipe {self.name!r} has no "
            "winners. Name a run that searches."
        )

    def ended(self, task: Task) -> bool:
        """Tell whether nothing more is to be expected of a task."""
        part = self.store.get(task)
        return part is not None and part.status in (Status.DONE, Status.FAILED, Status.TIMEOUT)

    def labels(
        self, dataset: str, method: str = "", parameters: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the columns that say to what a row belongs."""
        text = canonical_json(parameters or {})
        return {"run": self.spec.name, "dataset": dataset, "method": method, "parameters": text}

    def collected(self, described: Iterable[tuple[Task, dict[str, Any]]]) -> pd.DataFrame:
        """Return the results of finished tasks below each other, each row with its labels."""
        frames = [(self.store.done(task), labels) for task, labels in described]
        return stacked([labeled(frame, labels) for frame, labels in frames if frame is not None])


def labeled(frame: pd.DataFrame, labels: dict[str, Any]) -> pd.DataFrame:
    """Return a table with columns before it that say to what its rows belong."""
    return pd.DataFrame(dict.fromkeys(labels, None), index=frame.index).assign(**labels).join(frame)


def stacked(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Return tables below each other; an empty table for none."""
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
