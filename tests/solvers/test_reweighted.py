import numpy as np
import pytest
from scipy import linalg, sparse

from bsufs.scatter import make_scatter
from bsufs.solvers.forms import DenseForm, FactoredForm, scatter_form
from bsufs.solvers.reweighted import lowest_eigenvectors, reweighted_eigenvectors, row_weights

rng = np.random.default_rng(0)


def forms():
    tall, wide = rng.standard_normal((300, 220)), rng.standard_normal((30, 240))
    small = rng.standard_normal((20, 12))
    thin = sparse.random_array(
        (30, 240), density=0.3, random_state=np.random.default_rng(1), format="csr"
    )
    return {
        "dense-small": (DenseForm(small.T @ small), small.T @ small),
        "dense": (DenseForm(tall.T @ tall), tall.T @ tall),
        "factored": (FactoredForm(wide), wide.T @ wide),
        "negative-dense": _negative(tall),
        "negative-factored": _negative(wide),
        "negative-sparse-wide": _negative(thin),
        "negative-sparse-tall": _negative(sparse.csr_array(thin.T)),
    }


def _negative(X):
    Xc = X.toarray() if sparse.issparse(X) else X
    Xc = Xc - Xc.mean(axis=0)
    scatter = make_scatter(X)
    largest = scatter.leading_eigenvectors(1)[0][0]
    return scatter_form(scatter, X, negative=True, lower_bound=-largest), -Xc.T @ Xc


FORMS = forms()


@pytest.mark.parametrize("name", FORMS)
def test_the_lowest_eigenvectors_are_those_of_a_full_decomposition(name):
    form, M = FORMS[name]
    diagonal = 10.0 ** rng.uniform(-2, 2, size=M.shape[0])
    values, W = lowest_eigenvectors(form, diagonal, 4)
    expected, E = linalg.eigh(M + np.diag(diagonal))
    np.testing.assert_allclose(values, expected[:4], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(W @ W.T, E[:, :4] @ E[:, :4].T, atol=1e-10)
    np.testing.assert_allclose(form.product(W), M @ W, atol=1e-9)


@pytest.mark.parametrize("name", FORMS)
def test_huge_weights_leave_the_eigenvectors_of_the_other_features_exact(name):
    form, M = FORMS[name]
    d = M.shape[0]
    diagonal = np.full(d, 1e14)
    free = np.arange(0, d, 3)
    diagonal[free] = rng.uniform(1, 2, size=free.size)
    _, W = lowest_eigenvectors(form, diagonal, 2)
    _, E = linalg.eigh((M + np.diag(diagonal))[np.ix_(free, free)])
    E = E[:, :2]
    np.testing.assert_allclose(W[free] @ W[free].T, E @ E.T, atol=1e-9)


@pytest.mark.parametrize("wrong", [1e9, -1e9])
def test_a_wrong_guess_of_the_shift_does_no_harm(wrong):
    form, M = FORMS["dense"]
    diagonal = np.ones(M.shape[0])
    values, _ = lowest_eigenvectors(form, diagonal, 3, shift=wrong)
    # A far shift takes digits, but only those that rounding takes of a matrix of its size.
    lost = M.shape[0] * np.finfo(float).eps * abs(wrong)
    np.testing.assert_allclose(values, linalg.eigvalsh(M)[:3] + 1, atol=lost)


def test_the_crowded_lower_end_of_a_rank_deficient_form_is_resolved():
    A = rng.standard_normal((20, 400))
    diagonal = 1e-5 / (1.0 + np.arange(400) / 400)
    values, W = lowest_eigenvectors(FactoredForm(A), diagonal, 5)
    M = A.T @ A + np.diag(diagonal)
    np.testing.assert_allclose(values, linalg.eigvalsh(M)[:5], rtol=1e-7)
    assert np.abs(M @ W - W * values).max() < 1e-15 * linalg.norm(M)


@pytest.mark.parametrize("p", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("name", FORMS)
def test_no_iteration_increases_the_objective(name, p):
    form, M = FORMS[name]
    gamma = 0.05 * np.abs(M).max()
    result = reweighted_eigenvectors(form, 3, gamma=gamma, p=p, max_iter=15, tol=None)
    history = result.objective_history
    assert result.n_iter == history.size == 15
    assert result.stopping_reason == "max_iter"
    assert (np.diff(history) <= 1e-11 * np.abs(history).max()).all()


def test_the_iteration_ends_at_a_fixed_point():
    form, M = FORMS["negative-dense"]
    result = reweighted_eigenvectors(form, 3, gamma=20.0, max_iter=2000, tol=1e-13)
    assert result.stopping_reason == "converged"
    weights = row_weights((result.W**2).sum(axis=1), 1.0)
    gradient = M @ result.W + 20.0 * weights[:, None] * result.W
    alive = (result.W**2).sum(axis=1) > 1e-12
    tangent = gradient - result.W @ (result.W.T @ gradient)
    assert np.abs(tangent[alive]).max() < 1e-4 * np.abs(M).max()


def test_start_weights_are_the_callers_and_the_plain_value_has_no_eps():
    form, M = FORMS["dense-small"]
    weights = np.linspace(1, 5, M.shape[0])
    result = reweighted_eigenvectors(
        form, 2, gamma=3.0, p=0.5, start_weights=weights, max_iter=1, plain_value=True
    )
    squares = (result.W**2).sum(axis=1)
    trace = linalg.eigvalsh(M + 3.0 * np.diag(weights))[:2].sum() - 3.0 * weights @ squares
    np.testing.assert_allclose(result.objective_history, [trace + 3.0 * np.sqrt(squares).sum()])
