"""One task for each method, dataset and setting, whose result is a table as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from bsufs_paper.experiments.recipes._base import Frames, Recipe
from bsufs_paper.experiments.tasks import Task


class Single(Recipe):
    """Do the task of a kind for each method, dataset and setting.

    Options of the spec: `task`, its kind; `frame`, the name of the table; and the other arguments
    of the task, which those of a method complete.
    """

    name: ClassVar[str] = "single"
    may_use_winners: ClassVar[bool] = True
    needed_options: ClassVar[tuple[str, ...]] = ("task", "frame")

    def tasks(self) -> list[Task]:
        """Return the tasks that can be named by now."""
        return [*self.probes.values()] + [task for task, _ in self.described()]

    def described(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Yield the tasks of each method and dataset."""
        options = dict(self.spec.options)
        kind, _ = (options.pop(name) for name in self.needed_options)
        for method in self.spec.methods:
            for dataset in self.datasets():
                for parameters in self.settings(method, dataset) or []:
                    task = Task.of(
                        kind,
                        dataset=dataset,
                        selector=method.selector,
                        parameters=parameters,
                        **(options | method.options),
                    )
                    yield task, self.labels(dataset, method.label, parameters)

    def frames(self) -> Frames:
        """Return what there is."""
        return {self.spec.options["frame"]: self.collected(self.described())}
