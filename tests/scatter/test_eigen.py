import numpy as np
import pytest

from bsufs.scatter import _eigen
from bsufs.scatter._eigen import KrylovSpace, Pairs, Wanted, pairs_of_matrix


def some_operator(eigenvalues, seed=0):
    size = len(eigenvalues)
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]
    return (frame * eigenvalues) @ frame.T


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("basis_bytes", [_eigen._BASIS_BYTES, 1])
@pytest.mark.parametrize(
    "eigenvalues",
    [
        np.geomspace(1, 1e-6, 400),
        np.linspace(1, 0, 400),
        np.concatenate([np.full(6, 3.0), np.linspace(1, 0.1, 394)]),
        np.concatenate([np.linspace(5, 4, 10), np.zeros(390)]),
    ],
)
def test_the_largest_pairs_are_found(monkeypatch, eigenvalues, basis_bytes, width):
    # With no room at all the space is restarted again and again.
    monkeypatch.setattr(_eigen, "_BASIS_BYTES", basis_bytes)
    A = some_operator(eigenvalues)
    found = KrylovSpace(lambda v: A @ v, 400, width).largest(Wanted(8))
    values, vectors = found.values, found.vectors
    np.testing.assert_allclose(values, np.sort(eigenvalues)[::-1][:8], rtol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=2e-9 * eigenvalues[0])


def test_the_number_follows_from_the_values():
    eigenvalues = np.concatenate([np.linspace(3, 2, 50), np.linspace(1, 0, 350)])
    A = some_operator(eigenvalues)
    for wanted, number in (
        (Wanted(400, level=1.5), 50),
        (Wanted(30, level=1.5), 30),
        (Wanted(400, total=eigenvalues[:60].sum() - 1e-6), 60),
        (Wanted(400, level=3.1), 0),
    ):
        space = KrylovSpace(lambda v: A @ v, 400)
        found = space.largest(wanted)
        assert space.has_converged
        assert found.bound >= eigenvalues[number] - 1e-9
        np.testing.assert_allclose(found.values, eigenvalues[:number], rtol=1e-9)


def test_a_value_that_is_not_wanted_need_not_be_known_well():
    eigenvalues = np.concatenate([np.linspace(3, 2, 5), np.linspace(1, 0, 995)])
    A = some_operator(eigenvalues)
    n_products = []
    for wanted in (Wanted(100, level=1.5), Wanted(6)):
        calls = []
        KrylovSpace(lambda v, calls=calls: calls.append(0) or A @ v, 1000).largest(wanted)
        n_products.append(len(calls))
    assert 2 * n_products[0] <= n_products[1]


@pytest.mark.parametrize("width", [1, 3, 64])
def test_a_space_that_is_everything_gives_all_pairs(width):
    A = some_operator(np.arange(1.0, 41.0))
    found = KrylovSpace(lambda v: A @ v, 40, width).largest(Wanted(50))
    np.testing.assert_allclose(found.values, np.arange(40.0, 0.0, -1.0))
    assert found.bound == -np.inf


@pytest.mark.parametrize("wanted", [Wanted(8), Wanted(100, level=2.5), Wanted(8, level=0.5)])
def test_a_matrix_gives_repeated_eigenvalues_as_often_as_they_are_there(wanted):
    eigenvalues = np.concatenate([[9, 8], np.full(5, 3.0), np.linspace(1, 0, 593)])
    A = some_operator(eigenvalues)
    found = pairs_of_matrix(A, wanted)
    number = 7 if wanted.level > 1 else 8
    np.testing.assert_allclose(found.values, eigenvalues[:number], rtol=1e-9)
    np.testing.assert_allclose(A @ found.vectors, found.vectors * found.values, atol=1e-9)


@pytest.mark.parametrize("wanted", [Wanted(6), Wanted(100, level=2.5)])
def test_a_pair_that_was_missed_is_noticed(wanted, monkeypatch):
    eigenvalues = np.concatenate([[9, 8], np.full(5, 3.0), np.linspace(1, 0, 593)])
    A = some_operator(eigenvalues)
    whole = pairs_of_matrix(A, Wanted(8))
    n_last = 7 if wanted.most > 6 else 8
    others = np.delete(np.arange(n_last), 4)
    found = Pairs(whole.values[others], whole.vectors[:, others], eigenvalues[n_last])

    def misses_one(space, *_):
        space.has_converged = True
        return found

    monkeypatch.setattr(KrylovSpace, "largest", misses_one)
    values = pairs_of_matrix(A, wanted).values
    np.testing.assert_allclose(values, eigenvalues[: values.size], rtol=1e-9)


def test_a_matrix_of_low_rank_has_as_many_pairs_as_are_asked_for():
    A = some_operator(np.concatenate([np.linspace(5, 4, 10), np.zeros(590)]))
    found = pairs_of_matrix(A, Wanted(20))
    np.testing.assert_allclose(found.values[:10], np.linspace(5, 4, 10))
    np.testing.assert_allclose(found.values[10:], 0.0, atol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(20), atol=1e-10)


def test_what_is_known_of_the_next_one_tells_the_number():
    values = np.array([3.0, 2.0])
    assert Wanted(5, level=1.0).number(values) == 3
    assert Wanted(5, level=1.0).number(values, bound=0.9) == 2
    assert Wanted(2).number(values) == 2
    assert Wanted(5, total=4.5).number(values) == 2
    assert Wanted(5, total=5.5).number(values) == 3
