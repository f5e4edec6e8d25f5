"""A process of its own: followed, stopped, and gone with the app."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bsufs.app import _jobs
from bsufs.app._jobs import Job

CHATTY = """
import json, sys
print(json.dumps(["reading", ""])); print(json.dumps(["reading", "1,000 of 4,000 rows"]))
print("not JSON"); print(5); print([1]); print(json.dumps(["selecting", ""]))
print(json.dumps(["", "refit 3 of 4"]))
print("said\\x1b[2J", file=sys.stderr); print("x" * 3_000_000, file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


def _ended(job):
    job.wait(20)
    assert not job.is_running
    return job.state()


def test_what_it_does_and_says(work, tmp_path):
    work(CHATTY)
    done = []
    state = _ended(Job(["0"], tmp_path, lambda: done.append(True)))
    assert [step["name"] for step in state["steps"]] == ["reading", "selecting"]
    assert state["share"] == 0.75
    assert (state["status"], state["error"], done) == ("done", "", [True])
    assert state["lines"][0] == "said\\x1b[2J"
    # However long a line is, what is kept of it is short.
    assert max(map(len, state["lines"])) == 1000


def test_errors_of_the_user_are_one_line_and_others_are_told_apart(work, tmp_path):
    work("import sys; print('bsufs: error: -k must be less.', file=sys.stderr); sys.exit(2)")
    state = _ended(Job([], tmp_path))
    assert (state["status"], state["error"]) == ("failed", "-k must be less.")
    work("raise KeyError('oh')")
    state = _ended(Job([], tmp_path))
    assert state["error"] == "The work ended with an unexpected error (status 1): KeyError: 'oh'"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_process_that_is_killed_is_told(work, tmp_path):
    work("import time; time.sleep(60)")
    job = Job([], tmp_path)
    os.kill(job.pid, signal.SIGKILL)
    state = _ended(job)
    assert state["status"] == "failed"
    assert "SIGKILL" in state["error"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes")
def test_stopping_ends_all_that_it_has_started(work, tmp_path):
    script = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {!r}]); {}"
    child = "import os, time; open('child', 'w').write(str(os.getpid())); time.sleep(60)"
    work(script.format(child, "time.sleep(60)"))
    job = Job([], tmp_path)
    file = _until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    job.stop()
    assert job.state()["status"] == "canceled"
    _until(lambda: not _is_alive(int(file)))


def _until(fits, seconds=10):
    end = time.monotonic() + seconds
    while not (value := fits()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def _is_alive(pid):
    try:
        # Ended, and waiting for whoever has started it to look.
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def test_the_worker_ends_when_the_app_is_gone(tmp_path):
    process = subprocess.Popen(
        [*_jobs.WORKER, "columns", "-", "columns.json", "{}"], cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    process.stdin.close()
    assert process.wait(20) != 0


def test_the_worker_says_how_a_table_was_read(table, tmp_path):
    job = Job(["columns", str(table), "columns.json", "{}"], tmp_path)
    state = _ended(job)
    assert state["error"] == ""
    assert state["steps"][0]["name"] == "reading my table.csv"
    found = json.loads((tmp_path / "columns.json").read_text())
    kinds = dict(zip(found["names"], found["kinds"], strict=True))
    assert kinds == dict.fromkeys(found["names"], "number") | {"id": "left out", "kind": "category"}
    assert found["why"][0] == "it is different in every row"
    assert found["gaps"][found["names"].index("gene_3")] == 4
    assert sum(found["gaps"]) == 4
    assert found["values"][-1] == 3
    assert (found["n_rows"], found["n_features"]) == (40, 10)
    assert found["memory"] == 8 * 40 * 12
    assert found["can_stream"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [(b"", {}, "the file is empty"), (b"a,b\n1,2\n1\n", {}, "line 3"), (b"PAR1\0\0", {}, "Parquet"),
     (b"a,b\n1,2\n", {"array": "x"}, "--array is for")],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_said_in_one_line(content, options, message, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    job = Job(["columns", "t.csv", "columns.json", json.dumps(options)], tmp_path)
    state = _ended(job)
    assert state["status"] == "failed"
    assert message in state["error"]
    assert not (tmp_path / "columns.json").exists()
    assert sys.executable not in "".join(state["lines"])
