"""Large data: how time and peak memory grow, each measurement in a process of its own.

``python -m benchmarks.scale`` runs all of them (about an hour on one core), ``--quick`` smaller
sizes (minutes), ``--only NAME ...`` some. Results go to a file of JSON lines as they come: a run
that was stopped goes on where it was. To add a measurement, write a function that measures one size
and returns a dictionary, and put it into MEASUREMENTS.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.clusters import columns_bsufs, columns_default, overhead_of_dask, rows_bsufs
from benchmarks.scale.files import select_from_file
from benchmarks.scale.report import plot, table_of
from benchmarks.scale.sparse import sparse_fit
from benchmarks.scale.streams import (
    memory_bsufs,
    memory_default,
    memory_sparse_pca,
    stream_bsufs,
    stream_default,
    stream_incremental_pca,
)

# ---------------------------------------------------------------------------------- what there is


@dataclass(frozen=True)
class Measurement:
    """A function that measures one size, and the sizes; `quick` are those of a short run."""

    run: Callable
    title: str
    sizes: tuple
    quick: tuple


def _streams(*numbers, d=500):
    return tuple({"n": n, "d": d} for n in numbers)


def _wide(*numbers, n=200):
    return tuple({"n": n, "d": d} for d in numbers)


def _files(*numbers, d=200):
    """Return both kinds of files; at once, for comparison, only the shortest."""
    return tuple(
        {"n": n, "d": d, "kind": kind, "memory": memory}
        for kind in ("csv", "parquet")
        for n in numbers
        for memory in ("20MB", "100GB")
        if memory == "20MB" or n == min(numbers)
    )


def _on(scheduler, sizes):
    return tuple(size | {"scheduler": scheduler} for size in sizes)


_FEW = _streams(10_000, 30_000, 100_000)
_GROWING = (*_FEW, *_streams(300_000, 1_000_000))
_HUGE = _streams(2_000_000, d=1000)
# What takes much longer is measured on a quarter of the same stream, and so are we.
_QUARTER = _streams(500_000, d=1000)
_SPARSE = {"n": 1_000_000, "d": 50_000, "n_nonzero": 100_000_000}
_TENTH = {"n": 100_000, "d": 50_000, "n_nonzero": 10_000_000}
_DEFAULT = {"method": "ClusterAlignment"}
_SMALL_SPARSE = {"n": 100_000, "d": 20_000, "n_nonzero": 5_000_000}

MEASUREMENTS = {
    "stream": Measurement(stream_bsufs, "BSUFS.fit_batches", (*_GROWING, *_QUARTER, *_HUGE), _FEW),
    "stream-default": Measurement(
        stream_default, "ClusterAlignment.fit_batches", (*_GROWING, *_QUARTER), _FEW
    ),
    "stream-ipca": Measurement(
        stream_incremental_pca, "IncrementalPCA.partial_fit", (*_GROWING, *_QUARTER), _FEW
    ),
    "memory": Measurement(memory_bsufs, "BSUFS.fit in memory", _GROWING, _FEW),
    "memory-default": Measurement(memory_default, "ClusterAlignment.fit in memory", _GROWING, _FEW),
    "memory-sparse-pca": Measurement(
        memory_sparse_pca, "MiniBatchSparsePCA.fit in memory", _FEW, _streams(10_000)
    ),
    "dask-rows": Measurement(rows_bsufs, "BSUFS.fit on Dask, blocks of rows", _GROWING, _FEW),
    "dask-overhead": Measurement(
        overhead_of_dask,
        "BSUFS.fit on Dask and in memory, the same rows",
        tuple(
            size
            for scheduler in ("processes", "threads")
            for size in _on(scheduler, _streams(100_000, 1_000_000))
        ),
        _on("threads", _streams(30_000)),
    ),
    "dask-columns": Measurement(
        columns_bsufs,
        "BSUFS.fit on Dask, blocks of columns",
        (
            *_wide(10_000, 30_000, 100_000, 300_000, 1_000_000),
            *_on("threads", _wide(10_000, 100_000)),
        ),
        _wide(10_000, 30_000, 100_000),
    ),
    "dask-columns-default": Measurement(
        columns_default,
        "ClusterAlignment.fit on Dask, blocks of columns",
        _wide(10_000, 30_000, 100_000, 300_000, 1_000_000),
        _wide(10_000, 30_000, 100_000),
    ),
    # The same data in more and more blocks: what a task costs.
    "dask-tasks": Measurement(
        columns_bsufs,
        "BSUFS.fit on Dask, narrow blocks of columns",
        tuple({"n": 200, "d": 10_000, "widest": widest} for widest in (2_500, 500, 125)),
        ({"n": 200, "d": 10_000, "widest": 500},),
    ),
    "sparse": Measurement(
        sparse_fit,
        "Fits to sparse data",
        (
            _TENTH,
            {"n": 50_000, "d": 100_000, "n_nonzero": 10_000_000},
            _TENTH | {"kind": "csc"},
            _TENTH | {"index": "int64"},
            _TENTH | {"value": "float32"},
            _SPARSE,
            *(_DEFAULT | size for size in (_TENTH, _SPARSE)),
            *(size | {"n_components": "auto"} for size in (_TENTH, _SPARSE)),
        ),
        (
            _SMALL_SPARSE,
            _SMALL_SPARSE | _DEFAULT,
            _SMALL_SPARSE | {"kind": "csc", "value": "float32"},
        ),
    ),
    "files": Measurement(
        select_from_file, "bsufs select", _files(110_000, 330_000), _files(10_000, 30_000)
    ),
}

TITLES = {name: measurement.title for name, measurement in MEASUREMENTS.items()}


# ------------------------------------------------------------------------------------- the program


def measured(name, size):
    """Measure one size in a process of its own, with one thread."""
    words = [sys.executable, "-m", "benchmarks.scale", "--here", name, json.dumps(size)]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    output = subprocess.run(
        words, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | threads
    ).stdout
    return json.loads(output)


def stored_results(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.scale")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument(
        "--only", metavar="NAME", nargs="+", choices=MEASUREMENTS, help="some measurements"
    )
    parser.add_argument("--out", type=Path, default=Path("scale.jsonl"), help="results so far")
    parser.add_argument("--plot", type=Path, help="a picture of time and memory against size")
    parser.add_argument("--here", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        name, size = options.here
        print(json.dumps(MEASUREMENTS[name].run(**json.loads(size))))
        return
    names = options.only or list(MEASUREMENTS)
    results = stored_results(options.out)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        measurement = MEASUREMENTS[name]
        chosen = measurement.quick if options.quick else measurement.sizes
        for size in chosen:
            if any(entry["name"] == name and entry["size"] == size for entry in results):
                continue
            entry = {"name": name, "size": size, "result": measured(name, size)}
            results.append(entry)
            with options.out.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(entry) + "\n")
        shown = [entry for entry in results if entry["name"] == name and entry["size"] in chosen]
        print(table_of(measurement.title, shown), end="\n\n", flush=True)
    if options.plot:
        plot(TITLES, results, options.plot)


if __name__ == "__main__":
    main()
