"""Several methods side by side: in a table, and in the report."""

import csv
import json
import re

import pytest

from bsufs.selectors import MaxVariance, RandomSelector

OTHERS = ("--ignore", "id", "--label", "kind")


def test_random_columns_are_a_mean_of_draws(invoke, table, tmp_path):
    path = tmp_path / "c.json"
    invoke("compare", table, *OTHERS, "-k", 2, "--methods", "BSUFS,RandomSelector", "--json", path)
    first, baseline = json.loads(path.read_text())["methods"]
    assert (first["draws"], baseline["draws"]) == (1, 10)
    X = [[float(cell) for cell in line.split(",")[1:7]] for line in _lines(table)]
    draws = [set(RandomSelector(2, random_state=s).fit(X).selected_features_) for s in range(10)]
    own = {1, 4}
    overlap = sum(len(draw & own) / len(draw | own) for draw in draws) / 10
    assert baseline["overlap"] == pytest.approx(overlap)
    assert 0 < baseline["accuracy"] < 1


def _lines(table):
    return table.read_text().splitlines()[1:]


def test_criteria_that_need_no_label(invoke, table, tmp_path):
    path = tmp_path / "c.csv"
    invoke("compare", table, "--ignore", "id,kind", "-k", 2, "--methods", "MaxVariance", "--csv",
           path)  # fmt: skip
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert "accuracy" not in row
    assert 0 < float(row["held_out"]) < float(row["explained_variance"]) < 1
    # Two columns hold nearly all variance, so that k-means on them is k-means on all.
    assert float(row["agreement"]) > 0.7


def test_a_selection_beside_others(invoke, table, tmp_path):
    path = tmp_path / "r.json"
    words = ("select", table, *OTHERS, "-k", 2, "--compare", "maxvariance,ColumnSubset")
    result = invoke(*words)
    assert result.out == "b\ne\n"
    assert "RandomSelector\t2" in result.err
    invoke(*words, "--json", path, "-q")
    rows = json.loads(path.read_text())["comparison"]
    names = [row["method"] for row in rows]
    assert names == ["ClusterAlignment", "MaxVariance", "ColumnSubset", "RandomSelector"]
    assert rows[0]["overlap"] == rows[1]["overlap"] == 1.0


def test_random_columns_beside_themselves(invoke, table):
    words = ("select", table, *OTHERS, "-k", 2, "--method", "RandomSelector", "--compare", "BSUFS")
    assert invoke(*words).err.count("RandomSelector\t2") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("select", "--compare", "nope"), "--compare 'nope' is not known"),
        (("select", "--compare", "ClusterAlignment"), "other methods than --method, got Cluster"),
        (("select", "--compare", "MCFS,mcfs"), "--compare must differ, got MCFS, MCFS"),
        (("compare", "--methods", "nope"), "--methods 'nope' is not known"),
        (("compare", "--report", "x", "--csv", "x"), "--csv and --report must name different"),
    ],
)
def test_wrong_words(invoke, table, words, message):
    command, *rest = words
    result = invoke(command, table, *OTHERS, *rest)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_the_report_of_a_comparison(invoke, table, tmp_path):
    path = tmp_path / "r.html"
    words = ("compare", table, *OTHERS, "-k", 2, "--methods", "ColumnSubset,BSUFS,RandomSelector")
    result = invoke(*words, "--report", path, "--subsamples", 2)
    assert (result.status, result.out) == (0, "")
    page = path.read_text(encoding="utf-8")
    assert '<p class="eyebrow">ColumnSubset ·' in page
    assert 'id="overlap"' in page
    assert '<tr class="baseline"><td>RandomSelector</td>' in page
    assert "ACC and NMI compare the clusters of k-means with the labels" in page
    assert re.search(r"<code>bsufs compare .*table\.csv .*-k 2 --methods ColumnSubset,", page)
    refused = invoke(*words, "--report", path)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert path.read_text(encoding="utf-8") == page


def test_a_method_that_fails_is_told_in_the_report(invoke, table, monkeypatch):
    def fail(self, X, y=None):
        raise ValueError("cannot be")

    monkeypatch.setattr(MaxVariance, "fit", fail)
    words = ("--report", "-", "--subsamples", 0)
    result = invoke("compare", table, *OTHERS, "-k", 2, "--methods", "MaxVariance,BSUFS", *words)
    assert result.status == 2
    assert result.err == "bsufs: error: MaxVariance: cannot be\n"
    # What the page is about is the first that did not fail.
    assert '<p class="eyebrow">BSUFS ·' in result.out
    assert "MaxVariance failed: cannot be" in result.out
    result = invoke("select", table, *OTHERS, "-k", 2, "--compare", "MaxVariance", *words)
    assert result.status == 0
    assert "bsufs: warning: MaxVariance: cannot be\n" in result.err
    result = invoke("compare", table, *OTHERS, "-k", 2, "--methods", "MaxVariance", *words)
    assert (result.status, result.out) == (2, "")


def test_a_tuned_selection_says_that_its_time_is_that_of_the_search(invoke, table):
    words = ("select", table, *OTHERS, "-k", 2, "--method", "LaplacianScore", "--compare", "BSUFS")
    words += ("--report", "-", "--subsamples", 0)
    said = "The seconds of LaplacianScore are those of all settings that were tried."
    assert said in invoke(*words, "--tune").out
    assert said not in invoke(*words).out
