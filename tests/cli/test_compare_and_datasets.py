import csv
import json

import pooch
import pytest
from bsufs_paper.datasets import list_datasets

from bsufs.selectors import MaxVariance


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """Let no test reach the network, the user's cache or the folder of real data."""

    def refuse(*args, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    monkeypatch.delenv("BSUFS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_methods_side_by_side(invoke, table, tmp_path):
    words = ("compare", table, "-k", 2, "--ignore", "id", "--label", "kind")
    lines = [line.split("\t") for line in invoke(*words).out.splitlines()]
    assert lines[0] == [
        "method",
        "k",
        "seconds",
        "explained",
        "redundancy",
        "overlap",
        "ACC",
        "NMI",
    ]
    assert [line[0] for line in lines[1:]] == [
        "AlignedBSUFS", "BSUFS", "ColumnSubset", "LaplacianScore", "MaxVariance", "PCARowNorms",
        "RandomSelector",
    ]  # fmt: skip
    assert lines[1][5] == "1.000"
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


def test_datasets_are_listed_with_their_state(invoke, tmp_path):
    found = json.loads(invoke("datasets", "--json").out)
    assert [entry["name"] for entry in found] == [info.name for info in list_datasets()]
    assert {entry["state"].split()[0] for entry in found} == {"can", "put"}
    file = next(info.file.name for info in list_datasets() if info.name == "COIL20")
    (tmp_path / file).write_bytes(b"")
    listed = invoke("datasets", "--data-home", tmp_path).out
    assert "COIL20\t1440\t1024\t20\tpresent\tnone stated" in listed


def test_everything_of_one_dataset(invoke):
    result = invoke("datasets", "show", "coil20")
    assert "Nene" in result.out
    assert "COIL20.mat" in result.out
    assert "Did you mean COIL20?" in invoke("datasets", "show", "COIL21").err


def test_fetching_says_where_or_why_not(invoke, monkeypatch, tmp_path):
    result = invoke("datasets", "fetch", "COIL20", "--data-home", tmp_path)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "its download failed: no network" in result.err
    monkeypatch.setattr("bsufs_paper.datasets.load_dataset", lambda name, home: None)
    monkeypatch.setattr("bsufs_paper.datasets.find_dataset", lambda name, home: home / name)
    assert (
        invoke("datasets", "fetch", "coil20", "--data-home", tmp_path).out == f"{tmp_path}/COIL20\n"
    )
