import numpy as np
import pytest
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.selectors import FENPCAFS
from bsufs.solvers.fuzzy_elastic_net import ElasticNet


@pytest.mark.parametrize(("dataset", "run"), golden_cases("FEN-PCAFS"))
def test_agrees_with_the_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    params = dict(run["params"])
    m = params.pop("proj_dim")
    selector = FENPCAFS(50, n_components=m, compat="reference", **params).fit(X)
    assert_agrees(selector.scores_, run)
    assert selector.n_iter_ == run["iterations"]
    assert selector.alpha_ == pytest.approx(run["alpha_final"], rel=1e-8)
    assert selector.objective_history_[-1] == pytest.approx(run["objective_final"], rel=1e-8)


@pytest.mark.parametrize("u", [0.3, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("p", [0.5, 1.0])
@pytest.mark.parametrize("shape", [(60, 15), (15, 40)])
def test_no_iteration_increases_the_objective(shape, p, u):
    X = np.random.default_rng(0).standard_normal(shape)
    selector = FENPCAFS(5, n_components=3, p=p, u=u, s=0.5, tol=0.0, max_iter=30).fit(X)
    history = selector.objective_history_
    assert (np.diff(history) <= 1e-11 * history[0]).all()


@pytest.mark.parametrize("u", [0.3, 1.0, 1.5, 3.0])
@pytest.mark.parametrize(("ridge", "row"), [(2.0, 5.0), (5.0, 2.0), (0.0, 1e-4)])
def test_the_share_minimizes_the_penalty(u, ridge, row):
    net = ElasticNet(gamma=1.0, u=u, p=0.5, s=0.7)
    best = net.value(net.best_share(ridge, row), ridge, row)
    grid = [net.value(alpha, ridge, row) for alpha in np.linspace(0, 1, 1001)]
    assert best <= min(grid) + 1e-12


def test_penalties_that_weigh_the_same_are_not_told_apart_by_rounding():
    # With s="auto" they weigh the same at the start, and for u < 1 one of them takes all.
    X = np.random.default_rng(0).standard_normal((20, 30))
    expected = FENPCAFS(5, u=0.5).fit(X).scores_
    for unit in (3.0, 7.0, 1e3):
        np.testing.assert_allclose(FENPCAFS(5, u=0.5).fit(unit * X).scores_, expected, atol=1e-6)


def test_the_closed_form_is_a_maximizer_below_one():
    net = ElasticNet(gamma=1.0, u=0.5, p=0.5, s=1.0)
    top = net.value(net.stationary_share(2.0, 5.0), 2.0, 5.0)
    assert top >= max(net.value(alpha, 2.0, 5.0) for alpha in np.linspace(0, 1, 1001))


def test_both_shapes_solve_the_same_problem():
    # Copies of the samples turn a wide problem into a tall one with twice the scatter.
    X = np.random.default_rng(0).standard_normal((12, 20))
    wide = FENPCAFS(5, n_components=3, gamma=1.0, max_iter=20).fit(X)
    tall = FENPCAFS(5, n_components=3, gamma=2.0, max_iter=20).fit(np.vstack([X, X]))
    np.testing.assert_allclose(wide.scores_, tall.scores_, atol=1e-8)


def test_the_reference_form_needs_u_other_than_one():
    X = np.random.default_rng(0).standard_normal((20, 5))
    with pytest.raises(ValueError, match="u must differ from 1 with compat='reference'"):
        FENPCAFS(2, u=1.0, compat="reference").fit(X)


def test_coefficients_follow_the_columns():
    X = np.random.default_rng(0).standard_normal((40, 6)) * [1, 5, 2, 6, 3, 4]
    selector = FENPCAFS(3).fit(X)
    np.testing.assert_allclose((selector.coef_**2).sum(axis=0), selector.scores_, rtol=1e-12)
    assert selector.scores_.argmax() == 3


def test_weights_and_values_are_in_the_units_of_the_data():
    X = np.random.default_rng(0).standard_normal((40, 6)) * np.arange(1, 7)
    plain, large = FENPCAFS(3).fit(X), FENPCAFS(3).fit(1e140 * X)
    assert large.gamma_ == pytest.approx(1e280 * plain.gamma_)
    np.testing.assert_allclose(
        large.objective_history_[-1], 1e280 * plain.objective_history_[-1], rtol=1e-6
    )
    assert np.isinf(FENPCAFS(3).fit(1e250 * X).gamma_)
    assert FENPCAFS(3, gamma=2.5).fit(1e250 * X).gamma_ == 2.5


def test_single_column():
    X = np.random.default_rng(0).standard_normal((20, 1))
    assert FENPCAFS(1).fit(X).support_.tolist() == [True]
    assert FENPCAFS(1, gamma=1.0).fit(X.astype(np.float32)).alpha_ <= 1
