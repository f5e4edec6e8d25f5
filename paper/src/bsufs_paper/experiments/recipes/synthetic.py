"""How often a method finds the two features that are not noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from bsufs_paper.experiments.recipes._base import Frames, Recipe, labeled, stacked
from bsufs_paper.experiments.tasks import Task


class Recovery(Recipe):
    """Select two features under several draws and scales of the noise.

    Options of the spec: `noise_scales`, `n_draws`, and `shown_noise_scale`, for which the first
    draw is kept as points to be drawn.
    """

    name: ClassVar[str] = "recovery"
    needed_options: ClassVar[tuple[str, ...]] = ("noise_scales", "n_draws", "shown_noise_scale")

    def tasks(self) -> list[Task]:
        """Return the tasks that can be named by now."""
        tasks = [*self.probes.values()] + [task for task, _ in self.described()]
        return tasks + [task for task, _ in self._points()]

    def described(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Yield the tasks of each method and dataset."""
        draws = list(range(self.spec.options["n_draws"]))
        for method in self.spec.methods:
            for dataset in self.datasets():
                for scale in self.spec.options["noise_scales"]:
                    for parameters in method.settings_for(dataset):
                        task = Task.of(
                            "recover",
                            dataset=dataset,
                            noise_scale=scale,
                            selector=method.selector,
                            parameters=parameters,
                            draws=draws,
                        )
                        # The paper calls the sets with noise features by the plain names.
                        plain = dataset.removesuffix("-noise")
                        labels = self.labels(plain, method.label, parameters)
                        yield task, labels | {"noise_scale": scale}

    def frames(self) -> Frames:
        """Return what there is."""
        rates = []
        for task, labels in self.described():
            part = self.store.get(task)
            if part is not None and len(part.frame):
                seconds = part.seconds / len(part.frame)
                rates.append(labeled(part.frame.assign(seconds=seconds), labels))
        return {"recovery": stacked(rates), "points": self.collected(self._points())}

    def _points(self) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Yield the tasks that give the points of a panel, and what they show."""
        scale = self.spec.options["shown_noise_scale"]
        full_names = {dataset.removesuffix("-noise"): dataset for dataset in self.datasets()}
        panels = [(dataset, "data", [0, 1]) for dataset in full_names]
        for task, labels in self.described():
            frame = self.store.done(task)
            if labels["noise_scale"] == scale and frame is not None:
                chosen = sorted(int(frame[place].iloc[0]) for place in ("first", "second"))
                panels.append((labels["dataset"], labels["method"], chosen))
        for dataset, method, (x, y) in panels:
            task = Task.of(
                "points", dataset=full_names[dataset], noise_scale=scale, features=[x, y], draw=0
            )
            labels = {"run": self.spec.name, "dataset": dataset, "noise_scale": scale}
            yield task, labels | {"method": method, "x_feature": x, "y_feature": y}
