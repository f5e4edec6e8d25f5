import numpy as np
import pytest

from bsufs.scatter import _krylov
from bsufs.scatter._krylov import KrylovSpace


def some_operator(eigenvalues, seed=0):
    size = len(eigenvalues)
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]
    return (frame * eigenvalues) @ frame.T


@pytest.mark.parametrize("basis_bytes", [_krylov._BASIS_BYTES, 1])
@pytest.mark.parametrize(
    "eigenvalues",
    [
        np.geomspace(1, 1e-6, 400),
        np.linspace(1, 0, 400),
        np.concatenate([np.full(6, 3.0), np.linspace(1, 0.1, 394)]),
        np.concatenate([np.linspace(5, 4, 10), np.zeros(390)]),
    ],
)
def test_the_largest_pairs_are_found(monkeypatch, eigenvalues, basis_bytes):
    # With no room at all the space is restarted again and again.
    monkeypatch.setattr(_krylov, "_BASIS_BYTES", basis_bytes)
    A = some_operator(eigenvalues)
    values, vectors = KrylovSpace(lambda v: A @ v, 400).largest(lambda values: 8)
    np.testing.assert_allclose(values, np.sort(eigenvalues)[::-1][:8], rtol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-9 * eigenvalues[0])


def test_the_number_follows_from_the_values():
    eigenvalues = np.concatenate([np.linspace(3, 2, 50), np.linspace(1, 0, 350)])
    A = some_operator(eigenvalues)
    space = KrylovSpace(lambda v: A @ v, 400)

    def n_wanted(values):
        below = np.flatnonzero(values < 1.5)
        return int(below[0]) + 1 if below.size else values.size + 1

    values, _ = space.largest(n_wanted)
    assert values.size == 51
    np.testing.assert_allclose(values, np.sort(eigenvalues)[::-1][:51], rtol=1e-9)


def test_a_space_that_is_everything_gives_all_pairs():
    A = some_operator(np.arange(1.0, 41.0))
    values, _ = KrylovSpace(lambda v: A @ v, 40).largest(lambda values: 50)
    np.testing.assert_allclose(values, np.arange(40.0, 0.0, -1.0))
