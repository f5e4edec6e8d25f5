"""Whole runs: complete, resumed, killed, on one worker or several, and on a cluster."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paper.tests.experiments.small_data import small_spec, write_dataset

from bsufs_paper.experiments import (
    FAILURES,
    Outcome,
    ResultStore,
    Status,
    collect,
    load_spec,
    local_workers,
    run_specs,
)
from bsufs_paper.experiments import tasks as tasks_module
from bsufs_paper.experiments.worker import perform

pytestmark = pytest.mark.usefixtures("data")
MISBEHAVING = "paper.tests.experiments.misbehaving:Misbehaving"


class InThisProcess:
    """Do tasks here: fast, for tests of the engine and the recipes alone."""

    def __init__(self, stop_after=None):
        self.done = []
        self.stop_after = stop_after

    def __call__(self, tasks, watch):
        for task, _ in tasks:
            if self.stop_after is not None and len(self.done) >= self.stop_after:
                raise KeyboardInterrupt
            watch(task, None)
            found = perform(task, task.key)
            self.done.append(task)
            watch(task, Outcome(**found))


def run(folder, spec=None, executor=None, **options):
    specs = [load_spec(spec or small_spec())]
    store = ResultStore(folder)
    executor = executor or InThisProcess()
    run_specs(specs, store, executor, **options)
    return collect(specs, store), executor


def work(tasks):
    """Return what tasks do: the sets that they judge, however batched, or themselves."""
    done = set()
    for task in tasks:
        arguments = task.arguments
        for features in arguments.pop("sets", [None]):
            done.add((task.kind, json.dumps(arguments, sort_keys=True), str(features)))
    return done


def same(one, other):
    """Assert that results are equal; how long tasks took is no result."""
    assert set(one) == set(other)
    for name in one:
        columns = [c for c in one[name].columns if c != "seconds"]
        pd.testing.assert_frame_equal(one[name][columns], other[name][columns])


# --------------------------------------------------------------------------------- a tuned search


class TestTuned:
    @pytest.fixture
    def results(self, tmp_path):
        return run(tmp_path / "out")[0]

    def test_winners_are_the_best_of_the_search(self, results):
        for _, winner in results["winners"].iterrows():
            search = results["search"]
            own = search[(search.dataset == winner.dataset) & (search.method == winner.method)]
            best = own.loc[own["acc"].idxmax()]
            assert (winner.setting, winner.n_features) == (best.setting, best.n_features)
            same_setting = own[own.setting == winner.setting]
            assert winner.n_features_nmi == same_setting.loc[same_setting.nmi.idxmax()].n_features
            assert winner.parameters == best.parameters
        assert len(results["winners"]) == 2 * 5

    def test_the_search_covers_every_setting_and_count(self, results):
        sizes = results["search"].groupby(["dataset", "method"]).size()
        assert sizes["small"].to_dict() == {
            "ALLfea": 1,
            "Variance": 2,
            "BSUFS": 8,
            "FSPCA": 2,
            "Random": 8,
        }
        assert set(results["search"].n_repetitions) == {3}

    def test_winners_are_judged_with_fresh_seeds_at_every_count(self, results):
        scores = results["scores"]
        own = scores[(scores.dataset == "small") & (scores.method == "BSUFS")]
        assert own.groupby("n_features").size().to_dict() == {2: 5, 4: 5}
        assert own.setting.nunique() == 1
        searched = results["search"].set_index(["dataset", "method", "setting", "n_features"])
        fresh = scores[scores.method == "Random"].groupby(
            ["dataset", "method", "setting", "n_features"]
        )
        differences = [
            values.acc.iloc[:3].mean() != searched.loc[key, "acc"] for key, values in fresh
        ]
        assert any(differences)

    def test_each_distinct_set_is_clustered_once_in_each_stage(self, tmp_path):
        doubled = small_spec()
        doubled["methods"].append({"label": "Variance again", "selector": "MaxVariance"})
        store_folder = tmp_path / "out"
        run(store_folder, doubled)
        judged = [
            (part.task.arguments["dataset"], part.task.arguments["seed"], name)
            for part in ResultStore(store_folder).parts()
            if part.task.kind == "cluster"
            for name in set(part.frame["set"])
        ]
        assert len(judged) == len(set(judged))

    def test_runs_of_one_round_share_what_they_judge(self, tmp_path):
        specs = [load_spec(small_spec()), load_spec(small_spec(name="again"))]
        store, executor = ResultStore(tmp_path), InThisProcess()
        run_specs(specs, store, executor)
        judged = [
            (task.arguments["seed"], tuple(features))
            for task in executor.done
            if task.kind == "cluster"
            for features in task.arguments["sets"]
        ]
        assert len(judged) == len(set(judged))
        results = collect(specs, store)
        assert set(results["winners"].run) == {"trial", "again"}

    def test_a_set_that_cannot_be_judged_costs_no_other_set(self, tmp_path, monkeypatch):
        expected, _ = run(tmp_path / "whole")
        judge = tasks_module.judge

        def picky(X, *arguments, **options):
            if X.shape[1] == 12:
                raise FloatingPointError("all features")
            return judge(X, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(tasks_module, "judge", picky)
            results, _ = run(tmp_path / "out")
        pd.testing.assert_frame_equal(
            results["winners"].reset_index(drop=True),
            expected["winners"]
            .query("not (dataset == 'small' and method == 'ALLfea')")
            .reset_index(drop=True),
        )
        failed = results["tasks"].query("status == 'failed'")
        assert set(failed.kind) == {"cluster"}
        assert failed.reason.str.contains("all features").all()
        results, _ = run(tmp_path / "out", retry=FAILURES)
        same(expected, results)

    def test_other_data_bring_other_scores(self, tmp_path, data):
        run(tmp_path / "out")
        write_dataset(data, "small", seed=99)
        results, executor = run(tmp_path / "out")
        assert {task.arguments["dataset"] for task in executor.done} == {"small"}
        expected, _ = run(tmp_path / "fresh")
        same(expected, results)

    def test_other_initializations_judge_the_winners_only(self, tmp_path):
        results, _ = run(tmp_path / "out", small_spec(initializations=["random"]))
        other = results["scores"][results["scores"].kmeans_init == "random"]
        counts = other.groupby(["dataset", "method"]).n_features.agg(set)
        for _, winner in results["winners"].iterrows():
            assert counts[winner.dataset, winner.method] == {
                winner.n_features,
                winner.n_features_nmi,
            }

    def test_a_method_that_fails_is_told_of_and_the_others_go_on(self, tmp_path):
        spec = small_spec()
        spec["methods"].append({"label": "Bad", "selector": "BSUFS", "parameters": {"p": 7}})
        results, _ = run(tmp_path / "out", spec)
        bad = results["tasks"][results["tasks"].method == "Bad"]
        assert set(bad.status) == {"failed"}
        assert bad.reason.str.contains("'p' parameter of BSUFS").all()
        assert len(results["winners"]) == 2 * 5

    def test_a_missing_dataset_is_skipped_with_a_reason_and_found_later(self, tmp_path, data):
        (data / "other.npz").rename(data / "hidden")
        results, _ = run(tmp_path / "out")
        probe = results["tasks"][results["tasks"].dataset == "other"].iloc[0]
        assert probe.status == "skipped"
        assert "other.npz is not at hand" in probe.reason
        assert set(results["winners"].dataset) == {"small"}
        (data / "hidden").rename(data / "other.npz")
        results, _ = run(tmp_path / "out")
        assert set(results["winners"].dataset) == {"small", "other"}

    def test_counts_beyond_the_features_are_left_out(self, tmp_path):
        spec = small_spec(protocol={"feature_counts": [2, 10, 99], "confirmation_repetitions": 2})
        results, _ = run(tmp_path / "out", spec)
        counts = results["search"].groupby("dataset").n_features.agg(set)
        assert counts["small"] == {2, 10, 12}  # 12: all features, without a selection
        assert counts["other"] == {2, 8}


def test_fixed_settings_are_all_judged_and_none_is_chosen(tmp_path):
    results, _ = run(tmp_path, small_spec(recipe="fixed"))
    assert "winners" not in results
    assert "search" not in results
    sizes = results["scores"].groupby(["dataset", "method"]).size()
    assert sizes["small", "Random"] == 4 * 2 * 5
    assert sizes["small", "ALLfea"] == 5


def test_recovery_gives_rates_and_points(tmp_path):
    spec = {
        "name": "rings",
        "recipe": "recovery",
        "datasets": ["rings-noise"],
        "options": {"noise_scales": [0.1, 5.0], "n_draws": 3, "shown_noise_scale": 0.1},
        "methods": [{"label": "Variance", "selector": "MaxVariance"}],
    }
    results, _ = run(tmp_path, spec)
    rates = results["recovery"].groupby("noise_scale").found.mean()
    assert rates.to_dict() == {0.1: 1.0, 5.0: 0.0}
    assert set(results["recovery"].dataset) == {"rings"}
    points = results["points"].groupby("method").size()
    assert points.to_dict() == {"Variance": 50, "data": 50}


def test_winners_of_one_run_are_the_settings_of_another(tmp_path):
    specs = [
        load_spec(small_spec()),
        load_spec(
            {
                "name": "after",
                "recipe": "single",
                "datasets": ["small"],
                "winners_of": "trial",
                "options": {"task": "correlate", "frame": "correlations", "n_features": 3},
                "methods": [{"label": "BSUFS"}, {"label": "Unknown", "selector": "BSUFS"}],
            }
        ),
    ]
    store = ResultStore(tmp_path)
    run_specs(specs, store, InThisProcess())
    results = collect(specs, store)
    winner = results["winners"].set_index(["dataset", "method"]).loc[("small", "BSUFS")]
    assert set(results["correlations"].parameters) == {winner.parameters}
    assert set(results["correlations"].method) == {"BSUFS"}
    with pytest.raises(ValueError, match="uses the winners of 'trial', which must be run"):
        run_specs(specs[1:], store, InThisProcess())


@pytest.mark.parametrize("recipe", ["fixed", "tuned"])
def test_settings_that_labels_chose_do_not_get_among_those_they_did_not(tmp_path, recipe):
    specs = [
        load_spec(small_spec()),
        load_spec(small_spec(name="after", recipe=recipe, winners_of="trial")),
    ]
    with pytest.raises(ValueError, match="'after' must not have winners_of"):
        run_specs(specs, ResultStore(tmp_path), InThisProcess())


def test_two_runs_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two specs have the name 'trial'"):
        run_specs([load_spec(small_spec())] * 2, ResultStore(tmp_path), InThisProcess())


def test_options_that_a_recipe_needs_are_named(tmp_path):
    with pytest.raises(ValueError, match="must have task, frame: its recipe 'single'"):
        run(tmp_path, small_spec(recipe="single"))


def test_a_run_without_winners_cannot_lend_them(tmp_path):
    options = {"task": "correlate", "frame": "correlations", "n_features": 2}
    after = small_spec(name="after", recipe="single", winners_of="trial", options=options)
    specs = [load_spec(small_spec(recipe="fixed")), load_spec(after)]
    with pytest.raises(ValueError, match="recipe 'fixed' has no winners"):
        run_specs(specs, ResultStore(tmp_path), InThisProcess())


# ---------------------------------------------------------------------------- stopping and going on


def test_nothing_that_was_done_is_done_again(tmp_path):
    first, executor = run(tmp_path)
    assert executor.done
    second, executor = run(tmp_path)
    assert executor.done == []
    same(first, second)


def test_a_run_that_is_stopped_anywhere_comes_to_the_same_results(tmp_path):
    expected, whole = run(tmp_path / "whole")
    for stop_after in range(1, len(whole.done), 7):
        folder = tmp_path / f"stopped-{stop_after}"
        first = InThisProcess(stop_after)
        with pytest.raises(KeyboardInterrupt):
            run(folder, executor=first)
        results, rest = run(folder)
        same(expected, results)
        assert not work(first.done) & work(rest.done)
        assert work(first.done) | work(rest.done) == work(whole.done)


def test_failures_are_kept_and_tried_again_only_when_asked(tmp_path):
    flag = tmp_path / "flag"
    method = {"label": "M", "selector": MISBEHAVING, "parameters": {"how": "fail"}}
    method["parameters"]["once"] = str(flag)
    spec = small_spec(datasets=["small"], methods=[method])
    results, _ = run(tmp_path / "out", spec)
    assert set(results["tasks"][results["tasks"].method == "M"].status) == {"failed"}
    results, executor = run(tmp_path / "out", spec)
    assert executor.done == []
    results, executor = run(tmp_path / "out", spec, retry=FAILURES)
    assert executor.done
    assert set(results["tasks"][results["tasks"].method == "M"].status) == {"done"}


def test_the_observer_sees_every_beginning_and_end(tmp_path):
    seen = []
    _, executor = run(tmp_path, observer=lambda n, task, outcome: seen.append((task, outcome)))
    begun = [task for task, outcome in seen if outcome is None]
    ended = [task for task, outcome in seen if outcome is not None]
    assert begun == ended == executor.done


# ------------------------------------------------------------------------------ in other processes


def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    expected, _ = run(tmp_path / "here")
    for n_jobs in (1, 3):
        with local_workers(n_jobs) as executor:
            results, _ = run(tmp_path / str(n_jobs), executor=executor)
        same(expected, results)


def test_a_crashing_and_a_hanging_task_do_not_take_down_the_run(tmp_path):
    spec = small_spec(timeout=3)
    for how in ("crash", "hang"):
        spec["methods"].append({"label": how, "selector": MISBEHAVING, "parameters": {"how": how}})
    with local_workers(2) as executor:
        results, _ = run(tmp_path, spec, executor)
    tasks = results["tasks"].set_index("method")
    assert set(tasks.loc["crash"].status) == {"failed"}
    assert tasks.loc["crash"].reason.str.contains("SIGSEGV").all()
    assert set(tasks.loc["hang"].status) == {"timeout"}
    expected, _ = run(tmp_path / "without", executor=InThisProcess())
    pd.testing.assert_frame_equal(expected["winners"], results["winners"])


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("moment", ["begin", "end"])
def test_an_error_of_the_observer_ends_the_run_and_loses_nothing(tmp_path, n_jobs, moment):
    def observer(n, task, outcome):
        if task.kind == "rank" and (outcome is not None) == (moment == "end"):
            raise KeyboardInterrupt

    with local_workers(n_jobs) as executor, pytest.raises(KeyboardInterrupt):
        run(tmp_path, executor=executor, observer=observer)
    done = {part.task.kind for part in ResultStore(tmp_path).parts() if part.status == "done"}
    assert done == ({"dataset", "rank"} if moment == "end" else {"dataset"})


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_a_bad_number_of_jobs_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be -1 or at least 1"), local_workers(n_jobs):
        pass


RUN = """
import json, sys
from bsufs_paper.experiments import ResultStore, load_spec, local_workers, run_specs
with local_workers(int(sys.argv[3])) as execute:
    run_specs([load_spec(json.loads(sys.argv[1]))], ResultStore(sys.argv[2]), execute)
"""


def start(spec, folder, n_jobs=2):
    command = [sys.executable, "-c", RUN, json.dumps(spec), str(folder), str(n_jobs)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def slow_spec():
    spec = small_spec()
    spec["methods"].append(
        {"label": "slow", "selector": MISBEHAVING, "parameters": {"how": "slow"}, "per_count": True}
    )
    return spec


def _parts(folder):
    return list((folder / "parts").glob("*.parquet"))


def test_killed_at_random_moments_it_loses_nothing_and_repeats_nothing(tmp_path):
    spec = slow_spec()
    expected, _ = run(tmp_path / "whole", spec)
    folder = tmp_path / "killed"
    moments = random.Random(0)
    written: dict[str, int] = {}
    for _ in range(5):
        process = start(spec, folder)
        # It takes its time to begin; then it is killed in the middle of whatever it does.
        while process.poll() is None and len(_parts(folder)) <= len(written):
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        parts = _parts(folder)
        for name, changed in written.items():
            assert (folder / "parts" / name).stat().st_mtime_ns == changed
        written = {path.name: path.stat().st_mtime_ns for path in parts}
    assert 5 <= len(written) < len(_parts(tmp_path / "whole"))  # killed in the middle
    process = start(spec, folder)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    for name, changed in written.items():
        assert (folder / "parts" / name).stat().st_mtime_ns == changed
    assert not list((folder / "parts").glob(".*"))
    store = ResultStore(folder)
    same(expected, collect([load_spec(spec)], store))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_is_recorded_and_made_up_for(tmp_path, n_jobs):
    method = {"label": "M", "selector": MISBEHAVING, "parameters": {"how": "hang"}}
    method["parameters"]["once"] = str(tmp_path / "flag")
    spec = small_spec(datasets=["small"], methods=[method])
    process = start(spec, tmp_path / "out", n_jobs)
    deadline = time.monotonic() + 60
    while not (tmp_path / "flag").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    parts = ResultStore(tmp_path / "out").parts()
    assert [p.status for p in parts if p.task.kind == "rank"] == [Status.INTERRUPTED]
    with local_workers(1) as executor:
        results, _ = run(tmp_path / "out", spec, executor)
    assert set(results["tasks"].status) == {"done"}


def test_the_same_spec_runs_on_a_cluster(tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    from bsufs_paper.experiments import dask_workers

    expected, _ = run(tmp_path / "here")
    spec = small_spec()
    spec["methods"].append({"label": "crash", "selector": MISBEHAVING, "parameters": {}})
    spec["methods"][-1]["parameters"] = {"how": "crash"}
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        dask_workers(cluster.scheduler_address) as executor,
    ):
        results, _ = run(tmp_path / "cluster", spec, executor)
    assert set(results["tasks"][results["tasks"].method == "crash"].status) == {"failed"}
    results["tasks"] = results["tasks"][results["tasks"].method != "crash"].reset_index(drop=True)
    same(expected, results)


def test_no_scheduler_is_a_clear_error(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed")
    from bsufs_paper.experiments import dask_workers

    message = r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"
    with pytest.raises(ConnectionError, match=message), dask_workers("tcp://127.0.0.1:9"):
        pass


def test_every_part_is_a_table_that_others_can_read(tmp_path):
    run(tmp_path)
    frames = [pd.read_parquet(path) for path in (tmp_path / "parts").glob("*.parquet")]
    assert all(len(frame) for frame in frames)
    assert np.isfinite(pd.concat([f for f in frames if "acc" in f]).acc).all()


def test_a_dataset_of_ones_own_is_run_like_the_others(tmp_path, data):
    write_dataset(data, "mine", n=30, d=5, n_classes=2, seed=9)
    results, _ = run(tmp_path, small_spec(datasets=["mine"]))
    assert set(results["winners"].dataset) == {"mine"}
    assert Path(os.environ["BSUFS_DATA"]) == data
