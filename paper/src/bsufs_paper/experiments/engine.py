"""Running specs: name the tasks, do those that are not done, and again until none is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pandas as pd

from bsufs_paper.experiments.executors import Execute
from bsufs_paper.experiments.recipes import RECIPES, Frames, Recipe
from bsufs_paper.experiments.recipes._base import stacked
from bsufs_paper.experiments.recipes._judging import Judging, longer
from bsufs_paper.experiments.specs import Spec
from bsufs_paper.experiments.store import Outcome, ResultStore, Status
from bsufs_paper.experiments.tasks import Task

# Told of every task: how many are known by now, ended or not, the task, and its outcome when it
# ended.
Observer = Callable[[int, Task, Outcome | None], None]

# These are tried again by every run: nothing is known of the one, and the other may have changed.
_ALWAYS_AGAIN = frozenset({Status.INTERRUPTED, Status.SKIPPED})
FAILURES = frozenset({Status.FAILED, Status.TIMEOUT})


def run_specs(
    specs: Sequence[Spec],
    store: ResultStore,
    execute: Execute,
    *,
    retry: Collection[Status] = (),
    observer: Observer | None = None,
) -> None:
    """Do all that the specs ask for and the store does not hold yet.

    Specs whose winners others use come first. `execute` does the tasks: `local_workers` and
    `dask_workers` give one. Tasks whose ending is in `retry`, such as `FAILURES`, are tried once
    more. The observer is told of every task that begins and ends.
    """
    again = _ALWAYS_AGAIN | frozenset(retry)
    tried: set[str] = set()

    def watch(task: Task, outcome: Outcome | None) -> None:
        if outcome is not None:
            store.write(task, outcome)
        if observer is not None:
            observer(len(tried), task, outcome)

    with store.locked():
        while pending := _pending(specs, store, again, tried):
            tried |= {task.key for task in pending}
            execute(list(pending.items()), watch)


def _pending(
    specs: Sequence[Spec], store: ResultStore, again: Collection[Status], tried: set[str]
) -> dict[Task, float | None]:
    """Return the tasks that can be done now, with the longest timeout of those who want them."""
    named: dict[Task, float | None] = {}
    judging = Judging(store)
    for recipe in recipes(specs, store, judging):
        timeout = recipe.spec.timeout
        for task in recipe.tasks():
            named[task] = longer(named.get(task, timeout), timeout)
    named |= judging.tasks()
    return {
        task: timeout
        for task, timeout in named.items()
        if task.key not in tried and ((part := store.get(task)) is None or part.status in again)
    }


def recipes(
    specs: Sequence[Spec], store: ResultStore, judging: Judging | None = None
) -> list[Recipe]:
    """Return the recipes of some specs over what is stored."""
    judging = judging or Judging(store)
    made: dict[str, Recipe] = {}
    for spec in specs:
        if spec.name in made:
            raise ValueError(f"two specs have the name {spec.name!r}. Rename one.")
        if spec.winners_of is not None and spec.winners_of not in made:
            raise ValueError(
                f"the run {spec.name!r} uses the winners of {spec.winners_of!r}, which must be run "
                "with it. Give that spec too, before it."
            )
        made[spec.name] = _recipe(spec)(spec, store, made, judging)
    return list(made.values())


def _recipe(spec: Spec) -> type[Recipe]:
    if spec.recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {spec.recipe!r}.")
    return RECIPES[spec.recipe]


def collect(specs: Sequence[Spec], store: ResultStore) -> Frames:
    """Return the results of some specs as tables."""
    gathered: dict[str, list[pd.DataFrame]] = {}
    for recipe in recipes(specs, store):
        recipe.tasks()  # asks for scores, so that those that cannot be had are told of
        frames = recipe.frames() | {"tasks": _ended(recipe), "datasets": _sizes(recipe)}
        for name, frame in frames.items():
            if len(frame):
                gathered.setdefault(name, []).append(frame)
    return {name: stacked(frames) for name, frames in gathered.items()}


def _ended(recipe: Recipe) -> pd.DataFrame:
    """Return how the tasks of a run ended."""
    probes = [(probe, recipe.labels(name)) for name, probe in recipe.probes.items()]
    rows = []
    for task, labels in [*probes, *recipe.described()]:
        part = recipe.store.get(task)
        if part is not None:
            rows.append(
                {
                    **labels,
                    "kind": task.kind,
                    "status": part.status.value,
                    "reason": part.reason,
                    "seconds": part.seconds,
                    "warnings": "; ".join(part.warnings),
                }
            )
    return pd.DataFrame(rows)


def _sizes(recipe: Recipe) -> pd.DataFrame:
    """Return the sizes of the datasets of a run."""
    return recipe.collected(
        (probe, {"run": recipe.spec.name, "dataset": name}) for name, probe in recipe.probes.items()
    )
