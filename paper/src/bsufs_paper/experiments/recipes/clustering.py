"""Judging selections by clustering: with settings tuned on labels, or as they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from bsufs_paper.experiments.protocol import Protocol, Stage
from bsufs_paper.experiments.recipes._base import Frames, Recipe, stacked
from bsufs_paper.experiments.specs import ALL_FEATURES, Method
from bsufs_paper.experiments.store import Status
from bsufs_paper.experiments.tasks import Task, set_id

# Ranking tasks by the number of features asked for.
RankTasks = dict[int, Task]


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
    """What the two recipes share: rankings, distinct sets, and their scores.

    What is cached follows from the store, which does not change while a recipe is asked.
    """

    def rank_tasks(self, method: Method, dataset: str) -> list[tuple[dict[str, Any], RankTasks]]:
        """Return each setting with its ranking tasks, by the number of features asked for."""
        if method.selector == ALL_FEATURES:
            return []
        counts = self.counts(dataset)
        found = []
        for parameters in self.settings(method, dataset) or []:
            tasks = {
                count: Task.of(
                    "rank",
                    dataset=dataset,
                    selector=method.selector,
                    parameters=_with_room(parameters, count) if method.per_count else parameters,
                    n_features=count,
                )
                for count in (counts if method.per_count else counts[-1:])
            }
            found.append((parameters, tasks))
        return found

    def counts(self, dataset: str) -> list[int]:
        """Return the numbers of features that a dataset allows, ascending."""
        d = self.n_features(dataset)
        return [count for count in self.spec.protocol.feature_counts if count <= d] or [d]

    @cached_property
    def selections(self) -> dict[str, dict[str, list[Selection]]]:
        """What the finished rankings select, by dataset and method."""
        return {
            dataset: {m.label: self._select(m, dataset) for m in self.spec.methods}
            for dataset in self.datasets()
        }

    def _select(self, method: Method, dataset: str) -> list[Selection]:
        if method.selector == ALL_FEATURES:
            d = self.n_features(dataset)
            return [Selection(method, 0, {}, d, tuple(range(d)))]
        found = []
        for setting, (parameters, tasks) in enumerate(self.rank_tasks(method, dataset)):
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
        self, dataset: str, selections: Iterable[Selection], protocol: Protocol, stage: Stage
    ) -> bool:
        """Ask for the scores of selections; tell whether nothing more is to be expected."""
        sets = {selection.set_id: selection.features for selection in selections}
        judging = protocol.judging(dataset, stage)
        return self.judging.ask(dataset, judging, sets, self.spec.timeout)

    def repetitions(
        self, dataset: str, selections: Iterable[Selection], protocol: Protocol
    ) -> list[pd.DataFrame]:
        """Return the scores of every repetition with fresh seeds."""
        known = self.judging.scores(dataset, protocol.judging(dataset, "confirm"))
        return [
            pd.DataFrame(
                {
                    **self.labels(dataset, selection.method.label, selection.parameters),
                    "setting": selection.setting,
                    "n_features": selection.n_features,
                    "kmeans_init": protocol.kmeans_init,
                    "repetition": np.arange(len(known[selection.set_id]["acc"])),
                    **known[selection.set_id],
                }
            )
            for selection in selections
            if selection.set_id in known
        ]

    def described(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Yield the tasks of each method and dataset, with the labels of their rows."""
        for dataset in self.datasets():
            for method in self.spec.methods:
                for parameters, tasks in self.rank_tasks(method, dataset):
                    for task in tasks.values():
                        yield task, self.labels(dataset, method.label, parameters)
            for task in self.judging.failures(dataset):
                yield task, self.labels(dataset)

    def tasks(self) -> list[Task]:
        """Return the tasks that can be named by now, and ask for scores."""
        self._ask_for_scores()
        # Method by method: the spec names slow ones first, so that no core waits for them.
        return [*self.probes.values()] + [
            task
            for method in self.spec.methods
            for dataset in self.datasets()
            for _, tasks in self.rank_tasks(method, dataset)
            for task in tasks.values()
        ]

    @abstractmethod
    def _ask_for_scores(self) -> None: ...


class Fixed(_Clustering):
    """Judge every setting for every number of features; nothing is chosen by labels."""

    name: ClassVar[str] = "fixed"

    def _ask_for_scores(self) -> None:
        for dataset, selections in self.selections.items():
            self.ask(dataset, chain(*selections.values()), self.spec.protocol, "confirm")

    def frames(self) -> Frames:
        """Return what there is."""
        scores: list[pd.DataFrame] = []
        for dataset, selections in self.selections.items():
            every = chain(*selections.values())
            scores += self.repetitions(dataset, every, self.spec.protocol)
        return {"scores": stacked(scores)}


class Tuned(_Clustering):
    """Search settings by labels with few repetitions, then judge the winner with fresh seeds.

    The winner is the setting of the best mean ACC over all settings and numbers of features; it is
    judged at every number of features. Like the paper, NMI uses the setting that is best by ACC.
    """

    name: ClassVar[str] = "tuned"

    def _ask_for_scores(self) -> None:
        for dataset in self.selections:
            # Methods that still wait for a ranking or a score have no winner yet.
            every = chain(*self.selections[dataset].values())
            self.ask(dataset, every, self.spec.protocol, "search")
            for selections, protocol in self._to_confirm(dataset):
                self.ask(dataset, selections, protocol, "confirm")

    def _to_confirm(self, dataset: str) -> Iterator[tuple[list[Selection], Protocol]]:
        """Yield what is judged with fresh seeds, and how."""
        for winner in self.winners[dataset]:
            chosen = [
                selection
                for selection in self.selections[dataset][winner.method.label]
                if selection.setting == winner.setting
            ]
            yield chosen, self.spec.protocol
            reported = (winner.n_features, winner.n_features_nmi)
            best = [selection for selection in chosen if selection.n_features in reported]
            for init in self.spec.initializations:
                yield best, replace(self.spec.protocol, kmeans_init=init)

    def frames(self) -> Frames:
        """Return what there is."""
        scores: list[pd.DataFrame] = []
        search, winners = [], []
        for dataset, selections in self.selections.items():
            for chosen, protocol in self._to_confirm(dataset):
                scores += self.repetitions(dataset, chosen, protocol)
            search += [self._searched(dataset, many) for many in selections.values()]
            winners += [
                self.labels(dataset, winner.method.label, winner.parameters)
                | {name: getattr(winner, name) for name in _WINNER_COLUMNS}
                for winner in self.winners[dataset]
            ]
        return {
            "scores": stacked(scores),
            "search": stacked(search),
            "winners": pd.DataFrame(winners),
        }

    def winning_setting(self, method: Method, dataset: str) -> list[dict[str, Any]] | None:
        """Return the winning setting of a method, for a run that uses it."""
        for winner in self.winners.get(dataset, []):
            if winner.method.label == method.label:
                return [winner.parameters]
        return None

    def _searched(self, dataset: str, selections: list[Selection]) -> pd.DataFrame:
        known = self.judging.scores(dataset, self.spec.protocol.judging(dataset, "search"))
        return pd.DataFrame(
            [
                {
                    **self.labels(dataset, s.method.label, s.parameters),
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

    @cached_property
    def winners(self) -> dict[str, list[Winner]]:
        """The best setting of each method, by dataset, as far as they are known."""
        return {
            dataset: [
                winner
                for method in self.spec.methods
                if (winner := self._winner(method, dataset)) is not None
            ]
            for dataset in self.selections
        }

    def _winner(self, method: Method, dataset: str) -> Winner | None:
        """Return the best setting of a method; of equals the first, with the fewest features."""
        selections = self.selections[dataset][method.label]
        judged = self.ask(dataset, selections, self.spec.protocol, "search")
        ranked = [t for _, tasks in self.rank_tasks(method, dataset) for t in tasks.values()]
        searched = self._searched(dataset, selections)
        if not (judged and all(map(self.ended, ranked)) and len(searched)):
            return None
        best = searched.loc[searched["acc"].idxmax()]
        same = searched[searched["setting"] == best["setting"]]
        return Winner(
            method=method,
            parameters=next(s.parameters for s in selections if s.setting == best["setting"]),
            setting=int(best["setting"]),
            n_features=int(best["n_features"]),
            n_features_nmi=int(same.loc[same["nmi"].idxmax(), "n_features"]),
            n_settings=int(searched["setting"].nunique()),
            n_distinct_sets=int(searched["set"].nunique()),
        )


@dataclass(frozen=True)
class Winner:
    """The best setting of a method on a dataset."""

    method: Method
    parameters: dict[str, Any]
    setting: int
    n_features: int
    n_features_nmi: int
    n_settings: int
    n_distinct_sets: int


_WINNER_COLUMNS = ("setting", "n_features", "n_features_nmi", "n_settings", "n_distinct_sets")
