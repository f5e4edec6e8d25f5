import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.tests.experiments.small_data import forget_datasets

import bsufs
import bsufs_paper.experiments.tasks
from bsufs.selectors import BSUFS, MaxVariance
from bsufs_paper.datasets import load_dataset
from bsufs_paper.experiments.tasks import (
    SkippedTask,
    Task,
    _loaded,
    canonical_json,
    make_selector,
    set_id,
)


def rank(**changes):
    return Task.of(
        "rank",
        **{
            "dataset": "small",
            "selector": "MaxVariance",
            "parameters": {},
            "n_features": 3,
            **changes,
        },
    )


# --------------------------------------------------------------------------------- what a task is


@given(st.lists(st.integers(0, 10_000), min_size=1), st.randoms())
def test_a_set_has_one_name_whatever_its_order(features, random):
    shuffled = features + features[:1]
    random.shuffle(shuffled)
    assert set_id(shuffled) == set_id(features)


@given(st.sets(st.integers(0, 100), min_size=1), st.sets(st.integers(0, 100), min_size=1))
def test_other_sets_have_other_names(one, other):
    assert (set_id(one) == set_id(other)) == (one == other)


@pytest.mark.usefixtures("data")
class TestKeys:
    def test_the_order_of_arguments_does_not_matter(self):
        one = Task.of("rank", dataset="small", n_features=3, selector="MCFS", parameters={})
        other = Task.of("rank", parameters={}, selector="MCFS", n_features=3, dataset="small")
        assert one == other
        assert one.key == other.key

    def test_everything_that_determines_the_result_changes_the_key(self, data, monkeypatch):
        keys = [
            rank().key,
            rank(n_features=4).key,
            rank(parameters={"p": 0}).key,
            rank(dataset="other").key,
            Task.of("dataset", dataset="small").key,
        ]
        described = data / "small.dataset.json"
        stored = json.loads(described.read_text())
        stored["datasets"]["small"]["divisor"] = 2.0
        described.write_text(json.dumps(stored))
        forget_datasets()
        keys.append(rank().key)
        stored["file"]["sha256"] = "1" * 64
        described.write_text(json.dumps(stored))
        forget_datasets()
        keys.append(rank().key)
        del stored["file"]["sha256"]
        described.write_text(json.dumps(stored))
        np.savez(data / "small.npz", X=np.eye(3), y=np.arange(3))
        forget_datasets()
        keys.append(rank().key)
        monkeypatch.setattr(bsufs, "__version__", "99")
        keys.append(rank().key)
        monkeypatch.setitem(bsufs_paper.experiments.tasks._MEANING, "rank", 99)
        keys.append(rank().key)
        assert len(set(keys)) == len(keys)

    def test_what_is_said_about_the_data_does_not_change_the_key(self, data):
        key = rank().key
        described = data / "small.dataset.json"
        for name, value in (
            ("description", "Other words."),
            ("citation", "Somebody, 1999."),
            ("target_names", ["one", "two", "three"]),
        ):
            stored = json.loads(described.read_text())
            stored["datasets"]["small"][name] = value
            described.write_text(json.dumps(stored))
            forget_datasets()
            assert rank().key == key


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of dataset, rank, .* got 'bake'"):
        Task.of("bake")


def test_json_is_canonical_and_refuses_what_it_cannot_hold():
    assert canonical_json({"b": 1, "a": [0.1]}) == '{"a":[0.1],"b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


# --------------------------------------------------------------------------------- what tasks do


def test_selectors_are_found_by_name_and_by_path():
    assert isinstance(make_selector("MaxVariance", 3, {}), MaxVariance)
    outside = make_selector("paper.tests.experiments.misbehaving:Misbehaving", 3, {"how": "hang"})
    assert (type(outside).__name__, outside.how) == ("Misbehaving", "hang")
    with pytest.raises(ValueError, match=r"one of BSUFS, ClusterAlignment, .* got 'Best'"):
        make_selector("Best", 3, {})


@pytest.mark.usefixtures("data")
class TestWork:
    def test_the_size_of_a_dataset(self):
        found = Task.of("dataset", dataset="other").perform()
        sizes = {"n_samples": [40], "n_features": [8], "n_classes": [2]}
        assert found == sizes | {"drawn": [False]}

    def test_a_dataset_that_is_not_there_is_skipped(self, data):
        (data / "other.npz").unlink()
        with pytest.raises(SkippedTask, match="bsufs-paper datasets show other"):
            Task.of("dataset", dataset="other").perform()

    def test_a_damaged_file_is_skipped_too_since_it_can_be_replaced(self, data):
        (data / "other.npz").write_bytes(b"broken")
        with pytest.raises(SkippedTask, match="is not the registered file"):
            Task.of("dataset", dataset="other").perform()

    def test_no_task_can_write_into_the_data_of_the_next(self):
        with pytest.raises(ValueError, match="read-only"):
            _loaded("small").data[0, 0] = 1.0

    def test_ranking_is_that_of_the_selector(self):
        X = load_dataset("small").data
        found = rank(n_features=5).perform()
        np.testing.assert_array_equal(
            found["feature"], np.argsort(-X.var(axis=0), kind="stable")[:5]
        )
        assert (np.diff(found["score"]) <= 0).all()

    def test_clustering_does_not_depend_on_the_order_or_the_company_of_a_set(self):
        judging = {
            "kmeans_init": "k-means++",
            "n_starts": 1,
            "max_iter": 50,
            "repetitions": 4,
            "seed": 3,
        }
        both = Task.of("cluster", dataset="small", sets=[[0, 1, 2], [7, 3]], **judging).perform()
        alone = Task.of("cluster", dataset="small", sets=[[3, 7]], **judging).perform()
        np.testing.assert_array_equal(both["acc"][4:], alone["acc"])
        assert list(both["set"]) == [set_id([0, 1, 2])] * 4 + [set_id([3, 7])] * 4
        assert list(both["repetition"]) == [0, 1, 2, 3] * 2

    def test_the_columns_of_a_set_are_judged_in_the_order_of_the_data(self, monkeypatch):
        seen = []

        def judged(X, *arguments, **judging):
            seen.append(X)
            return {"acc": np.zeros(1), "nmi": np.zeros(1)}

        monkeypatch.setattr(bsufs_paper.experiments.tasks, "judge", judged)
        Task.of("cluster", dataset="small", sets=[[7, 3, 5], [5, 7, 3]], repetitions=1).perform()
        for X in seen:
            np.testing.assert_array_equal(X, load_dataset("small").data[:, [3, 5, 7]])
        assert len(seen) == 2

    def test_recovery_draws_new_noise_and_seeds_the_random_selector(self):
        arguments = {"dataset": "rings-noise", "draws": list(range(6))}
        found = Task.of(
            "recover", noise_scale=0.1, selector="MaxVariance", parameters={}, **arguments
        ).perform()
        assert found["found"].all()
        drawn = Task.of(
            "recover",
            noise_scale=0.1,
            selector="RandomSelector",
            parameters={"random_state": "draw"},
            **arguments,
        ).perform()
        assert len(set(zip(drawn["first"], drawn["second"], strict=True))) > 1
        chosen = np.sort(np.stack([drawn["first"], drawn["second"]], axis=1), axis=1)
        np.testing.assert_array_equal(drawn["found"], (chosen == [0, 1]).all(axis=1))

    def test_both_features_are_found_in_either_order(self, monkeypatch):
        chosen = iter([[0, 1], [1, 0], [1, 5]])
        monkeypatch.setattr(
            bsufs_paper.experiments.tasks, "_best_first", lambda *_: np.array(next(chosen))
        )
        found = Task.of(
            "recover",
            dataset="rings-noise",
            noise_scale=0.1,
            selector="MaxVariance",
            parameters={},
            draws=[3, 4, 5],
        ).perform()
        assert found["draw"].tolist() == [3, 4, 5]
        assert found["first"].tolist() == [0, 1, 1]
        assert found["second"].tolist() == [1, 0, 5]
        assert found["found"].tolist() == [True, True, False]

    def test_points_are_two_columns_of_the_draw(self):
        X = load_dataset("rings-noise", noise_scale=0.5, random_state=4).data
        found = Task.of(
            "points", dataset="rings-noise", noise_scale=0.5, features=[1, 5], draw=4
        ).perform()
        np.testing.assert_array_equal(found["x"], X[:, 1])
        np.testing.assert_array_equal(found["y"], X[:, 5])

    @pytest.mark.parametrize("matrix", ["components_", "row_sparse_components_", "both"])
    def test_weights_are_the_entries_of_the_matrix(self, matrix):
        parameters = {"n_components": 2, "lambda_row": 0.7, "lambda_element": 1.0}
        found = Task.of(
            "weights",
            dataset="small",
            selector="BSUFS",
            parameters=parameters,
            n_features=4,
            matrix=matrix,
        ).perform()
        fitted = BSUFS(4, **parameters).fit(load_dataset("small").data)
        V, U = fitted.row_sparse_components_, fitted.element_sparse_components_
        expected = V * (U != 0) if matrix == "both" else getattr(fitted, matrix)
        W = np.zeros((12, 2))
        W[found["feature"], found["component"]] = found["value"]
        np.testing.assert_array_equal(W, expected.T)

    def test_correlations_are_those_of_the_selected_columns(self):
        X = load_dataset("small").data
        found = Task.of(
            "correlate", dataset="small", selector="MaxVariance", parameters={}, n_features=3
        ).perform()
        best = np.argsort(-X.var(axis=0), kind="stable")[:3]
        np.testing.assert_allclose(found["r"].reshape(3, 3), np.corrcoef(X[:, best].T))
        np.testing.assert_array_equal(found["feature_i"].reshape(3, 3)[:, 0], best)
        np.testing.assert_array_equal(found["feature_j"].reshape(3, 3)[0], best)
        # Places in the ranking begin with 1.
        np.testing.assert_array_equal(found["i"].reshape(3, 3)[:, 0], [1, 2, 3])
        np.testing.assert_array_equal(found["j"].reshape(3, 3)[0], [1, 2, 3])

    def test_the_objective_falls_and_the_living_are_counted(self):
        found = Task.of(
            "objective",
            dataset="small",
            selector="BSUFS",
            parameters={"n_components": 2, "lambda_row": 0.5, "tol": 0, "max_iter": 20},
            n_features=4,
        ).perform()
        assert (np.diff(found["value"]) <= 1e-12).all()
        assert len(found["n_alive"]) == len(found["iteration"]) == 21
        assert found["n_alive"][0] == 12

    def test_images_stand_upright_with_their_pixels(self):
        bunch = load_dataset("pictures")
        found = Task.of(
            "images",
            dataset="pictures",
            selector="MaxVariance",
            parameters={},
            n_features=5,
            n_images=2,
            seed=0,
        ).perform()
        first = found["value"][:12].reshape(3, 4)
        assert any(np.array_equal(first, row.reshape(3, 4)) for row in bunch.data)
        selected = found["selected"].reshape(2, 12)
        best = np.argsort(-bunch.data.var(axis=0), kind="stable")[:5]
        np.testing.assert_array_equal(np.flatnonzero(selected[1]), np.sort(best))
