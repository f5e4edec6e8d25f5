import pytest
from paper.tests.experiments.small_data import write_datasets


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = write_datasets(tmp_path / "data")
    monkeypatch.setenv("BSUFS_DATA", str(folder))
    return folder
