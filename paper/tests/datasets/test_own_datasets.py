"""Data of one's own: a file of numbers and a description beside it."""

import json

import numpy as np
import pytest

from bsufs_paper.datasets import dataset_info, find_dataset, list_datasets, load_dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BSUFS_DATA", str(tmp_path))
    return tmp_path


def describe(folder, name="mine", **changes):
    entry = {
        "data_keys": ["X"],
        "target_keys": ["y"],
        "shape": [6, 3],
        "n_classes": 2,
        "feature_prefix": "sensor",
        "description": "Three sensors.",
        "citation": "None.",
    } | changes
    description = {"file": {"name": f"{name}.npz"}, "datasets": {name: entry}}
    (folder / f"{name}.dataset.json").write_text(json.dumps(description), encoding="utf-8")


def store(folder, name="mine", **arrays):
    given = {"X": np.arange(18.0).reshape(6, 3), "y": np.array([0, 0, 0, 5, 5, 5])}
    np.savez(folder / f"{name}.npz", **(given | arrays))


def test_a_description_and_a_file_are_a_dataset(folder):
    describe(folder)
    store(folder)
    with pytest.warns(UserWarning, match=r"checksum of mine\.npz is not known"):
        bunch = load_dataset("mine")
    np.testing.assert_array_equal(bunch.data, np.arange(18.0).reshape(6, 3))
    np.testing.assert_array_equal(bunch.target, [0, 0, 0, 1, 1, 1])
    assert list(bunch.feature_names) == ["sensor_0", "sensor_1", "sensor_2"]
    assert "mine.npz" in bunch.DESCR
    assert find_dataset("mine") == folder / "mine.npz"
    assert list_datasets()[-1] == dataset_info("mine")


def test_little_need_be_said_of_data_of_ones_own(folder):
    describe(folder)
    stored = json.loads((folder / "mine.dataset.json").read_text())
    for name in ("feature_prefix", "description", "citation"):
        del stored["datasets"]["mine"][name]
    (folder / "mine.dataset.json").write_text(json.dumps(stored))
    store(folder)
    with pytest.warns(UserWarning, match="not known"):
        bunch = load_dataset("mine")
    assert list(bunch.feature_names) == ["x_0", "x_1", "x_2"]
    assert "Not described." in bunch.DESCR


def test_a_field_that_nobody_knows_is_named(folder):
    describe(folder, color=1)
    with pytest.raises(ValueError, match="'mine' has color, but its fields are name, file, data_"):
        list_datasets()


def test_a_description_that_changes_is_read_again(folder):
    describe(folder)
    assert dataset_info("mine").n_classes == 2
    describe(folder, n_classes=11)
    assert dataset_info("mine").n_classes == 11


def test_without_the_file_the_error_says_where_to_put_it(folder):
    describe(folder)
    with pytest.raises(FileNotFoundError, match=r"save it as mine\.npz in the folder"):
        load_dataset("mine")


def test_a_file_that_changes_after_its_first_use_is_noticed(folder):
    describe(folder)
    store(folder)
    with pytest.warns(UserWarning, match="not known"):
        load_dataset("mine")
    store(folder, X=np.zeros((6, 3)))
    with pytest.raises(ValueError, match="has changed since its first use"):
        load_dataset("mine")


def test_a_checksum_of_ones_own_is_held(folder):
    describe(folder)
    store(folder)
    stored = json.loads((folder / "mine.dataset.json").read_text())
    stored["file"]["sha256"] = "0" * 64
    (folder / "mine.dataset.json").write_text(json.dumps(stored))
    with pytest.raises(ValueError, match="mend the checksum in its description"):
        load_dataset("mine")


def test_a_foreign_archive_is_refused(folder):
    describe(folder)
    (folder / "mine.npz").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(ValueError, match=r"cannot be read as a NumPy archive.*Mend the file"):
        load_dataset("mine")


def test_pickled_objects_are_never_loaded(folder):
    describe(folder)
    store(folder, y=np.array([{}] * 6, dtype=object))
    with pytest.raises(ValueError, match="cannot be read as a NumPy archive"):
        load_dataset("mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "does not describe datasets"),
        ("[]", "does not describe datasets"),
        ('{"datasets": {}}', "no object `file`"),
        ('{"file": {"name": "a"}, "datasets": {"a": {"shape": [2, 2]}}}', "'a' lacks data_keys, t"),
        ('{"file": {"name": "a", "color": 1}, "datasets": {}}', "`file` has color, but its f"),
        ('{"file": {}, "datasets": {}}', "`file` lacks name"),
    ],
)
def test_a_bad_description_is_named(folder, text, message):
    (folder / "bad.dataset.json").write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        list_datasets()
    assert "bad.dataset.json" in str(raised.value)


def test_a_registered_name_cannot_be_taken(folder):
    describe(folder, name="COIL20")
    with pytest.raises(ValueError, match="'COIL20', which exists"):
        list_datasets()
