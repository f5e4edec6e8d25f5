"""The process that works for ``bsufs app``: it tells what it does, and ends with the app.

``python -m bsufs.cli._worker select ...`` is ``bsufs select ...``; ``... columns TABLE FILE
OPTIONS`` writes how a table was read. What is done goes to standard output, a line of JSON each.
"""

import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from bsufs._names import shortened
from bsufs.cli import main as run_program
from bsufs.cli._console import Console

_WIDEST = 300


def main() -> None:
    """Do what the arguments say."""
    threading.Thread(target=_end_with_the_app, daemon=True).start()
    # Where memory runs out, this process is to end, and neither the app nor the browser.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    Console.listeners.append(_tell)
    if sys.argv[1] == "columns":
        _, _, path, target, options = sys.argv
        _write_columns(path, target, json.loads(options))
    else:
        run_program()


def _end_with_the_app() -> None:
    # Nothing is ever sent: the pipe ends when the app does, however that comes.
    os.read(0, 1)
    os._exit(1)


def _tell(doing: str, detail: str) -> None:
    print(json.dumps([shortened(doing, _WIDEST), shortened(detail, _WIDEST)]), flush=True)


def _write_columns(path: str, target: str, options: dict[str, Any]) -> None:
    """Write how the columns of a table were read, as the app shows it."""
    from scipy.sparse import issparse

    from bsufs.cli._program import EXPECTED, report_error
    from bsufs.tables import open_table

    console = Console(quiet=True)
    try:
        with console.busy(f"reading {Path(path).name}"):
            table = open_table(path, scale="auto", progress=console.progress, **options)
    except EXPECTED as error:
        sys.exit(report_error(error, False, "bsufs"))
    numbers: Any = table.values if table.is_held else None
    n_cells = numbers.nnz if issparse(numbers) else (table.n_rows or 0) * len(table.matrix_names)
    document = {
        "names": [column.name for column in table.columns],
        "kinds": [column.kind for column in table.columns],
        "why": [shortened(column.why, _WIDEST) for column in table.columns],
        "values": [len(column.categories) for column in table.columns],
        "gaps": [table.gaps.get(column.name, 0) for column in table.columns],
        "carried": [name for name in table.carried_names if name in table.rows.row_names],
        "n_rows": table.n_rows,
        "n_features": table.n_features,
        "notices": [shortened(notice, _WIDEST) for notice in table.rows.notices],
        "scale": [table.scale, table.why_scaled],
        "memory": 8 * n_cells,
        "can_stream": table.rows.memory_to_hold is not None,
    }
    Path(target).write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
