import numpy as np
import pytest
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence

from bsufs import _linalg
from bsufs._linalg import largest_eigenpairs


def clustered():
    """Return a matrix with thirty eigenvalues within 1e-7 of each other: no restart helps."""
    spectrum = np.r_[np.linspace(0.0, 1.0 - 1e-7, 270), 1.0 + 1e-9 * np.arange(30)]
    Q = linalg.qr(np.random.default_rng(3).standard_normal((300, 300)))[0]
    return (Q * spectrum) @ Q.T, spectrum


def test_lanczos_gives_the_largest_pairs():
    A = np.diag(np.arange(300.0) ** 2)
    start = np.random.default_rng(0).standard_normal(300)
    values, vectors = largest_eigenpairs(lambda v: A @ v, 300, 4, start)
    np.testing.assert_allclose(values, np.arange(299.0, 295.0, -1.0) ** 2)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-6)


def test_where_lanczos_does_not_converge_a_full_decomposition_does(monkeypatch):
    A, spectrum = clustered()
    monkeypatch.setattr(_linalg, "_MAX_RESTARTS", 1)
    values, vectors = largest_eigenpairs(lambda v: A @ v, 300, 5, np.ones(300))
    np.testing.assert_allclose(values, spectrum[:-6:-1], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-10)


def test_a_large_matrix_is_never_formed(monkeypatch):
    def never_converges(operator, **options):
        assert options["maxiter"] is None
        raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((300, 0)))

    A, _ = clustered()
    monkeypatch.setattr(_linalg, "_MODERATE", 100)
    monkeypatch.setattr(_linalg, "eigsh", never_converges)
    with pytest.raises(ArpackNoConvergence):
        largest_eigenpairs(lambda v: A @ v, 300, 5, np.ones(300))
