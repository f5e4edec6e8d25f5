import numpy as np
import pytest
from scipy import linalg, sparse
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.selectors import SPCAFS


@pytest.mark.parametrize(("dataset", "run"), golden_cases("SPCAFS"))
def test_agrees_with_the_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    params = run["params"]
    selector = SPCAFS(
        50,
        n_components=params["proj_dim"],
        gamma=params["gamma"],
        p=params["p"],
        compat="reference",
    ).fit(X)
    assert_agrees(selector.scores_, run, tolerance=1e-4)
    assert selector.n_iter_ == run["iterations"]
    assert selector.objective_history_[-1] == pytest.approx(run["objective_final"], rel=1e-6)


@pytest.mark.parametrize("p", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(60, 15), (15, 60), (30, 300)])
def test_no_iteration_increases_the_objective(shape, p):
    X = np.random.default_rng(0).standard_normal(shape)
    selector = SPCAFS(5, n_components=3, p=p, tol=0.0, max_iter=30).fit(X)
    history = selector.objective_history_
    assert (np.diff(history) <= 1e-11 * np.abs(history).max()).all()


def test_a_vanishing_penalty_gives_the_principal_components():
    X = np.random.default_rng(0).standard_normal((50, 8)) * np.arange(1, 9)
    selector = SPCAFS(4, n_components=2, gamma=1e-9).fit(X)
    Xc = X - X.mean(axis=0)
    _, E = linalg.eigh(Xc.T @ Xc)
    np.testing.assert_allclose(selector.scores_, (E[:, -2:] ** 2).sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("shape", [(60, 15), (15, 40)])
def test_sparse_data_give_the_result_of_dense_data(shape):
    X = sparse.random_array(shape, density=0.4, random_state=np.random.default_rng(0), format="csr")
    dense = SPCAFS(5, n_components=3).fit(X.toarray())
    np.testing.assert_allclose(SPCAFS(5, n_components=3).fit(X).scores_, dense.scores_, atol=1e-8)


def test_the_unit_of_the_data_does_not_matter_by_default():
    X = np.random.default_rng(0).standard_normal((40, 10)) * np.arange(1, 11)
    for unit in (1e-3, 1e150):
        np.testing.assert_allclose(
            SPCAFS(3).fit(unit * X).scores_, SPCAFS(3).fit(X).scores_, atol=1e-6
        )


def test_weights_and_values_are_in_the_units_of_the_data():
    X = np.random.default_rng(0).standard_normal((40, 6)) * np.arange(1, 7)
    plain, large = SPCAFS(3).fit(X), SPCAFS(3).fit(1e140 * X)
    assert large.gamma_ == pytest.approx(1e280 * plain.gamma_)
    np.testing.assert_allclose(
        large.objective_history_[-1], 1e280 * plain.objective_history_[-1], rtol=1e-6
    )
    assert np.isinf(SPCAFS(3).fit(1e250 * X).gamma_)
    assert SPCAFS(3, gamma=2.5).fit(1e250 * X).gamma_ == 2.5


def test_one_hot_data():
    # Eigenvalues repeat, of which LAPACK may lose some when asked for a range.
    X = np.eye(13)[np.arange(39) % 13]
    for m in (1, 3, 12):
        W = SPCAFS(n_components=m).fit(X).components_.T
        assert W.shape == (13, m)
        np.testing.assert_allclose(W.T @ W, np.eye(m), atol=1e-10)
    assert np.isfinite(SPCAFS().fit(X).scores_).all()


def test_more_components_than_the_data_can_have_are_refused():
    with pytest.raises(
        ValueError, match=r"n_components must be at most 4, .* got 5\. Ask for fewer"
    ):
        SPCAFS(2, n_components=5).fit(np.random.default_rng(0).standard_normal((5, 9)))


def test_float32_and_single_column():
    X = np.random.default_rng(0).standard_normal((20, 6))
    assert SPCAFS(2).fit(X.astype(np.float32)).support_.sum() == 2
    assert SPCAFS(1).fit(X[:, :1]).support_.tolist() == [True]
