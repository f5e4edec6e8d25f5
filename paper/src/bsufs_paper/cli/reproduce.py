"""``bsufs paper``: every table and figure of the paper, beside the printed ones."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bsufs_paper.cli._shared import (
    DataHomeOption,
    RetryOption,
    SchedulerOption,
    WorkersOption,
    command_line,
    execute,
)

from bsufs.cli._console import Console, print_table
from bsufs.cli._options import QuietOption

if TYPE_CHECKING:
    from bsufs_paper.experiments import Spec
    from bsufs_paper.reporting import Item

_EPILOG = """
[bold]Examples[/bold]

[cyan]bsufs paper --quick[/cyan]   a sample, in minutes

[cyan]bsufs paper --only table-acc --only fig-acc[/cyan]   one table and one figure

[cyan]bsufs paper --list[/cyan]   what there is
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("paper", epilog=_EPILOG)(paper)


def paper(
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
    from bsufs_paper.reporting import list_items as all_items

    items = all_items()
    if list_items:
        rows = [(item.id, item.title, item.run or "-") for item in items]
        print_table("Tables and figures", ("id", "title", "run"), rows)
        return
    _reproduce(
        _chosen(items, only),
        quick=quick,
        out=out,
        jobs=jobs,
        scheduler=scheduler,
        data_home=data_home,
        retry=retry,
        reporter=Console(quiet),
    )


def _chosen(items: list[Item], only: list[str] | None) -> list[Item]:
    from bsufs.cli._options import one_of

    if not only:
        return items
    names = [item.id for item in items]
    wanted = {one_of(name, names, "--only") for name in only}
    return [item for item in items if item.id in wanted]


def _reproduce(
    items: list[Item],
    *,
    quick: bool,
    out: Path,
    reporter: Console,
    **how: Any,
) -> None:
    from bsufs_paper.experiments import ResultStore, collect, paper_specs, with_needed
    from bsufs_paper.reporting import write_report

    known = paper_specs(quick=quick)
    # A sample and the whole differ in their rules, so they do not share a folder of results.
    store = ResultStore(out / ("quick" if quick else "full"))
    specs = with_needed([name for name in known if any(i.run == name for i in items)], known)
    start = time.monotonic()
    execute(specs, store, reporter=reporter, **how)
    results = collect(specs, store)
    tasks = sum(part.seconds for part in store.parts())
    info = {
        "command": command_line(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "protocol": _protocol(specs),
        "seconds": round(time.monotonic() - start, 1),
        "machine": _machine() | {"processor seconds of all tasks": round(tasks)},
        "version": _version(),
    }
    page = write_report(results, info, out, items)
    reporter.say(f"report: {page}")


def _protocol(specs: list[Spec]) -> dict[str, Any]:
    """Return the rules, which all runs that cluster share."""
    rules = [spec.protocol for spec in specs if spec.recipe in ("tuned", "fixed")]
    return rules[0].as_mapping() if rules else {}


def _version() -> str:
    import bsufs

    return bsufs.__version__


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
