"""Every kind of scatter operator against the dense formula."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bsufs.scatter import (
    DenseScatter,
    FactoredScatter,
    ScatterAccumulator,
    SparseScatter,
    make_scatter,
    memory_for_scatter,
)
from bsufs.scatter._base import batches
from bsufs.scatter._eigen import Wanted

SHAPES = [(300, 40), (400, 170), (50, 300), (300, 500), (6, 3), (3, 9), (2, 1)]


def some_data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, min(d, 8))) @ rng.standard_normal((min(d, 8), d))
    X += rng.standard_normal((n, d)) + 3.0
    X[rng.random((n, d)) < 0.5] = 0.0
    return X


def dense_formula(X, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    Xc = (X - weight @ X / weight.sum()) * np.sqrt(weight)[:, None]
    return Xc.T @ Xc


def every_kind(X, weight=None):
    yield make_scatter(X, weight)
    yield make_scatter(sparse.csr_array(X), weight)
    yield make_scatter(sparse.csc_matrix(X), weight)
    accumulator = ScatterAccumulator(X.shape[1])
    for rows in np.array_split(np.arange(len(X)), 5):
        accumulator.add(X[rows], None if weight is None else weight[rows])
    yield accumulator.scatter()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_all_kinds_agree_with_the_dense_formula(n, d, weighted):
    X = some_data(n, d)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, n) + (np.arange(n) < 2.0) if weighted else None
    S = dense_formula(X, weight)
    size = np.abs(S).max()
    W = rng.standard_normal((d, 3))
    m = min(d, 5)
    eigenvalues = np.linalg.eigvalsh(S)[::-1]
    for scatter in every_kind(X, weight):
        np.testing.assert_allclose(scatter @ W, S @ W, atol=1e-12 * size * d)
        np.testing.assert_allclose(scatter.diagonal(), S.diagonal(), atol=1e-12 * size)
        assert scatter.trace() == pytest.approx(np.trace(S), rel=1e-12)
        assert scatter.shape == (d, d)
        assert scatter.dtype == np.float64
        values, vectors = scatter.leading_eigenvectors(m)
        np.testing.assert_allclose(values, eigenvalues[:m], atol=1e-12 * eigenvalues[0])
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(m), atol=1e-12)
        np.testing.assert_allclose(
            S @ vectors, vectors * values, atol=1e-11 * eigenvalues[0] * np.sqrt(d)
        )
        peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(m)]
        assert (peaks > 0).all()
        doubled = scatter.scaled(2.0)
        np.testing.assert_allclose(doubled @ W, 2 * (scatter @ W))
        assert doubled.leading_eigenvectors(1)[0][0] == pytest.approx(2 * values[0])


def test_the_kind_follows_from_the_shape():
    assert isinstance(make_scatter(some_data(30, 10)), DenseScatter)
    assert isinstance(make_scatter(some_data(10, 30)), FactoredScatter)
    assert isinstance(make_scatter(sparse.csr_array(some_data(10, 30))), SparseScatter)


@pytest.mark.parametrize(("n", "d"), [(60, 8), (8, 60), (200, 150)])
def test_explained_share_is_that_of_a_regression(n, d):
    X = some_data(n, d)
    Xc = X - X.mean(axis=0)
    for features in (np.arange(1), np.array([4, 1, 6]), np.arange(d)):
        fitted = Xc[:, features] @ np.linalg.lstsq(Xc[:, features], Xc, rcond=None)[0]
        expected = (fitted**2).sum() / (Xc**2).sum()
        for scatter in every_kind(X):
            assert scatter.explained_share(features) == pytest.approx(expected, abs=1e-6)


def test_the_explained_curve_is_the_share_of_every_beginning():
    X = some_data(200, 30)
    order = np.random.default_rng(0).permutation(30)
    for scatter in every_kind(X):
        curve = scatter.explained_curve(order)
        expected = [scatter.explained_share(order[:k]) for k in range(1, 31)]
        np.testing.assert_allclose(curve, expected, atol=1e-10)
        assert curve[-1] == pytest.approx(1.0)
    few_rows = make_scatter(X[:6])
    curve = few_rows.explained_curve(order)
    assert (np.diff(curve) >= 0).all()
    assert curve[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("weight", [None, np.arange(20.0)], ids=["plain", "weighted"])
def test_the_gram_matrix_of_the_samples_gives_the_same_curve(weight):
    X = some_data(20, 90)
    X[:, 7], X[:, 8] = 0.3, 1.0 - 2.0 * X[:, 5]
    order = np.random.default_rng(0).permutation(90)
    order = np.concatenate([[5, 7, 8], order[~np.isin(order, [5, 7, 8])]])
    without, scatter = make_scatter(X, weight), make_scatter(X, weight)
    scatter.leading_eigenvectors(2)
    for count in (1, 3, 12, 90):
        np.testing.assert_allclose(
            scatter.explained_curve(order[:count]),
            without.explained_curve(order[:count]),
            atol=1e-9,
        )


def test_columns_beyond_the_rank_bound_are_taken_together():
    X = some_data(4, 8)
    X[:, 1:3] = X[:, :1]
    for scatter in (make_scatter(X), make_scatter(sparse.csr_array(X))):
        curve = scatter.explained_curve(np.arange(8))
        # Three copies are as many columns as the rank allows, and tell no more than one.
        alone = scatter.explained_share(np.array([0]))
        assert alone < 0.9
        np.testing.assert_allclose(curve[:3], alone, atol=1e-6)
        np.testing.assert_allclose(curve[3:], 1.0, atol=1e-6)


def test_explained_share_ignores_constant_columns_and_survives_copies():
    X = some_data(50, 6)
    X[:, 2] = 0.3
    X[:, 4] = X[:, 1]
    scatter = make_scatter(X)
    assert scatter.explained_share(np.array([2])) == 0.0
    alone = scatter.explained_share(np.array([1]))
    assert scatter.explained_share(np.array([1, 2, 4])) == pytest.approx(alone, abs=1e-8)


@pytest.mark.parametrize("dense", [True, False])
def test_a_constant_column_has_exactly_no_variance(dense):
    X = some_data(500, 5)
    X[:, 3] = 0.1
    scatter = make_scatter(X if dense else sparse.csr_array(X))
    assert scatter.diagonal()[3] == 0.0
    assert make_scatter(X[:4]).diagonal()[3] == 0.0


@pytest.mark.parametrize("n", [200, 3])
def test_a_mean_that_dwarfs_the_deviation_costs_no_digits(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    S = dense_formula(X)
    far = X + 2.0**20
    far_exact = dense_formula(far - 2.0**20)  # what is left of X after rounding to the far place
    accumulator = ScatterAccumulator(6)
    for row in far:
        accumulator.add(row[None])
    for scatter in (make_scatter(far), accumulator.scatter()):
        np.testing.assert_allclose(scatter @ np.eye(6), far_exact, atol=1e-10 * np.abs(S).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d"), [(200, 6), (7, 12)])
def test_the_rounding_of_a_very_large_mean_is_taken_off_again(n, d, weighted):
    # Multiples of 2**-12 are still exact at 2**40, where a mean is known to 2**-13 only.
    X = np.round(np.random.default_rng(0).standard_normal((n, d)) * 2**12) / 2**12
    weight = np.arange(n) % 3 + 1.0 if weighted else None
    S = dense_formula(X, weight)
    far = make_scatter(X + 2.0**40, weight)
    np.testing.assert_allclose(far @ np.eye(d), S, atol=1e-12 * np.abs(S).max())


@pytest.mark.parametrize("magnitude", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize(("n", "d"), [(30, 4), (4, 30)])
def test_extreme_magnitudes_neither_overflow_nor_vanish(magnitude, n, d):
    X = some_data(n, d)
    W = np.eye(d)[:, :2]
    expected = make_scatter(X)
    for scatter in every_kind(magnitude * X):
        relative = (scatter @ W) / scatter.leading_eigenvectors(1)[0]
        np.testing.assert_allclose(
            relative, (expected @ W) / expected.leading_eigenvectors(1)[0], atol=1e-12
        )


def test_a_stream_may_grow_from_tiny_to_huge():
    X = np.vstack([1e-200 * some_data(5, 3), 1e200 * some_data(9, 3, seed=1)])
    accumulator = ScatterAccumulator(3)
    for row in X:
        accumulator.add(row[None])
    scatter = accumulator.scatter()
    expected = make_scatter(X)
    np.testing.assert_allclose(scatter @ np.eye(3), expected @ np.eye(3), rtol=1e-12)
    assert scatter.unit_exponent == expected.unit_exponent != 0


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(2, 40),
    d=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 40), max_size=6),
)
def test_any_batching_gives_the_same_scatter(seed, n, d, cuts):
    X = np.random.default_rng(seed).standard_normal((n, d)) + 5.0
    weight = np.random.default_rng(seed + 1).integers(0, 3, n).astype(float)
    weight[0] = 1.0
    accumulator = ScatterAccumulator(d)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    for start, stop in itertools.pairwise(edges):
        accumulator.add(X[start:stop], weight[start:stop])
    S = dense_formula(X, weight)
    scatter = accumulator.scatter()
    np.testing.assert_allclose(scatter @ np.eye(d), S, atol=1e-10)
    assert scatter.total_weight == weight.sum()


def test_the_order_of_the_columns_can_be_set():
    X = some_data(20, 5)
    order = np.array([3, 0, 4, 1, 2])
    for data in (X, X[:4], sparse.csr_array(X)):
        dense = data.toarray() if sparse.issparse(data) else data
        scatter = make_scatter(data, order=order)
        np.testing.assert_allclose(scatter @ np.eye(5), dense_formula(dense[:, order]), atol=1e-12)


def test_repeated_and_missing_eigenvalues_are_found():
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((400, 400)))[0]
    values = np.concatenate([np.full(6, 5.0), np.full(4, 3.0), np.full(20, 1.0), np.zeros(370)])
    dense = DenseScatter((basis * values) @ basis.T, 400.0)
    found, vectors = dense.leading_eigenvectors(12)
    np.testing.assert_allclose(found, values[:12], atol=1e-10)
    np.testing.assert_allclose(dense @ vectors, vectors * found, atol=1e-10)
    # More vectors than the rank of the data: the rest are orthonormal, with eigenvalue zero.
    X = some_data(4, 20)
    for scatter in (make_scatter(X), make_scatter(sparse.csr_array(X))):
        found, vectors = scatter.leading_eigenvectors(7)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(7), atol=1e-12)
        np.testing.assert_allclose(found[3:], 0.0, atol=1e-9)
        assert scatter.max_rank == 3


def test_centering_costs_a_dimension():
    for n, rank in ((6, 5), (7, 6), (8, 7), (9, 7)):
        for scatter in every_kind(some_data(n, 7)):
            assert scatter.max_rank == rank


def test_too_many_eigenvectors_is_an_error():
    with pytest.raises(ValueError, match="m must be from 1 to n_features = 3, got 4"):
        make_scatter(some_data(9, 3)).leading_eigenvectors(4)


def test_the_data_are_never_changed():
    for n, d in ((20, 5), (5, 20)):
        X = some_data(n, d)
        before = X.copy()
        X.flags.writeable = False
        make_scatter(X, np.ones(n)) @ np.ones((d, 1))
        np.testing.assert_array_equal(X, before)


def test_no_square_array_of_the_long_side_is_made():
    rng = np.random.default_rng(0)
    for X in (rng.standard_normal((60, 6000)), rng.standard_normal((20_000, 40))):
        tracemalloc.start()
        scatter = make_scatter(X)
        scatter.leading_eigenvectors(5)
        scatter.explained_share(np.arange(30))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * X.nbytes + 2**20


def test_sparse_data_are_never_densified():
    X = sparse.random_array((3000, 20_000), density=1e-3, random_state=0, format="csr")
    tracemalloc.start()
    scatter = make_scatter(X)
    scatter.leading_eigenvectors(3)
    scatter @ np.ones((20_000, 3))
    scatter.explained_share(np.arange(20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 3000 * 20_000 * 8


def as_stored(X, kind, index, value):
    """Return sparse data as others may hand them in, with every second zero stored."""
    mask = (X != 0) | (np.add.outer(np.arange(X.shape[0]), np.arange(X.shape[1])) % 2 == 0)
    rows, columns = np.nonzero(mask)
    Y = sparse.coo_array((X[rows, columns].astype(value), (rows, columns)), shape=X.shape)
    Y = Y.asformat(kind)
    Y.indices, Y.indptr = Y.indices.astype(index), Y.indptr.astype(index)
    return Y


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    shape=st.sampled_from([(60, 9), (9, 60), (200, 150), (150, 200), (7, 7)]),
    kind=st.sampled_from(["csr", "csc"]),
    index=st.sampled_from(["int32", "int64"]),
    weighted=st.booleans(),
    mean=st.sampled_from([0.0, 1e3]),
    blocks=st.booleans(),
)
def test_sparse_is_dense_in_every_form(seed, shape, kind, index, weighted, mean, blocks):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    X[:, ::3] += mean
    X[rng.random(shape) < 0.3] = 0.0
    X[rng.random(shape[0]) < 0.1] = 0.0
    X[:, rng.random(shape[1]) < 0.1] = 0.0
    X[:, -1] = mean
    weight = rng.integers(0, 3, shape[0]) + (np.arange(shape[0]) < 2.0) if weighted else None
    order = rng.permutation(shape[1])
    with pytest.MonkeyPatch.context() as patch:
        if blocks:
            patch.setattr("bsufs.scatter._sparse.BATCH_BYTES", 4096)
        thin = make_scatter(as_stored(X, kind, index, "float64"), weight, order)
        S = dense_formula(X[:, order], weight)
        size = np.abs(S).max() or 1.0
        W = rng.standard_normal((shape[1], 3))
        np.testing.assert_allclose(thin @ W, S @ W, atol=1e-8 * size)
        np.testing.assert_allclose(thin @ W[:, 0], S @ W[:, 0], atol=1e-8 * size)
    np.testing.assert_allclose(thin.diagonal(), S.diagonal(), rtol=1e-8, atol=1e-300 + 1e-12 * size)
    varies = np.ptp(X[:, order] if weight is None else X[weight > 0][:, order], axis=0) > 0
    np.testing.assert_array_equal(thin.diagonal() > 0, varies)
    np.testing.assert_allclose(thin.rows(np.array([1, 0])), S[[1, 0]], atol=1e-8 * size)
    part = rng.permutation(shape[1])[: shape[1] // 2 + 1]
    np.testing.assert_allclose(
        thin.restricted(part) @ np.eye(part.size), S[np.ix_(part, part)], atol=1e-8 * size
    )
    turned = thin.restricted(np.argsort(order))
    np.testing.assert_allclose(
        turned @ np.eye(shape[1]), dense_formula(X, weight), atol=1e-8 * size
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("adjusted", [False, True])
def test_many_pairs_of_rather_dense_data_come_from_the_whole_of_s(weighted, adjusted):
    rng = np.random.default_rng(0)
    X = sparse.random_array((900, 150), density=0.3, rng=rng, format="csr")
    weight = rng.integers(3, size=900).astype(float) if weighted else None
    scatter = make_scatter(X, weight)
    if adjusted:
        scatter = scatter.without(np.zeros(150), X[:, [0]].toarray(), weight)
    assert scatter._gram_pays(Wanted(20))
    assert not scatter._gram_pays(Wanted(20, level=1.0))
    values, vectors = scatter.leading_eigenvectors(20)
    np.testing.assert_allclose(scatter._gram(), scatter @ np.eye(150), atol=1e-10)
    np.testing.assert_allclose(scatter @ vectors, vectors * values, atol=1e-7 * values[0])


def test_entries_that_are_stored_in_parts_are_added_up():
    parts = sparse.csr_array(([1.0, 2.0, 4.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    whole = np.array([[3.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(make_scatter(parts) @ np.eye(2), dense_formula(whole))
    assert parts.nnz == 3


@pytest.mark.parametrize(("n", "d"), [(20_000, 800), (800, 20_000)])
def test_sparse_data_are_held_once(n, d):
    X = sparse.random_array((n, d), density=0.05, random_state=0, format="csr")
    size = X.data.nbytes + X.indices.nbytes
    order = np.random.default_rng(0).permutation(d)
    tracemalloc.start()
    scatter = make_scatter(X, order=order)
    held, building = tracemalloc.get_traced_memory()
    scatter @ np.ones((d, 4))
    multiplying = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shares_memory(scatter._X.data, X.data)
    # The column numbers in their new order, and vectors as long as a row or a column.
    assert held < 0.5 * size
    assert max(building, multiplying) < held + 48 * 2**20


@pytest.mark.parametrize(("n", "d"), [(900, 700), (700, 900)])
def test_as_many_eigenpairs_as_it_takes(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 40)) * np.geomspace(30, 1, 40) @ rng.standard_normal((40, d))
    X[rng.random((n, d)) < 0.5] = 0.0
    thin, dense = make_scatter(sparse.csr_array(X)), make_scatter(X)
    exact = np.linalg.eigvalsh(dense_formula(X))[::-1]
    for limits, count in (
        ({"above": 0.5 * (exact[11] + exact[12])}, 12),
        ({"above": 0.5 * (exact[44] + exact[45])}, 45),
        ({}, 20),
        ({"until": exact[:30].sum() * (1 - 1e-9)}, 30),
        ({"above": 0.5 * (exact[190] + exact[191])}, 191),
    ):
        most = 20 if count == 20 else min(n - 1, d)
        values, vectors = thin.leading_eigenvectors(most, **limits)
        np.testing.assert_allclose(values, exact[:count], rtol=1e-9)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)
        residual = thin @ vectors - vectors * values
        assert np.abs(residual).max() < 1e-8 * exact[0]
        np.testing.assert_allclose(dense.leading_eigenvectors(most, **limits)[0], values, rtol=1e-9)


def test_a_scatter_that_does_not_fit_is_refused_in_words(monkeypatch):
    monkeypatch.setattr("bsufs.scatter._accumulate.available_memory", lambda: 10**9)
    monkeypatch.setattr("bsufs.scatter._accumulate._SURELY_FITS", 0)
    accumulator = ScatterAccumulator(50_000)
    accumulator.add(np.zeros((1, 50_000)))
    with pytest.raises(MemoryError, match=r"50000 x 50000: with a copy 40\.0 GB, but 1\.0 GB"):
        accumulator.add(np.zeros((1, 50_000)), tall=True)
    assert accumulator.n_rows == 1
    assert memory_for_scatter(10**6, 50_000) == 4 * 8 * 50_000**2
    assert memory_for_scatter(100, 50_000) == 4 * 8 * 50_000 * 100


def merged(parts, n_features):
    """What a tree of accumulators gives, one for each part."""
    accumulators = []
    for X, weight in parts:
        accumulators.append(ScatterAccumulator(n_features))
        accumulators[-1].add(X, weight)
    while len(accumulators) > 1:
        one, other, *rest = accumulators
        one.merge(other)
        accumulators = [*rest, one]
    return accumulators[0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from([(40, 6), (12, 20), (25, 25)]),
    st.lists(st.integers(0, 40), max_size=6).map(sorted),
    st.booleans(),
    st.sampled_from([0.0, 1e6]),
)
def test_merged_accumulators_are_the_operator_of_all_rows(shape, cuts, weighted, mean):
    n, d = shape
    # Multiples of a power of two, so that adding the mean rounds nothing off.
    X = np.round(some_data(n, d) * 2**12) / 2**12
    weight = np.arange(n) % 4 / 2.0 if weighted else None
    rows = np.split(np.arange(n), np.minimum(cuts, n))
    parts = [((X + mean)[r], None if weight is None else weight[r]) for r in rows]
    scatter = merged(parts, d).scatter()
    expected = dense_formula(X, weight)
    np.testing.assert_allclose(
        scatter @ np.eye(d), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max()
    )
    assert scatter.total_weight == pytest.approx(n if weight is None else weight.sum())


@pytest.mark.parametrize("powers", [(0, 180), (180, 0), (201, 200), (-200, -190), (0, 0)])
@pytest.mark.parametrize("shape", [(40, 6), (12, 20)])
def test_merging_brings_both_to_the_unit_of_the_larger(powers, shape):
    n, d = shape
    halves = np.split(some_data(n, d), 2)
    halves = [half * 10.0**power for half, power in zip(halves, powers, strict=True)]
    scatter = merged([(half, None) for half in halves], d).scatter()
    expected = make_scatter(np.vstack(halves))
    assert scatter.unit_exponent == expected.unit_exponent
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(scatter.diagonal(), expected.diagonal(), rtol=1e-10)


def test_merging_leaves_the_other_as_it_was_and_needs_the_same_columns():
    X = some_data(30, 5)
    one, other = ScatterAccumulator(5), ScatterAccumulator(5)
    one.add(X[:10])
    other.add(X[10:])
    before = other.scatter() @ np.eye(5)
    one.merge(other)
    one.merge(other)
    np.testing.assert_array_equal(other.scatter() @ np.eye(5), before)
    with pytest.raises(ValueError, match="other must have 5 columns to be merged, got 4"):
        one.merge(ScatterAccumulator(4))


class TestSinglePrecision:
    """Wide rows of float32 are kept as they are; what is exact with float64 stays exact."""

    X = (some_data(40, 300) + 1000.0).astype(np.float32)

    @pytest.fixture(autouse=True)
    def _nothing_is_small(self, monkeypatch):
        monkeypatch.setattr("bsufs.scatter._accumulate._SMALL_IN_DOUBLE", 0)

    def test_rows_are_kept_in_their_precision_and_centered_in_double(self):
        scatter = make_scatter(self.X)
        assert scatter.dtype == scatter.Xc.dtype == np.float32
        exact = self.X.astype(np.float64)
        exact -= exact.mean(axis=0)
        np.testing.assert_allclose(scatter.Xc, exact, rtol=1e-6, atol=1e-9)
        assert make_scatter(self.X, np.arange(40.0)).dtype == np.float64
        assert make_scatter(self.X.astype(np.float64)).dtype == np.float64

    def test_products_with_double_precision_are_in_it_and_the_others_nearly(self):
        scatter = make_scatter(self.X)
        twin = FactoredScatter(scatter.Xc.astype(np.float64), 40.0)
        W = np.random.default_rng(0).standard_normal((300, 3))
        scale = np.abs(twin @ W).max()
        np.testing.assert_allclose(scatter @ W, twin @ W, atol=1e-12 * scale)
        fast = scatter @ W.astype(np.float32)
        assert fast.dtype == np.float32
        np.testing.assert_allclose(fast, twin @ W, atol=1e-5 * scale)
        np.testing.assert_allclose(scatter.diagonal(), twin.diagonal(), rtol=1e-13)
        for found, expected in zip(
            scatter.leading_eigenvectors(4), twin.leading_eigenvectors(4), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        frame = scatter.leading_eigenvectors(4)[1]
        np.testing.assert_allclose(frame.T @ frame, np.eye(4), atol=1e-12)
        curve = scatter.explained_curve(np.arange(12))
        np.testing.assert_allclose(curve, twin.explained_curve(np.arange(12)), atol=1e-6)
        rows = scatter.rows(np.arange(5))
        assert rows.dtype == np.float64
        np.testing.assert_allclose(rows, twin.rows(np.arange(5)), atol=1e-5 * rows.max())

    def test_gram_matrices_are_summed_in_double_precision(self, monkeypatch):
        monkeypatch.setattr("bsufs.scatter._dense._SUMMED_IN_SINGLE", 1)
        scatter = make_scatter(self.X)
        exact = scatter.Xc.astype(np.float64)
        gram = exact @ exact.T
        np.testing.assert_allclose(scatter._gram(), gram, atol=1e-7 * gram.max())

    def test_a_column_of_a_far_larger_scale_does_not_hide_the_others(self):
        X = some_data(40, 300).astype(np.float32)
        X[:, 7] *= 1e5
        scatter = make_scatter(X)
        twin = FactoredScatter(scatter.Xc.astype(np.float64), 40.0)
        values, expected = (one.leading_eigenvectors(20)[0] for one in (scatter, twin))
        np.testing.assert_allclose(values, expected, rtol=1e-6)

    def test_a_blockwise_pass_is_that_over_all_columns(self, monkeypatch):
        whole = make_scatter(self.X) @ np.eye(300)[:, :4]
        monkeypatch.setattr(
            "bsufs.scatter._dense.batches", lambda total, width: batches(total, width, 8 * 40 * 7)
        )
        np.testing.assert_allclose(make_scatter(self.X) @ np.eye(300)[:, :4], whole, rtol=1e-12)

    @pytest.mark.parametrize("exponent", [-100, -40, 40, 100])
    def test_units_do_not_matter(self, exponent):
        X = self.X[:, :60]
        scaled, plain = make_scatter(np.ldexp(X, exponent)), make_scatter(X)
        W = np.ones((60, 1), dtype=np.float32)
        product, unit = scaled @ W, plain @ W
        assert np.isfinite(product).all()
        shift = exponent - scaled.unit_exponent
        np.testing.assert_allclose(np.ldexp(product, -2 * shift), unit, rtol=1e-4)
