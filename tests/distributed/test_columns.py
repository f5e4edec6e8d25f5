"""S in column blocks against S of the same data in one piece."""

import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

from bsufs.distributed._tasks import compute, persist, task
from bsufs.distributed.columns import (
    BlockScatter,
    PreparedColumns,
    _signs,
    block_lanczos,
    scatter_of_columns,
)
from bsufs.scatter import FactoredScatter, make_scatter


def low_rank_and_noise(n, d, rank=5, seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return 2.0 * signal + rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d) + 3.0


def in_blocks(X, widths, sample_weight=None, seed=1):
    """The operator with its rows in a random order, as canonical orders are."""
    blocks = da.from_array(X, chunks=(X.shape[0], widths)).to_delayed().ravel()
    place = np.random.default_rng(seed).permutation(X.shape[1])
    ends = np.cumsum(widths)
    rows = [place[end - width : end] for end, width in zip(ends, widths, strict=True)]
    (prepared,) = persist([task(PreparedColumns.of, block, sample_weight) for block in blocks])
    largest = float(np.abs(X).max())
    scatter = scatter_of_columns(prepared, rows, largest, X.shape[0], sample_weight)
    return scatter, make_scatter(X, sample_weight, np.argsort(place))


def gathered(scatter, frame):
    return scatter.gathered(frame.pieces)


WEIGHTS = np.random.default_rng(2).uniform(0.0, 2.0, 30) * (np.arange(30) % 7 != 0)


@pytest.mark.parametrize("weight", [None, np.ones(30), WEIGHTS], ids=["none", "one", "some"])
@pytest.mark.parametrize("widths", [(90,), (50, 1, 39), (10,) * 9])
def test_it_is_the_operator_of_the_data_in_one_piece(widths, weight):
    scatter, local = in_blocks(low_rank_and_noise(30, 90), widths, weight)
    assert isinstance(scatter, BlockScatter)
    assert isinstance(local, FactoredScatter)
    W = np.random.default_rng(0).standard_normal((90, 2))
    chosen = np.array([80, 3, 44])
    close = {"rtol": 1e-12, "atol": 1e-9}
    np.testing.assert_allclose(scatter @ W, local @ W, **close)
    np.testing.assert_allclose(scatter.diagonal(), local.diagonal(), **close)
    np.testing.assert_allclose(scatter.rows(chosen), local.rows(chosen), **close)
    assert scatter.max_rank == local.max_rank
    assert scatter.total_weight == pytest.approx(local.total_weight, rel=1e-14)
    (turned, among), (rows, expected) = (
        one.scaled(0.5).regression_rows(chosen) for one in (scatter, local)
    )
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=1e-10)
    np.testing.assert_allclose(among, expected, **close)


@pytest.mark.parametrize("count", [1, 20, 40, 90])
def test_it_explains_as_much(count):
    scatter, local = in_blocks(low_rank_and_noise(30, 90), (50, 1, 39))
    chosen = np.random.default_rng(3).permutation(90)[:count]
    np.testing.assert_allclose(
        scatter.explained_curve(chosen), local.explained_curve(chosen), atol=1e-9
    )


@pytest.mark.parametrize(
    "features", [np.arange(90) % 3 > 0, np.array([50, 2, 7, 89])], ids=["mask", "numbers"]
)
def test_it_can_be_restricted(features):
    scatter, local = in_blocks(low_rank_and_noise(30, 90), (30, 30, 30))
    scatter, local = (
        scatter.scaled(0.5).restricted(features),
        local.scaled(0.5).restricted(features),
    )
    assert scatter.shape == local.shape
    W = np.random.default_rng(0).standard_normal((scatter.shape[0], 2))
    np.testing.assert_allclose(scatter @ W, local @ W, atol=1e-9)


def test_a_block_of_which_nothing_is_left_is_gone():
    scatter, _ = in_blocks(low_rank_and_noise(30, 90), (30, 30, 30))
    assert len(scatter.restricted(scatter.blocks[1].rows).blocks) == 1


@pytest.mark.parametrize("m", [1, 4, 12])
@pytest.mark.parametrize(("n", "widths"), [(30, (50, 1, 39)), (200, (260,)), (200, (90, 100, 70))])
def test_its_eigenvectors_are_those_of_the_data_in_one_piece(n, widths, m):
    scatter, local = in_blocks(low_rank_and_noise(n, sum(widths)), widths)
    values, vectors = scatter.leading_eigenvectors(m)
    expected_values, expected = local.leading_eigenvectors(m)
    assert vectors.shape == expected.shape
    np.testing.assert_allclose(values, expected_values, rtol=1e-11)
    np.testing.assert_allclose(gathered(scatter, vectors), expected, atol=1e-9)
    np.testing.assert_allclose(gathered(scatter, vectors[:, :1]), expected[:, :1], atol=1e-9)


def test_directions_that_the_data_do_not_have_are_filled_up_alike():
    X = np.repeat(low_rank_and_noise(3, 40), 4, axis=0)
    scatter, local = in_blocks(X, (15, 25))
    values, vectors = scatter.leading_eigenvectors(5)
    expected_values, expected = local.leading_eigenvectors(5)
    np.testing.assert_allclose(values, expected_values, rtol=1e-10, atol=1e-9)
    # The directions without variance have no sign of their own: the largest entry may be a tie.
    np.testing.assert_allclose(gathered(scatter, vectors), expected, atol=1e-9)


def test_of_equal_peaks_in_several_blocks_the_first_row_decides_on_the_sign():
    # Two columns: the peaks of three blocks, and the rows that they are in.
    peaks = [
        (np.array([0.5, 0.1]), np.array([7, 7])),
        (np.array([-0.5, -0.9]), np.array([2, 9])),
        (np.array([0.5, 0.8]), np.array([4, 0])),
    ]
    np.testing.assert_array_equal(_signs(peaks), np.diag([-1.0, -1.0]))
    np.testing.assert_array_equal(_signs(peaks[::2]), np.eye(2))


def test_asking_for_more_eigenvectors_than_columns_is_an_error():
    scatter, _ = in_blocks(low_rank_and_noise(3, 5), (5,))
    with pytest.raises(ValueError, match="m must be from 1 to n_features = 5, got 6"):
        scatter.leading_eigenvectors(6)


class CountPasses(Callback):
    """How many times each block took part in a product of a kind."""

    def __init__(self, name):
        super().__init__(pretask=self.count)
        self.name, self.n = name, 0

    def count(self, key, *_):
        self.n += str(key).startswith(f"bsufs-{self.name}-")


def test_eigenvectors_take_far_fewer_passes_than_single_vectors_would():
    scatter, _ = in_blocks(low_rank_and_noise(300, 500, rank=10), (100,) * 5)
    with CountPasses("sample_image") as passes:
        scatter.leading_eigenvectors(10)
    assert 0 < passes.n / 5 <= 12
    scatter, _ = in_blocks(low_rank_and_noise(100, 500, rank=10), (100,) * 5)
    with CountPasses("sample_gram") as passes:
        scatter.leading_eigenvectors(10)
    assert passes.n == 5


def test_block_lanczos_finds_clustered_eigenvalues():
    rng = np.random.default_rng(0)
    values = np.concatenate([[5.0, 5.0, 5.0 - 1e-6], np.linspace(4.0, 0.0, 197)])
    Q, _ = np.linalg.qr(rng.standard_normal((200, 200)))
    A = Q * values @ Q.T
    found, vectors = block_lanczos(lambda V: A @ V, 200, 6)
    np.testing.assert_allclose(found, values[:6], rtol=1e-12)
    np.testing.assert_allclose(A @ vectors, vectors * found, atol=1e-11)


def test_block_lanczos_stops_where_the_matrix_has_no_more_directions():
    A = np.zeros((100, 100))
    A[:3, :3] = np.diag([3.0, 2.0, 1.0])
    found, _ = block_lanczos(lambda V: A @ V, 100, 5)
    np.testing.assert_allclose(found, [3.0, 2.0, 1.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("power", [-200, 0, 150])
def test_units_are_those_of_all_blocks(power):
    X = low_rank_and_noise(20, 40)
    X[:, 25:] *= 10.0**power
    scatter, local = in_blocks(X, (20, 20))
    assert scatter.unit_exponent == local.unit_exponent
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(scatter.diagonal(), local.diagonal(), rtol=1e-12)


def test_a_frame_can_be_spread_multiplied_and_measured():
    scatter, _ = in_blocks(low_rank_and_noise(30, 90), (50, 1, 39))
    W = np.random.default_rng(0).standard_normal((90, 3))
    frame = scatter.frame(W)
    np.testing.assert_array_equal(gathered(scatter, frame), W)
    np.testing.assert_allclose(gathered(scatter, 2.0 * frame), 2.0 * W)
    np.testing.assert_allclose(frame.row_norms(), np.linalg.norm(W, axis=1))
    np.testing.assert_allclose(compute(frame.lazy_gram())[0], W.T @ W)
