import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from paper.tests.experiments.small_data import write_dataset

from bsufs_paper.experiments import Status, Task
from bsufs_paper.experiments import worker as worker_module
from bsufs_paper.experiments.worker import IsolatedWorker

pytestmark = pytest.mark.usefixtures("data")


def task(how, once=None):
    return Task.of(
        "rank",
        dataset="small",
        selector="paper.tests.experiments.misbehaving:Misbehaving",
        parameters={"how": how, "once": once},
        n_features=2,
    )


@pytest.fixture(scope="module")
def worker():
    with IsolatedWorker() as worker:
        yield worker


def test_a_task_is_done_and_its_warnings_are_kept(worker):
    outcome = worker.run(task("well"))
    assert outcome.status is Status.DONE
    assert outcome.columns == {"feature": [0, 1], "score": [-1.0, -2.0]}
    assert outcome.warnings == ("take care",)


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ("fail", Status.FAILED, "ZeroDivisionError: by design"),
        ("crash", Status.FAILED, "the worker process died (signal SIGSEGV)"),
        ("exit", Status.FAILED, "the worker process died (exit status 3): the last words"),
        ("real_time", Status.FAILED, "the worker process died (signal 40)"),
        ("orphan", Status.FAILED, "the worker process died (exit status 4)"),
    ],
)
def test_a_failure_has_its_reason_and_the_next_task_is_done(worker, how, status, reason):
    outcome = worker.run(task(how))
    assert (outcome.status, outcome.columns) == (status, {})
    assert outcome.reason == reason
    assert worker.run(task("well")).status is Status.DONE


def test_a_hanging_task_is_given_up(worker):
    worker.run(task("well"))
    start = time.monotonic()
    outcome = worker.run(task("hang"), timeout=0.5)
    assert outcome.status is Status.TIMEOUT
    assert "not done after 0.5 s" in outcome.reason
    assert time.monotonic() - start < 30
    assert worker.run(task("well")).status is Status.DONE


def test_what_a_task_started_ends_with_it(worker, tmp_path):
    worker.run(task("well"))
    started = tmp_path / "pid"
    outcome = worker.run(task("fork_and_hang", str(started)), timeout=3)
    assert outcome.status is Status.TIMEOUT
    deadline = time.monotonic() + 20
    while _alive(int(started.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(int(started.read_text()))


@pytest.mark.parametrize(
    ("how", "reason"),
    [("objects", "must be numbers, truth values or strings"), ("matrix", "one place for each")],
)
def test_a_result_that_cannot_be_stored_is_a_failure(worker, how, reason):
    outcome = worker.run(task(how))
    assert outcome.status is Status.FAILED
    assert reason in outcome.reason


def test_a_process_that_cannot_be_started_is_a_failure(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(worker_module.subprocess, "Popen", refuse)
    outcome = IsolatedWorker().run(task("well"))
    assert outcome.status is Status.FAILED
    assert "Cannot allocate memory" in outcome.reason


def test_a_machine_with_other_data_does_not_do_the_task(data):
    key = task("well").key
    write_dataset(data, "small", seed=99)
    found = worker_module.perform(task("well"), key)
    assert found["status"] is Status.SKIPPED
    assert "are not those of the run" in found["reason"]


@pytest.mark.parametrize("has_groups", [True, False])
def test_processes_end_also_where_there_are_no_process_groups(monkeypatch, has_groups):
    if not has_groups:
        monkeypatch.delattr(worker_module.os, "killpg")
    with IsolatedWorker() as worker:
        worker.run(task("well"))
        pid = worker._process.pid
    assert not _alive(pid)


def test_what_a_task_prints_does_not_get_into_the_result(worker):
    assert worker.run(task("print")).status is Status.DONE


def test_a_worker_that_died_between_tasks_is_replaced(worker):
    worker.run(task("well"))
    worker._process.kill()
    worker._process.wait()
    assert worker.run(task("well")).status is Status.DONE


def test_a_stopped_worker_interrupts_its_task_and_takes_no_more():
    with IsolatedWorker() as worker:
        worker.run(task("well"))
        threading.Timer(0.3, worker.stop).start()
        assert worker.run(task("hang")).status is Status.INTERRUPTED
        outcome = worker.run(task("well"))
        assert outcome.status is Status.INTERRUPTED
        assert "before the task began" in outcome.reason


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="the system tells no environments")
def test_threads_are_held_to_one_and_the_rest_of_the_environment_stays(worker):
    worker.run(task("well"))
    environment = Path(f"/proc/{worker._process.pid}/environ").read_text()
    assert "OPENBLAS_NUM_THREADS=1" in environment
    assert "BSUFS_DATA=" in environment


def test_no_worker_outlives_whoever_started_it(tmp_path):
    """A run that is killed leaves no computation behind, also one that never looks up."""
    script = f"""
import sys, threading
from bsufs_paper.experiments.worker import IsolatedWorker
from bsufs_paper.experiments.tasks import Task
worker = IsolatedWorker()
worker.run(Task("rank", {task("well").text!r}))
hanging = Task("rank", {task("hang").text!r})
threading.Thread(target=worker.run, args=(hanging,), daemon=True).start()
print(worker._process.pid, flush=True)
threading.Event().wait()
"""
    started = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    try:
        pid = int(started.stdout.readline())
        assert _alive(pid)
    finally:
        started.kill()
        started.wait()
        started.stdout.close()
    deadline = time.monotonic() + 20
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
