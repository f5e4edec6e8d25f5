"""Large data: how time and peak memory grow, each measurement in a process of its own.

``python -m benchmarks.scale`` runs all of them (about an hour on one core), ``--quick`` smaller
sizes (minutes), ``--only NAME`` one. Results go to a file of JSON lines as they come: a run that
was stopped goes on where it was. To add a measurement, write a function that measures one size and
returns a dictionary, and put it into MEASUREMENTS.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.timing import markdown_table

BATCH_ROWS = 10_000
N_COMPONENTS = 20
N_SELECTED = 50


# ------------------------------------------------------------------------------------ the measure


def peak_megabytes():
    """Return the largest resident size of this process since `forget_peak`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def forget_peak():
    """Let the peak start anew from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Clock:
    """Adds up the time of the parts that count: by the clock, and of the processor.

    The latter hardly depends on what else the machine does.
    """

    def __init__(self):
        self.seconds = self.cpu_seconds = 0.0

    def __enter__(self):
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        start, cpu_start = self._start
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.process_time() - cpu_start


# --------------------------------------------------------------------------------------- streams


def batches(n, d):
    """Generate a factor model with noise batch by batch; nothing of it is kept."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((N_COMPONENTS, d)) * np.linspace(3, 1, N_COMPONENTS)[:, None]
    for start in range(0, n, BATCH_ROWS):
        rows = min(BATCH_ROWS, n - start)
        X = rng.standard_normal((rows, d))
        X += rng.standard_normal((rows, N_COMPONENTS)) @ loadings
        yield X


def _stream(n, d, take, finish=lambda: None):
    """Hand all batches to a function; measure that alone, and the generation apart."""
    taking, all_of_it = Clock(), Clock()
    baseline = peak_megabytes()
    with all_of_it:
        for X in batches(n, d):
            with taking:
                take(X)
        with taking:
            finish()
    return {
        "seconds": taking.seconds,
        "cpu_seconds": taking.cpu_seconds,
        "generation_seconds": all_of_it.seconds - taking.seconds,
        "peak_mb": peak_megabytes(),
        "baseline_mb": baseline,
    }


def stream_bsufs(n, d):
    from bsufs import BSUFS

    selector = BSUFS(N_SELECTED, n_components=N_COMPONENTS)
    parts = _stream(n, d, selector.partial_fit)
    with Clock() as solving:
        n_selected = int(selector.support_.sum())
    assert n_selected == N_SELECTED
    parts |= {"solve_seconds": solving.seconds, "peak_mb": peak_megabytes()}
    for key in ("seconds", "cpu_seconds"):
        parts[key] += getattr(solving, key)
    return parts


def stream_incremental_pca(n, d):
    from sklearn.decomposition import IncrementalPCA

    return _stream(n, d, IncrementalPCA(N_COMPONENTS).partial_fit)


def stream_sparse_pca(n, d):
    from sklearn.decomposition import MiniBatchSparsePCA

    return _stream(n, d, MiniBatchSparsePCA(N_COMPONENTS, random_state=0).partial_fit)


def memory_bsufs(n, d):
    """Fit at once, what fits in memory."""
    from bsufs import BSUFS

    X = np.empty((n, d))
    row = 0
    for batch in batches(n, d):
        X[row : row + len(batch)] = batch
        row += len(batch)
    forget_peak()
    with Clock() as fitting:
        BSUFS(N_SELECTED, n_components=N_COMPONENTS).fit(X)
    return {
        "seconds": fitting.seconds,
        "cpu_seconds": fitting.cpu_seconds,
        "peak_mb": peak_megabytes(),
        "input_mb": X.nbytes / 2**20,
    }


# ---------------------------------------------------------------------------------------- sparse


def sparse_factor_model(n, d, n_nonzero, *, kind="csr", index="int32", value="float64"):
    """Return sparse data with factors, made block by block: every row has as many non-zeros.

    Column c follows factor c modulo 20; a row has one non-zero in each of equal ranges of columns,
    so that they are sorted and differ.
    """
    from scipy import sparse

    rng = np.random.default_rng(0)
    per_row = n_nonzero // n
    width = d // per_row
    indices = np.empty((n, per_row), dtype=index)
    data = np.empty((n, per_row), dtype=value)
    starts = np.arange(per_row) * width
    step = max(1, 2**22 // per_row)
    for first in range(0, n, step):
        rows = slice(first, min(first + step, n))
        shape = (rows.stop - first, per_row)
        columns = starts + rng.integers(0, width, shape)
        factors = rng.standard_normal((shape[0], N_COMPONENTS))
        indices[rows] = columns
        noise = 0.3 * rng.standard_normal(shape)
        data[rows] = 1.0 + noise + np.take_along_axis(factors, columns % N_COMPONENTS, axis=1)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=index)
    X = sparse.csr_array((data.ravel(), indices.ravel(), indptr), shape=(n, d))
    # The constructor takes the smallest type that will do; large data come with the larger one.
    X.indices, X.indptr = X.indices.astype(index, copy=False), X.indptr.astype(index, copy=False)
    return X if kind == "csr" else X.asformat(kind)


class CountedPasses:
    """Counts how often the non-zeros are run over, by one vector or by many at a time."""

    _COUNTED = ("_product", "_product_of_samples")

    def __init__(self):
        from bsufs.scatter import SparseScatter

        self.single = self.block = 0
        self._kind = SparseScatter
        self._plain = {name: getattr(SparseScatter, name) for name in self._COUNTED}

    def __enter__(self):
        for name, plain in self._plain.items():
            setattr(self._kind, name, self._counting(plain))
        return self

    def _counting(self, plain):
        def counted(operator, W):
            # There and back again.
            if W.ndim == 1:
                self.single += 2
            else:
                self.block += 2
            return plain(operator, W)

        return counted

    def __exit__(self, *_):
        for name, plain in self._plain.items():
            setattr(self._kind, name, plain)


def sparse_bsufs(
    n, d, n_nonzero, kind="csr", index="int32", value="float64", n_components=N_COMPONENTS
):
    from bsufs import BSUFS

    X = sparse_factor_model(n, d, n_nonzero, kind=kind, index=index, value=value)
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    forget_peak()
    with Clock() as fitting, CountedPasses() as passes:
        selector = BSUFS(N_SELECTED, n_components=n_components).fit(X)
    return {
        "seconds": fitting.seconds,
        "cpu_seconds": fitting.cpu_seconds,
        "peak_mb": peak_megabytes(),
        "input_mb": size,
        "found_components": selector.n_components_,
        "steps": selector.n_iter_,
        "single_passes": passes.single,
        "block_passes": passes.block,
    }


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


_GROWING = _streams(10_000, 30_000, 100_000, 300_000, 1_000_000)
_HUGE = _streams(2_000_000, d=1000)
_SPARSE = {"n": 1_000_000, "d": 50_000, "n_nonzero": 100_000_000}
_SMALL_SPARSE = {"n": 100_000, "d": 20_000, "n_nonzero": 5_000_000}

MEASUREMENTS = {
    "stream": Measurement(
        stream_bsufs, "BSUFS.partial_fit", (*_GROWING, *_HUGE), _streams(10_000, 30_000, 100_000)
    ),
    "stream-ipca": Measurement(
        stream_incremental_pca,
        "IncrementalPCA.partial_fit",
        (*_GROWING, *_HUGE),
        _streams(10_000, 30_000, 100_000),
    ),
    "stream-sparse-pca": Measurement(
        stream_sparse_pca,
        "MiniBatchSparsePCA.partial_fit",
        _streams(10_000, 30_000, 100_000),
        _streams(10_000),
    ),
    "memory": Measurement(
        memory_bsufs, "BSUFS.fit in memory", _GROWING, _streams(10_000, 30_000, 100_000)
    ),
    "sparse": Measurement(
        sparse_bsufs,
        "BSUFS.fit on sparse data",
        (
            {"n": 100_000, "d": 50_000, "n_nonzero": 10_000_000},
            {"n": 50_000, "d": 100_000, "n_nonzero": 10_000_000},
            {"n": 100_000, "d": 50_000, "n_nonzero": 10_000_000, "kind": "csc"},
            {"n": 100_000, "d": 50_000, "n_nonzero": 10_000_000, "index": "int64"},
            {"n": 100_000, "d": 50_000, "n_nonzero": 10_000_000, "value": "float32"},
            _SPARSE,
        ),
        (_SMALL_SPARSE, _SMALL_SPARSE | {"kind": "csc", "value": "float32"}),
    ),
}


def table_of(name, results):
    """Return the results of one measurement as Markdown, with the slope of time against n."""
    measurement = MEASUREMENTS[name]
    columns = list(dict.fromkeys(key for entry in results for key in entry["size"]))
    found = list(dict.fromkeys(key for entry in results for key in entry["result"]))
    rows = [
        [_cell(entry["size"].get(key, "")) for key in columns]
        + [_cell(entry["result"].get(key, "")) for key in found]
        for entry in results
    ]
    lines = [f"### {measurement.title}", "", markdown_table([*columns, *found], rows)]
    growing = [entry for entry in results if entry["size"].get("d") == 500]
    if len(growing) > 2:
        n = np.log([entry["size"]["n"] for entry in growing])
        seconds = np.log([entry["result"]["cpu_seconds"] for entry in growing])
        lines += ["", f"Processor time grows like n^{np.polyfit(n, seconds, 1)[0]:.2f}."]
    return "\n".join(lines)


def _cell(value):
    if isinstance(value, float):
        return f"{value:.2f}" if value < 100 else f"{value:.0f}"
    return f"{value:_}" if isinstance(value, int) else str(value)


def plot(results, path):
    """Draw time and peak memory against the number of rows, one line for each measurement."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for name, measurement in MEASUREMENTS.items():
        entries = [
            entry for entry in results if entry["name"] == name and entry["size"].get("d") == 500
        ]
        if not entries:
            continue
        n = [entry["size"]["n"] for entry in entries]
        for axis, key in zip(axes, ("cpu_seconds", "peak_mb"), strict=True):
            values = [entry["result"][key] for entry in entries]
            axis.loglog(n, values, marker="o", label=measurement.title)
    for axis, title in zip(axes, ("processor seconds", "peak of memory, MB"), strict=True):
        axis.set(xlabel="rows of 500 features", title=title)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.savefig(path, dpi=150)


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
    parser.add_argument("--only", metavar="NAME", choices=MEASUREMENTS, help="one measurement")
    parser.add_argument("--out", type=Path, default=Path("scale.jsonl"), help="results so far")
    parser.add_argument("--plot", type=Path, help="a picture of time and memory against rows")
    parser.add_argument("--here", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        name, size = options.here
        print(json.dumps(MEASUREMENTS[name].run(**json.loads(size))))
        return
    names = [options.only] if options.only else list(MEASUREMENTS)
    results = stored_results(options.out)
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
        print(table_of(name, shown), end="\n\n", flush=True)
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
