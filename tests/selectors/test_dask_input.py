"""BSUFS on Dask collections: the same answers as on arrays, lazy where it can be."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from bsufs import BSUFS, bsufs_path
from bsufs._dask import call, compute, merged, persist
from bsufs.scatter import make_scatter
from bsufs.selectors import MaxVariance
from bsufs.selectors._columns import canonical_order
from bsufs.selectors._dask_input import _merged_facts, _row_facts, is_dask


@pytest.fixture(scope="module", autouse=True)
def far_away():
    """Let no column come here because there are few of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bsufs.scatter._columns._SMALL_HERE", 0)
        yield


VECTORS = ("scores_", "objective_history_", "explained_variance_curve_")


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 2.0 * rng.standard_normal((n, 4)) @ rng.standard_normal((4, d))
    X += rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d) + 5.0
    X[:, 5] = 1.0 - 2.0 * X[:, 3]  # the same quantity in other units
    X[:, 8] = 7.0
    return X


WIDE, TALL = data(30, 100), data(120, 25)


def fitted(X, sample_weight=None, **parameters):
    parameters = {"drop_rate": 0.2, **parameters}
    return BSUFS(**parameters).fit(X, sample_weight=sample_weight)


def assert_twins(selector, expected, atol=1e-8):
    np.testing.assert_array_equal(selector.ranking_, expected.ranking_)
    np.testing.assert_array_equal(selector.support_, expected.support_)
    np.testing.assert_array_equal(selector.survival_, expected.survival_)
    assert list(selector.selected_features_) == list(expected.selected_features_)
    assert selector.n_components_ == expected.n_components_
    assert selector.n_iter_ == expected.n_iter_
    assert selector.stopping_reason_ == expected.stopping_reason_
    for name in (*VECTORS, "components_", "row_sparse_components_", "element_sparse_components_"):
        value, wanted = getattr(selector, name), getattr(expected, name)
        np.testing.assert_allclose(value, wanted, atol=atol, err_msg=name)
    assert selector.path_.keys() == expected.path_.keys()
    for name, wanted in expected.path_.items():
        np.testing.assert_allclose(selector.path_[name], wanted, atol=atol, err_msg=name)


def cuts(total):
    """Ways to cut a length into pieces that need not be equal."""
    inner = st.lists(st.integers(1, total - 1), max_size=5, unique=True).map(sorted)
    return inner.map(lambda at: tuple(np.diff([0, *at, total]).tolist()))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.sampled_from(["wide", "tall"]), st.data(), st.sampled_from(["threads", "synchronous"]))
def test_any_cut_gives_the_same(shape, draw, scheduler):
    X = WIDE if shape == "wide" else TALL
    chunks = draw.draw(cuts(X.shape[0])), draw.draw(cuts(X.shape[1]))
    with dask.config.set(scheduler=scheduler):
        selector = fitted(da.from_array(X, chunks=chunks), n_features_to_select=10)
    assert_twins(selector, fitted(X, n_features_to_select=10))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_features_to_select": 0.3, "n_components": 3},
        {"n_features_to_select": 0.99, "n_components": 0.4},
        {"n_features_to_select": 9, "must_keep": [9, 20], "never_keep": [1, 2]},
        {"n_features_to_select": 9, "n_polar_steps": 2, "lambda_element": 0.0, "p": 1.0},
        {"n_features_to_select": 9, "init": "rotated-pca", "random_state": 3},
        {"n_features_to_select": 9, "scale": "absolute", "max_iter": 7},
        {"lambda_row": 0.5, "tol": 1e-3},
        {"lambda_row": 0.5, "tol": 1e-3, "must_keep": [8], "n_features_to_select": 7},
        {"lambda_row": 0.5, "tol": 1e-3, "tie_break": "index", "n_features_to_select": 7},
    ],
    ids=lambda parameters: ",".join(parameters) or "default",
)
@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_every_setting_gives_the_same(X, parameters):
    chunks = (X.shape[0], (40, 60)) if X is WIDE else ((50, 70), X.shape[1])
    assert_twins(fitted(da.from_array(X, chunks=chunks), **parameters), fitted(X, **parameters))


def test_a_frame_to_start_from_gives_the_same():
    W, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((100, 3)))
    lazy = da.from_array(WIDE, chunks=(30, 35))
    assert_twins(
        fitted(lazy, init=W, n_features_to_select=9), fitted(WIDE, init=W, n_features_to_select=9)
    )


def test_the_order_of_the_columns_does_not_matter():
    order = np.random.default_rng(0).permutation(100)
    one = fitted(da.from_array(WIDE, chunks=(30, 33)), n_features_to_select=10)
    other = fitted(da.from_array(WIDE[:, order], chunks=(30, 26)), n_features_to_select=10)
    np.testing.assert_array_equal(one.ranking_[order], other.ranking_)


@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
@pytest.mark.parametrize("kind", ["numpy", "dask", "number"])
def test_weights_give_the_same(X, kind):
    n = X.shape[0]
    weight = np.random.default_rng(1).uniform(0.0, 3.0, n) * (np.arange(n) % 5 > 0)
    if kind == "number":
        weight = 2.0
    expected = fitted(X, weight, n_features_to_select=10)
    if kind == "dask":
        weight = da.from_array(weight, chunks=17)
    lazy = da.from_array(X, chunks=(n, 40) if X is WIDE else (50, 25))
    assert_twins(fitted(lazy, weight, n_features_to_select=10), expected)


@pytest.mark.parametrize("n_partitions", [1, 3, 7])
@pytest.mark.parametrize("weight", [None, "numpy", "dask", "number"])
def test_a_data_frame_gives_the_same_and_keeps_its_names(n_partitions, weight):
    frame = pd.DataFrame(TALL, columns=[f"column {i}" for i in range(25)])
    frame["column 4"] = frame["column 4"].round().astype("int64")
    weights = None if weight is None else np.linspace(0.0, 2.0, 120)
    weights = 1.5 if weight == "number" else weights
    expected = fitted(frame, weights, n_features_to_select=6, must_keep=["column 9"])
    lazy = dd.from_pandas(frame, npartitions=n_partitions)
    if weight == "dask":
        weights = dd.from_pandas(pd.Series(weights), npartitions=n_partitions)
    selector = fitted(lazy, weights, n_features_to_select=6, must_keep=["column 9"])
    assert_twins(selector, expected)
    assert list(selector.feature_names_in_) == list(frame.columns)


def test_empty_partitions_and_unknown_lengths_do_not_matter():
    frame = dd.from_pandas(pd.DataFrame(TALL), npartitions=6)
    frame = frame[frame[0] > np.median(TALL[:, 0])]
    nothing = frame.partitions[2].loc[lambda part: part[0] > 1e9]
    lazy = dd.concat([frame.partitions[:3], nothing, frame.partitions[3:]])
    kept = TALL[TALL[:, 0] > np.median(TALL[:, 0])]
    expected = fitted(kept, n_features_to_select=6)
    assert_twins(fitted(lazy, n_features_to_select=6), expected)
    array = lazy.to_dask_array()
    assert np.isnan(array.shape[0])
    assert_twins(fitted(array, n_features_to_select=6), expected)


def test_a_data_frame_with_more_columns_than_rows_works_too():
    lazy = dd.from_pandas(pd.DataFrame(WIDE), npartitions=4)
    assert_twins(fitted(lazy, n_features_to_select=6), fitted(WIDE, n_features_to_select=6))


@pytest.mark.parametrize("shape", [(40, 60), (60, 40)])
def test_a_mean_a_million_times_the_deviation_costs_nothing(shape):
    X = data(*shape)[:, 10:]
    # Multiples of a power of two, so that the shift itself rounds nothing off.
    X = np.round(X * 2**16) / 2**16
    shifted = X + 1e6 * 2.0**3
    chunks = (7, X.shape[1]) if shape[0] > shape[1] else (shape[0], 13)
    selector = fitted(da.from_array(shifted, chunks=chunks), n_features_to_select=5)
    assert_twins(selector, fitted(X, n_features_to_select=5), atol=1e-10)


@pytest.mark.parametrize("power", [-200.0, 200.0])
@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_very_large_and_very_small_numbers_are_in_range(X, power):
    X = X * 10.0**power
    lazy = da.from_array(X, chunks=(X.shape[0], 30) if X is not TALL else (30, 25))
    assert_twins(fitted(lazy, n_features_to_select=5), fitted(X, n_features_to_select=5))


@pytest.mark.parametrize("kind", [np.float32, np.int16])
@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_other_kinds_of_numbers_give_the_same(X, kind):
    X = X.astype(kind)
    lazy = da.from_array(X, chunks=(20, 30))
    assert_twins(fitted(lazy, n_features_to_select=5), fitted(X, n_features_to_select=5))


def test_merging_what_blocks_tell_leaves_each_of_them_as_it_was():
    # A task may run twice when a worker dies, and gets the same parts again.
    parts = persist(
        [call(_row_facts, TALL[start : start + 40], start, None) for start in (0, 40, 80)]
    )
    for _ in range(2):
        (facts,) = compute([merged(parts, _merged_facts)])
        assert facts.sums.n_rows == 120
        np.testing.assert_array_equal(np.argsort(facts.key), canonical_order(TALL))
        np.testing.assert_allclose(
            facts.sums.scatter() @ np.eye(25), make_scatter(TALL) @ np.eye(25), atol=1e-9
        )


def test_the_whole_path_comes_from_dask_arrays_too():
    path = bsufs_path(da.from_array(WIDE, chunks=(30, 33)), drop_rate=0.3)
    expected = bsufs_path(WIDE, drop_rate=0.3)
    np.testing.assert_array_equal(path.ranking, expected.ranking)
    np.testing.assert_allclose(
        path.explained_variance_ratio, expected.explained_variance_ratio, atol=1e-8
    )


def test_verbose_and_callback_work_as_for_arrays(capsys):
    told = []
    for X in (WIDE, da.from_array(WIDE, chunks=(30, 33))):
        seen = []
        selector = fitted(
            X,
            n_features_to_select=5,
            verbose=2,
            callback=lambda now, seen=seen: (
                seen.append(now.rows[now.V.any(axis=1)]) or now.iteration == 4
            ),
        )
        assert selector.stopping_reason_ == "callback"
        told.append((capsys.readouterr().out, [rows.tolist() for rows in seen]))
    assert told[0] == told[1]
    assert told[0][0].count("\n") == 4


@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_the_data_are_read_once(X):
    read = []

    def load(block):
        if block.size:  # Dask tries the function out on an empty block
            read.append(block.shape)
        return block

    cut = da.from_array(X, chunks=(X.shape[0], 25) if X is WIDE else (30, 25))
    lazy = cut.map_blocks(load, dtype=X.dtype, meta=np.empty((0, 0)))
    fitted(lazy)
    assert len(read) == 4


class NothingRuns(Callback):
    """Fails when a task is run."""

    def __init__(self):
        super().__init__(pretask=self.fail)

    def fail(self, key, *_):
        raise AssertionError(f"{key} was run")


def test_construction_and_transform_compute_nothing():
    lazy, frame = (
        da.from_array(WIDE, chunks=(10, 30)),
        dd.from_pandas(pd.DataFrame(TALL), npartitions=3),
    )
    wide, tall = fitted(lazy, n_features_to_select=6), fitted(frame, n_features_to_select=6)
    with NothingRuns():
        BSUFS(4)
        assert not hasattr(clone(wide), "support_")
        columns, part = wide.transform(lazy), tall.transform(frame)
        assert is_dask(columns)
        assert is_dask(part)
    assert columns.chunks[0] == lazy.chunks[0]
    np.testing.assert_array_equal(columns.compute(), WIDE[:, wide.support_])
    pd.testing.assert_frame_equal(
        part.compute(), pd.DataFrame(TALL).loc[:, tall.support_], check_column_type=False
    )
    np.testing.assert_array_equal(wide.transform(WIDE), WIDE[:, wide.support_])


def test_set_output_is_for_data_at_hand():
    lazy = da.from_array(WIDE, chunks=(10, 30))
    selector = BSUFS(6, drop_rate=0.3).set_output(transform="pandas")
    assert is_dask(selector.fit_transform(lazy))
    assert is_dask(selector.transform(lazy))
    assert isinstance(selector.transform(WIDE), pd.DataFrame)
    assert isinstance(selector.fit_transform(WIDE), pd.DataFrame)


def test_any_fitted_selector_transforms_dask_arrays():
    selector = MaxVariance(5).fit(WIDE)
    lazy = selector.transform(da.from_array(WIDE, chunks=(10, 30)))
    np.testing.assert_array_equal(lazy.compute(), selector.transform(WIDE))


def test_transform_needs_a_fit_and_the_same_columns():
    lazy = da.from_array(WIDE, chunks=(10, 30))
    with pytest.raises(NotFittedError):
        BSUFS(3).transform(lazy)
    with pytest.raises(ValueError, match="X has 99 features, but BSUFS is expecting 100"):
        fitted(lazy, n_features_to_select=3).transform(lazy[:, 1:])
    frame = pd.DataFrame(TALL, columns=[f"c{i}" for i in range(25)])
    selector = fitted(dd.from_pandas(frame, npartitions=2), n_features_to_select=3)
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(dd.from_pandas(frame.rename(columns={"c3": "d3"}), npartitions=2))


def test_batches_are_taken_in_after_a_fit_on_dask():
    selector = fitted(da.from_array(TALL, chunks=(50, 25)), n_features_to_select=6)
    for batch in np.array_split(TALL, 4):
        selector.partial_fit(batch)
    np.testing.assert_array_equal(selector.ranking_, fitted(TALL).ranking_)


def spoiled(X, value, *places):
    X = X.copy()
    for place in places:
        X[place] = value
    return X


@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_numbers_that_are_not_finite_are_named_as_for_arrays(X, value, word):
    X = spoiled(X, value, (29, 20), (22, 3), (22, 24))
    with pytest.raises(ValueError, match=word) as expected:
        fitted(X)
    lazy = da.from_array(X, chunks=(X.shape[0], 10) if X.shape[1] > 99 else (25, 25))
    with pytest.raises(ValueError, match=word) as caught:
        fitted(lazy)
    assert str(caught.value) == str(expected.value)
    assert "row 22, column 3" in str(caught.value)


@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_what_is_wrong_in_a_later_block_has_its_place_in_all_of_the_data(X):
    lazy = da.from_array(spoiled(X, np.nan, (27, 23)), chunks=(10, 10))
    with pytest.raises(ValueError, match=r"row 27, column 23\b"):
        fitted(lazy)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: da.ones(5, chunks=2), "X must be a Dask array or data frame with two dim"),
        (lambda: da.ones((1, 4), chunks=2), "at least two rows"),
        (lambda: da.ones((6, 4), chunks=2), "every column is constant"),
        (lambda: da.ones((5, 0), chunks=2), "at least one column"),
        (lambda: da.from_array(np.array([["a", "b"]] * 4), chunks=2), "NumPy arrays of numbers"),
        (lambda: da.from_array(WIDE, chunks=9)[:, da.from_array(WIDE[0] > 5)], "compute_chunk"),
        (
            lambda: dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1),
            r"columns \['b'\] are not numeric",
        ),
    ],
    ids=["vector", "one row", "constant", "no column", "text", "unknown", "text column"],
)
def test_wrong_data_are_a_clear_error(make, message):
    selector = BSUFS()
    with pytest.raises(ValueError, match=message):
        selector.fit(make())
    assert not [name for name in vars(selector) if name.endswith("_")]


@pytest.mark.parametrize(
    ("X", "weight", "message"),
    [
        (WIDE, np.zeros(30), "positive entry"),
        (WIDE, np.ones(29), r"each of the 30 rows, got shape \(29,\)"),
        (TALL, np.zeros(120), "positive entry"),
        (TALL, np.ones(7), r"each of the 120 rows, got shape \(7,\)"),
        (TALL, da.ones(7, chunks=2), r"each of the 120 rows, got shape \(7,\)"),
        (TALL, -da.ones(120, chunks=40), "not negative"),
        (TALL, da.ones(119, chunks=40), r"each of the 120 rows, got shape \(119,\)"),
    ],
)
def test_wrong_weights_are_a_clear_error(X, weight, message):
    with pytest.raises(ValueError, match=message):
        fitted(da.from_array(X, chunks=(40, 25)), weight)


@pytest.mark.parametrize("length", [7, 200])
def test_weights_of_another_length_than_a_data_frame_are_a_clear_error(length):
    with pytest.raises(ValueError, match="sample_weight must have one number for each"):
        fitted(dd.from_pandas(pd.DataFrame(TALL), npartitions=3), np.ones(length))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features_to_select": 101}, "n_features_to_select must be at most"),
        ({"must_keep": [100]}, "must_keep must hold column numbers from 0 to 99"),
    ],
)
def test_settings_that_do_not_fit_are_a_clear_error_before_anything_is_read(parameters, message):
    with NothingRuns(), pytest.raises(ValueError, match=message):
        fitted(da.from_array(WIDE, chunks=(30, 30)), **parameters)


@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_the_trust_region_works_too(X):
    lazy = da.from_array(X, chunks=(40, 25))
    parameters = {"w_step": "trust-region", "n_features_to_select": 5}
    assert_twins(fitted(lazy, **parameters), fitted(X, **parameters))


def test_the_warnings_of_fixed_weights_come_too():
    lazy = da.from_array(WIDE, chunks=(30, 30))
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=2"):
        fitted(lazy, lambda_row=0.3, max_iter=2, tol=1e-12)
    with pytest.warns(UserWarning, match="so large that no feature remains"):
        fitted(lazy, lambda_row=50.0, n_features_to_select=4)
