from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, sparse
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.selectors import FSPCA


@pytest.mark.parametrize(("dataset", "run"), golden_cases("FSPCA"))
def test_agrees_with_the_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    params = run["params"]
    selector = FSPCA(
        params["n_features"], n_components=params["proj_dim"], solver=params["solver"]
    ).fit(X)
    assert_agrees(selector.scores_, run)
    assert np.flatnonzero(selector.support_).tolist() == run["selected_0based"]
    assert selector.objective_history_[-1] == pytest.approx(run["objective_final"], rel=1e-8)


def best_by_trying_all(S, m, k):
    def explained(subset):
        return linalg.eigvalsh(S[np.ix_(subset, subset)])[-m:].sum()

    return max(explained(subset) for subset in combinations(range(S.shape[0]), k))


@pytest.mark.parametrize("solver", ["Go", "IPU"])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 4), (2, 3), (3, 3), (3, 5)])
def test_is_exact_when_the_rank_is_the_number_of_components(m, k, solver):
    rng = np.random.default_rng(10 * m + k)
    X = rng.standard_normal((30, m)) @ rng.standard_normal((m, 8))
    selector = FSPCA(k, n_components=m, solver=solver).fit(X)
    Xc = X - X.mean(axis=0)
    best = best_by_trying_all(Xc.T @ Xc, m, k)
    assert selector.objective_history_[-1] == pytest.approx(best, rel=1e-10)
    assert selector.stopping_reason_ == "exact"


@pytest.mark.parametrize("shape", [(50, 20), (12, 40)])
@pytest.mark.parametrize("seed", range(8))
def test_no_iteration_lowers_the_objective(seed, shape):
    X = np.random.default_rng(seed).standard_normal(shape)
    history = FSPCA(6, n_components=3, max_iter=50).fit(X).objective_history_
    assert (np.diff(history) >= -1e-10 * history[-1]).all()


def test_comes_near_the_best_of_all_subsets_beyond_that_rank():
    ratios = []
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((30, 9)) * np.linspace(2, 1, 9)
        Xc = X - X.mean(axis=0)
        found = FSPCA(4, n_components=2).fit(X).objective_history_[-1]
        ratios.append(found / best_by_trying_all(Xc.T @ Xc, 2, 4))
    assert max(ratios) <= 1 + 1e-12
    assert min(ratios) > 0.9


@pytest.mark.parametrize("shape", [(60, 15), (15, 40)])
def test_sparse_data_give_the_result_of_dense_data(shape):
    X = sparse.random_array(shape, density=0.4, random_state=np.random.default_rng(0), format="csr")
    dense = FSPCA(5, n_components=3).fit(X.toarray())
    np.testing.assert_allclose(FSPCA(5, n_components=3).fit(X).scores_, dense.scores_, atol=1e-9)


def test_more_components_than_features_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 9))
    with pytest.raises(ValueError, match=r"at most n_features_to_select = 2, .* got 3"):
        FSPCA(2, n_components=3).fit(X)


def test_single_column():
    X = np.random.default_rng(0).standard_normal((20, 1))
    assert FSPCA(1).fit(X).support_.tolist() == [True]
