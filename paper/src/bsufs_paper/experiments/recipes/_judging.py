"""The scores of sets of features: what is known, what is asked for, and what cannot be had."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bsufs._typing import Array
from bsufs_paper.experiments.store import Part, ResultStore, Status
from bsufs_paper.experiments.tasks import Task, canonical_json, set_id

_SCORES = ("acc", "nmi", "nmi_arithmetic", "purity")
# A cluster task is this many runs of k-means: about a second, so that little is lost with one.
_RUNS_PER_TASK = 150


def longer(one: float | None, other: float | None) -> float | None:
    """Return the longer of two timeouts, of which None is the longest."""
    return None if one is None or other is None else max(one, other)


class Judging:
    """All sets of features that the runs of a round want to have judged, each once."""

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._scores: dict[tuple[str, str], dict[str, dict[str, Array]]] = {}
        # Sets of a batch that failed, which are then tried one by one.
        self._suspect: set[tuple[str, str, str]] = set()
        self._asked: dict[tuple[str, str], dict[str, list[int]]] = {}
        self._timeouts: dict[tuple[str, str], float | None] = {}
        for part in store.parts():
            if part.task.kind == "cluster":
                self._take_note(part)

    def _take_note(self, part: Part) -> None:
        arguments = part.task.arguments
        sets = arguments.pop("sets")
        where = arguments.pop("dataset"), canonical_json(arguments)
        if part.status is Status.DONE:
            n = arguments["repetitions"]
            known = self._scores.setdefault(where, {})
            blocks = {name: part.column(name).reshape(-1, n) for name in _SCORES}
            for row, name in enumerate(part.column("set")[::n]):
                known[name] = {score: block[row] for score, block in blocks.items()}
        elif part.status in (Status.FAILED, Status.TIMEOUT):
            self._suspect |= {(*where, set_id(features)) for features in sets}

    def scores(self, dataset: str, judging: Mapping[str, Any]) -> dict[str, dict[str, Array]]:
        """Return the scores by set, of one dataset and one way of judging."""
        return self._scores.get((dataset, canonical_json(judging)), {})

    def ask(
        self,
        dataset: str,
        judging: Mapping[str, Any],
        sets: Mapping[str, Iterable[int]],
        timeout: float | None,
    ) -> bool:
        """Ask for the scores of sets."""
        where = dataset, canonical_json(judging)
        known = self._scores.get(where, {})
        missing = {name: sorted(found) for name, found in sets.items() if name not in known}
        if missing:
            self._asked.setdefault(where, {}).update(missing)
            self._timeouts[where] = longer(self._timeouts.get(where, timeout), timeout)
        return all(
            (*where, name) in self._suspect and self._is_over(self._alone(where, features))
            for name, features in missing.items()
        )

    def tasks(self) -> dict[Task, float | None]:
        """Return the tasks that judge what was asked for, with their timeouts."""
        found: dict[Task, float | None] = {}
        for where, asked in self._asked.items():
            suspect = [f for name, f in asked.items() if (*where, name) in self._suspect]
            others = [f for name, f in asked.items() if (*where, name) not in self._suspect]
            dataset, judging = where[0], _decoded(where[1])
            size = max(1, _RUNS_PER_TASK // (judging["repetitions"] * judging["n_starts"]))
            batches = [others[first : first + size] for first in range(0, len(others), size)]
            for batch in [*batches, *([features] for features in suspect)]:
                task = Task.of("cluster", dataset=dataset, sets=batch, **judging)
                found[task] = self._timeouts[where]
        return found

    def failures(self, dataset: str) -> list[Task]:
        """Return the tasks that show which sets could not be judged."""
        return [
            task
            for where, asked in self._asked.items()
            if where[0] == dataset
            for name, features in asked.items()
            if (*where, name) in self._suspect
            and self._is_over(task := self._alone(where, features))
        ]

    def _alone(self, where: tuple[str, str], features: list[int]) -> Task:
        return Task.of("cluster", dataset=where[0], sets=[features], **_decoded(where[1]))

    def _is_over(self, task: Task) -> bool:
        part = self._store.get(task)
        return part is not None and part.status in (Status.FAILED, Status.TIMEOUT)


def _decoded(judging: str) -> dict[str, Any]:
    return dict(json.loads(judging))
