"""The noise edge against shuffled data, and the number of components it gives."""

import numpy as np
import pytest
from scipy import linalg

from bsufs.scatter import make_scatter
from bsufs.solvers.components import noise_edge, start_frame


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 4.0])
def test_equal_variances_give_the_marchenko_pastur_edge(ratio):
    n = 1000
    edge = noise_edge(np.full(int(ratio * n), 3.0 * n), n)
    assert edge / n == pytest.approx(3.0 * (1 + np.sqrt(ratio)) ** 2, rel=1e-9)


def relative_error_of_the_edge(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, d)) * 2
    X += rng.standard_normal((n, d))
    X *= rng.uniform(0.3, 2.0, d)
    X -= X.mean(axis=0)
    edge = noise_edge((X**2).sum(axis=0), n)
    shuffled = [make_scatter(rng.permuted(X, axis=0)).leading_eigenvectors(1)[0] for _ in range(5)]
    return edge / np.mean(shuffled) - 1.0


@pytest.mark.parametrize("ratio", [0.25, 3])
def test_the_edge_tends_to_where_shuffling_the_columns_puts_it(ratio):
    small = abs(relative_error_of_the_edge(150, int(150 * ratio)))
    large = abs(relative_error_of_the_edge(1200, int(1200 * ratio)))
    assert small < 0.25
    assert large < min(small, 0.05)


def test_the_edge_of_nothing_is_zero():
    assert noise_edge(np.zeros(4), 10) == 0.0


@pytest.mark.parametrize(("n", "d"), [(500, 60), (60, 500)])
@pytest.mark.parametrize("true", [1, 3, 7])
def test_auto_finds_the_planted_number_of_components(n, d, true):
    rng = np.random.default_rng(true)
    X = 3 * rng.standard_normal((n, true)) @ rng.standard_normal((true, d))
    X += rng.standard_normal((n, d))
    scatter = make_scatter(X)
    values, vectors = start_frame(scatter, "auto")
    assert values.shape == (true,)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(true), atol=1e-10)
    np.testing.assert_allclose(scatter @ vectors, vectors * values, atol=1e-8 * values[0])


def test_auto_goes_on_when_the_first_guess_is_too_small(monkeypatch):
    rng = np.random.default_rng(0)
    X = 5 * rng.standard_normal((300, 9)) @ rng.standard_normal((9, 200))
    X += rng.standard_normal((300, 200))
    monkeypatch.setattr("bsufs.scatter._eigen._FIRST_GUESS", 2)
    assert start_frame(make_scatter(X), "auto")[0].size == 9


@pytest.mark.parametrize("true", [1, 2, 3])
def test_where_nothing_is_correlated_the_columns_of_more_than_average_variance_count(true):
    rng = np.random.default_rng(true)
    X = rng.standard_normal((2000, 9)) * np.where(np.arange(9) < true, 1.0, 0.2)
    X = linalg.qr(X - X.mean(axis=0), mode="economic")[0] * X.std(axis=0)
    values, vectors = start_frame(make_scatter(X), "auto")
    assert values.size == true
    np.testing.assert_allclose((vectors[:true] ** 2).sum(), true)


def test_constant_columns_do_not_lower_the_average():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 9))
    variances = np.linspace(0.5, 1.5, 9)
    X = linalg.qr(X - X.mean(axis=0), mode="economic")[0] * np.sqrt(2000 * variances)
    padded = np.hstack([X, np.full((2000, 20), 7.0)])
    assert start_frame(make_scatter(X), "auto")[0].size == 4
    assert start_frame(make_scatter(padded), "auto")[0].size == 4


def test_auto_takes_no_more_than_sixty_four():
    rng = np.random.default_rng(0)
    loadings = np.linalg.qr(rng.standard_normal((1000, 90)))[0]
    scatter = make_scatter(rng.standard_normal((1000, 90)) @ loadings.T)
    edge = noise_edge(scatter.diagonal(), scatter.total_weight)
    assert (scatter.leading_eigenvectors(70)[0] > edge).all()
    np.testing.assert_allclose(
        start_frame(scatter, "auto")[0], scatter.leading_eigenvectors(64)[0], rtol=1e-12
    )


def test_auto_is_never_none_and_never_many_in_pure_noise():
    assert start_frame(make_scatter(np.eye(3)), "auto")[0].size >= 1
    X = np.random.default_rng(0).standard_normal((400, 300))
    assert 1 <= start_frame(make_scatter(X), "auto")[0].size <= 32


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_a_share_is_reached_and_with_no_component_too_many(share):
    rng = np.random.default_rng(0)
    scatter = make_scatter(rng.standard_normal((80, 50)) * np.linspace(0.1, 3, 50))
    values, _ = start_frame(scatter, share)
    assert values.sum() >= share * scatter.trace() * (1 - 1e-9)
    if values.size > 1:
        assert values[:-1].sum() < share * scatter.trace()


@pytest.mark.parametrize("seed", range(10))
def test_all_of_the_variance_takes_no_more_components_than_the_rank(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 50))
    assert start_frame(make_scatter(X), 1.0)[0].size == 3


@pytest.mark.parametrize("number", [4, np.int64(4)])
def test_a_number_is_taken_as_it_is(number):
    X = np.random.default_rng(0).standard_normal((30, 9))
    Xc = X - X.mean(axis=0)
    exact = linalg.eigvalsh(Xc.T @ Xc)[::-1]
    values, vectors = start_frame(make_scatter(X), number)
    np.testing.assert_allclose(values, exact[:4])
    np.testing.assert_allclose(Xc.T @ Xc @ vectors, vectors * values, atol=1e-10)
