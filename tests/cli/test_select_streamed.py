import csv
import gzip
import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from bsufs.tables import Table

# So small that every table here is read in many batches.
SMALL = ("--memory", "100KB")
N_ROWS = 900


@pytest.fixture(scope="module")
def numbers():
    """Return a table with an identifier, classes, truth values, integers and a constant column."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, N_ROWS)
    X = rng.standard_normal((N_ROWS, 3)) @ rng.standard_normal((3, 9)) * np.linspace(1, 3, 9)
    X += rng.standard_normal(X.shape) * 0.3
    X[:, 2] += 2 * kind
    frame = pd.DataFrame(X, columns=list("abcdefghi")).round(6)
    frame.insert(0, "id", [f"s{i}" for i in range(N_ROWS)])
    frame["whole"] = rng.integers(-4, 9, N_ROWS)
    frame["yes"] = np.where(rng.uniform(size=N_ROWS) < 0.4, "true", "False")
    frame["same"] = 7
    frame["kind"] = np.array(["red, dark", 'so "called"', "blue"])[kind]
    return frame


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=100, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def both_ways(invoke, path, out, *words):
    """Run at once and in batches; return both results and what both wrote."""
    results, written = [], []
    for memory in ((), SMALL):
        document = out.with_name("result.json")
        files = ("-o", out, "--json", document)
        method = () if "--method" in words else ("--method", "BSUFS")
        result = invoke("select", path, "-k", 4, *method, *words, *files, "--force", *memory)
        assert result.status == 0, result.err
        assert ("is read in batches of" in result.err) == bool(memory)
        results.append(json.loads(document.read_text()))
        written.append(out.read_bytes())
    return results, written


def same_values(one, other, name):
    read = {".parquet": pq.read_table, ".feather": feather.read_table}.get(name[1:])
    if read is not None:
        one, other = (read(io.BytesIO(data)) for data in (one, other))
        return one.schema.equals(other.schema) and one.equals(other)
    return one == other


def test_how_much_memory_there_is_does_not_change_the_selection(invoke, tmp_path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    # More rows than the default method clusters, so that those drawn must be the same.
    values = rng.standard_normal((5000, 6)) + 3.0 * (np.arange(5000)[:, None] % 3 == range(6))
    np.savetxt(path, values, delimiter=",", header="a,b,c,d,e,f", comments="", fmt="%.4f")
    found = [
        invoke("select", path, "-k", 3, "--json", "-", *memory)
        for memory in ((), ("--memory", "100kB"))
    ]
    assert ["read in batches" in result.err for result in found] == [False, True]
    at_once, in_batches = (json.loads(result.out) for result in found)
    assert at_once["method"] == in_batches["method"] == "ClusterAlignment"
    for one, other in zip(at_once["selected"], in_batches["selected"], strict=True):
        assert one["name"] == other["name"]
        assert one["score"] == pytest.approx(other["score"], abs=1e-10)


@pytest.mark.parametrize("target", ["o.csv", "o.tsv.gz", "o.parquet", "o.feather"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet"])
def test_the_same_columns_and_the_same_file_as_at_once(invoke, numbers, tmp_path, name, target):
    frame = numbers
    if name == "t.parquet":
        frame = frame.assign(yes=frame["yes"] == "true")
    path = write(frame, tmp_path / name)
    words = ("--ignore", "id", "--label", "kind")
    results, written = both_ways(invoke, path, tmp_path / target, *words)
    at_once, in_batches = results
    assert [row["name"] for row in at_once["selected"]] == [
        row["name"] for row in in_batches["selected"]
    ]
    for key in ("score", "variance_share", "explained_variance"):
        np.testing.assert_allclose(
            [row[key] for row in in_batches["selected"]],
            [row[key] for row in at_once["selected"]],
            rtol=1e-8,
        )
    for key in ("n_rows", "n_features", "missing", "parameters"):
        assert at_once[key] == in_batches[key]
    assert same_values(*written, target)
    assert in_batches["clustering"] == {"selected": at_once["clustering"]["selected"]}


@pytest.mark.parametrize(
    "words",
    [
        ("--scale", "standard"),
        ("--must-keep", "same", "--never-keep", "c"),
        ("--order", "rank", "--set", "lambda_row=0.5"),
    ],
)
def test_options_do_the_same_in_batches(invoke, numbers, tmp_path, words):
    path = write(numbers, tmp_path / "t.csv")
    results, written = both_ways(
        invoke, path, tmp_path / "o.csv", "--ignore", "id", "--label", "kind", *words
    )
    assert [row["name"] for row in results[0]["selected"]] == [
        row["name"] for row in results[1]["selected"]
    ]
    assert written[0] == written[1]


@pytest.mark.parametrize("how", ["median", "drop-rows", "drop-columns"])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_missing_values_are_treated_as_at_once(invoke, numbers, tmp_path, name, how):
    frame = numbers.drop(columns="yes").astype({"whole": float})
    rng = np.random.default_rng(1)
    for column in ("b", "e"):
        frame.loc[rng.integers(0, N_ROWS, 9), column] = np.nan
    frame.loc[17, "g"] = np.inf
    path = write(frame, tmp_path / name)
    words = ("--ignore", "id", "--label", "kind", "--missing", how)
    results, written = both_ways(invoke, path, tmp_path / "o.parquet", *words)
    assert results[0]["missing"] == results[1]["missing"]
    assert results[0]["n_rows"] == results[1]["n_rows"]
    assert [row["name"] for row in results[0]["selected"]] == [
        row["name"] for row in results[1]["selected"]
    ]
    assert same_values(*written, "o.parquet")
    scaled, _ = both_ways(
        invoke, path, tmp_path / "o.csv", *words, "--scale", "standard", "--names",
        tmp_path / "names.txt",
    )  # fmt: skip
    assert scaled[0]["clustering"]["selected"] == scaled[1]["clustering"]["selected"]


def test_rows_at_the_ends_of_batches_are_left_out_too(invoke, tmp_path):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((400, 3)).round(4).astype(object)
    n_batch = 10_000 // (64 * 3)
    assert 2 < n_batch < 200
    for row in (n_batch - 1, 2 * n_batch, 3 * n_batch - 1, 3 * n_batch):
        values[row, row % 3] = ""
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    pd.DataFrame(values, columns=list("abc")).to_csv(path, index=False)
    complete = [line for line in path.read_text().splitlines() if "" not in line.split(",")]
    words = ("--missing", "drop-rows", "--scale", "standard", "--memory", "10KB")
    result = invoke("select", path, "-k", 3, "-o", out, *words)
    assert f"is read in batches of {n_batch} rows" in result.err
    assert out.read_text().splitlines() == complete
    # Said once, however often the file is gone through.
    assert result.err.count("4 values are missing: 4 rows left out") == 1


def spoil(frame, row, column, cell):
    frame = frame.astype({column: object})
    frame.loc[row, column] = cell
    return frame


@pytest.mark.parametrize(
    ("row", "column", "cell"),
    [
        (N_ROWS - 2, "c", "abc"),
        (1, "c", "1,234"),
        (700, "yes", "3"),
        (N_ROWS - 1, "a", ""),
        (400, "d", "inf"),
        (850, "whole", "true"),
    ],
)
def test_what_is_wrong_is_said_in_the_same_words(invoke, numbers, tmp_path, row, column, cell):
    frame = spoil(spoil(numbers, row, column, cell), row - 1, "e", cell)
    path = write(frame, tmp_path / "t.csv")
    words = ("select", path, "--ignore", "id", "--label", "kind", "-q", "--strict")
    at_once, in_batches = invoke(*words), invoke(*words, *SMALL)
    assert (at_once.status, in_batches.status) == (2, 2)
    assert at_once.err == in_batches.err


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2\n3,4\n5,6,7\n",
        b"a,b\n",
        b"\n\n",
        b"a,a\n1,2\n",
        b"a\n1\n",
        b"a,b,\n1,2,3\n",
        b"a,b\n1,2\0\n",
        b"PAR1 is no text\0",
        b"\xff\xfea",
        gzip.compress(b"a,b\n1,2\n3,4\n", mtime=0)[:-9],
        b"a,b\n1,2\n3,x\n",
        b"a,b\n1,2\n",
    ],
)
def test_damaged_text_is_refused_in_the_same_words(invoke, tmp_path, data):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    at_once, in_batches = invoke("select", path), invoke("select", path, "--memory", "1B")
    assert (at_once.status, in_batches.status) == (2, 2)
    assert at_once.err.splitlines()[-1] == in_batches.err.splitlines()[-1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_encodings_are_settled_over_the_whole_file(invoke, numbers, tmp_path, encoding):
    frame = numbers.rename(columns={"c": "größe"})
    frame.loc[N_ROWS - 1, "kind"] = "blau-grün"
    text = "\n\n" + frame.to_csv(index=False).replace("\n", "\r\n")
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    words = ("--ignore", "id,kind", "--delimiter", ",")
    for target in ("o.csv", "o.parquet"):
        _, written = both_ways(invoke, path, tmp_path / target, *words)
        assert same_values(*written, target)
    notices = [
        [
            line
            for line in invoke("select", path, *words, *memory).err.splitlines()
            if "Latin" in line
        ]
        for memory in ((), SMALL)
    ]
    assert notices[0] == notices[1]
    assert len(notices[0]) == (encoding == "latin-1")


def test_cells_with_line_breaks_and_quotes_survive(invoke, numbers, tmp_path):
    frame = numbers.copy()
    frame.loc[3, "kind"] = "two\nlines"
    frame.loc[880, "kind"] = "carriage\rreturn"
    path = tmp_path / "t.csv"
    path.write_text(frame.to_csv(index=False, quoting=csv.QUOTE_ALL), newline="")
    _, written = both_ways(invoke, path, tmp_path / "o.csv", "--ignore", "id,kind")
    assert written[0] == written[1]
    assert b'"carriage\rreturn"' in written[1]


def test_row_names_without_a_name_and_no_header(invoke, numbers, tmp_path):
    path = tmp_path / "t.csv"
    numbers.drop(columns=["id", "kind"]).to_csv(path)
    _, written = both_ways(invoke, path, tmp_path / "o.csv")
    assert written[0] == written[1]
    numbers[list("abcdef")].to_csv(path, index=False, header=False)
    _, written = both_ways(invoke, path, tmp_path / "o.csv", "--no-header")
    assert written[0] == written[1]


def test_fewer_rows_than_columns(invoke, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, 4)) @ rng.standard_normal((4, 300)))
    frame.columns = [f"x{i}" for i in range(300)]
    path = write(frame, tmp_path / "t.parquet")
    results, written = both_ways(invoke, path, tmp_path / "o.csv")
    assert [row["name"] for row in results[0]["selected"]] == [
        row["name"] for row in results[1]["selected"]
    ]
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--memory", "much"), "--memory: a size must be a number and a unit, such as 2GB"),
        (("--memory", "0GB"), "--memory: a size must be at least one byte"),
        ((*SMALL, "--method", "MaxVariance"), "--method MaxVariance needs the whole table in mem"),
        ((*SMALL, "--report", "r.html"), "--report needs the whole table in memory"),
        ((*SMALL, "-o", "x.npy"), "-o x.npy needs the whole table in memory"),
        ((*SMALL, "-o", "x.npz"), "-o x.npz needs the whole table in memory"),
        ((*SMALL, "-o", "X.NPY"), "-o X.NPY needs the whole table in memory"),
        ((*SMALL, "--array", "X"), "--array is for matrices, layers and sheets only"),
        (("--memory", "10KB", "--strict", "--missing", "median"), "--missing median sorts a col"),
        ((*SMALL, "--strict", "--missing", "median"), "'e' has none"),
        ((*SMALL, "--missing", "drop-rows"), "every row has a gap: --missing drop-rows would"),
        ((*SMALL, "--label", "id"), "--label 'id' must hold classes"),
        ((*SMALL, "-k", "99"), "-k must be at most"),
        ((*SMALL, "--must-keep", "zzz"), "--must-keep 'zzz' is not among the features"),
    ],
)
def test_what_cannot_be_done_in_batches_is_one_line(
    invoke, numbers, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    path = write(numbers.assign(e=np.nan), tmp_path / "t.parquet")
    ignored = ("--ignore", "kind,yes") if "--label" in words else ("--ignore", "id,kind,yes")
    result = invoke("select", path, *ignored, *words)
    assert (result.status, message in result.err) == (2, True), result.err
    assert result.err.splitlines()[-1].startswith("bsufs: error: ")


def test_columns_with_gaps_may_leave_too_few(invoke, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "1,,2\n" * 50 + ",1,2\n")
    for memory in ((), ("--memory", "1KB")):
        result = invoke("select", path, "--missing", "drop-columns", *memory)
        assert "--missing drop-columns would leave 1 of 3 columns" in result.err


def test_classes_that_are_too_many_to_hold_are_carried_only(invoke, numbers, tmp_path):
    path = write(numbers.drop(columns="yes"), tmp_path / "t.parquet")
    words = ("select", path, "-k", 2, "--ignore", "id", "--label", "kind")
    result = invoke(*words, "--memory", "30KB", "-o", tmp_path / "o.csv")
    assert "k-means is left out" in result.err
    assert (tmp_path / "o.csv").read_text().splitlines()[0].endswith(",kind")
    result = invoke(*words[:3], 8, *words[4:], "--memory", "91KB")
    assert "k-means is left out: it needs 115.2 KB or more, --memory is 91.0 KB" in result.err


def test_a_table_too_wide_for_its_scatter_is_refused_before_it_is_read(
    invoke, numbers, tmp_path, monkeypatch
):
    path = write(numbers, tmp_path / "t.csv")
    monkeypatch.setattr("bsufs.cli._input.available_memory", lambda: 4000)
    monkeypatch.setattr(Table, "batches", lambda *_, **__: pytest.fail("was read"))
    result = invoke("select", path, "--ignore", "id,kind", *SMALL)
    assert result.status == 2
    assert "902 rows of 12 features need a matrix of 12 x 12 numbers" in result.err
    assert "4.6 KB, but 4.0 KB of memory is available" in result.err


def test_options_that_need_the_table_may_have_all_free_memory(
    invoke, numbers, tmp_path, monkeypatch
):
    path = write(numbers.drop(columns=["id", "kind", "yes"]), tmp_path / "t.parquet")
    words = ("select", path, "-k", 2, "--method", "MaxVariance")
    monkeypatch.setattr("bsufs.tables._open.available_memory", lambda: 200_000)
    assert invoke(*words).status == 0
    assert "read in batches" in invoke("select", path, "-k", 2).err
    monkeypatch.setattr("bsufs.tables._open.available_memory", lambda: 2000)
    assert "but 2.0 KB is free. Do without it." in invoke(*words).err


def test_standard_input_cannot_be_read_twice(invoke, numbers, monkeypatch):
    data = numbers.drop(columns=["id", "kind"]).to_csv(index=False).encode()
    stdin = io.TextIOWrapper(io.BytesIO(data))
    monkeypatch.setattr(sys, "stdin", stdin)
    result = invoke("select", "-", "-k", 2, *SMALL)
    assert result.status == 2
    assert "standard input is too large to hold in 100.0 KB of memory and cannot" in result.err


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_changes_between_the_passes(invoke, numbers, tmp_path, monkeypatch, name):
    path = write(numbers, tmp_path / name)
    plain = Table.batches

    def changing(self, features=None):
        yield from plain(self, features)
        write(numbers[::-1], path)

    monkeypatch.setattr(Table, "batches", changing)
    out = tmp_path / "o.csv"
    out.write_text("old")
    # A table that is held is read again too, for the cells of the columns that are kept.
    for memory in (SMALL, ()):
        words = ("--ignore", "id,kind,yes", "-o", out, "--force", *memory)
        result = invoke("select", path, "-k", 2, *words)
        assert result.status == 2
        assert "the file has changed while it was read" in result.err
        assert out.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["o.csv", name]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_stopped_half_way_leaves_the_old_file(invoke, numbers, tmp_path, monkeypatch, stop):
    path = write(numbers, tmp_path / "t.csv")
    plain = Table.cells

    def stopping(self, names):
        for batch in plain(self, names):
            yield batch.slice(0, 100)
            raise stop

    monkeypatch.setattr(Table, "cells", stopping)
    for name in ("o.csv", "o.parquet"):
        out = tmp_path / name
        out.write_text("old")
        words = ("--ignore", "id,kind", "-o", out, "--force", *SMALL)
        result = invoke("select", path, "-k", 2, *words)
        assert result.status == (130 if stop is KeyboardInterrupt else 2)
        assert out.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["o.csv", "o.parquet", "t.csv"]


_PEAK = """
import resource, sys
from bsufs.cli._program import run
try:
    run(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the peak is read in the units of Linux")
def test_the_peak_of_memory_does_not_grow_with_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    block = np.char.mod("%.5f", rng.standard_normal((400, 100)))
    rows = "".join(",".join(row) + "\n" for row in block)
    header = ",".join(f"x{i}" for i in range(100)) + "\n"
    peaks = []
    for repeats in (4, 80):
        path = tmp_path / "t.csv"
        with path.open("w") as stream:
            stream.write(header)
            for _ in range(repeats):
                stream.write(rows)
        out = tmp_path / "o.parquet"
        found = subprocess.run(
            [sys.executable, "-c", _PEAK, "select", str(path), "-k", "5", "-o", str(out), "--force",
             "-q", "--memory", "5MB"],
            check=True, capture_output=True, text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        peaks.append(float(found.stdout))
    # The larger one has 26 MB of text, and at once takes 100 MB more than the smaller one.
    assert path.stat().st_size > 25e6
    assert pq.read_metadata(out).num_rows == 32_000
    assert peaks[1] - peaks[0] < 25


def test_costs_beside_what_is_adjusted_for(invoke, tmp_path):
    rng = np.random.default_rng(0)
    table, costs, found = (tmp_path / name for name in ("t.csv", "costs.csv", "r.json"))
    rows = [",".join([f"{x:.3f}" for x in row] + ["uv"[i % 2]]) for i, row in
            enumerate(rng.standard_normal((300, 5)) * [1, 2, 3, 4, 5])]  # fmt: skip
    table.write_text("\n".join(["a,b,c,d,e,batch", *rows]) + "\n")
    costs.write_text("".join(f"{name},1\n" for name in "abcde"))
    words = ("select", table, "--costs", costs, "--budget", 2, "--adjust-for", "batch", "-q")
    streamed = invoke(*words, "--memory", "5kB", "--json", found)
    assert streamed.status == 0, streamed.err
    python = json.loads(found.read_text())["python"]
    assert "costs={'a': 1.0, 'b': 1.0, 'c': 1.0, 'd': 1.0, 'e': 1.0}" in python
    names = [row["name"] for row in json.loads(found.read_text())["selected"]]
    assert invoke(*words).out.split() == names
