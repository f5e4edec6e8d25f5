import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bsufs import BSUFS
from bsufs.tables import TableError, memory_to_hold, read_table, stream_table, write_batches


def some_text(n_rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 6)) * np.arange(1, 7)
    lines = ["id,a,b,c,d,e,f"]
    lines += [f"s{i}," + ",".join(f"{value:.4f}" for value in row) for i, row in enumerate(X)]
    return "\n".join(lines) + "\n"


def test_a_stream_can_be_gone_through_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(900))
    stream, whole = (
        stream_table(path, batch_rows=70, ignore=["id"]),
        read_table(path, ignore=["id"]),
    )
    assert (stream.n_rows, stream.n_features, stream.names) == (None, 6, whole.names)
    assert stream.most_rows >= 900
    selector = BSUFS(2)
    for batch in stream:
        selector.partial_fit(batch.values)
    np.testing.assert_array_equal(np.concatenate([b.values for b in stream]), whole.values)
    assert stream.n_rows == stream.most_rows == 900
    assert [b.n_rows for b in stream] == [70] * 12 + [60]
    assert selector.support_.tolist() == BSUFS(2).fit(whole.values).support_.tolist()
    ids = pa.concat_tables(stream.cells(["id"])).column("id")
    assert ids.to_pylist() == [f"s{i}" for i in range(900)]


def test_text_of_many_blocks_is_the_same_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(20_000))
    stream, whole = (
        stream_table(path, batch_rows=999, ignore=["id"]),
        read_table(path, ignore=["id"]),
    )
    np.testing.assert_array_equal(np.concatenate([b.values for b in stream]), whole.values)


@pytest.mark.parametrize("read", [read_table, stream_table])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["", "\r\n\n", " \n"])
def test_text_without_a_mark_is_empty_in_every_encoding(tmp_path, read, encoding, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(TableError, match="the file is empty"):
        read(path)


def test_a_row_longer_than_a_block_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(5000) + f"{'long' * 100_000},1,2,3,4,5,6\n" + "s,1,2,3,4,5,6\n" * 9)
    with pytest.raises(TableError, match=r"a row is longer than the 65\.5 KB .* Raise --memory"):
        list(stream_table(path, batch_rows=10, ignore=["id"]))
    assert sum(batch.n_rows for batch in stream_table(path, ignore=["id"])) == 5010


def test_what_can_not_be_streamed_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(9))
    for wrong, words in (
        ({"batch_rows": 0}, "batch_rows must be at least 1"),
        ({"delimiter": ",,"}, "delimiter must be one character"),
        ({"ignore": ["idd"]}, "Did you mean 'id'?"),
    ):
        with pytest.raises(TableError, match=words):
            stream_table(path, **wrong)
    with pytest.raises(TableError, match="standard input cannot be read twice"):
        stream_table("-")
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(TableError, match=r"only text and \.parquet files"):
        stream_table(tmp_path / "x.npy")
    pq.write_table(pa.table({"a": pa.array([], pa.float64()), "b": []}), tmp_path / "x.parquet")
    with pytest.raises(TableError, match="the table has no rows"):
        stream_table(tmp_path / "x.parquet")
    (tmp_path / "y.parquet").write_text("no such thing")
    with pytest.raises(TableError, match="cannot be read as a Parquet file"):
        stream_table(tmp_path / "y.parquet")


def test_a_pipe_is_not_streamed(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert memory_to_hold(tmp_path / "pipe.csv", 1) is None
    with pytest.raises(TableError, match="no pipes"):
        stream_table(tmp_path / "pipe.csv")


def test_the_estimate_of_memory_grows_with_the_table(tmp_path):
    plain, zipped = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    text = some_text(30_000).encode()
    plain.write_bytes(text)
    write_batches(lambda: stream_table(plain, ignore=["id"]), zipped)
    needed = memory_to_hold(plain, 10**9)
    assert 2 * len(text) < needed < 6 * len(text)
    # The writer may spell cells as it likes, but a zipped file counts by what it unpacks to.
    assert memory_to_hold(zipped, 10**9) == pytest.approx(needed, rel=0.1)
    assert zipped.stat().st_size < memory_to_hold(zipped, 1000) < needed
    numbers = pa.table({name: np.zeros(1000) for name in "abc"})
    pq.write_table(numbers, tmp_path / "t.parquet")
    assert memory_to_hold(tmp_path / "t.parquet", 1) == 2 * 8 * 3000
    assert memory_to_hold("-", 1) is None


def test_the_estimate_of_memory_counts_cells_and_long_strings(tmp_path):
    text = some_text(2000)
    (tmp_path / "t.csv").write_text(text)
    # The characters twice, and twelve bytes for each of 2001 rows of 7 cells.
    expected = 2 * len(text) + 12 * 7 * 2001
    assert memory_to_hold(tmp_path / "t.csv", 10**9) == pytest.approx(expected, rel=1e-3)
    words = [f"{i:0200}" for i in range(500)]
    pq.write_table(pa.table({"a": np.zeros(500), "word": words}), tmp_path / "t.parquet")
    assert memory_to_hold(tmp_path / "t.parquet", 1) > 8 * 1000 + 200 * 500


def test_small_batches_are_collected_to_groups_of_one_size(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(60.0), "b": np.arange(60.0) ** 2}), path)
    stream = stream_table(path, batch_rows=10)
    # Ten rows of two duplicates are 160 bytes: two batches make a group.
    write_batches(lambda: stream, tmp_path / "o.parquet", group_bytes=300)
    about = pq.read_metadata(tmp_path / "o.parquet")
    assert [about.row_group(i).num_rows for i in range(about.num_row_groups)] == [20, 20, 20]
    assert pq.read_table(tmp_path / "o.parquet").equals(pq.read_table(path))


def test_arrays_and_changing_dictionaries_are_not_written_in_batches(tmp_path):
    path = tmp_path / "t.parquet"
    words = pa.array(["u", "v", "w", "u"]).dictionary_encode()
    pq.write_table(pa.table({"a": [1, 2, 4, 3], "b": [1.0, 2, 3, 5], "c": words}), path)
    stream = stream_table(path, batch_rows=2, ignore=["c"])
    with pytest.raises(TableError, match=r"\.npz file cannot be written in batches"):
        write_batches(lambda: stream, tmp_path / "o.npz")
    write_batches(lambda: stream, tmp_path / "o.parquet", group_bytes=1)
    assert pq.read_table(tmp_path / "o.parquet").column("c").to_pylist() == ["u", "v", "w", "u"]
    assert pq.read_metadata(tmp_path / "o.parquet").num_row_groups == 2


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_changes_during_the_last_pass_is_noticed(tmp_path, name):
    path = tmp_path / name
    if name == "t.csv":
        path.write_text(some_text(100))
    else:
        pq.write_table(pa.table({"id": range(100), "a": range(100), "b": range(100)}), path)
    stream = stream_table(path, batch_rows=10, ignore=["id"])
    batches = iter(stream)
    next(batches)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(TableError, match="the file has changed while it was read"):
        list(batches)
    assert stream.n_rows == (None if name == "t.csv" else 100)


def test_names_with_dots_are_no_nested_columns(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, 2], "a.b": [3.0, 4], "c": [5.0, 6]}), path)
    stream = stream_table(path)
    assert [batch.names for batch in stream.tables(["a", "c"])] == [("a", "c")]
