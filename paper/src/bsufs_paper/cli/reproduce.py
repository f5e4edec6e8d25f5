"""``bsufs-paper reproduce``: every table and figure of the paper, beside the printed ones."""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bsufs.cli._console import Console, print_table
from bsufs.cli._options import QuietOption, one_of
from bsufs_paper.cli._shared import (
    DataHomeOption,
    RetryOption,
    SchedulerOption,
    WorkersOption,
    run_all,
)

if TYPE_CHECKING:
    from bsufs_paper.experiments import Spec

_EPILOG = """
bsufs-paper reproduce --quick                           # a sample, in minutes
bsufs-paper reproduce --only table-acc --only fig-acc   # one table and one figure
bsufs-paper reproduce --list                            # what there is
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", epilog=_EPILOG)(reproduce)


def reproduce(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="A table or figure; may be given several times."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", metavar="", help="A sample: few datasets, settings and repetitions."
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where results and report go.")
    ] = Path("bsufs-paper"),
    list_items: Annotated[
        bool, typer.Option("--list", metavar="", help="List the IDs and stop.")
    ] = False,
    jobs: WorkersOption = -1,
    scheduler: SchedulerOption = None,
    data_home: DataHomeOption = None,
    retry: RetryOption = False,
    quiet: QuietOption = False,
) -> None:
    """Reproduce the paper's tables and figures, and put every cell beside the printed one.

    A run that was stopped goes on where it was; nothing that was done is done again.
    """
    import bsufs
    from bsufs_paper.experiments import ResultStore, paper_specs, with_needed
    from bsufs_paper.reporting import list_items as all_items
    from bsufs_paper.reporting import write_report

    items = all_items()
    if list_items:
        rows = [(item.id, item.title, item.run or "-") for item in items]
        print_table("Tables and figures", ("id", "title", "run"), rows)
        return
    if only:
        names = [item.id for item in items]
        wanted = {one_of(name, names, "--only") for name in only}
        items = [item for item in items if item.id in wanted]
    known = paper_specs(quick=quick)
    specs = with_needed([name for name in known if any(i.run == name for i in items)], known)
    # A sample and the whole differ in their rules, so they do not share a folder of results.
    store = ResultStore(out / ("quick" if quick else "full"))
    reporter = Console(quiet)
    start = time.monotonic()
    results = run_all(specs, store, jobs, scheduler, data_home, retry, reporter)
    tasks = sum(part.seconds for part in store.parts())
    info = {
        "command": " ".join(["bsufs-paper", *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "protocol": _protocol(specs),
        "seconds": round(time.monotonic() - start, 1),
        "machine": _machine() | {"processor seconds of all tasks": round(tasks)},
        "version": bsufs.__version__,
    }
    reporter.say(f"report: {write_report(results, info, out, items)}")


def _protocol(specs: list[Spec]) -> dict[str, Any]:
    """Return the rules, which all runs that cluster share."""
    rules = [spec.protocol for spec in specs if spec.recipe in ("tuned", "fixed")]
    return asdict(rules[0]) | {"feature_counts": [*rules[0].feature_counts]} if rules else {}


def _machine() -> dict[str, Any]:
    import numpy
    import scipy
    import sklearn

    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
