"""What the commands that run experiments share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bsufs.cli._console import Console

if TYPE_CHECKING:
    from bsufs_paper.experiments import ResultStore, Spec
    from bsufs_paper.experiments.recipes import Frames

WorkersOption = Annotated[
    int, typer.Option("--jobs", "-j", help="Tasks at once; -1 for as many as there are cores.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the cluster of this Dask scheduler instead."),
]
DataHomeOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of the datasets to look into first.")
]
RetryOption = Annotated[
    bool, typer.Option("--retry", metavar="", help="Try failed and timed-out tasks once more.")
]


def run_all(
    specs: Sequence[Spec],
    store: ResultStore,
    jobs: int,
    scheduler: str | None,
    data_home: Path | None,
    retry: bool,
    reporter: Console,
) -> Frames:
    """Run specs with a progress bar, say how it went, and return the results."""
    from bsufs_paper.experiments import FAILURES, collect, dask_workers, local_workers, run_specs
    from bsufs_paper.experiments.progress import ProgressBar

    home = None if data_home is None else str(data_home.resolve())
    if home is not None:
        os.environ["BSUFS_DATA"] = os.pathsep.join([home, os.environ.get("BSUFS_DATA", "")])
    workers = local_workers(jobs) if scheduler is None else dask_workers(scheduler, home)
    with workers as execute, ProgressBar() as bar:
        try:
            run_specs(specs, store, execute, retry=FAILURES if retry else (), observer=bar)
        except KeyboardInterrupt:
            reporter.say("stopped; what is done is kept, the same command goes on from here")
            raise
    reporter.say(f"tasks: {bar.totals()}")
    results = collect(specs, store)
    if specs and "datasets" not in results:
        names = dict.fromkeys(name for spec in specs for name in spec.datasets)
        raise FileNotFoundError(
            f"none of the datasets can be had ({', '.join(names)}): "
            f"{results['tasks']['reason'].iloc[0]}."
        )
    return results
