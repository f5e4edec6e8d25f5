import json

import pooch
import pytest

from bsufs_paper.datasets import list_datasets


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """Let no test reach the network, the user's cache or the folder of real data."""

    def refuse(*args, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    monkeypatch.delenv("BSUFS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_datasets_are_listed_with_their_state(invoke, tmp_path):
    found = json.loads(invoke("datasets", "--json").out)
    assert [entry["name"] for entry in found] == [info.name for info in list_datasets()]
    assert {entry["state"].split()[0] for entry in found} == {"can", "drawn", "put"}
    file = next(info.file.name for info in list_datasets() if info.name == "COIL20")
    (tmp_path / file).write_bytes(b"")
    listed = invoke("datasets", "--data-home", tmp_path).out
    assert listed == invoke("datasets", "list", "--data-home", tmp_path).out
    assert "COIL20\t1440\t1024\t20\tpresent\tnone stated" in listed


def test_everything_of_one_dataset(invoke):
    result = invoke("datasets", "show", "coil20")
    assert "Nene" in result.out
    assert "COIL20.mat" in result.out
    assert "Did you mean 'COIL20'?" in invoke("datasets", "show", "COIL21").err


def test_fetching_says_where_or_why_not(invoke, monkeypatch, tmp_path):
    result = invoke("datasets", "fetch", "COIL20", "--data-home", tmp_path)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "its download failed: no network" in result.err
    monkeypatch.setattr("bsufs_paper.datasets.load_dataset", lambda name, home: None)
    monkeypatch.setattr("bsufs_paper.datasets.fetch_dataset", lambda name, home: home / name)
    assert (
        invoke("datasets", "fetch", "coil20", "--data-home", tmp_path).out == f"{tmp_path}/COIL20\n"
    )
