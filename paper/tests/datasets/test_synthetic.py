import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from bsufs_paper.datasets import (
    add_gaussian_noise,
    add_salt_and_pepper,
    make_dartboard1,
    make_diamond9,
)

GENERATORS = [(make_diamond9, 9, 3000), (make_dartboard1, 4, 1000)]
generators = pytest.mark.parametrize(("make", "n_classes", "default_size"), GENERATORS)


@generators
def test_shapes_and_labels(make, n_classes, default_size):
    bunch = make(random_state=0)
    assert bunch.data.shape == (default_size, 9)
    assert bunch.target.shape == (default_size,)
    assert len(bunch.feature_names) == 9
    assert bunch.target_names.tolist() == [str(label) for label in range(n_classes)]
    assert bunch.true_features.tolist() == [0, 1]
    assert bunch.image_shape is None
    assert bunch.image_order is None
    assert bunch.name == make.__name__
    assert "7 features of Gaussian noise" in bunch.DESCR


@generators
@pytest.mark.parametrize("n_samples", [9, 100, 1001])
def test_classes_are_even_for_any_size(make, n_classes, default_size, n_samples):
    bunch = make(n_samples, n_noise_features=0, random_state=0)
    sizes = np.bincount(bunch.target, minlength=n_classes)
    assert bunch.data.shape == (n_samples, 2)
    assert np.ptp(sizes) <= 1


@generators
def test_the_seed_determines_all(make, n_classes, default_size):
    first = make(200, random_state=3)
    assert np.array_equal(first.data, make(200, random_state=3).data)
    assert np.array_equal(first.data, make(200, random_state=np.random.RandomState(3)).data)
    assert not np.array_equal(first.data, make(200, random_state=4).data)


@generators
@pytest.mark.parametrize("noise_scale", [0, 0.1, 1, 2])
def test_noise_has_the_asked_deviation_and_leaves_the_points_alone(
    make, n_classes, default_size, noise_scale
):
    bunch = make(20_000, noise_scale=noise_scale, random_state=0)
    plain = make(20_000, n_noise_features=0, random_state=0)
    assert np.array_equal(bunch.data[:, :2], plain.data)
    sd = np.sqrt(plain.data.var(axis=0).mean())
    noise = bunch.data[:, 2:]
    assert np.allclose(noise.std(axis=0), noise_scale * sd, rtol=0.03)
    assert np.abs(noise.mean(axis=0)).max() <= 0.05 * noise_scale * sd


@generators
def test_the_classes_are_in_the_true_features_alone(make, n_classes, default_size):
    bunch = make(random_state=0)
    neighbors = KNeighborsClassifier(5)
    folds = StratifiedKFold(shuffle=True, random_state=0)
    true = cross_val_score(neighbors, bunch.data[:, :2], bunch.target, cv=folds).mean()
    noise = cross_val_score(neighbors, bunch.data[:, 2:], bunch.target, cv=folds).mean()
    assert true > 0.95
    assert noise < 2 / n_classes


def test_diamonds_touch_and_do_not_overlap():
    bunch = make_diamond9(90_000, random_state=0)
    centers = np.array([(x, y) for y in (0, 2, 4) for x in (-1, 1, 3)])
    offset = np.abs(bunch.data[:, :2] - centers[bunch.target])
    assert offset.sum(axis=1).max() <= 1
    assert offset.max() > 0.97
    # A diamond filled evenly has the variance 1/6 along each axis.
    assert np.allclose((offset**2).mean(axis=0), 1 / 6, rtol=0.02)


def test_rings_have_their_radii_and_even_points():
    bunch = make_dartboard1(400, random_state=0)
    offset = bunch.data[:, :2] - [-0.5, 0.5]
    assert np.allclose(np.hypot(*offset.T), (4 - bunch.target) / 10)
    angles = np.sort(np.arctan2(offset[:100, 1], offset[:100, 0]))
    assert np.allclose(np.diff(angles), 2 * np.pi / 100)


def test_gaussian_noise():
    X = np.arange(200_000.0).reshape(-1, 4)
    before = X.copy()
    noise = add_gaussian_noise(X, random_state=0) - X
    assert np.array_equal(X, before)
    assert np.isclose(noise.std(), 0.01, rtol=0.02)
    assert abs(noise.mean()) < 1e-3
    assert np.array_equal(add_gaussian_noise(X, 0, random_state=0), X)


def test_salt_and_pepper():
    X = np.random.default_rng(0).normal(size=(5000, 4)) * [1, 2, 3, 4]
    before = X.copy()
    noisy = add_salt_and_pepper(X, random_state=0)
    assert np.array_equal(X, before)
    low, high = noisy == X.min(axis=0), noisy == X.max(axis=0)
    changed = noisy != X
    assert not (changed & ~low & ~high).any()
    # A value that is an end already may be hit, and then does not change.
    assert 600 - 8 <= changed.sum() <= 600
    assert 240 < low.sum() < 360
    assert np.array_equal(noisy, add_salt_and_pepper(X, random_state=0))
    assert np.array_equal(add_salt_and_pepper(X, 0), X)
    ends = add_salt_and_pepper(X, 1.0, random_state=0)
    assert ((ends == X.min(axis=0)) | (ends == X.max(axis=0))).all()


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: make_diamond9(8), "n_samples"),
        (lambda: make_dartboard1(3.5), "n_samples"),
        (lambda: make_diamond9(n_noise_features=-1), "n_noise_features"),
        (lambda: make_dartboard1(noise_scale=-0.1), "noise_scale"),
        (lambda: make_diamond9(random_state="seed"), "random_state"),
        (lambda: add_gaussian_noise(np.eye(3), -1), "sd"),
        (lambda: add_salt_and_pepper(np.eye(3), 1.1), "share"),
    ],
)
def test_wrong_parameters_are_named(call, parameter):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of"):
        call()
