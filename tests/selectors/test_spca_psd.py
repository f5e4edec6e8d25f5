import numpy as np
import pytest
from scipy.optimize import minimize
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.scatter import make_scatter
from bsufs.selectors import SPCAPSD
from bsufs.solvers.psd_projection import psd_projection


@pytest.mark.parametrize(("dataset", "run"), golden_cases("SPCA-PSD"))
def test_agrees_with_the_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    d = X.shape[1]
    selector = SPCAPSD(
        50,
        lambda_row=run["params"]["lambda"],
        eta=run["params"]["eta"],
        init=np.arange(1, d + 1) / d,
        compat="reference",
    ).fit(X)
    assert_agrees(selector.scores_, run)
    assert selector.n_iter_ == run["iterations"]
    assert selector.rank_ == run["rank_omega"]
    assert selector.objective_history_[-1] == pytest.approx(run["objective_final"], rel=1e-8)


def naive(X, lambda_row, eta, ridge, n_iter):
    Xc = X - X.mean(axis=0)
    S = Xc.T @ Xc
    d = len(S)
    omega = np.eye(d)
    for _ in range(n_iter):
        w = 1 / (2 * np.sqrt((omega**2).sum(axis=0) + 2**-52))
        omega = (S - eta / 2 * np.eye(d)) @ np.linalg.inv(S + np.diag(lambda_row * w + ridge))
        values, vectors = np.linalg.eigh((omega + omega.T) / 2)
        positive = values > 0
        omega = (vectors[:, positive] * values[positive]) @ vectors[:, positive].T
    value = np.sum((Xc - Xc @ omega) ** 2) + lambda_row * np.linalg.norm(omega, axis=0).sum()
    return np.linalg.norm(omega, axis=0), value + eta * np.trace(omega)


@pytest.mark.parametrize("shape", [(40, 12), (20, 30), (10, 60)])
@pytest.mark.parametrize(("lambda_row", "eta"), [(1.0, 1.0), (0.1, 30.0), (20.0, 0.0)])
def test_the_cheap_forms_equal_the_formula(shape, lambda_row, eta):
    X = np.random.default_rng(0).standard_normal(shape)
    result, _ = psd_projection(
        make_scatter(X),
        X,
        np.ones(shape[1]),
        lambda_row=lambda_row,
        eta=eta,
        ridge=0.01,
        descend=False,
        max_iter=4,
        tol=0.0,
    )
    norms, value = naive(X, lambda_row, eta, 0.01, 4)
    np.testing.assert_allclose(result.W, norms, atol=1e-8)
    assert result.objective_history[-1] == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("lambda_row", ["auto", 0.1, 10.0])
@pytest.mark.parametrize("shape", [(60, 15), (30, 40), (10, 60)])
def test_the_objective_never_rises_by_default(shape, lambda_row):
    X = np.random.default_rng(0).standard_normal(shape)
    selector = SPCAPSD(5, lambda_row=lambda_row, eta=lambda_row, tol=1e-9).fit(X)
    history = selector.objective_history_
    assert selector.n_iter_ >= 1
    assert (np.diff(history) <= 1e-8 * history[0]).all()


def least_value(X, lambda_row, eta):
    """Minimize over Omega = BB', which for enough columns of B has no other minimum."""
    Xc = X - X.mean(axis=0)
    d, r = X.shape[1], min(X.shape)

    def value(b):
        B = b.reshape(d, r)
        images, gram = Xc @ B, B.T @ B
        residual = Xc - images @ B.T
        norms = np.sqrt(np.einsum("ij,ij->i", B, B @ gram) + 1e-14)
        slope = -2 * (residual.T @ images + Xc.T @ (residual @ B)) + 2 * eta * B
        slope += lambda_row * ((B @ gram) / norms[:, None] + B @ ((B / norms[:, None]).T @ B))
        total = np.vdot(residual, residual) + lambda_row * norms.sum() + eta * np.trace(gram)
        return total, slope.ravel()

    start = np.linalg.svd(Xc, full_matrices=False)[2].T
    return minimize(value, start.ravel(), jac=True, method="L-BFGS-B").fun


@pytest.mark.parametrize("shape", [(60, 15), (30, 40), (10, 60)])
def test_the_point_reached_is_near_the_minimizer(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    average = X.var(axis=0).sum() * shape[0] / shape[1]
    reached = SPCAPSD(5).fit(X).objective_history_[-1]
    least = least_value(X, average, average)
    assert least * (1 - 1e-4) <= reached <= 1.02 * least


def test_the_reference_may_raise_the_objective():
    X = np.random.default_rng(0).standard_normal((10, 60))
    free = SPCAPSD(5, lambda_row=0.1, eta=0.1, compat="reference", max_iter=20).fit(X)
    assert np.diff(free.objective_history_).max() > 0
    assert SPCAPSD(5, lambda_row=0.1, eta=0.1).fit(X).stopping_reason_ == "no_descent"


def test_a_trace_weight_that_drowns_the_data_leaves_nothing():
    X = np.random.default_rng(0).standard_normal((10, 60))
    selector = SPCAPSD(5, eta=1e6 * make_scatter(X).trace()).fit(X)
    assert selector.rank_ == 0
    assert selector.support_.sum() == 5


def test_starts():
    X = np.random.default_rng(0).standard_normal((40, 6)) * np.arange(1, 7)
    first, second = (SPCAPSD(2, init="random", random_state=3).fit(X).scores_ for _ in range(2))
    assert np.array_equal(first, second)
    own = np.array([0.5, 0.1, 0.2, 0.3, 0.9, 1.0])
    shuffle = [3, 1, 5, 0, 2, 4]
    options = {"max_iter": 1, "compat": "reference"}
    np.testing.assert_allclose(
        SPCAPSD(2, init=own, **options).fit(X).scores_[shuffle],
        SPCAPSD(2, init=own[shuffle], **options).fit(X[:, shuffle]).scores_,
    )
    for init in ([1.0, 2.0], ["a"] * 6, [np.nan] * 6, [-1.0] * 6):
        with pytest.raises(ValueError, match=r"init must be .* = \(6,\) .*Use init='identity'"):
            SPCAPSD(2, init=init).fit(X)


def test_single_column_and_constant_data():
    X = np.random.default_rng(0).standard_normal((20, 1))
    assert SPCAPSD(1).fit(X).support_.tolist() == [True]
    assert np.isfinite(SPCAPSD(2).fit(np.ones((5, 3))).scores_).all()
