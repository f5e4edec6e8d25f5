import csv
import errno
import gzip
import io
import os
import signal
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from bsufs._atomic import check_target, checked_write
from bsufs.tables import TableError, open_table, write_table
from bsufs.tables._write import _write_text, needs_whole_table

ODD = "<script>alert(1)</script>"


def _text(text, **options):
    return open_table(io.BytesIO(text.encode()), missing="keep", **options)


def test_kept_cells_keep_their_characters(tmp_path):
    table = _text("id,a,b,c,y\n007,1.50,+2,1e3,x\n008,-0.0,,4,y\n", ignore=["id"], label="y")
    write_table(table, tmp_path / "t.csv", [2, 0])
    assert (tmp_path / "t.csv").read_text() == "id,a,c,y\n007,1.50,1e3,x\n008,-0.0,4,y\n"
    write_table(table, tmp_path / "r.tsv.gz", [2, 0], order="rank")
    text = gzip.decompress((tmp_path / "r.tsv.gz").read_bytes())
    assert text == b"id\ty\tc\ta\n007\tx\t1e3\t1.50\n008\ty\t4\t-0.0\n"


@given(
    st.lists(
        st.tuples(*[st.text(st.sampled_from('a,;"\r\n é\t'), max_size=3)] * 3),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(",;\t"),
    st.integers(1, 3),
)
@settings(max_examples=150, deadline=None)
def test_rows_have_quotes_where_the_csv_module_sets_them(rows, delimiter, width):
    cells = [list(column)[:width] for column in rows]
    columns = [pa.array(column) for column in zip(*cells, strict=True)]
    names = list("abc")[:width]
    found, expected = io.BytesIO(), io.StringIO()
    _write_text([pa.record_batch(columns, names=names)], names, found, delimiter)
    csv.writer(expected, delimiter=delimiter).writerows([names, *cells])
    # The module ends a line with two characters, and a file of ours with one.
    again = csv.reader(io.StringIO(found.getvalue().decode(), newline=""), delimiter=delimiter)
    assert list(again) == [names, *cells]
    if not any("\r\n" in cell for row in cells for cell in row):
        assert found.getvalue().decode() == expected.getvalue().replace("\r\n", "\n")


def test_equal_tables_give_equal_zipped_files(tmp_path):
    table = _text("a,b\n1,2\n3,4\n")
    for name in ("one.csv.gz", "other.csv.gz"):
        write_table(table, tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("one.csv.gz", "other.csv.gz"))
    assert first == second
    # Neither a time nor a name of the file in the header.
    assert first[3:8] == bytes(5)
    assert gzip.decompress(first) == b"a,b\n1,2\n3,4\n"


def test_text_gets_types_where_no_character_is_lost(tmp_path):
    table = _text("id,n,a,b,z\n007,1,1,2.0,NA\n008,2,2,0.5,3\n", ignore=["id", "n"])
    for name in ("t.parquet", "t.feather"):
        write_table(table, tmp_path / name)
        again = open_table(tmp_path / name, ignore=["id", "n"], missing="keep")
        np.testing.assert_array_equal(again.values, table.values)
        (cells,) = again.cells(["id", "n", "a", "b", "z"])
        types = ["string", "int64", "int64", "double", "double"]
        assert [str(kind) for kind in cells.schema.types] == types


def test_arrays_out(tmp_path):
    table = _text("id,a,b\nu,1,2\nv,3,4\n", ignore=["id"])
    write_table(table, tmp_path / "t.npy")
    assert np.load(tmp_path / "t.npy").dtype.kind == "i"
    write_table(table, tmp_path / "t.npz")
    again = open_table(tmp_path / "t.npz")
    assert (again.names, again.others["id"].tolist()) == (("a", "b"), ["u", "v"])
    X = sparse.random(5, 4, density=0.5, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "s.npz", X)
    part = open_table(tmp_path / "s.npz")
    write_table(part, tmp_path / "p.npz", [3, 1])
    np.testing.assert_array_equal(
        sparse.load_npz(tmp_path / "p.npz").toarray(), X.toarray()[:, [1, 3]]
    )
    write_table(part, tmp_path / "p.csv", [3, 1])
    np.testing.assert_array_equal(open_table(tmp_path / "p.csv").values, X.toarray()[:, [1, 3]])
    write_table(part, tmp_path / "p.npy", [3, 1])
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), X.toarray()[:, [1, 3]])
    write_table(open_table(tmp_path / "p.npy"), tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_text().startswith("x0,x1\n")


def test_nested_columns_are_no_text(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [2], "l": [[1, 2]]}), tmp_path / "l.parquet")
    table = open_table(tmp_path / "l.parquet", ignore=["l"])
    with pytest.raises(TableError, match="'l' of type list"):
        write_table(table, tmp_path / "l.csv")
    assert os.listdir(tmp_path) == ["l.parquet"]


# Surrogates are no text, NUL no character of it, and a first mark is that of the byte order.
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), min_size=1, max_size=8
).filter(lambda name: name.strip() and not name.startswith("__index_level_"))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    names=st.lists(
        NAMES | st.sampled_from([ODD, 'a"b', "a,b", "a\nb", "a\rb", "=1+1"]),
        min_size=3,
        max_size=5,
        unique=True,
    ),
    rows=st.lists(
        st.lists(st.floats(allow_nan=False), min_size=5, max_size=5), min_size=1, max_size=4
    ),
    ids=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
        min_size=4,
        max_size=4,
    ),
)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.feather", "t.npz"])
def test_what_is_written_is_read_again(tmp_path, name, names, rows, ids):
    columns = {key: pa.array([row[i] for row in rows]) for i, key in enumerate(names[1:])}
    pq.write_table(pa.table({names[0]: ids[: len(rows)], **columns}), tmp_path / "in.parquet")
    table = open_table(tmp_path / "in.parquet", ignore=[names[0]], missing="keep")
    write_table(table, tmp_path / name, force=True)
    again = open_table(tmp_path / name, ignore=[names[0]], missing="keep")
    assert again.names == table.names
    np.testing.assert_array_equal(again.values, table.values)
    kept = [cell for batch in again.cells([names[0]]) for cell in batch[0].to_pylist()]
    assert kept == ids[: len(rows)]


def test_an_old_file_is_only_replaced_when_asked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(ValueError, match="--force"):
        write_table(_text("a,b\n1,2\n"), path)
    assert path.read_text() == "old"
    (tmp_path / "link.csv").symlink_to(path)
    write_table(_text("a,b\n1,2\n"), tmp_path / "link.csv", force=True)
    assert path.read_text() == "a,b\n1,2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "link.csv").is_symlink()


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("place", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch, failure, place):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, place, fail)
    with pytest.raises(type(failure)):
        write_table(_text("a,b\n1,2\n"), path, force=True)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather", "t.npz", "t.npy"])
def test_a_file_that_may_not_grow_leaves_nothing(tmp_path, name):
    table = _text("a,b\n" + "\n".join(f"{hash(i)},{i * 0.1}" for i in range(20_000)) + "\n")
    resource = pytest.importorskip("resource", reason="files have no limits here")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, former[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_table(table, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, ignored)
    assert os.listdir(tmp_path) == []


def test_targets_are_checked_before_the_work(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="this is a folder"):
        check_target(_folder(tmp_path, "d.csv"), force=False)
    with pytest.raises(ValueError, match="there is no folder"):
        check_target(tmp_path / "none" / "t.csv", force=False)
    with pytest.raises(TableError, match="extension must say what to write"):
        needs_whole_table(tmp_path / "t.xlsx")
    assert not needs_whole_table("-")
    assert needs_whole_table("t.NPZ")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="cannot be written to"):
        check_target(tmp_path / "t.csv", force=False)


def _folder(parent, name):
    (parent / name).mkdir()
    return parent / name


def test_a_pipe_is_written_to_directly():
    reading, writing = os.pipe()
    with checked_write(f"/dev/fd/{writing}", force=False) as stream:
        stream.write(b"through")
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read() == b"through"
