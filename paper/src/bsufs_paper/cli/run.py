"""``bsufs-paper run``: a comparison of one's own, from a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bsufs.cli._console import Console
from bsufs.cli._options import QuietOption
from bsufs_paper.cli._shared import (
    DataHomeOption,
    RetryOption,
    SchedulerOption,
    WorkersOption,
    run_all,
)

_EPILOG = """
bsufs-paper run mine.yaml --out results   # run it, or go on with it
bsufs-paper run mine.yaml --quick         # the small version that the spec describes
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog=_EPILOG)(run)


def run(
    specs: Annotated[
        list[Path],
        typer.Argument(metavar="SPEC...", help="YAML files; one that others need comes first."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where results stay.")
    ] = Path("bsufs-results"),
    quick: Annotated[bool, typer.Option("--quick", metavar="", help="The small version.")] = False,
    jobs: WorkersOption = -1,
    scheduler: SchedulerOption = None,
    data_home: DataHomeOption = None,
    retry: RetryOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run comparisons that YAML files describe, and write their tables as CSV.

    A run that was stopped goes on where it was; nothing that was done is done again.
    """
    from bsufs._atomic import checked_write
    from bsufs_paper.experiments import ResultStore, load_spec

    chosen = [load_spec(path, quick=quick) for path in specs]
    store = ResultStore(out)
    reporter = Console(quiet)
    results = run_all(chosen, store, jobs, scheduler, data_home, retry, reporter)
    for name, frame in results.items():
        text = frame.to_csv(index=False)
        with checked_write(out / f"{name}.csv", force=True) as stream:
            stream.write(text.encode())
        reporter.say(f"{len(frame)} rows in {out / f'{name}.csv'}")
