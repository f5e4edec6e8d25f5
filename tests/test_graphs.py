"""Neighbors against brute force, and the properties that make an affinity a graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from bsufs import _linalg, graphs
from bsufs.graphs import (
    Neighbors,
    adaptive_neighbors,
    adaptive_weights,
    affinity,
    components_by_size,
    discriminative_laplacian,
    in_safe_units,
    laplacian,
    local_grams,
    lowest_laplacian_eigenvectors,
    nearest_samples,
    onto_simplex,
    reconstruction_weights,
    spectral_responses,
)


def brute_force(X, count):
    """Sort all distances, ties to the lower index."""
    D = cdist(X, X, "sqeuclidean")
    order = np.argsort(D, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(D, order, axis=1), np.sqrt(D).mean()


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize("count", [1, 4, 40])
def test_neighbors_equal_brute_force_with_many_ties(rng, monkeypatch, batch_size, count):
    monkeypatch.setattr(graphs, "batches", lambda total, width: gen_batches(total, batch_size))
    X = rng.integers(0, 3, size=(40, 4)).astype(float)
    found = nearest_samples(X, count, with_mean_distance=True)
    indices, distances, mean = brute_force(X, count)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.squared_distances, distances)
    assert found.mean_distance == pytest.approx(mean, rel=1e-14)


def test_neighbors_of_sparse_and_shifted_data(rng):
    X = rng.standard_normal((60, 5)) * (rng.random((60, 5)) < 0.5)
    expected = nearest_samples(X, 6)
    np.testing.assert_allclose(
        nearest_samples(sparse.csr_array(X), 6).squared_distances,
        expected.squared_distances,
        atol=1e-13,
    )
    shifted = nearest_samples(X + 1e6, 6)
    np.testing.assert_allclose(shifted.squared_distances, expected.squared_distances, atol=1e-8)


def test_too_many_neighbors_are_refused():
    with pytest.raises(ValueError, match="count must be from 1 to n_samples = 3, got 4"):
        nearest_samples(np.eye(3), 4)


def test_others_leave_out_the_sample_and_for_the_reference_the_first():
    neighbors = nearest_samples(np.array([[0.0], [0.0], [0.0], [5.0]]), 3)
    np.testing.assert_array_equal(neighbors.indices[2], [0, 1, 2])
    np.testing.assert_array_equal(neighbors.others().indices[:3], [[1, 2], [0, 2], [0, 1]])
    np.testing.assert_array_equal(neighbors.others(reference=True).indices[2], [1, 2])
    crowded = nearest_samples(np.zeros((4, 1)), 2)
    np.testing.assert_array_equal(crowded.others().indices.ravel(), [1, 0, 0, 0])


@pytest.mark.parametrize("weight", ["binary", "heat", "cosine"])
def test_affinities_equal_the_dense_formula(rng, weight):
    X = rng.standard_normal((50, 3))
    neighbors = nearest_samples(X, 5, with_mean_distance=True)
    indices, _, t = brute_force(X, 5)
    D = cdist(X, X, "sqeuclidean")
    lengths = np.linalg.norm(X, axis=1)
    kinds = {
        "binary": np.ones_like(D),
        "heat": np.exp(-D / (2 * t**2)),
        "cosine": X @ X.T / np.outer(lengths, lengths),
    }
    expected = np.zeros_like(D)
    np.put_along_axis(expected, indices, np.take_along_axis(kinds[weight], indices, 1), 1)
    np.fill_diagonal(expected, 0.0)
    expected = np.maximum(expected, expected.T)
    for data in (X, sparse.csr_array(X)):
        G = affinity(neighbors, weight, data)
        np.testing.assert_allclose(G.toarray(), expected, atol=1e-13)


def test_equal_and_zero_samples_make_no_invalid_weights():
    X = np.zeros((6, 2))
    neighbors = nearest_samples(X, 3, with_mean_distance=True)
    assert affinity(neighbors, "heat", X).max() == 1.0
    assert affinity(neighbors, "cosine", X).nnz == 0


def test_laplacian_and_components(rng):
    A = sparse.csr_array(linalg.block_diag(np.ones((2, 2)), np.ones((3, 3)), np.ones((2, 2))))
    L = laplacian(A).toarray()
    np.testing.assert_allclose(L.sum(axis=1), 0.0)
    assert linalg.eigvalsh(L).min() > -1e-12
    count, labels = components_by_size(A)
    assert count == 3
    np.testing.assert_array_equal(labels, [1, 1, 0, 0, 0, 2, 2])


@pytest.mark.parametrize("small", [0, 10**6])
def test_lowest_eigenvectors_of_graphs_in_pieces(rng, monkeypatch, small):
    monkeypatch.setattr(_linalg, "_SMALL", small)
    X = np.vstack([rng.standard_normal((60, 3)) + shift for shift in (0.0, 50.0, 100.0)])
    G = affinity(nearest_samples(X, 6, with_mean_distance=True), "heat")
    assert components_by_size(G)[0] == 3
    L = laplacian(G)
    expected = linalg.eigvalsh(L.toarray())
    for count in (2, 3, 7):
        values, vectors = lowest_laplacian_eigenvectors(G, count)
        np.testing.assert_allclose(values, expected[:count], atol=1e-11)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)
        np.testing.assert_allclose(L @ vectors, vectors * values, atol=1e-9)


@pytest.mark.parametrize("n_pieces", [1, 3])
def test_spectral_responses_solve_the_generalized_eigenproblem(rng, n_pieces):
    X = np.vstack([rng.standard_normal((50, 3)) + 50.0 * piece for piece in range(n_pieces)])
    G = affinity(nearest_samples(X, 6, with_mean_distance=True), "heat")
    D = G.sum(axis=1)
    values, F = spectral_responses(G, 6)
    assert values.size == 6
    assert (np.diff(values) <= 1e-12).all()
    np.testing.assert_allclose(G @ F, D[:, None] * F * values, atol=1e-10)
    expected = linalg.eigh(G.toarray(), np.diag(D), eigvals_only=True)[::-1]
    np.testing.assert_allclose(values, expected[1:7], atol=1e-10)


def section_of_the_eigenvalue_one(G):
    """Return the leading eigenvectors without the constant, by dense Gram-Schmidt."""
    degrees = G.sum(axis=1)
    values, Y = linalg.eigh(G / np.sqrt(np.outer(degrees, degrees)))
    values, Y = values[::-1], Y[:, ::-1].copy()
    group = np.flatnonzero(np.abs(values - 1.0) < 1e-12)
    Y[:, 0] = np.sqrt(degrees) / np.linalg.norm(np.sqrt(degrees))
    for j in group[1:]:
        Y[:, j] -= Y[:, :j] @ (Y[:, :j].T @ Y[:, j])
        Y[:, j] /= np.linalg.norm(Y[:, j])
    return values[1:], (Y / np.sqrt(degrees)[:, None])[:, 1:]


@pytest.mark.parametrize("n_pieces", [2, 3])
def test_responses_of_pieces_are_orthogonal_to_the_constant(rng, n_pieces):
    sizes = (30, 20, 25)[:n_pieces]
    X = np.vstack([rng.standard_normal((n, 3)) + 50.0 * i for i, n in enumerate(sizes)])
    G = affinity(nearest_samples(X, 6, with_mean_distance=True), "heat")
    D = G.sum(axis=1)
    values, F = spectral_responses(G, 5)
    np.testing.assert_allclose((F.T * D) @ F, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(D @ F, 0.0, atol=1e-10)
    expected_values, expected = section_of_the_eigenvalue_one(G.toarray())
    np.testing.assert_allclose(values, expected_values[:5], atol=1e-10)
    if n_pieces == 2:
        # Unique up to the sign.
        np.testing.assert_allclose(np.abs(F), np.abs(expected[:, :5]), atol=1e-9)
    first, pieces = F[:, : n_pieces - 1], expected[:, : n_pieces - 1]
    np.testing.assert_allclose(first @ first.T, pieces @ pieces.T, atol=1e-10)


def test_an_isolated_sample_gives_no_invalid_response():
    G = sparse.csr_array(linalg.block_diag(np.ones((5, 5)) - np.eye(5), np.zeros((1, 1))))
    values, F = spectral_responses(G, 4)
    assert np.isfinite(F).all()
    # It is no piece of its own: the four functions are those of the other samples.
    np.testing.assert_allclose(values, -0.25)
    assert spectral_responses(sparse.csr_array((3, 3)), 2)[0].size == 0


def test_adaptive_weights_minimize_over_the_simplex(rng):
    distances = np.sort(rng.random((20, 6)), axis=1)
    weights, slack = adaptive_weights(distances)
    np.testing.assert_allclose(weights, onto_simplex(-distances[:, :-1] / slack[:, None]))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    tied, _ = adaptive_weights(np.ones((1, 4)))
    np.testing.assert_allclose(tied, 1 / 3)
    zero, _ = adaptive_weights(np.ones((1, 4)), reference=True)
    np.testing.assert_array_equal(zero, 0.0)


def test_projection_onto_the_simplex_is_optimal(rng):
    V = 3 * rng.standard_normal((30, 5))
    P = onto_simplex(V)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    # Variational inequality: no vertex of the simplex lies on the other side of P.
    slope = np.einsum("ij,ij->i", V - P, P)
    assert ((V - P) - slope[:, None]).max() < 1e-12


def test_projection_of_large_numbers_onto_the_simplex():
    np.testing.assert_array_equal(onto_simplex(np.array([[1e17, 1e17]])), [[0.5, 0.5]])
    V = np.array([[-1e17, -2e17, -1e17], [1e17, 0.0, -1e300]])
    np.testing.assert_array_equal(onto_simplex(V), [[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("n", [50, 500])
def test_a_repeated_eigenvalue_does_not_cost_eigenvectors(n):
    A = sparse.csr_array(np.ones((n, n)) - np.eye(n))
    values, vectors = lowest_laplacian_eigenvectors(A, 4)
    np.testing.assert_allclose(values, [0, n, n, n], atol=1e-9 * n)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-9)


def test_reconstruction_weights_solve_the_local_problem(rng):
    X = rng.standard_normal((30, 8))
    indices = nearest_samples(X, 5).others().indices
    weights = reconstruction_weights(X, indices, 0.0)
    for i in range(30):
        steps = X[indices[i]] - X[i]
        w = np.linalg.solve(steps @ steps.T, np.ones(4))
        np.testing.assert_allclose(weights[i], w / w.sum())
    copies = reconstruction_weights(np.zeros((4, 2)), np.array([[1, 2]] * 4), 1e-3)
    np.testing.assert_allclose(copies, 0.5)


@pytest.mark.parametrize("k", [1, 4])
def test_discriminative_laplacian_is_a_sum_of_local_matrices(rng, k):
    X = rng.standard_normal((25, 7)) + 3.0
    indices = nearest_samples(X, k + 1).indices
    L = discriminative_laplacian(local_grams(X, indices), indices, 0.1).toarray()
    J = np.eye(k + 1) - 1 / (k + 1)
    expected = np.zeros((25, 25))
    for local in indices:
        Y = J @ X[local]
        expected[np.ix_(local, local)] += J @ np.linalg.inv(0.1 * np.eye(k + 1) + Y @ Y.T) @ J
    np.testing.assert_allclose(L, expected, atol=1e-12)
    assert linalg.eigvalsh(L).min() > -1e-12
    np.testing.assert_allclose(L @ np.ones(25), 0.0, atol=1e-12)


def test_the_swapped_ridge_is_the_formula_it_stands_for(rng):
    X = rng.standard_normal((20, 3))
    indices = nearest_samples(X, 5).indices
    grams = local_grams(X, indices)
    L = discriminative_laplacian(grams, indices, 0.1, swapped_ridge=True).toarray()
    J = np.eye(5) - 1 / 5
    expected = np.zeros((20, 20))
    for local in indices:
        Y = J @ X[local]
        inner = np.linalg.inv(np.eye(3) + 0.1 * Y.T @ Y)
        expected[np.ix_(local, local)] += J - 0.1 * Y @ inner @ Y.T
    np.testing.assert_allclose(L, expected, atol=1e-12)


def test_neighbors_know_no_mean_distance_unless_asked():
    assert np.isnan(nearest_samples(np.eye(3), 2).mean_distance)
    assert np.isnan(Neighbors(np.zeros((1, 1), dtype=int), np.zeros((1, 1))).mean_distance)


def test_units_change_for_extreme_data_alone():
    X = np.array([[1.0, -2.0], [0.0, 4.0]])
    assert in_safe_units(X) is X
    for storage in (np.asarray, sparse.csr_array):
        large = in_safe_units(storage(1e200 * X))
        large = large.toarray() if sparse.issparse(large) else large
        assert 0.1 < np.abs(large).max() <= 1.0
        np.testing.assert_allclose(large / large[0, 0], X)


def test_adaptive_neighbors_of_few_samples():
    indices, weights, half_slack = adaptive_neighbors(np.array([[0.0], [1.0]]), 5)
    np.testing.assert_array_equal(indices, [[1], [0]])
    np.testing.assert_array_equal(weights, 1.0)
    assert half_slack == 1.0
    indices, weights, half_slack = adaptive_neighbors(np.zeros((4, 1)), 5)
    np.testing.assert_allclose(weights, 0.5)
    assert half_slack == 1.0
