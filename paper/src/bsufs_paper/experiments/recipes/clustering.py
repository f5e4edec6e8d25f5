"""Judging selections by clustering: with settings tuned on labels, or as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from bsufs_paper.experiments.protocol import Protocol, Stage
from bsufs_paper.experiments.recipes._base import Frames, Recipe, stacked
from bsufs_paper.experiments.recipes._judging import Judging
from bsufs_paper.experiments.specs import ALL_FEATURES, Method, Spec
from bsufs_paper.experiments.store import ResultStore, Status
from bsufs_paper.experiments.tasks import Task, set_id


@dataclass(frozen=True)
class Selection:
    """The features that a setting selects, for one number of features."""

    method: Method
    setting: int
    parameters: dict[str, Any]
    n_features: int
    features: tuple[int, ...]

    @cached_property
    def set_id(self) -> str:
        """Name of the set, whatever the order."""
        return set_id(self.features)


def _with_room(parameters: dict[str, Any], n_features: int) -> dict[str, Any]:
    """Return parameters with at most as many components as there will be features."""
    n_components = parameters.get("n_components")
    if isinstance(n_components, int) and n_components > n_features:
        return parameters | {"n_components": n_features}
    return parameters


class _Clustering(Recipe):
    """What the two recipes share: rankings, distinct sets, and their scores."""

    def __init__(
        self,
        spec: Spec,
        store: ResultStore,
        others: Mapping[str, Recipe],
        judging: Judging,
    ) -> None:
        super().__init__(spec, store, others, judging)
        # What follows from the store, which does not change while a recipe is asked.
        self._selected: dict[tuple[str, str], list[Selection]] = {}
        self._found: dict[str, list[Winner]] = {}
        self._counts: dict[str, list[int]] = {}

    def rank_tasks(self, method: Method, dataset: str) -> list[dict[int, Task]]:
        """Return the ranking tasks of each setting, by the number of features asked for."""
        settings = self.settings(method, dataset)
        if method.selector == ALL_FEATURES or settings is None:
            return []
        counts = self.counts(dataset)
        asked = counts if method.per_count else counts[-1:]
        return [
            {
                count: Task.of(
                    "rank",
                    dataset=dataset,
                    selector=method.selector,
                    parameters=_with_room(parameters, count) if method.per_count else parameters,
                    n_features=count,
                )
                for count in asked
            }
            for parameters in settings
        ]

    def counts(self, dataset: str) -> list[int]:
        """Return the numbers of features that a dataset allows, ascending."""
        if dataset not in self._counts:
            d = self.n_features(dataset)
            counts = [count for count in self.spec.protocol.feature_counts if count <= d]
            self._counts[dataset] = counts or [d]
        return self._counts[dataset]

    def selections(self, method: Method, dataset: str) -> list[Selection]:
        """Return what the finished rankings select."""
        asked = (method.label, dataset)
        if asked not in self._selected:
            self._selected[asked] = self._select(method, dataset)
        return self._selected[asked]

    def _select(self, method: Method, dataset: str) -> list[Selection]:
        if method.selector == ALL_FEATURES:
            d = self.n_features(dataset)
            return [Selection(method, 0, {}, d, tuple(range(d)))]
        found = []
        settings = self.settings(method, dataset) or []
        ranked = self.rank_tasks(method, dataset)
        for setting, (parameters, tasks) in enumerate(zip(settings, ranked, strict=True)):
            best = {
                count: part.column("feature").tolist()
                for count, task in tasks.items()
                if (part := self.store.get(task)) is not None and part.status is Status.DONE
            }
            for count in self.counts(dataset):
                ranked_for = count if method.per_count else max(tasks)
                if ranked_for in best:
                    features = tuple(best[ranked_for][:count])
                    found.append(Selection(method, setting, parameters, count, features))
        return found

    def ask(
        self, dataset: str, selections: list[Selection], protocol: Protocol, stage: Stage
    ) -> bool:
        """Ask for the scores of selections; tell whether nothing more is to be expected."""
        sets = {selection.set_id: selection.features for selection in selections}
        judging = protocol.judging(dataset, stage)
        return self.judging.ask(dataset, judging, sets, self.spec.timeout)

    def repetitions(
        self, dataset: str, selections: list[Selection], protocol: Protocol
    ) -> pd.DataFrame:
        """Return the scores of every repetition with fresh seeds."""
        known = self.judging.scores(dataset, protocol.judging(dataset, "confirm"))
        frames = []
        for selection in selections:
            scores = known.get(selection.set_id)
            if scores is not None:
                labels = self.labels(dataset, selection.method, selection.parameters)
                frames.append(
                    pd.DataFrame(
                        {
                            **labels,
                            "setting": selection.setting,
                            "n_features": selection.n_features,
                            "kmeans_init": protocol.kmeans_init,
                            "repetition": np.arange(len(scores["acc"])),
                            **scores,
                        }
                    )
                )
        return stacked(frames)

    def described(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Yield the tasks of each method and dataset."""
        for dataset in self.datasets():
            for method in self.spec.methods:
                settings = self.settings(method, dataset) or []
                ranked = self.rank_tasks(method, dataset)
                for parameters, tasks in zip(settings, ranked, strict=False):
                    for task in tasks.values():
                        yield task, self.labels(dataset, method, parameters)
            for task in self.judging.failures(dataset):
                labels = {
                    "run": self.spec.name,
                    "dataset": dataset,
                    "method": "",
                    "parameters": "{}",
                }
                yield task, labels

    def _all_rank_tasks(self) -> list[Task]:
        # Method by method: the spec names slow ones first, so that no core waits for them.
        return [
            task
            for method in self.spec.methods
            for dataset in self.datasets()
            for tasks in self.rank_tasks(method, dataset)
            for task in tasks.values()
        ]


class Fixed(_Clustering):
    """Judge every setting for every number of features; nothing is chosen by labels."""

    name: ClassVar[str] = "fixed"

    def tasks(self) -> list[Task]:
        """Return the tasks that can be named by now."""
        tasks = self.probes() + self._all_rank_tasks()
        for dataset in self.datasets():
            selections = [
                selection
                for method in self.spec.methods
                for selection in self.selections(method, dataset)
            ]
            self.ask(dataset, selections, self.spec.protocol, "confirm")
        return tasks

    def frames(self) -> Frames:
        """Return what there is."""
        return {
            "scores": stacked(
                [
                    self.repetitions(dataset, self.selections(method, dataset), self.spec.protocol)
                    for dataset in self.datasets()
                    for method in self.spec.methods
                ]
            )
        }


class Tuned(_Clustering):
    """Search settings by labels with few repetitions, then judge the winner with fresh seeds.

    The winner is the setting of the best mean ACC over all settings and numbers of features; it is
    judged at every number of features. Like the paper, NMI uses the setting that is best by ACC.
    """

    name: ClassVar[str] = "tuned"

    def tasks(self) -> list[Task]:
        """Return the tasks that can be named by now."""
        protocol = self.spec.protocol
        tasks = self.probes() + self._all_rank_tasks()
        for dataset in self.datasets():
            selections = self._all_selections(dataset)
            # Methods that still wait for a ranking or a score have no winner yet.
            self.ask(dataset, [s for many in selections.values() for s in many], protocol, "search")
            winners = self._winners(dataset)
            chosen = [s for w in winners for s in selections[w.method.label] if w.same(s)]
            self.ask(dataset, chosen, protocol, "confirm")
            best = [s for w in winners for s in selections[w.method.label] if w.best(s)]
            for init in self.spec.initializations:
                self.ask(dataset, best, protocol.with_init(init), "confirm")
        return tasks

    def frames(self) -> Frames:
        """Return what there is."""
        scores, search = [], []
        for dataset in self.datasets():
            selections = self._all_selections(dataset)
            for winner in self._winners(dataset):
                chosen = [s for s in selections[winner.method.label] if winner.same(s)]
                best = [s for s in chosen if winner.best(s)]
                scores.append(self.repetitions(dataset, chosen, self.spec.protocol))
                for init in self.spec.initializations:
                    protocol = self.spec.protocol.with_init(init)
                    scores.append(self.repetitions(dataset, best, protocol))
            search += [self._searched(dataset, many) for many in selections.values()]
        return {
            "scores": stacked(scores),
            "search": stacked(search),
            "winners": self.winners(),
        }

    def winners(self) -> pd.DataFrame:
        """Return the best setting of each method on each dataset, as far as they are known."""
        return stacked(
            [
                pd.DataFrame([winner.row(self.labels(dataset, winner.method, winner.parameters))])
                for dataset in self.datasets()
                for winner in self._winners(dataset)
            ]
        )

    def winning_setting(self, method: Method, dataset: str) -> list[dict[str, Any]] | None:
        """Return the winning setting of a method, for a run that uses it."""
        if dataset not in self.datasets():
            return None
        for winner in self._winners(dataset):
            if winner.method.label == method.label:
                return [winner.parameters]
        return None

    def _all_selections(self, dataset: str) -> dict[str, list[Selection]]:
        return {m.label: self.selections(m, dataset) for m in self.spec.methods}

    def _searched(self, dataset: str, selections: list[Selection]) -> pd.DataFrame:
        known = self.judging.scores(dataset, self.spec.protocol.judging(dataset, "search"))
        return pd.DataFrame(
            [
                {
                    **self.labels(dataset, s.method, s.parameters),
                    "setting": s.setting,
                    "n_features": s.n_features,
                    "set": s.set_id,
                    "n_repetitions": len(known[s.set_id]["acc"]),
                    "acc": known[s.set_id]["acc"].mean(),
                    "nmi": known[s.set_id]["nmi"].mean(),
                }
                for s in selections
                if s.set_id in known
            ]
        )

    def _winners(self, dataset: str) -> list[Winner]:
        if dataset not in self._found:
            self._found[dataset] = self._find_winners(dataset)
        return self._found[dataset]

    def _find_winners(self, dataset: str) -> list[Winner]:
        winners = []
        for method in self.spec.methods:
            ranked = [t for tasks in self.rank_tasks(method, dataset) for t in tasks.values()]
            selections = self.selections(method, dataset)
            judged = self.ask(dataset, selections, self.spec.protocol, "search")
            if not (judged and all(self.ended(task) for task in ranked)):
                continue
            searched = self._searched(dataset, selections)
            if len(searched):
                winners.append(Winner.of(method, searched, selections))
        return winners


@dataclass(frozen=True)
class Winner:
    """The best setting of a method on a dataset."""

    method: Method
    setting: int
    parameters: dict[str, Any]
    n_features: int
    n_features_nmi: int
    n_settings: int
    n_distinct_sets: int

    @classmethod
    def of(cls, method: Method, searched: pd.DataFrame, selections: list[Selection]) -> Winner:
        """Find the winner; of equals the first setting and the fewest features."""
        best = searched.loc[searched["acc"].idxmax()]
        same = searched[searched["setting"] == best["setting"]]
        parameters = next(s.parameters for s in selections if s.setting == best["setting"])
        return cls(
            method=method,
            setting=int(best["setting"]),
            parameters=parameters,
            n_features=int(best["n_features"]),
            n_features_nmi=int(same.loc[same["nmi"].idxmax(), "n_features"]),
            n_settings=int(searched["setting"].nunique()),
            n_distinct_sets=int(searched["set"].nunique()),
        )

    def same(self, selection: Selection) -> bool:
        """Tell whether a selection is of the winning setting."""
        return selection.setting == self.setting

    def best(self, selection: Selection) -> bool:
        """Tell whether a selection is reported, for ACC or for NMI."""
        return self.same(selection) and selection.n_features in (
            self.n_features,
            self.n_features_nmi,
        )

    def row(self, labels: dict[str, Any]) -> dict[str, Any]:
        """Return the winner as a row of a table."""
        return {
            **labels,
            "setting": self.setting,
            "n_features": self.n_features,
            "n_features_nmi": self.n_features_nmi,
            "n_settings": self.n_settings,
            "n_distinct_sets": self.n_distinct_sets,
        }
