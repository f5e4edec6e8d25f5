"""S in column blocks against S of the same data in one piece."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

from bsufs.penalties import ElementPenalty, RowPenalty
from bsufs.scatter import FactoredScatter, _columns, _dense, make_scatter
from bsufs.scatter._columns import ColumnScatter
from bsufs.selectors._dask_input import DaskData
from bsufs.selectors._nuisance import KnownColumns
from bsufs.solvers.alternation import Coupling, Problem, proximal_alternation
from bsufs.solvers.path import sparsity_path
from bsufs.solvers.w_steps import PolarStep, TrustRegionStep


@pytest.fixture(autouse=True)
def far_away(monkeypatch):
    """Let no column come here because there are few of them."""
    monkeypatch.setattr(_columns, "_SMALL_HERE", 0)


def low_rank_and_noise(n, d, rank=5, seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return 2.0 * signal + rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d) + 3.0


def in_blocks(X, widths, sample_weight=None):
    """The operator of columns with workers, and that of the same columns here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bsufs._dask.n_workers", lambda: len(widths))
        array = da.from_array(X, chunks=(X.shape[0], widths))
        nothing = KnownColumns(*np.zeros((2, X.shape[1]), dtype=bool))
        data = DaskData(array, sample_weight, None, nothing, lambda n, weight: np.empty((n, 0)))
    return data.scatter, make_scatter(X, sample_weight, data.order)


WEIGHTS = np.random.default_rng(2).uniform(0.0, 2.0, 30) * (np.arange(30) % 7 != 0)


@pytest.mark.parametrize("weight", [None, np.ones(30), WEIGHTS], ids=["none", "one", "some"])
@pytest.mark.parametrize("widths", [(90,), (50, 1, 39), (10,) * 9])
def test_it_is_the_operator_of_the_data_in_one_piece(widths, weight):
    scatter, local = in_blocks(low_rank_and_noise(30, 90), widths, weight)
    assert isinstance(scatter, ColumnScatter)
    assert isinstance(local, FactoredScatter)
    W = np.random.default_rng(0).standard_normal((90, 2))
    chosen = np.array([80, 3, 44])
    close = {"rtol": 1e-12, "atol": 1e-9}
    np.testing.assert_allclose(scatter @ W, local @ W, **close)
    np.testing.assert_allclose(scatter.diagonal(), local.diagonal(), **close)
    np.testing.assert_allclose(scatter.rows(chosen), local.rows(chosen), **close)
    assert scatter.max_rank == local.max_rank
    assert scatter.total_weight == pytest.approx(local.total_weight, rel=1e-14)


@pytest.mark.parametrize("count", [1, 20, 40, 90])
def test_it_explains_as_much(count):
    scatter, local = in_blocks(low_rank_and_noise(30, 90), (50, 1, 39))
    chosen = np.random.default_rng(3).permutation(90)[:count]
    expected = local.explained_curve(chosen)
    np.testing.assert_allclose(scatter.explained_curve(chosen), expected, atol=1e-9)
    # The eigenvectors leave a Gram matrix behind, which gives the same.
    scatter.leading_eigenvectors(2)
    np.testing.assert_allclose(scatter.explained_curve(chosen), expected, atol=1e-9)


@pytest.mark.parametrize("small_here", [0, 2**26])
@pytest.mark.parametrize(
    "features", [np.arange(90) % 3 > 0, np.array([50, 2, 7, 89])], ids=["mask", "numbers"]
)
def test_it_can_be_restricted(features, small_here, monkeypatch):
    monkeypatch.setattr(_columns, "_SMALL_HERE", small_here)
    scatter, local = in_blocks(low_rank_and_noise(30, 90), (30, 30, 30))
    scatter, local = (
        scatter.scaled(0.5).restricted(features),
        local.scaled(0.5).restricted(features),
    )
    assert isinstance(scatter, FactoredScatter if small_here else ColumnScatter)
    assert scatter.shape == local.shape
    W = np.random.default_rng(0).standard_normal((scatter.shape[0], 2))
    np.testing.assert_allclose(scatter @ W, local @ W, atol=1e-9)


def test_a_block_of_which_nothing_is_left_is_gone():
    scatter, _ = in_blocks(low_rank_and_noise(30, 90), (30, 30, 30))
    assert len(scatter.restricted(scatter.blocks[1].features).blocks) == 1


@pytest.mark.parametrize("largest_gram", [0, 4096])
@pytest.mark.parametrize("m", [1, 4, 12])
@pytest.mark.parametrize(("n", "widths"), [(30, (50, 1, 39)), (200, (260,)), (200, (90, 100, 70))])
def test_its_eigenvectors_are_those_of_the_whole_data(n, widths, m, largest_gram, monkeypatch):
    monkeypatch.setattr(_dense, "LARGEST_GRAM", largest_gram)
    scatter, local = in_blocks(low_rank_and_noise(n, sum(widths)), widths)
    values, vectors = scatter.leading_eigenvectors(m)
    expected_values, expected = local.leading_eigenvectors(m)
    np.testing.assert_allclose(values, expected_values, rtol=1e-11)
    np.testing.assert_allclose(vectors, expected, atol=1e-9)


def test_directions_that_the_data_do_not_have_are_filled_up_alike():
    X = np.repeat(low_rank_and_noise(3, 40), 4, axis=0)
    scatter, local = in_blocks(X, (15, 25))
    values, vectors = scatter.leading_eigenvectors(5)
    expected_values, expected = local.leading_eigenvectors(5)
    np.testing.assert_allclose(values, expected_values, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(vectors, expected, atol=1e-9)


@pytest.mark.parametrize("power", [-180, 180])
def test_units_are_those_of_all_blocks(power):
    X = low_rank_and_noise(30, 90)
    X[:, :40] *= 10.0**power
    scatter, local = in_blocks(X, (30, 30, 30))
    assert scatter.unit_exponent == local.unit_exponent
    np.testing.assert_allclose(scatter.diagonal(), local.diagonal(), rtol=1e-10)


@pytest.mark.parametrize("w_step", [PolarStep(1), PolarStep(2), TrustRegionStep()])
@pytest.mark.parametrize("element", [None, Coupling(ElementPenalty(1e-3, 0.5), 1.0, 1e-3)])
def test_the_path_is_the_same(element, w_step):
    scatter, local = in_blocks(low_rank_and_noise(20, 60), (25, 35))
    values, W = local.leading_eigenvectors(3)
    results = [
        sparsity_path(
            one.scaled(1.0 / values[0]),
            W,
            p=0.5,
            beta_row=10.0,
            tau=1e-3,
            element=element,
            drop_rate=0.2,
            w_step=w_step,
        )
        for one in (scatter, local)
    ]
    distributed, expected = results
    np.testing.assert_array_equal(distributed.n_alive, expected.n_alive)
    np.testing.assert_array_equal(distributed.survival.last_step, expected.survival.last_step)
    for name in ("lambda_row", "objective_history", "component_variance_ratio"):
        np.testing.assert_allclose(
            getattr(distributed, name), getattr(expected, name), atol=1e-8, err_msg=name
        )
    np.testing.assert_allclose(distributed.at(1).W, expected.at(1).W, atol=1e-7)


def test_fixed_weights_give_the_same():
    scatter, local = in_blocks(low_rank_and_noise(20, 60), (25, 35))
    values, W = local.leading_eigenvectors(3)
    results = [
        proximal_alternation(
            Problem(
                one.scaled(1.0 / values[0]), Coupling(RowPenalty(0.01, 0.5), 10.0, 1e-3), None, 1e-3
            ),
            W,
            max_iter=20,
        )
        for one in (scatter, local)
    ]
    np.testing.assert_allclose(results[0].objective_history, results[1].objective_history)
    np.testing.assert_allclose(results[0].V, results[1].V, atol=1e-9)


class LargestResult(Callback):
    """Notes how large the arrays are that tasks return."""

    def __init__(self):
        self.nbytes = 0
        super().__init__(posttask=self._look)

    def _look(self, key, result, graph, state, worker):
        if isinstance(result, np.ndarray):
            self.nbytes = max(self.nbytes, result.nbytes)


def test_no_worker_holds_more_than_a_block_or_the_samples():
    X = low_rank_and_noise(40, 900)
    largest = LargestResult()
    with largest, dask.config.set(scheduler="synchronous"):
        scatter, _ = in_blocks(X, (90,) * 10)
        scatter.leading_eigenvectors(5)
        scatter @ np.eye(900, 5)
    assert 0 < largest.nbytes <= X.nbytes / 10
