import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array
from tests.golden import golden_data

from bsufs_paper.datasets import (
    dataset_info,
    find_dataset,
    list_datasets,
    load_dataset,
    make_dartboard1,
    make_diamond9,
)
from bsufs_paper.datasets._loaders import _read_arrays, _samples_and_labels

DATA = Path(os.environ.get("BSUFS_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
NOISY = [info.name for info in list_datasets() if info.has_noise]


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load from the folder of real data alone; skip where the file is absent."""
    monkeypatch.delenv("BSUFS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def load(name, **options):
        if find_dataset(name, DATA) is None:
            file = dataset_info(name).file.name
            pytest.skip(f"{file} is absent; set BSUFS_DATA to its folder")
        return load_dataset(name, DATA, **options)

    return load


@pytest.mark.parametrize("name", [info.name for info in list_datasets() if info.name != "MSTAR"])
def test_real_files_are_as_registered(load, name):
    info = dataset_info(name)
    bunch = load(name)
    assert bunch.name == name
    assert bunch.data.shape == info.shape
    assert bunch.data.dtype == np.float64
    assert bunch.data.flags.c_contiguous
    assert np.isfinite(bunch.data).all()
    assert bunch.target.shape == info.shape[:1]
    assert np.array_equal(np.unique(bunch.target), np.arange(info.n_classes))
    assert len(set(bunch.target_names)) == info.n_classes
    assert len(set(bunch.feature_names)) == info.shape[1]
    assert bunch.image_shape == info.image_shape
    assert bunch.image_order == info.image_order
    assert len(bunch.true_features) == info.shape[1] - info.n_noise_features
    for part in (info.file.url, info.citation, "License: none stated"):
        assert part in bunch.DESCR


@pytest.mark.parametrize("name", ["COIL20", "USPS", "umist", "pie", "Isolet", "GLIOMA"])
def test_samples_are_those_of_the_reference_runs(load, name):
    bunch = load(name)
    X, y = golden_data(name)
    assert np.array_equal(bunch.data, X)
    assert np.array_equal(bunch.target, np.unique(y, return_inverse=True)[1])


def test_usps_of_the_paper_are_the_first_of_each_class(load):
    some, every = load("USPS"), load("USPS-all")
    assert np.array_equal(some.target, np.repeat(np.arange(10), 100))
    for label in range(10):
        first = every.data[every.target == label][:100]
        assert np.array_equal(some.data[some.target == label], first)
    zeros = every.target == list(every.target_names).index("0")
    assert zeros.sum() == 1553  # of all the digits, zero is the most frequent in this collection


@pytest.mark.parametrize("name", ["COIL20", "umist", "USPS", "pie"])
def test_pixels_lie_between_zero_and_one_and_know_their_place(load, name):
    bunch = load(name)
    assert bunch.data.min() >= 0
    assert bunch.data.max() <= 1
    names = bunch.feature_names.reshape(bunch.image_shape, order=bunch.image_order)
    assert names[3, 5] == "pixel_3_5"


@pytest.mark.parametrize("name", NOISY)
def test_noise_is_the_same_for_the_same_seed(load, name):
    first = load(name).data
    assert np.array_equal(first, load(name).data)
    assert not np.array_equal(first, load(name, random_state=1).data)


@pytest.mark.parametrize("shape", ["Diamond9", "Dartboard1"])
def test_variants_hold_the_true_features_first(load, shape):
    true = load(shape).data
    noisy = load(f"{shape}-noise", noise_scale=0.3)
    assert np.array_equal(noisy.data[:, noisy.true_features], true)
    sd = np.sqrt(true.var(axis=0).mean())
    assert np.allclose(noisy.data[:, 2:].std(axis=0), 0.3 * sd, rtol=0.1)
    gaussian = load(f"{shape}-gaussian").data[:, :2] - true
    assert 0.009 < gaussian.std() < 0.011
    changed = load(f"{shape}-salt-and-pepper").data[:, :2] != true
    assert 0.015 < changed.mean() < 0.045


@pytest.mark.parametrize(
    ("name", "make"), [("Diamond9", make_diamond9), ("Dartboard1", make_dartboard1)]
)
def test_generators_draw_the_classes_of_the_files(load, name, make):
    real, drawn = load(name), make(random_state=0)
    assert real.target_names.tolist() == drawn.target_names.tolist()
    for label in np.unique(real.target):
        there = real.data[real.target == label]
        here = drawn.data[drawn.target == label][:, drawn.true_features]
        assert abs(len(there) - len(here)) <= 1
        assert np.allclose(there.mean(axis=0), here.mean(axis=0), atol=0.1)
        assert np.allclose(there.std(axis=0), here.std(axis=0), rtol=0.1)


def test_a_sparse_array_is_read(tmp_path):
    info = dataset_info("LUNG")
    path = tmp_path / "lung.mat"
    X = np.zeros(info.shape)
    X[3, 4] = 2
    savemat(path, {"X": csc_array(X), "Y": np.arange(73) % 7})
    assert np.array_equal(_samples_and_labels(path, info)[0], X)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"fea": np.ones((73, 325))}, r"must hold an array 'X', it holds \['fea'\]"),
        ({"X": np.full((73, 325), np.nan), "Y": np.ones(73)}, "'X' of .* finite numbers"),
        ({"X": np.ones((73, 325)), "Y": np.array([["a"] * 73])}, "'Y' of .* finite numbers"),
        ({"X": np.ones((73, 324)), "Y": np.arange(73) % 7}, r"325 features .* got .*\(73, 324\)"),
        ({"X": np.ones((73, 325)), "Y": np.arange(72) % 7}, "73 samples .* 72 labels"),
        ({"X": np.ones((73, 325)), "Y": np.arange(73) % 6}, "7 classes, got .* 6 classes"),
    ],
    ids=["key", "nan", "text", "features", "labels", "classes"],
)
def test_a_file_of_other_content_is_named_with_the_cure(tmp_path, content, message):
    info = dataset_info("LUNG")
    path = tmp_path / "lung_small.mat"
    savemat(path, content)
    with pytest.raises(ValueError, match=message) as raised:
        _samples_and_labels(path, info)
    assert str(path) in str(raised.value)
    assert f"Replace it with {info.file.url}" in str(raised.value)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_named_with_the_cure(tmp_path, compressed, share):
    path = tmp_path / "MSTAR_SOC_CNN.mat"
    X = np.random.default_rng(0).normal(size=(60, 50))
    savemat(path, {"X": X}, do_compression=compressed)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="truncated or of another kind") as raised:
        _read_arrays(path, dataset_info("MSTAR").file)
    assert str(path) in str(raised.value)
    assert "Replace it with https://" in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [b"x,y\n1,2\n" * 50, b"<html>404: Not Found</html>", b"\x80\x04N.", b"\x89HDF\r\n\x1a\n" * 30],
    ids=["text", "page", "pickle", "hdf5"],
)
def test_a_foreign_file_is_named_with_the_cure(tmp_path, content):
    path = tmp_path / "MSTAR_SOC_CNN.mat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as a MATLAB file") as raised:
        load_dataset("MSTAR", tmp_path)
    assert str(path) in str(raised.value)
    assert list(tmp_path.iterdir()) == [path]  # no checksum is recorded for what cannot be read


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_scale": -1}, "'noise_scale' parameter of load_dataset"),
        ({"random_state": "seed"}, "'random_state' parameter of load_dataset"),
        ({"data_home": 3}, "'data_home' parameter of load_dataset"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset("Diamond9-noise", **options)
