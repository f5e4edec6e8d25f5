import csv
import json

from bsufs.selectors import MaxVariance


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
