import os

import numpy as np
import pyarrow.parquet as pq
import pytest

from bsufs_paper.experiments import Outcome, ResultStore, Status, Task
from bsufs_paper.experiments import store as store_module

TASK = Task.of("dataset", dataset="COIL20")
OTHER = Task.of("dataset", dataset="USPS")


def outcome(**changes):
    given = {
        "status": Status.DONE,
        "seconds": 1.25,
        "columns": {"x": [0.1, 1 / 3], "name": ["a", "ä<b>"], "yes": [True, False]},
        "warnings": ("careful",),
    }
    return Outcome(**(given | changes))


def test_what_is_written_is_read_again_to_the_last_bit(tmp_path):
    ResultStore(tmp_path).write(TASK, outcome())
    part = ResultStore(tmp_path).get(TASK)
    assert part.task == TASK
    assert (part.status, part.reason, part.seconds) == (Status.DONE, "", 1.25)
    assert part.warnings == ("careful",)
    assert part.frame.to_dict("list") == outcome().columns


def test_an_outcome_without_a_result_keeps_its_reason(tmp_path):
    ResultStore(tmp_path).write(TASK, Outcome(Status.TIMEOUT, "too long"))
    store = ResultStore(tmp_path)
    assert store.get(TASK).reason == "too long"
    assert store.done(TASK) is None
    assert store.get(OTHER) is None


def test_each_task_is_one_part(tmp_path):
    store = ResultStore(tmp_path)
    store.write(TASK, outcome())
    store.write(TASK, outcome(seconds=2.0))
    store.write(OTHER, outcome())
    names = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert names == sorted(f"{task.key}.parquet" for task in (TASK, OTHER))
    assert [part.task for part in store.parts()] == sorted((TASK, OTHER), key=lambda t: t.key)
    assert ResultStore(tmp_path).get(TASK).seconds == 2.0


def test_a_write_that_fails_leaves_the_old_part_and_nothing_else(tmp_path, monkeypatch):
    store = ResultStore(tmp_path)
    store.write(TASK, outcome())

    def full_disk(table, stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.pq, "write_table", full_disk)
    with pytest.raises(OSError, match="No space left"):
        store.write(TASK, outcome(seconds=9.0))
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [f"{TASK.key}.parquet"]
    assert store.get(TASK).seconds == 1.25
    assert ResultStore(tmp_path).get(TASK).seconds == 1.25


@pytest.mark.parametrize("content", [b"", b"PAR1 not really", None])
def test_an_unreadable_part_is_set_aside_and_not_counted(tmp_path, content):
    store = ResultStore(tmp_path)
    store.write(TASK, outcome())
    path = tmp_path / "parts" / f"{TASK.key}.parquet"
    if content is None:  # a parquet file of someone else
        pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    else:
        path.write_bytes(content)
    store = ResultStore(tmp_path)
    assert store.get(TASK) is None
    assert path.exists()  # reading alone changes nothing
    with store.locked():
        assert not path.exists()
        assert len(list(path.parent.glob("*.unreadable"))) == 1


def test_what_a_killed_run_left_half_written_is_cleared_away(tmp_path):
    store = ResultStore(tmp_path)
    stale = tmp_path / "parts" / f".{TASK.key}.abc.tmp"
    stale.write_bytes(b"half")
    assert ResultStore(tmp_path).get(TASK) is None
    with store.locked():
        assert not stale.exists()


def test_a_part_that_cannot_be_opened_is_not_taken_for_a_bad_one(tmp_path, monkeypatch):
    ResultStore(tmp_path).write(TASK, outcome())

    def denied(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(store_module.Path, "read_bytes", denied)
    with pytest.raises(PermissionError):
        ResultStore(tmp_path)


def test_parts_of_another_release_or_dataset_do_not_count(tmp_path, monkeypatch):
    ResultStore(tmp_path).write(TASK, outcome())
    monkeypatch.setattr("bsufs.__version__", "99")
    assert ResultStore(tmp_path).parts() == []
    monkeypatch.undo()
    assert len(ResultStore(tmp_path).parts()) == 1
    path = tmp_path / "parts" / f"{TASK.key}.parquet"
    path.rename(path.with_stem("0" * 32))
    assert ResultStore(tmp_path).parts() == []


def test_what_is_done_stays(tmp_path):
    store = ResultStore(tmp_path)
    store.write(TASK, outcome())
    store.write(TASK, Outcome(Status.INTERRUPTED, "late"))
    assert store.get(TASK).status is Status.DONE


def test_what_another_run_did_before_the_lock_is_seen(tmp_path):
    early, other = ResultStore(tmp_path), ResultStore(tmp_path)
    other.write(TASK, outcome())
    assert early.get(TASK) is None
    with early.locked():
        assert early.get(TASK).status is Status.DONE


def test_two_runs_cannot_write_to_one_folder(tmp_path):
    one, other = ResultStore(tmp_path), ResultStore(tmp_path)
    with one.locked(), pytest.raises(OSError, match="another run is writing"), other.locked():
        pass
    with other.locked():
        pass


def test_parts_reach_the_disk_before_they_get_their_name(tmp_path, monkeypatch):
    happened = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*arguments, name=name, real=real):
            happened.append(name)
            return real(*arguments)

        monkeypatch.setattr(store_module.os, name, noted)
    ResultStore(tmp_path).write(TASK, outcome(columns={"x": np.arange(3)}))
    assert happened == ["fsync", "replace"]
