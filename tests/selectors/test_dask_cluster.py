"""Selectors on a cluster of processes: any number of workers, lost ones, and a lost scheduler."""

import contextlib
import gc
import math
import os
import signal
import time

import dask
import dask.array as da
import numpy as np
import pytest
from tests.selectors.test_dask_input import TALL, WIDE, assert_twins, fitted

from bsufs.selectors import ClusterAlignment

distributed = pytest.importorskip("distributed", reason="Dask's cluster is not installed")

# A worker that is killed tells of it in the log; nobody is to read that here.
QUIET = {"dashboard_address": ":0", "silence_logs": 50}


def lazy(X):
    return da.from_array(X, chunks=(X.shape[0], 27) if X is WIDE else (33, X.shape[1]))


@pytest.fixture(autouse=True)
def far_away(monkeypatch):
    """Let no column come here because there are few of them."""
    monkeypatch.setattr("bsufs.scatter._columns._SMALL_HERE", 0)


@pytest.fixture(scope="module")
def cluster():
    running = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, **QUIET)
    yield running
    # When all is closed, Dask may still strike a killed worker off a list that it is not on.
    with contextlib.suppress(KeyError):
        running.close()
    # Then it does not call itself closed, and complains in whatever test it is collected.
    running.status = distributed.core.Status.closed


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        yield connected


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers_gives_the_same(cluster, client, n_workers):
    cluster.scale(n_workers)
    client.wait_for_workers(n_workers)
    for X in (WIDE, TALL):
        selector = fitted(lazy(X), n_features_to_select=10, drop_rate=0.7)
        assert_twins(selector, fitted(X, n_features_to_select=10, drop_rate=0.7))
    assert len(client.run(os.getpid)) == n_workers


def test_clusters_of_rows_are_found_by_workers_too(client):
    client.wait_for_workers(1)
    # Few columns: every step of the path is a round of tasks.
    for X, chunks in ((WIDE[:, :36], (30, 18)), (TALL, (33, 25))):
        settings = {"n_features_to_select": 6, "n_components": 3, "n_runs": 2}
        lazy_X = da.from_array(X, chunks=chunks)
        found, expected = (ClusterAlignment(**settings).fit(given) for given in (lazy_X, X))
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.cluster_shares_, expected.cluster_shares_, atol=1e-8)


@pytest.mark.parametrize("derived", [False, True])
def test_data_that_the_workers_hold_already(client, derived):
    for X in (WIDE, TALL):
        held = lazy(X).persist()
        selector = fitted(held + 0.0 if derived else held, n_features_to_select=10, drop_rate=0.7)
        assert_twins(selector, fitted(X, n_features_to_select=10, drop_rate=0.7))
    weight = np.linspace(1, 2, len(TALL))
    settings = {"n_features_to_select": 10, "drop_rate": 0.7, "sample_weight": weight}
    own = settings | {"sample_weight": da.from_array(weight, chunks=33).persist()}
    assert_twins(fitted(lazy(TALL).persist(), **own), fitted(TALL, **settings))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes end in other ways here")
def test_a_worker_that_dies_in_the_middle_changes_nothing(cluster, client):
    cluster.scale(2)
    client.wait_for_workers(2)
    seen = []

    def kill(progress):
        seen.append(progress.iteration)
        if progress.iteration == 5:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    selector = fitted(lazy(WIDE), n_features_to_select=10, drop_rate=0.3, callback=kill)
    assert_twins(selector, fitted(WIDE, n_features_to_select=10, drop_rate=0.3))
    assert seen[-1] > 5


def test_results_are_held_by_the_workers_and_let_go_at_the_end(cluster, client):
    cluster.scale(2)
    client.wait_for_workers(2)
    sizes = []

    def look(progress):
        sizes.append(
            client.run_on_scheduler(
                lambda dask_scheduler: max(
                    task.nbytes for task in dask_scheduler.tasks.values() if task.nbytes >= 0
                )
            )
        )

    fitted(lazy(WIDE), n_features_to_select=10, max_iter=3, callback=look)
    # A block of X for each worker, with some vectors.
    assert max(sizes) < 8 * 30 * math.ceil(100 / len(client.nthreads())) + 4096
    deadline = time.monotonic() + 20
    while any(client.who_has().values()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.1)
    assert not any(client.who_has().values())


def test_a_lost_scheduler_is_a_clear_error():
    patience = {"distributed.comm.timeouts.connect": "2s"}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, **QUIET
        ) as lost,
    ):
        client = distributed.Client(lost)

        def close(progress):
            if progress.iteration == 3:
                lost.sync(lost.scheduler.close)

        with pytest.raises(
            ConnectionError, match=r"scheduler was lost.*call fit once more"
        ) as told:
            fitted(lazy(WIDE), n_features_to_select=10, callback=close)
        # The trace ends here: what went on inside Dask is no help.
        assert told.value.__suppress_context__
        client.close(timeout=1)
