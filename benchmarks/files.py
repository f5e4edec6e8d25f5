"""From the file to the answer: `bsufs select` and `bsufs compare` beside what reading alone takes.

``python -m benchmarks.files`` writes a table of 100 000 x 200 as CSV and as Parquet, and runs each
command in a process of its own. Imports are left out of its time and memory.
"""

import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.scale.files import write_table
from benchmarks.scale.measure import Clock, peak_megabytes, resident_megabytes
from benchmarks.timing import best_seconds, markdown_table

N_ROWS, N_COLUMNS = 100_000, 200
N_SELECTED = 20
REPEATS = 3


def read_seconds(path, library):
    """Return how long pyarrow or pandas takes to read a file: the first one, in new memory."""
    import pandas as pd
    from pyarrow import csv, parquet

    readers = {"pyarrow": (csv.read_csv, parquet.read_table)}
    readers["pandas"] = pd.read_csv, pd.read_parquet
    read = readers[library][path.suffix == ".parquet"]
    return best_seconds(lambda: read(path), 1)[0]


def run_command(*words):
    """Run a command, and return its seconds and its peak of memory, both without the imports."""
    import pandas  # noqa: F401 - these are imported for the command
    from pyarrow import csv, parquet  # noqa: F401

    from bsufs.cli import _selection  # noqa: F401
    from bsufs.cli.app import run

    baseline = resident_megabytes()
    try:
        with Clock() as clock:
            run([*words, "--quiet"])
    except SystemExit as ended:
        if ended.code:
            raise
    return clock.seconds, peak_megabytes() - baseline


def alone(task, *arguments):
    """Run a task in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        return other.submit(task, *arguments).result()


def selection(path, folder, memory):
    """Return the best seconds of a selection, those of its fit among them, and the largest peak."""
    out, told = folder / f"small{path.suffix}", folder / "told.json"
    words = ["select", str(path), "-k", str(N_SELECTED), "-o", str(out), "--json", str(told)]
    found = []
    for _ in range(REPEATS):
        seconds, peak = alone(run_command, *words, "--force", "--memory", memory)
        found.append((seconds, json.loads(told.read_text())["seconds"], peak))
    return *min(found)[:2], max(peak for *_, peak in found)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matrix_mb = 8 * N_ROWS * N_COLUMNS / 2**20
        rows = []
        for kind in ("csv", "parquet"):
            path = folder / f"table.{kind}"
            alone(write_table, path, N_ROWS, N_COLUMNS)
            arrow, pandas = (
                min(alone(read_seconds, path, library) for _ in range(REPEATS))
                for library in ("pyarrow", "pandas")
            )
            for memory in ("100GB", "50MB"):
                total, fit, peak = selection(path, folder, memory)
                rows.append(
                    [
                        f"{kind}, {path.stat().st_size / 1e6:.0f} MB",
                        "held" if memory == "100GB" else f"in batches, --memory {memory}",
                        f"{arrow:.2f}",
                        f"{pandas:.2f}",
                        f"{total:.2f}",
                        f"{fit:.2f}",
                        f"{(total - fit) / arrow:.1f} x",
                        f"{peak:.0f} MB = {peak / matrix_mb:.1f} x",
                    ]
                )
        header = ["file", "table", "pyarrow reads", "pandas reads", "`bsufs select -o`"]
        header += ["its fit", "the rest / pyarrow", "peak / matrix"]
        print(markdown_table(header, rows))
        told = folder / "compared.json"
        words = ["compare", str(folder / "table.csv"), "-k", str(N_SELECTED), "--json", str(told)]
        seconds, peak = alone(run_command, *words)
        methods = json.loads(told.read_text())["methods"]
        cells = [[row["method"], row["n_rows"], f"{row['seconds']:.2f}"] for row in methods]
        print(f"\n`bsufs compare` on the CSV file: {seconds:.1f} s, peak {peak:.0f} MB\n")
        print(markdown_table(["method", "rows", "seconds"], cells))


if __name__ == "__main__":
    main()
