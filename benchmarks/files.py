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
from benchmarks.timing import markdown_table

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
    with Clock() as clock:
        read(path)
    return clock.seconds, clock.cpu_seconds


def run_command(*words):
    """Return seconds, processor seconds and peak memory of a command, all without the imports."""
    import pandas  # noqa: F401 - these are imported for the command
    from pyarrow import csv, parquet  # noqa: F401

    from bsufs.cli import _selection  # noqa: F401
    from bsufs.cli._program import run

    baseline = resident_megabytes()
    try:
        with Clock() as clock:
            run([*words, "--quiet"])
    except SystemExit as ended:
        if ended.code:
            raise
    return clock.seconds, clock.cpu_seconds, peak_megabytes() - baseline


def alone(task, *arguments):
    """Run a task in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        return other.submit(task, *arguments).result()


def least(task, *arguments):
    """Return the least of each number that several runs give."""
    found = [alone(task, *arguments) for _ in range(REPEATS)]
    return [min(numbers) for numbers in zip(*found, strict=True)]


def selection(path, folder, memory):
    """Select from a file and write what is selected, and return the numbers of a row."""
    out, told = folder / f"small{path.suffix}", folder / "told.json"
    words = ["select", str(path), "-k", str(N_SELECTED), "-o", str(out), "--json", str(told)]
    seconds, cpu, peak = least(run_command, *words, "--force", "--memory", memory)
    return seconds, cpu, peak, json.loads(told.read_text())["seconds"]


def main():
    matrix_mb = 8 * N_ROWS * N_COLUMNS / 2**20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = []
        for kind in ("csv", "parquet"):
            path = folder / f"table.{kind}"
            alone(write_table, path, N_ROWS, N_COLUMNS)
            arrow, arrow_cpu = least(read_seconds, path, "pyarrow")
            pandas, _ = least(read_seconds, path, "pandas")
            for memory in ("100GB", "50MB"):
                seconds, cpu, peak, fit = selection(path, folder, memory)
                held = memory == "100GB"
                rows.append(
                    [
                        f"{kind}, {path.stat().st_size / 1e6:.0f} MB",
                        "held" if held else f"in batches, --memory {memory}",
                        f"{arrow:.2f}",
                        f"{pandas:.2f}",
                        f"{seconds:.2f}",
                        # In batches, what is read is read by the fit.
                        f"{fit:.2f}" if held else "",
                        f"{(seconds - fit) / arrow:.1f}" if held else "",
                        f"{cpu / arrow_cpu:.1f}",
                        f"{peak / matrix_mb:.1f}",
                    ]
                )
        header = ["file", "table", "pyarrow reads", "pandas reads", "`bsufs select -o`", "its fit"]
        header += ["the rest / pyarrow", "processor time / pyarrow", "peak / matrix"]
        print(markdown_table(header, rows))
        told = folder / "compared.json"
        words = ["compare", str(folder / "table.csv"), "-k", str(N_SELECTED), "--json", str(told)]
        seconds, cpu, _ = alone(run_command, *words)
        print(f"\n`bsufs compare` on the CSV file: {seconds:.1f} s, processor {cpu:.1f} s\n")
        methods = json.loads(told.read_text())["methods"]
        cells = [[row["method"], row["n_rows"], f"{row['seconds']:.2f}"] for row in methods]
        print(markdown_table(["method", "rows", "seconds"], cells))


if __name__ == "__main__":
    main()
