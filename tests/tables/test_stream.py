import io
import os
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from bsufs import BSUFS
from bsufs.tables import TableError, open_table, write_table
from bsufs.tables._text import TextRows

# What columns hold is a matter of other tests: here they hold numbers.
open_table = partial(open_table, strict=True)


def some_text(n_rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 6)) * np.arange(1, 7)
    lines = ["id,a,b,c,d,e,f"]
    lines += [f"s{i}," + ",".join(f"{value:.4f}" for value in row) for i, row in enumerate(X)]
    return "\n".join(lines) + "\n"


def test_a_stream_can_be_gone_through_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(900))
    stream, whole = (open_table(path, batch_rows=rows, ignore=["id"]) for rows in (70, None))
    assert (stream.is_held, whole.is_held) == (False, True)
    assert (stream.n_rows, stream.n_features, stream.names) == (900, 6, whole.names)
    assert stream.rows.most_rows >= 900
    selector = BSUFS(2).fit_batches(stream.batches())
    np.testing.assert_array_equal(np.concatenate(list(stream.batches())), whole.values)
    assert [len(batch) for batch in stream.batches()] == [70] * 12 + [60]
    assert selector.support_.tolist() == BSUFS(2).fit(whole.values).support_.tolist()
    ids = pa.Table.from_batches(stream.cells(["id"])).column("id")
    assert ids.to_pylist() == [f"s{i}" for i in range(900)]


def test_text_of_many_blocks_is_the_same_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(20_000))
    stream, whole = (open_table(path, batch_rows=rows, ignore=["id"]) for rows in (999, None))
    np.testing.assert_array_equal(np.concatenate(list(stream.batches())), whole.values)
    with pytest.raises(TableError, match="the whole table is needed, but it is read in batches"):
        stream.values  # noqa: B018 - to ask for it is the test


@pytest.mark.parametrize("batch_rows", [None, 9])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["", "\r\n\n", " \n"])
def test_text_without_a_mark_is_empty_in_every_encoding(tmp_path, batch_rows, encoding, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(TableError, match="the file is empty"):
        open_table(path, batch_rows=batch_rows)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_there_are_no_more_rows_than_estimated(tmp_path, monkeypatch, end, encoding):
    # Chunks of seven bytes end within characters and line ends.
    monkeypatch.setattr("bsufs.tables._files._CHUNK_BYTES", 7)
    lines = ["é,b,c", *(f"{i},{i / 7},-{i}" for i in range(50))]
    (tmp_path / "t.csv").write_bytes(end.join(lines).encode(encoding))
    table = open_table(tmp_path / "t.csv")
    assert table.names[0] == "é"
    assert 50 <= table.rows.most_rows <= 54
    np.testing.assert_array_equal(table.values, [[i, i / 7, -i] for i in range(50)])


def test_numbers_of_a_file_that_hides_its_length_are_all_read(tmp_path, monkeypatch):
    monkeypatch.setattr("bsufs.tables._table._FEWEST_ROWS", 1)
    monkeypatch.setattr("bsufs.tables._table._CELLS_AT_ONCE", 6)
    X = np.random.default_rng(0).standard_normal((40, 3))
    feather.write_feather(pa.table(list(X.T), names=list("abc")), tmp_path / "t.feather")
    np.testing.assert_array_equal(open_table(tmp_path / "t.feather").values, X)


def test_a_row_longer_than_a_block_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(5000) + f"{'long' * 100_000},1,2,3,4,5,6\n" + "s,1,2,3,4,5,6\n" * 9)
    with pytest.raises(TableError, match=r"a row is longer than the 65\.5 KB .* Raise --memory"):
        list(open_table(path, batch_rows=10, ignore=["id"]).batches())
    assert open_table(path, ignore=["id"]).values.shape == (5010, 6)


def test_what_can_not_be_streamed_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(some_text(9))
    for wrong, words in (
        ({"batch_rows": 0}, "batch_rows must be at least 1"),
        ({"delimiter": ",,"}, "delimiter must be one character"),
        ({"ignore": ["idd"]}, "Did you mean 'id'?"),
    ):
        with pytest.raises(TableError, match=words):
            open_table(path, **({"batch_rows": 9} | wrong))
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(TableError, match=r"only text and \.parquet files"):
        open_table(tmp_path / "x.npy", batch_rows=9)
    pq.write_table(pa.table({"a": pa.array([], pa.float64()), "b": []}), tmp_path / "x.parquet")
    with pytest.raises(TableError, match="the table has no rows"):
        open_table(tmp_path / "x.parquet")
    (tmp_path / "y.parquet").write_text("no such thing")
    with pytest.raises(TableError, match="cannot be read as a Parquet file"):
        open_table(tmp_path / "y.parquet")


def test_a_pipe_is_held(tmp_path):
    reading, writing = os.pipe()
    (tmp_path / "t.csv").symlink_to(f"/dev/fd/{reading}")
    os.write(writing, b"a,b\n1,2\n3,4\n")
    os.close(writing)
    table = open_table(tmp_path / "t.csv", memory=100)
    os.close(reading)
    write_table(table, tmp_path / "o.csv", [1])
    assert (tmp_path / "o.csv").read_text() == "b\n2\n4\n"
    with pytest.raises(TableError, match=r"only text and \.parquet files .*, no pipes"):
        open_table(io.BytesIO(b"a,b\n1,2\n"), batch_rows=1)
    with pytest.raises(TableError, match="the stream is too large to hold in 20 bytes of memory"):
        open_table(io.BytesIO(b"a,b\n1,2\n"), memory=20)


def test_the_estimate_of_memory_grows_with_the_table(tmp_path):
    plain, zipped = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    text = some_text(30_000).encode()
    plain.write_bytes(text)
    table = open_table(plain, ignore=["id"], batch_rows=1000)
    write_table(table, zipped)
    assert 2 * len(text) < table.rows.memory_to_hold < 6 * len(text)
    # A zipped file counts by what it unpacks to.
    unzipped = open_table(zipped, ignore=["id"])
    assert unzipped.rows.memory_to_hold == pytest.approx(table.rows.memory_to_hold, rel=0.1)
    numbers = pa.table({name: np.zeros(1000) for name in "abc"})
    pq.write_table(numbers, tmp_path / "t.parquet")
    assert open_table(tmp_path / "t.parquet").rows.memory_to_hold == 2 * 8 * 3000


@pytest.mark.parametrize(("memory", "is_held"), [(48_000, True), (47_999, False), (None, True)])
def test_a_table_is_held_where_it_fits(tmp_path, memory, is_held):
    numbers = pa.table({name: np.zeros(1000) for name in "abc"})
    pq.write_table(numbers, tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", memory=memory)
    assert table.is_held == is_held
    assert sum(map(len, table.batches())) == 1000
    if not is_held:
        with pytest.raises(TableError, match=r"this needs the whole table .* --memory is 48\.0 KB"):
            open_table(tmp_path / "t.parquet", memory=memory, whole_for="this")


def test_the_estimate_of_memory_counts_cells_and_long_strings(tmp_path):
    text = some_text(2000)
    (tmp_path / "t.csv").write_text(text)
    # The characters twice, and twelve bytes for each of 2001 rows of 7 cells.
    expected = 2 * len(text) + 12 * 7 * 2001
    table = open_table(tmp_path / "t.csv", ignore=["id"])
    assert table.rows.memory_to_hold == pytest.approx(expected, rel=1e-3)
    words = [f"{i:0200}" for i in range(500)]
    cells = {"a": np.zeros(500), "b": np.zeros(500), "word": words}
    pq.write_table(pa.table(cells), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", ignore=["word"])
    assert table.rows.memory_to_hold > 8 * 1500 + 200 * 500


def test_small_batches_are_collected_to_groups_of_one_size(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(60.0), "b": np.arange(60.0) ** 2}), path)
    # Ten rows of two columns are 160 bytes: two batches make a group.
    monkeypatch.setattr("bsufs.tables._write._LARGEST_GROUP", 300)
    write_table(open_table(path, batch_rows=10), tmp_path / "o.parquet")
    about = pq.read_metadata(tmp_path / "o.parquet")
    assert [about.row_group(i).num_rows for i in range(about.num_row_groups)] == [20, 20, 20]
    assert pq.read_table(tmp_path / "o.parquet").equals(pq.read_table(path))


def test_arrays_and_changing_dictionaries_are_not_written_in_batches(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    words = pa.array(["u", "v", "w", "u"]).dictionary_encode()
    columns = {"a": [1, 2, 4, 3], "b": [1.0, 2, 3, 5], "c": words}
    pq.write_table(pa.table(columns), path, row_group_size=2)
    monkeypatch.setattr("bsufs.tables._write._LARGEST_GROUP", 1)
    stream = open_table(path, batch_rows=2, ignore=["c"])
    with pytest.raises(TableError, match=r"\.npz file cannot be written in batches"):
        write_table(stream, tmp_path / "o.npz")
    write_table(stream, tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet").column("c").to_pylist() == ["u", "v", "w", "u"]
    assert pq.read_metadata(tmp_path / "o.parquet").num_row_groups == 2
    monkeypatch.undo()
    write_table(open_table(path, ignore=["c"]), tmp_path / "o.feather")
    assert feather.read_table(tmp_path / "o.feather").column("c").to_pylist() == [
        "u",
        "v",
        "w",
        "u",
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_changes_during_the_last_pass_is_noticed(tmp_path, monkeypatch, name):
    for limit in ("_CELLS_AT_ONCE", "_FEWEST_ROWS"):
        monkeypatch.setattr(f"bsufs.tables._table.{limit}", 30)
    path = tmp_path / name
    if name == "t.csv":
        path.write_text(some_text(100))
    else:
        pq.write_table(pa.table({"id": range(100), "a": range(100), "b": range(100)}), path)
    stream = open_table(path, batch_rows=10, ignore=["id"])
    batches = stream.batches()
    next(batches)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(TableError, match="the file has changed while it was read"):
        list(batches)
    assert stream.n_rows == 100


def test_names_with_dots_are_no_nested_columns(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, 2], "a.b": [3.0, 4], "c": [5.0, 6]}), path)
    (cells,) = open_table(path).cells(["c", "a"])
    assert cells.to_pydict() == {"c": [5.0, 6], "a": [1.0, 2]}


def test_how_far_it_is_read_and_written_is_told(tmp_path):
    (tmp_path / "t.csv").write_text(some_text(900))
    told = []
    table = open_table(tmp_path / "t.csv", ignore=["id"], batch_rows=100, progress=told.append)
    assert told[0].endswith("KB")
    assert told[-1] == "900 rows"
    told.clear()
    write_table(table, tmp_path / "small.csv", [0])
    assert told[-1] == "900 of 900 rows"


@pytest.mark.parametrize("odd", ["  NA", "\t7.5 ", "n/A"])
def test_a_cell_that_is_written_in_another_way_late_in_a_file(tmp_path, odd):
    X = np.random.default_rng(0).standard_normal((4000, 3)).round(3)
    lines = ["a,b,c", *(",".join(map(str, row)) for row in X)]
    lines[3001] = f"1,{odd},2"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    X[3000] = [1, 7.5 if "7.5" in odd else np.nan, 2]
    for batch_rows in (None, 50):
        table = open_table(tmp_path / "t.csv", batch_rows=batch_rows, missing="keep")
        np.testing.assert_array_equal(np.concatenate(list(table.batches())), X)


def test_kinds_gaps_and_scales_take_one_pass(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(some_text(3000).replace("id,", "n,", 1))
    passes = []
    read = TextRows.batches
    monkeypatch.setattr(
        TextRows, "batches", lambda self, *names: passes.append(names) or read(self, *names)
    )
    table = open_table(
        tmp_path / "t.csv", ignore=["n"], strict=False, scale="standard", batch_rows=100
    )
    assert len(passes) == 1
    values = np.concatenate(list(table.batches()))
    np.testing.assert_allclose(values.std(axis=0), 1.0)


def test_infinite_values_that_are_kept_do_not_count_for_the_scale(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,5\n3,inf\n5,7\n")
    table = open_table(tmp_path / "t.csv", missing="keep", scale="standard")
    np.testing.assert_allclose(table.values[[0, 2], 1], [-1, 1])
    assert np.isinf(table.values[1, 1])
