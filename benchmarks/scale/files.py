"""Files larger than what they may take: `bsufs select`, in batches and at once."""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.scale.measure import Clock, peak_megabytes, resident_megabytes

N_SELECTED = 20
BATCH_ROWS = 10_000


def write_table(path, n, d):
    """Write a factor model with noise: CSV in batches, Parquet as one row group."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((5, d)) * 2
    names = [f"x{i}" for i in range(d)]

    def batch(rows):
        X = rng.standard_normal((rows, d)) + rng.standard_normal((rows, 5)) @ loadings
        return pa.table([pa.array(column) for column in X.round(6).T], names=names)

    batches = (batch(min(BATCH_ROWS, n - start)) for start in range(0, n, BATCH_ROWS))
    if path.suffix == ".parquet":
        parquet.write_table(pa.concat_tables(batches), path, row_group_size=n)
        return
    schema = pa.schema([(name, pa.float64()) for name in names])
    with csv.CSVWriter(path, schema) as writer:
        for table in batches:
            writer.write_table(table)


def select_from_file(n, d, kind, memory):
    """Run the command on a file that another process has written."""
    from bsufs.cli._program import run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{kind}"
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            other.submit(write_table, path, n, d).result()
        baseline = resident_megabytes()
        words = ["select", str(path), "-k", str(N_SELECTED), "-o", f"{folder}/small.parquet"]
        try:
            with Clock() as selecting:
                run([*words, "--quiet", "--memory", memory])
        except SystemExit as ended:
            if ended.code:
                raise
        return {
            "seconds": selecting.seconds,
            "cpu_seconds": selecting.cpu_seconds,
            "file_mb": path.stat().st_size / 2**20,
            "peak_mb": peak_megabytes(),
            "baseline_mb": baseline,
        }
