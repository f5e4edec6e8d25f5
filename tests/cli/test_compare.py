import csv
import json
import os
import time

import numpy as np
import pytest

from bsufs.cli._limit import parse_limit
from bsufs.metrics import redundancy
from bsufs.selectors import MaxVariance
from bsufs.selectors._row_sample import RowSample
from bsufs.tuning.criteria import HeldOutReconstruction


def test_there_is_nothing_to_compare_in_a_constant_table(invoke, tmp_path):
    np.save(tmp_path / "c.npy", np.ones((5, 3)))
    result = invoke("compare", tmp_path / "c.npy", "-k", 1)
    assert (result.status, result.out) == (2, "")
    assert "every column is constant. There is nothing to select" in result.err


def test_methods_side_by_side(invoke, table, tmp_path):
    words = ("compare", table, "-k", 2, "--ignore", "id", "--label", "kind")
    lines = [line.split("\t") for line in invoke(*words).out.splitlines()]
    assert lines[0] == [
        "method",
        "k",
        "seconds",
        "explained",
        "redundancy",
        "neighbors",
        "overlap",
        "ACC",
        "NMI",
    ]
    assert [line[0] for line in lines[1:]] == [
        "ClusterAlignment", "BSUFS", "ColumnSubset", "NeighborAlignment", "LaplacianScore",
        "MaxVariance", "PCARowNorms", "RandomSelector",
    ]  # fmt: skip
    assert lines[1][6] == "1.000"
    assert "ColumnSubset" in invoke(*words, terminal=True).out
    document, sheet = tmp_path / "c.json", tmp_path / "c.csv"
    invoke(*words, "--methods", "maxvariance,BSUFS", "--json", document, "--csv", sheet)
    found = json.loads(document.read_text())["methods"]
    assert [row["method"] for row in found] == ["MaxVariance", "BSUFS"]
    assert [row["overlap"] for row in found] == [1.0, 1.0]
    assert [row["n_features"] for row in found] == [2, 2]
    assert next(csv.DictReader(sheet.read_text().splitlines()))["method"] == "MaxVariance"
    assert "the file exists" in invoke(*words, "--csv", sheet).err


def test_the_first_method_decides_how_many(invoke, table):
    words = ("compare", table, "--ignore", "id,kind", "--methods", "MaxVariance,BSUFS")
    lines = [line.split("\t") for line in invoke(*words).out.splitlines()]
    assert [line[1] for line in lines[1:]] == ["3", "3"]


def test_a_method_that_fails_does_not_stop_the_others(invoke, table, monkeypatch):
    def fail(self, X, y=None):
        raise ValueError("cannot be")

    monkeypatch.setattr(MaxVariance, "fit", fail)
    result = invoke("compare", table, "-k", 2, "--ignore", "id,kind")
    assert result.status == 2
    assert result.err == "bsufs: error: MaxVariance: cannot be\n"
    assert "RandomSelector\t2" in result.out


def test_methods_must_differ_and_files_too(invoke, table):
    assert "--methods must differ" in invoke("compare", table, "--methods", "BSUFS,bsufs").err
    assert "different files" in invoke("compare", table, "--csv", "-", "--json", "-").err


def _methods(invoke, table, tmp_path, *words):
    """Return what a comparison tells by JSON, and what it says."""
    path = tmp_path / "c.json"
    words = ("compare", table, "-k", 2, "--ignore", "id", "--label", "kind", *words)
    result = invoke(*words, "--json", path, "--force")
    document = json.loads(path.read_text())
    return result, document, {row["method"]: row for row in document["methods"]}


def test_a_sample_of_rows_for_neighbors_and_for_judging(invoke, table, tmp_path, monkeypatch):
    words = ("--methods", "LaplacianScore,ClusterAlignment,MaxVariance")
    _, _, small = _methods(invoke, table, tmp_path, *words)
    monkeypatch.setattr("bsufs.cli._input.SAMPLE_ROWS", 30)
    result, document, sampled = _methods(invoke, table, tmp_path, *words)
    assert (document["n_rows"], document["n_rows_judged_by"]) == (40, 30)
    assert [row["n_rows"] for row in document["methods"]] == [30, 40, 40]
    assert result.err.splitlines() == [
        "k-means is compared with 'kind' on 30 of 40 rows",
        "LaplacianScore: 30 of 40 rows",
        "held-out, redundancy and agreement: 30 of 40 rows (--all-rows takes all)",
        f"wrote {tmp_path / 'c.json'}",
    ]
    # What needs no more than the scatter is that of all rows.
    explained = [rows["MaxVariance"]["explained_variance"] for rows in (small, sampled)]
    assert explained[0] == explained[1]
    cells = [line.split(",")[1:7] for line in table.read_text().splitlines()[1:]]
    X = np.array(cells, dtype=float)[RowSample(30, 0).numbers(40)]
    chosen = [1, 4]
    expected = HeldOutReconstruction().score(X, chosen, random_state=0)
    assert sampled["MaxVariance"]["held_out"] == pytest.approx(expected)
    assert sampled["MaxVariance"]["redundancy"] == pytest.approx(redundancy(X[:, chosen]))
    result, _, insisted = _methods(invoke, table, tmp_path, *words, "--all-rows")
    assert result.err == f"wrote {tmp_path / 'c.json'}\n"
    for rows in (small, insisted):
        for row in rows.values():
            del row["seconds"]
    assert insisted == small


def test_a_limit_changes_nothing_where_it_is_kept(invoke, table, tmp_path):
    words = ("--methods", "BSUFS,LaplacianScore,RandomSelector")
    _, free, _ = _methods(invoke, table, tmp_path, *words)
    result, limited, _ = _methods(invoke, table, tmp_path, *words, "--limit", "10m")
    assert (result.status, result.err) == (0, f"wrote {tmp_path / 'c.json'}\n")
    for row in (*free["methods"], *limited["methods"]):
        del row["seconds"]
    assert limited == free


def test_a_method_that_takes_too_long_is_stopped(invoke, table, tmp_path, monkeypatch):
    child = tmp_path / "process"

    def wait(self, X, y=None):
        child.write_text(str(os.getpid()))
        time.sleep(600)

    monkeypatch.setattr(MaxVariance, "fit", wait)
    words = ("compare", table, "-k", 2, "--ignore", "id,kind", "--limit", "2")
    result = invoke(*words, "--methods", "MaxVariance,BSUFS")
    assert result.status == 0
    assert result.err == "bsufs: warning: MaxVariance: too slow: stopped after 2 s (--limit)\n"
    assert "MaxVariance\ttoo slow\ttoo slow" in result.out
    assert "BSUFS\t2" in result.out
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)
    # Without a single answer, something has gone wrong.
    assert invoke(*words[:-1], "0.1s", "--methods", "MaxVariance").status == 2


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (lambda *_: os._exit(9), "its process ended without a result (status 9); was there too"),
        (lambda *_: [][0], "list index out of range"),
        (lambda *_: int("x"), "bsufs: error: MaxVariance: invalid literal for int()"),
    ],
)
def test_what_goes_wrong_in_the_other_process_is_told(invoke, table, monkeypatch, fail, words):
    monkeypatch.setattr(MaxVariance, "fit", fail)
    words_given = ("-k", 2, "--ignore", "id,kind", "--methods", "MaxVariance,BSUFS")
    result = invoke("compare", table, *words_given, "--limit", "1h")
    assert words in result.err
    assert result.status in (1, 2)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("90s", 90), (" 2 M", 120), ("1.5min", 90), (".5h", 1800)]
)
def test_limits(text, seconds):
    assert parse_limit(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "1d", "s", "nan", "1e3", "99999h", "1:30", "٣"])
def test_no_limits(invoke, table, text):
    result = invoke("compare", table, "--limit", text)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert f"--limit must be a time such as 60, 60s, 2m or 1h, at most 10000h, got {text!r}" in (
        result.err
    )


def test_numbers_of_any_size_are_compared_without_a_warning(invoke, tmp_path):
    X = np.random.default_rng(0).standard_normal((5, 6)) * 3e307
    X[:2, 0] = 1e308, -1e308
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c,d,e,f", *(",".join(map(repr, row)) for row in X.tolist())]))
    result = invoke("compare", path, "-k", 2)
    assert result.status == 0
    assert "warning" not in result.err


def test_overlap_and_redundancy_count_a_category_as_one_column(invoke, tmp_path):
    rng = np.random.default_rng(0)
    path, found = tmp_path / "t.csv", tmp_path / "r.json"
    colors, sizes = (rng.choice(list(names), 60) for names in ("abcd", "uvw"))
    rows = [f"{c},{s},{x:.3f},{y:.3f}" for c, s, (x, y) in
            zip(colors, sizes, rng.standard_normal((60, 2)), strict=True)]  # fmt: skip
    path.write_text("\n".join(["color,size,x,y", *rows]) + "\n")
    words = ("--methods", "BSUFS,MaxVariance,ColumnSubset", "--json", found)
    assert invoke("compare", path, "-k", 2, *words).status == 0
    methods = json.loads(found.read_text())["methods"]
    overlaps = {row["overlap"] for row in methods}
    assert overlaps <= {0.0, 1 / 3, 1.0}
    assert len(overlaps) > 1
    # The levels of a category exclude each other, which repeats nothing.
    columns = {
        "color": np.equal.outer(colors, list("abcd")),
        "size": np.equal.outer(sizes, list("uvw")),
    }
    columns |= {name: np.array([row.split(",")[place] for row in rows], dtype=float)[:, None]
                for name, place in (("x", 2), ("y", 3))}  # fmt: skip
    for row in methods:
        names = invoke("select", path, "-k", 2, "--method", row["method"], "-q").out.split()
        one, other = (columns[name] for name in names)
        among = np.corrcoef(one.T, other.T)[: one.shape[1], one.shape[1] :]
        assert row["redundancy"] == pytest.approx(np.abs(among).max())
