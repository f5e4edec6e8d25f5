import pytest
from paper.tests.experiments.small_data import small_spec

from bsufs_paper.experiments import load_spec, paper_specs, with_needed
from bsufs_paper.experiments.recipes import RECIPES
from bsufs_paper.experiments.tasks import make_selector

pytestmark = pytest.mark.usefixtures("data")


def test_grids_are_products_and_their_union():
    grid = [{"p": [0, 0.5], "q": [0.5]}, {"lambda_row": ["path"]}]
    method = {"label": "B", "selector": "BSUFS", "parameters": {"tol": 0}, "grid": grid}
    spec = load_spec(small_spec(methods=[method]))
    assert spec.methods[0].settings == (
        {"tol": 0, "p": 0, "q": 0.5},
        {"tol": 0, "p": 0.5, "q": 0.5},
        {"tol": 0, "lambda_row": "path"},
    )


def test_the_number_of_classes_is_filled_in():
    method = {"label": "B", "selector": "BSUFS", "parameters": {"n_components": "n_classes"}}
    spec = load_spec(small_spec(methods=[method]))
    assert spec.methods[0].settings_for("small") == [{"n_components": 3}]
    assert spec.methods[0].settings_for("other") == [{"n_components": 2}]


def test_the_label_is_the_selector_unless_another_is_named():
    spec = load_spec(small_spec(methods=[{"label": "MCFS"}]))
    assert spec.methods[0].selector == "MCFS"


def test_quick_goes_over_the_rest_and_thins_the_grids():
    quick = {"datasets": ["small"], "max_settings": 2, "protocol": {"seed": 5}}
    full, small = (load_spec(small_spec(quick=quick), quick=flag) for flag in (False, True))
    assert full.datasets == ("small", "other")
    assert small.datasets == ("small",)
    assert [len(method.settings) for method in full.methods] == [1, 1, 4, 1, 4]
    assert [len(method.settings) for method in small.methods] == [1, 1, 2, 1, 2]
    assert small.protocol.seed == 5
    assert small.protocol.feature_counts == (2, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"color": 1}, "no field color; choose from datasets"),
        ({"name": ""}, "must have the field name"),
        ({"datasets": ["nowhere"]}, "'nowhere'; choose one of"),
        ({"datasets": []}, "must have the field datasets"),
        ({"methods": ["BSUFS"]}, "must have fields, got 'BSUFS'"),
        ({"methods": [{"selector": "BSUFS"}]}, "must have a label"),
        ({"methods": [{"label": "A", "color": 1}]}, "no field color"),
        ({"methods": [{"label": "A"}, {"label": "A"}]}, "must differ, got 'A' twice"),
        ({"methods": [{"label": "A", "grid": [{"p": 0.5}]}]}, "p in a grid .* must be a list"),
        ({"methods": [{"label": "A", "grid": [0.5]}]}, "must be a list of fields"),
        ({"protocol": {"kmeans_init": "best"}}, "kmeans_init must be one of"),
        ({"initializations": ["best"]}, "initializations of .* got 'best'"),
        ({"initializations": ["k-means++"]}, "the others than kmeans_init, got 'k-means"),
        ({"datasets": "small"}, "datasets of the spec must be a list, got 'small'"),
        ({"datasets": ["small", "small"]}, "datasets of the spec must differ, got 'small' twice"),
        ({"timeout": "10m"}, "timeout of the spec must be a positive number .* got '10m'"),
        ({"timeout": 0}, "timeout of the spec must be a positive number"),
        ({"quick": 5}, "quick of the spec must have fields, got 5"),
        ({"quick": {"color": 1}}, "quick of the spec has no field color"),
        ({"options": 3}, "options of the spec must have fields, got 3"),
        ({"protocol": {"feature_counts": 10}}, "feature_counts must be a list"),
        ({"methods": [{"label": "A", "grid": [{"p": []}]}]}, "p in a grid .* must be a list"),
        (
            {"methods": [{"label": "A", "parameters": {"p": float("inf")}}]},
            "p of .* must be finite",
        ),
    ],
)
def test_a_bad_spec_is_explained(changes, message):
    with pytest.raises(ValueError, match=message):
        load_spec(small_spec(**changes))


def test_files_are_read_and_bad_ones_named(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("name: a\nrecipe: fixed\ndatasets: [small]\nmethods: [{label: BSUFS}]\n")
    assert load_spec(path).name == "a"
    path.write_text("name: [")
    with pytest.raises(ValueError, match=r"spec\.yaml is not YAML"):
        load_spec(path)
    path.write_text("- 1")
    with pytest.raises(ValueError, match=r"spec\.yaml must hold fields"):
        load_spec(path)
    with pytest.raises(FileNotFoundError, match="there is no spec"):
        load_spec(tmp_path / "none.yaml")


def test_a_quick_version_of_no_settings_is_refused():
    with pytest.raises(ValueError, match="max_settings in quick of the spec must be a positive"):
        load_spec(small_spec(quick={"max_settings": 0}), quick=True)


@pytest.mark.parametrize("quick", [False, True])
def test_the_runs_of_the_paper_can_be_made(quick):
    specs = paper_specs(quick=quick)
    assert set(specs) == {
        "ablation",
        "clustering",
        "convergence",
        "correlation",
        "label-free",
        "pixels",
        "sparsity",
        "stopping",
        "synthetic",
    }
    for spec in specs.values():
        assert spec.recipe in RECIPES
        for method in spec.methods:
            if method.selector != "all":
                for setting in method.settings:
                    make_selector(method.selector, 2, setting).get_params()


def test_random_has_the_same_budget_as_the_tuned_method_in_every_comparison():
    specs = paper_specs()
    for name, tuned in (("clustering", "BSUFS"), ("ablation", "Case IV")):
        sizes = {method.label: len(method.settings) for method in specs[name].methods}
        assert sizes["Random"] == sizes[tuned] == 270
        sizes = {method.label: len(method.settings) for method in specs["clustering"].methods}
    assert sizes["Random (as the paper's grid)"] == sizes["BSUFS (paper's grid)"] == 7 * 7 * 3 * 3
    sizes = {method.label: len(method.settings) for method in specs["ablation"].methods}
    assert sizes["Random (as Cases II, III)"] == sizes["Case II"] == sizes["Case III"] == 30


def test_a_run_brings_those_it_needs_before_it():
    specs = paper_specs()
    assert [s.name for s in with_needed(["pixels", "sparsity"], specs)] == [
        "ablation",
        "pixels",
        "sparsity",
    ]
    with pytest.raises(ValueError, match="there is no run 'x'; choose from ablation"):
        with_needed(["x"], specs)


def test_an_unknown_field_of_the_protocol_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no field starts; choose from .*n_starts"):
        load_spec(small_spec(protocol={"starts": 3}))
