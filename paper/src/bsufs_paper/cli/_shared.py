"""What the commands that run experiments share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bsufs.cli._console import Console

if TYPE_CHECKING:
    from bsufs_paper.experiments import ResultStore, Spec
    from bsufs_paper.experiments.executors import Executor

WorkersOption = Annotated[
    int, typer.Option("--jobs", "-j", help="Tasks at once; -1 for as many as there are cores.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the cluster of this Dask scheduler instead."),
]
DataHomeOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder of the datasets to look into first."),
]
RetryOption = Annotated[
    bool, typer.Option("--retry", metavar="", help="Try failed and timed-out tasks once more.")
]


def execute(
    specs: Sequence[Spec],
    store: ResultStore,
    *,
    jobs: int,
    scheduler: str | None,
    data_home: Path | None,
    retry: bool,
    reporter: Console,
) -> None:
    """Run specs with a progress bar, and say how it went."""
    from bsufs_paper.experiments import FAILURES, DaskExecutor, LocalExecutor, run_specs
    from bsufs_paper.experiments.progress import ProgressBar

    home = None if data_home is None else str(data_home.resolve())
    executor: Executor = (
        LocalExecutor(jobs, home) if scheduler is None else DaskExecutor(scheduler, home)
    )
    with executor, ProgressBar() as bar:
        try:
            run_specs(specs, store, executor, retry=FAILURES if retry else (), observer=bar)
        except KeyboardInterrupt:
            reporter.say("stopped; what is done is kept, the same command goes on from here")
            raise
    reporter.say(f"tasks: {bar.totals()}")


def command_line() -> str:
    """Return how the program was called."""
    return " ".join(["bsufs", *sys.argv[1:]])
