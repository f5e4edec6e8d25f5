"""Dask: two worker processes of one thread each, or threads; every block is made where it is used.

Processor time is that of the client (the scheduler runs in its process) and of all workers.
"""

import time
from contextlib import contextmanager

import numpy as np

from benchmarks.scale.measure import Clock, forget_peak, peak_megabytes, resident_megabytes
from benchmarks.scale.streams import N_COMPONENTS, N_SELECTED

N_WORKERS = 2
WIDE_COMPONENTS = 10
WIDE_SELECTED = 100
# A block of 200 samples has 80 MB, one of 500 features 80 MB too.
WIDEST_BLOCK = 50_000
LONGEST_BLOCK = 20_000
REPEATS = 2


# -------------------------------------------------------------------------------------- the data


def _block(factors, rng, shape, loadings):
    X = rng.standard_normal(shape)
    X += factors @ loadings
    return X


def column_block(n, width, number):
    """Return some columns: the factors of all blocks, loadings and noise of its own."""
    factors = np.random.default_rng(0).standard_normal((n, WIDE_COMPONENTS))
    rng = np.random.default_rng([1, number])
    strengths = np.linspace(3, 1, WIDE_COMPONENTS)[:, None]
    return _block(
        factors, rng, (n, width), strengths * rng.standard_normal((WIDE_COMPONENTS, width))
    )


def row_block(length, d, number):
    """Return some rows: the loadings of all blocks, factors and noise of its own."""
    strengths = np.linspace(3, 1, N_COMPONENTS)[:, None]
    loadings = strengths * np.random.default_rng(0).standard_normal((N_COMPONENTS, d))
    rng = np.random.default_rng([1, number])
    return _block(rng.standard_normal((length, N_COMPONENTS)), rng, (length, d), loadings)


def _pieces(length, largest):
    """Cut a length into pieces, none larger than so much and at least two for each worker."""
    return np.diff(np.linspace(0, length, max(-(-length // largest), 2 * N_WORKERS) + 1, dtype=int))


def lazy_columns(n, d, widest=WIDEST_BLOCK):
    """Return a Dask array in blocks of columns, each a task."""
    import dask
    import dask.array as da

    make = dask.delayed(column_block, pure=True)
    return da.concatenate(
        [
            da.from_delayed(make(n, int(width), number), (n, int(width)), dtype=float)
            for number, width in enumerate(_pieces(d, widest))
        ],
        axis=1,
    )


def lazy_rows(n, d):
    """Return a Dask array in blocks of rows, each a task."""
    import dask
    import dask.array as da

    make = dask.delayed(row_block, pure=True)
    return da.concatenate(
        [
            da.from_delayed(make(int(length), d, number), (int(length), d), dtype=float)
            for number, length in enumerate(_pieces(n, LONGEST_BLOCK))
        ]
    )


# ------------------------------------------------------------------------------------- who works


class Crew:
    """The client and the workers, if any, with what each has used."""

    def __init__(self, client=None):
        self._client = client

    def _everywhere(self, function):
        """Return what a function returns in the client, and in each worker."""
        there = self._client.run(function) if self._client else {}
        return function(), list(there.values())

    def _cpu_seconds(self):
        here, there = self._everywhere(time.process_time)
        return here + sum(there)

    @contextmanager
    def timed(self, clock):
        """Add what happens to a clock, with the processor time of all processes."""
        before = self._cpu_seconds()
        start = time.perf_counter()
        yield
        clock.seconds += time.perf_counter() - start
        clock.cpu_seconds += self._cpu_seconds() - before

    def forget_peaks(self):
        """Let all peaks start anew; return what is resident now."""
        self._everywhere(forget_peak)
        return self._largest(resident_megabytes, "idle_mb")

    def peaks(self):
        """Return the peak of the client, and the largest one of a worker."""
        return self._largest(peak_megabytes, "peak_mb")

    def _largest(self, function, name):
        here, there = self._everywhere(function)
        found = {f"client_{name}": here}
        return found | ({f"worker_{name}": max(there)} if there else {})


@contextmanager
def crew(scheduler):
    """Start workers ("processes") or use Dask's threads, as many; warmed up by a small fit each."""
    import dask
    import dask.array as da

    from bsufs import BSUFS

    def warm_up():
        for shape, chunks in (((20, 60), (20, 15)), ((60, 20), (15, 20))):
            noise = np.random.default_rng(0).standard_normal(shape)
            BSUFS(2, n_components=2).fit(da.from_array(noise, chunks=chunks))

    if scheduler == "threads":
        with dask.config.set(scheduler="threads", num_workers=N_WORKERS):
            warm_up()
            yield Crew()
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        warm_up()
        yield Crew(client)


# ---------------------------------------------------------------------------------- measurements


def _fitted(X, selector, scheduler):
    """Fit lazy data; return what that took, with the generation in it, and this alone."""
    with crew(scheduler) as everyone:
        generation, all_of_it = Clock(), Clock()
        made_only = X.map_blocks(_last_entry, chunks=(1, 1), dtype=float)
        made_only.blocks[:2, :2].compute()
        with everyone.timed(generation):
            made_only.compute()
        idle = everyone.forget_peaks()
        with everyone.timed(all_of_it):
            selector.fit(X)
        peaks = everyone.peaks()
    return {
        "seconds": all_of_it.seconds - generation.seconds,
        "cpu_seconds": all_of_it.cpu_seconds - generation.cpu_seconds,
        "generation_cpu_seconds": generation.cpu_seconds,
        "input_mb": X.nbytes / 2**20,
        "block_mb": max(map(max, X.chunks)) * min(X.shape) * 8 / 2**20,
        **idle,
        **peaks,
    }


def _last_entry(block):
    """Return next to nothing of a block, which then has been made and thrown away."""
    return block[-1:, -1:].copy()


def columns_bsufs(n, d, scheduler="processes", widest=WIDEST_BLOCK):
    """Fit features in blocks that stay with the workers."""
    from bsufs import BSUFS

    return _columns(n, d, scheduler, widest, BSUFS(WIDE_SELECTED, n_components=WIDE_COMPONENTS))


def columns_default(n, d, scheduler="processes", widest=WIDEST_BLOCK):
    """Fit the default to features in blocks that stay with the workers."""
    from bsufs import ClusterAlignment

    selector = ClusterAlignment(WIDE_SELECTED, n_components=WIDE_COMPONENTS)
    return _columns(n, d, scheduler, widest, selector)


def _columns(n, d, scheduler, widest, selector):
    X = lazy_columns(n, d, widest)
    sizes = {"n_blocks": X.numblocks[1], "frame_mb": d * WIDE_COMPONENTS * 8 / 2**20}
    return _fitted(X, selector, scheduler) | sizes


def rows_bsufs(n, d, scheduler="processes"):
    """Fit rows in blocks that are made, added up and thrown away."""
    from bsufs import BSUFS

    return _fitted(lazy_rows(n, d), BSUFS(N_SELECTED, n_components=N_COMPONENTS), scheduler)


def overhead_of_dask(n, d, scheduler="processes"):
    """Fit the same rows held by the workers and held in one array, in turns; take the shortest."""
    from bsufs import BSUFS

    selector = BSUFS(N_SELECTED, n_components=N_COMPONENTS)
    with crew(scheduler) as everyone:
        lazy = lazy_rows(n, d)
        held = lazy.persist()
        # Made once more: fetching the blocks would gather them all with one worker.
        X = lazy.compute(scheduler="synchronous")
        times = {"dask": [], "memory": []}
        rankings = {}
        for _ in range(REPEATS):
            for name, data in (("dask", held), ("memory", X)):
                clock = Clock()
                with everyone.timed(clock):
                    selector.fit(data)
                times[name].append(clock)
                rankings[name] = selector.ranking_.tolist()
    assert rankings["dask"] == rankings["memory"]
    found = {"input_mb": X.nbytes / 2**20}
    for key in ("seconds", "cpu_seconds"):
        best = {name: min(getattr(one, key) for one in clocks) for name, clocks in times.items()}
        found |= {f"{name}_{key}": value for name, value in best.items()}
        found[f"ratio_of_{key}"] = best["dask"] / best["memory"]
    return found
