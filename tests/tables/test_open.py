import bz2
import contextlib
import gzip
import io
import lzma
import struct
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.io import savemat

from bsufs.tables import TableError, open_table, write_table


def _text(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return open_table(io.BytesIO(data), **{"strict": True, **options})


def test_numbers_names_and_carried_columns_come_apart():
    table = _text("id,a,y,b\nu,1,red,2.50\nv,3,blue,4\n", ignore=["id"], label="y")
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, 4]])
    assert table.others["id"].tolist() == ["u", "v"]
    assert table.carried_names == ("id", "y")
    assert table.notices == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("a,b\n", "header of 2 names, but no row"),
        ("a\n1\n", "one column when split at ','"),
        ("a-b\n1-2\n", "one column when split at ','"),
        ("a,b,a\n1,2,3\n", "'a' occurs more than once"),
        ("a,b,\n1,2,3\n", "column 3 of 3 has no name"),
        (
            "Sales 2024,,\n,,\na,b,c\n1,2,3\n",
            "2 of 3 columns have no name in the first line. If a title",
        ),
        ("a,b\n1,x\n", "column 'b' holds text, such as 'x' in row 1"),
        ("a,b,c\n1,x,2\n1,2,y\n", "--ignore b,c"),
        ("a,b,c,d,e,f\n" + "x,x,x,x,x,x\n", "--ignore @FILE, a name in each line"),
        ("a,b\n1,2001-01-01\n", "--ignore b"),
        ("a,b\n1,true\n2,7\n", "such as 'true' in row 1"),
        ('a,b\n1,"1,234"\n', "'1,234' in column 'b' (row 1); commas between thousands are"),
        ("a;b\n1;1,5\n", "write 1.5"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 values, but the first line has 2"),
        ("a,b\n1,2\0\n", "zero bytes"),
        (b"PAR1\0\0", "a Parquet file: name it .parquet"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "truncated or damaged"),
        (b"\xff\xfea", "begins as UTF-16"),
    ],
)
def test_what_is_wrong_with_text_is_said_in_one_line(text, words):
    with pytest.raises(TableError) as caught:
        _text(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfa,b\n1,2\n",
        "a,b\n1,2\n".encode("utf-16"),
        b"a;b\r\n1;2\r\n",
        b"\n\na\tb\r1\t2\r",
        b"a|b\n 1 | 2\n\n",
        gzip.compress(b"a,b\n1,2\n", mtime=0),
        b'"a","b"\n"1","+2"\n',
    ],
)
def test_marks_and_line_ends_of_all_kinds_are_read(text):
    table = _text(text)
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2]])


def test_latin_1_is_read_with_a_notice():
    table = _text("größe,b\n1,2\n".encode("latin-1"))
    assert table.names == ("größe", "b")
    assert "read as Latin-1" in table.notices[0]


def test_words_for_missing_and_for_truth():
    table = _text("a,b,c\nNA,True,\n1,false,null\n2,?,3\n", missing="keep")
    np.testing.assert_array_equal(
        table.values, [[np.nan, 1, np.nan], [1, 0, np.nan], [2, np.nan, 3]]
    )


def test_an_unnamed_first_column_is_row_names():
    table = _text(",a,b\nr1,1,2\n")
    assert (table.names, table.others[""].tolist()) == (("a", "b"), ["r1"])
    assert "row names" in table.notices[0]


def test_options_of_text():
    assert _text("1,2\n3,4\n", header=False).names == ("x0", "x1")
    with pytest.raises(TableError, match="one character"):
        _text("a,b\n1,2\n", delimiter=",,")
    with pytest.raises(TableError, match="--array is for"):
        _text("a,b\n1,2\n", array="X")
    with pytest.raises(TableError, match="Did you mean 'id'"):
        _text("id,a,b\n1,2,3\n", ignore=["idd"])
    with pytest.raises(TableError, match="Did you mean 'Mass'"):
        _text("id,Mass,b\n1,2,3\n", ignore=["MASS"])
    with pytest.raises(TableError, match="There are 'a', 'b'"):
        _text("a,b\n1,2\n", label="zzz")
    with pytest.raises(TableError, match="at least two columns of numbers"):
        _text("a,b\n1,2\n", ignore=["a"])


def test_a_terminal_is_not_waited_for(monkeypatch):
    stream = io.BytesIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    with pytest.raises(TableError, match="is a terminal"):
        open_table("-")


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_table(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError):
        open_table(tmp_path / "none.xyz")
    with pytest.raises(IsADirectoryError):
        open_table(tmp_path)
    (tmp_path / "a.xyz").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="the extension must say"):
        open_table(tmp_path / "a.xyz")


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.npy", "a.npz", "a.mat"])
def test_foreign_bytes_are_no_table(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"nothing of the kind" * 20)
    with pytest.raises(TableError, match=r"cannot be read as a|never unpickled"):
        open_table(path)


def test_columns_keep_their_types(tmp_path):
    frame = pd.DataFrame({"i": [1, 2], "x": [0.5, None], "c": pd.Categorical(["a", "b"])})
    frame.index = ["r", "s"]
    frame.to_parquet(tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", ignore=["c"], missing="keep")
    assert table.names == ("i", "x")
    assert table.carried_names == ("c", "__index_level_0__")
    (cells,) = table.cells(table.names)
    assert [str(kind) for kind in cells.schema.types] == ["int64", "double"]
    with pytest.raises(TableError, match="'c' holds text"):
        open_table(tmp_path / "t.parquet", strict=True)
    pq.write_table(pa.table({"a": [1], "d": [pd.Timestamp("2020-01-01")]}), tmp_path / "d.parquet")
    with pytest.raises(TableError, match="'d' holds text"):
        open_table(tmp_path / "d.parquet", strict=True)
    pq.write_table(pa.table({"a": pa.array([], pa.int8()), "b": []}), tmp_path / "e.parquet")
    with pytest.raises(TableError, match="no rows"):
        open_table(tmp_path / "e.parquet")


def test_arrays_and_the_vectors_beside_them(tmp_path):
    X, y = np.arange(12).reshape(4, 3), np.array([0, 0, 1, 1])
    savemat(tmp_path / "a.mat", {"X": X, "Y": y[:, None]})
    table = open_table(tmp_path / "a.mat", label="Y")
    np.testing.assert_array_equal(table.values, X)
    assert table.others["Y"].tolist() == y.tolist()
    assert "'Y' not used" in open_table(tmp_path / "a.mat").notices[0]
    np.savez(tmp_path / "two.npz", A=X, B=X + 1)
    with pytest.raises(TableError, match="name one matrix with --array; there are 'A'"):
        open_table(tmp_path / "two.npz")
    assert open_table(tmp_path / "two.npz", array="B", ignore=["x1"]).values[0].tolist() == [1, 3]
    with pytest.raises(TableError, match="got 'C'"):
        open_table(tmp_path / "two.npz", array="C")
    np.savez(tmp_path / "none.npz", v=y)
    with pytest.raises(TableError, match="no matrix of numbers"):
        open_table(tmp_path / "none.npz")
    sparse.save_npz(tmp_path / "s.npz", sparse.csc_matrix(X))
    found = open_table(tmp_path / "s.npz", ignore=["x0"])
    assert sparse.issparse(found.values)
    np.testing.assert_array_equal(found.values.toarray(), X[:, 1:])


def test_arrays_that_are_no_table(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3))
    with pytest.raises(TableError, match="must be a matrix"):
        open_table(path)
    np.save(path, np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="never unpickled"):
        open_table(path)
    np.save(path, np.empty((0, 3)))
    with pytest.raises(TableError, match="no rows"):
        open_table(path)
    (tmp_path / "b.npz").write_bytes(path.read_bytes())
    with pytest.raises(TableError, match=r"name it .npy"):
        open_table(tmp_path / "b.npz")
    with (tmp_path / "c.npy").open("wb") as stream:
        np.savez(stream, X=np.eye(3))
    with pytest.raises(TableError, match=r"name it .npz"):
        open_table(tmp_path / "c.npy")


def test_anndata_or_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "a.h5ad"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(TableError, match=r'pip install "bsufs\[h5ad\]"'):
        open_table(path)


def test_broken_archives(tmp_path):
    parts = {"indices": [0], "indptr": [0, 9], "format": np.array(b"csr"), "shape": [1, 2]}
    np.savez(tmp_path / "s.npz", data=np.ones(1), **parts)
    with pytest.raises(TableError, match="cannot be read as a NumPy"):
        open_table(tmp_path / "s.npz")
    np.savez(tmp_path / "o.npz", X=np.array([[{}]], dtype=object))
    with pytest.raises(TableError, match="never unpickled"):
        open_table(tmp_path / "o.npz")
    (tmp_path / "v73.mat").write_bytes(b"MATLAB 7.3".ljust(124) + b"\x00\x02IM" + bytes(100))
    pytest.importorskip("h5py", reason="h5py is not installed")
    with pytest.raises(TableError, match="cannot be read as a MATLAB file"):
        open_table(tmp_path / "v73.mat")


def _write_version_73(path, **arrays):
    """Write arrays as MATLAB lays them out in HDF5: turned, below a header of 512 bytes."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            if sparse.issparse(value):
                file.create_group(name).attrs["MATLAB_sparse"] = value.shape[0]
                for part, content in (("data", "data"), ("ir", "indices"), ("jc", "indptr")):
                    file[name][part] = getattr(value, content)
            else:
                file[name] = np.atleast_2d(value).T
            kind = "double" if value.dtype.kind == "f" else "char"
            file[name].attrs["MATLAB_class"] = np.bytes_(kind)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def test_matlab_files_of_version_73(tmp_path):
    X, y = np.arange(12.0).reshape(4, 3), np.array([1.0, 2, 1, 2])
    _write_version_73(tmp_path / "a.mat", X=X, y=y, told=np.array([[72, 105]], dtype=np.uint16))
    table = open_table(tmp_path / "a.mat", label="y", strict=True)
    np.testing.assert_array_equal(table.values, X)
    assert table.others["y"].tolist() == y.tolist()
    _write_version_73(tmp_path / "s.mat", S=sparse.csc_array(X * (X > 4)))
    np.testing.assert_array_equal(open_table(tmp_path / "s.mat").values.toarray(), X * (X > 4))


def test_what_to_install_for_matlab_files_of_version_73(tmp_path, monkeypatch):
    (tmp_path / "a.mat").write_bytes(b"MATLAB 7.3".ljust(124) + b"\x00\x02IM" + bytes(100))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"'-v7' needs h5py: pip install \"bsufs\[h5ad\]\""):
        open_table(tmp_path / "a.mat")


def test_a_vector_with_the_name_of_a_feature(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), x1=np.arange(3))
    with pytest.raises(TableError, match="'x1' is a feature and a vector"):
        open_table(tmp_path / "a.npz", label="x1")


# What anndata says of pandas is no business of this package.
@pytest.mark.filterwarnings("default")
def test_counts_of_anndata(tmp_path):
    anndata = pytest.importorskip("anndata", reason="needs the extra h5ad")
    # Objects: every version of anndata can write them, whatever pandas makes of text by itself.
    rows, columns = (
        pd.Index(names, dtype=object) for names in (["r", "s", "t"], ["g1", "g2", "g3"])
    )
    kinds = pd.DataFrame({"kind": pd.Categorical(["a", "b", "a"])}, index=rows)
    data = anndata.AnnData(sparse.csr_matrix(np.eye(3)), obs=kinds, var=pd.DataFrame(index=columns))
    data.write_h5ad(tmp_path / "a.h5ad")
    table = open_table(tmp_path / "a.h5ad", label="kind")
    assert table.names == ("g1", "g2", "g3")
    assert table.carried_names == ("obs_names", "kind")
    np.testing.assert_array_equal(table.values.toarray(), np.eye(3))


GAPS = "a,b,c\n1,2,3\n,5,6\n7,inf,9\n10,11,13\n"


@pytest.fixture(params=["held", "in batches"])
def gappy(request, tmp_path):
    """Return a function that opens a text, held or in batches."""

    def open_text(text, **options):
        path = tmp_path / "t.csv"
        path.write_text(text)
        batch_rows = None if request.param == "held" else 2
        return open_table(path, **{"batch_rows": batch_rows, "strict": True, **options})

    return open_text


def _values(table):
    return np.concatenate(list(table.batches()))


def test_missing_and_infinite_values_alike(gappy):
    words = "1 value is missing and 1 value is infinite, the first in row 2 of column 'a'"
    with pytest.raises(TableError, match=words):
        _values(gappy(GAPS))
    filled = gappy(GAPS, missing="median")
    assert _values(filled)[[1, 2], [0, 1]].tolist() == [7, 5]
    assert (filled.missing.n_missing, filled.missing.n_infinite) == (1, 1)
    assert filled.gaps == {"a": 1, "b": 1}
    shorter = gappy(GAPS, missing="drop-rows")
    np.testing.assert_array_equal(_values(shorter), [[1, 2, 3], [10, 11, 13]])
    assert (shorter.missing.n_rows_dropped, shorter.n_rows) == (2, 2)
    assert [cell for batch in shorter.cells(["b"]) for cell in batch[0].to_pylist()] == ["2", "11"]
    with pytest.raises(TableError, match="would leave 1 of 3"):
        gappy(GAPS, missing="drop-columns")
    narrow = gappy("a,b,c\n,2,3\n4,5,6\n", missing="drop-columns")
    assert (narrow.names, narrow.missing.columns_dropped) == (("b", "c"), ("a",))
    np.testing.assert_array_equal(_values(narrow), [[2, 3], [5, 6]])
    with pytest.raises(TableError, match="every row has a gap"):
        gappy("a,b\n,1\n2,\n", missing="drop-rows")
    with pytest.raises(TableError, match="'a', 'b' has none"):
        gappy("a,b\n,\n,\n", missing="median")


def test_scaled_numbers_have_mean_zero_and_variance_one(gappy):
    table = gappy(GAPS, missing="median", scale="standard")
    values = _values(table)
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(values.std(axis=0), 1.0)
    np.testing.assert_array_equal(np.concatenate(list(table.batches([2, 0]))), values[:, [2, 0]])


def test_scaled_numbers_are_the_same_to_a_bit_in_batches(tmp_path):
    X = np.random.default_rng(0).standard_normal((3000, 4)) * 10.0 ** np.arange(4)
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d", comments="")
    held, streamed = (
        open_table(tmp_path / "t.csv", scale="standard", batch_rows=rows) for rows in (None, 77)
    )
    np.testing.assert_array_equal(_values(held), _values(streamed))


def test_sparse_numbers_are_scaled_without_a_mean(tmp_path):
    X = np.array([[0.0, 2, 0], [3, 0, 1], [4, 0, 3]])
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_matrix(X))
    table = open_table(tmp_path / "s.npz", scale="standard")
    np.testing.assert_allclose(table.values.toarray(), X / X.std(axis=0))


def test_missing_values_of_a_sparse_matrix(tmp_path):
    X = np.array([[0.0, 2, 0], [np.nan, 0, 1], [4, 0, 3]])
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_matrix(X))
    filled = open_table(tmp_path / "s.npz", missing="median")
    X[1, 0] = 2
    np.testing.assert_array_equal(filled.values.toarray(), X)
    shorter = open_table(tmp_path / "s.npz", missing="drop-rows")
    np.testing.assert_array_equal(shorter.values.toarray(), X[[0, 2]])


def test_numbers_of_unusual_precision(tmp_path):
    for kind in (np.float16, np.longdouble):
        np.save(tmp_path / "t.npy", np.eye(3, dtype=kind))
        table = open_table(tmp_path / "t.npy")
        np.testing.assert_array_equal(table.values, np.eye(3))
        assert next(table.cells(["x1"]))[0].to_pylist() == [0, 1, 0]


PLAIN = b"a,b\n1,2\n3,5\n"


def _zip(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            # With the time of packing in them, the names of tests would differ between processes.
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.bz2", bz2.compress(PLAIN)),
        ("t.csv.xz", lzma.compress(PLAIN)),
        ("t.csv.zip", _zip({"t.csv": PLAIN})),
        ("t.csv", PLAIN.replace(b",", b";")),
        ("t.csv", b"sep=;\n" + PLAIN.replace(b",", b";")),
        ("t.csv", b"# made by\n# a program, with care, and commas\n" + PLAIN),
        ("t.tsv", b"#a\tb\n1\t2\n3\t5\n"),
        ("t.csv", b'"a"\t"b"\n1\t2\n3\t5\n'),
    ],
)
def test_packings_marks_and_comments(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    table = open_table(tmp_path / name)
    assert [name.lstrip("#") for name in table.names] == ["a", "b"]
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 5]])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bz2.compress(PLAIN)[:-6], "truncated or damaged"),
        (b"BZh9" + b"x" * 40, "damaged"),
        (lzma.compress(PLAIN)[:-9], "truncated or damaged"),
        (_zip({"t.csv": PLAIN})[:-30], "truncated or damaged"),
        (_zip({"t.csv": PLAIN, "u.csv": PLAIN}), "must hold one text file"),
        (_zip({}), "truncated or damaged|must hold one|zero bytes"),
        (_zip({"t.png": PLAIN}), "but holds 't.png'"),
        (b"# only\n# comments\n", "one column|no row"),
    ],
)
def test_what_is_wrong_with_a_packing(content, words):
    with pytest.raises(TableError, match=words):
        _text(content)


def test_the_header_of_r_names_no_row_names():
    table = _text("a b\nr1 1 2\nr2 3 4\n", delimiter=" ")
    assert table.names == ("a", "b")
    assert table.others[""].tolist() == ["r1", "r2"]


def test_a_first_line_of_numbers_is_noticed():
    assert "use --no-header" in _text("1,2\n3,4\n").notices[0]
    assert _text("1,b\n3,4\n").notices == ()


def test_a_format_may_be_told(tmp_path):
    (tmp_path / "t").write_bytes(PLAIN)
    assert open_table(tmp_path / "t", file_format="csv").names == ("a", "b")
    with pytest.raises(TableError, match="--format csv"):
        open_table(tmp_path / "t")
    with pytest.raises(TableError, match="--format 'docx' is not known"):
        open_table(tmp_path / "t", file_format="docx")
    with pytest.raises(TableError, match="Download it"):
        open_table("https://example.org/t.csv")


def test_options_of_text_are_refused_elsewhere(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(TableError, match="--delimiter is for text only"):
        open_table(tmp_path / "a.npy", delimiter=";")
    with pytest.raises(TableError, match="--no-header is for text only"):
        open_table(tmp_path / "a.npy", header=False)


def test_sheets_of_a_workbook(tmp_path):
    pytest.importorskip("openpyxl", reason="needs the extra excel")
    frame = pd.DataFrame({"a": [1, 3, 9], "b": [2.5, 4, None], "c": ["x", "y", "x"]})
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="first", index=False)
        (10 * frame[["a", "b"]]).to_excel(book, sheet_name="second", index=False)
    table = open_table(tmp_path / "t.xlsx", missing="keep")
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, frame[["a", "b"]])
    assert open_table(tmp_path / "t.xlsx", array="second").values[0].tolist() == [10, 25]
    with pytest.raises(TableError, match="there are 'first', 'second'"):
        open_table(tmp_path / "t.xlsx", array="third")
    (tmp_path / "u.xlsx").write_bytes(b"nothing of the kind")
    with pytest.raises(TableError, match="cannot be read as a spreadsheet"):
        open_table(tmp_path / "u.xlsx")


def test_rows_may_be_the_features(tmp_path):
    table = _text("gene,s1,s2,s3\ng1,1,2,3\ng2,4,,6\n", transpose=True, missing="keep")
    assert table.names == ("g1", "g2")
    np.testing.assert_array_equal(table.values, [[1, 4], [2, np.nan], [3, 6]])
    assert table.others[""].tolist() == ["s1", "s2", "s3"]
    with pytest.raises(TableError, match="'s2' holds text"):
        _text("gene,s1,s2\ng1,1,x\ng2,4,5\n", transpose=True)
    with pytest.raises(TableError, match="'g1' occurs more than once"):
        _text("gene,s1,s2\ng1,1,2\ng1,4,5\n", transpose=True)
    with pytest.raises(TableError, match="column 2 of 2 has no name"):
        _text("gene,s1,s2\ng1,1,2\n,4,5\n", transpose=True)
    pq.write_table(pa.table({}), tmp_path / "none.parquet")
    with pytest.raises(TableError, match="at least two columns"):
        open_table(tmp_path / "none.parquet", transpose=True)


def test_rows_of_a_matrix_may_be_the_features(tmp_path):
    X = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "t.npy", X)
    np.savez(tmp_path / "t.npz", X=X, feature_names=np.array(list("abcd")), kind=np.arange(4))
    savemat(tmp_path / "t.mat", {"X": X, "kind": np.arange(4), "part": np.arange(3)})
    for name, carried in (("t.npy", []), ("t.npz", ["kind", ""]), ("t.mat", ["kind"])):
        table = open_table(tmp_path / name, transpose=True, ignore=["kind"] if carried else [])
        assert table.names == ("x0", "x1", "x2")
        assert sorted(table.others.columns) == sorted(carried)
        np.testing.assert_array_equal(table.values, X.T)
    assert open_table(tmp_path / "t.npz", transpose=True).others[""].tolist() == list("abcd")


def test_sparse_rows_may_be_the_features(tmp_path):
    X = sparse.csr_array(np.array([[7.0, 1, 0, 2], [8, 0, 3, 0], [9, 4, 0, 0]]))
    sparse.save_npz(tmp_path / "s.npz", X)
    table = open_table(tmp_path / "s.npz", transpose=True)
    assert table.names == ("x0", "x1", "x2")
    assert sparse.issparse(table.values)
    np.testing.assert_array_equal(table.values.toarray(), X.toarray().T)


def test_blanks_stand_between_the_cells_that_r_writes():
    table = _text('"a" "b c"\n"r 1" 1 2\n"r2" 3 4\n')
    assert table.names == ("a", "b c")
    assert table.others[""].tolist() == ["r 1", "r2"]
    assert _text("# by me\na b c\n1 2 3\n4 5 7\n").names == ("a", "b", "c")
    assert _text("a b,c\n1,2\n3,4\n").names == ("a b", "c")


def test_the_member_of_an_archive_says_what_it_is(tmp_path):
    (tmp_path / "t.zip").write_bytes(_zip({"t.tsv": b"a\tb\n1\t2\n3\t5\n"}))
    assert open_table(tmp_path / "t.zip").values.tolist() == [[1, 2], [3, 5]]
    (tmp_path / "u.zip").write_bytes(_zip({"t.bin": b"a\tb\n"}))
    with pytest.raises(TableError, match="must hold one text file"):
        open_table(tmp_path / "u.zip")


def test_a_damaged_matlab_file_is_an_error_and_no_crash(tmp_path):
    path, X = tmp_path / "a.mat", np.random.default_rng(0).standard_normal((5, 3))
    savemat(path, {"X": X, "S": sparse.csc_array(X), "t": "text", "c": {"a": 1}, "z": 1j * X})
    whole = path.read_bytes()
    assert open_table(path, array="X").n_features == 3
    # Bytes that say of what type a part is and how long: those of numbers may be anything.
    for place in range(128, len(whole)):
        if whole[place] in (*range(1, 19), 120):
            path.write_bytes(
                whole[:place] + bytes([(whole[place] + 100) % 256]) + whole[place + 1 :]
            )
            with contextlib.suppress(TableError):
                open_table(path, array="X")
    path.write_bytes(
        whole.replace(struct.pack("<II", 9, X.nbytes), struct.pack("<II", 0, X.nbytes))
    )
    with pytest.raises(TableError, match=r"cannot be read as a MATLAB file.*types"):
        open_table(path)


def test_a_sparse_matrix_with_rows_that_do_not_exist_is_refused(tmp_path):
    X = sparse.csc_matrix(np.eye(4))
    X.indices[1] = 10**6
    savemat(tmp_path / "a.mat", {"X": X})
    with pytest.raises(TableError, match="cannot be read as a MATLAB file"):
        open_table(tmp_path / "a.mat")


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_files_are_read_whatever_else_they_hold(tmp_path, compressed):
    X = np.arange(12.0).reshape(4, 3)
    others = {"cells": np.array([[1], "a"], dtype=object), "s": {"a": X}}
    savemat(tmp_path / "a.mat", {**others, "X": X, "y": np.arange(4)}, do_compression=compressed)
    table = open_table(tmp_path / "a.mat", label="y")
    np.testing.assert_array_equal(table.matrix(range(3)), X)
    savemat(tmp_path / "b.mat", others, do_compression=compressed)
    with pytest.raises(TableError, match="holds 'cells', 's'"):
        open_table(tmp_path / "b.mat")


def test_a_column_without_a_text_is_refused_before_anything_is_written(tmp_path, capfdbinary):
    columns = {"a": [1.0, 2.0, 4.0], "b": [{"q": 1}] * 3, "c": [3.0, 1.0, 2.0]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="'b' of type struct"):
        write_table(open_table(tmp_path / "a.parquet"), "-")
    assert capfdbinary.readouterr().out == b""
