"""Gene panels: what is selected, what is annotated, and what is refused with its cure."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import bsufs
from bsufs.selectors import ClusterAlignment, NeighborAlignment

ad = pytest.importorskip("anndata", reason="needs the extra h5ad")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
genes = pytest.importorskip("bsufs.genes", reason="needs the extra h5ad")

# What anndata says of pandas is no business of this package.
pytestmark = pytest.mark.filterwarnings("default")

N_MARKERS, N_TYPES = 12, 4


def counts(n=240, d=60, seed=0, batches=1, depth=1.0):
    """Return counts of cells of four types, each with three markers, and of batches with three."""
    rng = np.random.default_rng(seed)
    kinds, batch = rng.integers(N_TYPES, size=n), rng.integers(batches, size=n)
    means = np.tile(rng.gamma(2.0, 0.5, size=d), (n, 1))
    for marker in range(N_MARKERS):
        means[:, marker] = np.where(kinds == marker % N_TYPES, 12.0, 0.5)
    for marker in range(3 if batches > 1 else 0):
        means[:, N_MARKERS + marker] = np.where(batch == marker % batches, 25.0, 0.5)
    means *= depth * rng.lognormal(0.0, 0.3, size=(n, 1))
    names = [f"MARK{i}" for i in range(N_MARKERS)] + [f"G{i}" for i in range(N_MARKERS, d - 2)]
    names += ["MT-CO1", "RPS6"]
    return ad.AnnData(
        sparse.csr_matrix(rng.poisson(means).astype(np.float32)),
        obs=pd.DataFrame(
            {"kind": kinds.astype(str), "donor": [f"d{b}" for b in batch]},
            index=[f"c{i}" for i in range(n)],
        ),
        var=pd.DataFrame(index=names),
    )


def logs(adata):
    """Return size-factor normalized logarithms by the formula of scanpy."""
    X = adata.X.toarray().astype(float)
    per_cell = X.sum(axis=1)
    return np.log1p(X / (per_cell / np.median(per_cell))[:, None])


def normalized(**settings):
    adata = counts(**settings)
    adata.layers["counts"] = adata.X
    adata.X = sparse.csr_matrix(logs(adata))
    return adata


def in_units(X, purpose="clusters"):
    """Return genes in units of the median deviation among genes of similar means."""
    if purpose != "clusters":
        return X
    order = np.argsort(X.mean(axis=0), kind="stable")
    groups = np.array_split(order, max(1, min(20, X.shape[1] // 10)))
    mean, variance = np.log(X.mean(axis=0)), np.log(X.var(axis=0))
    middles = [np.median(mean[group]) for group in groups]
    levels = [np.median(variance[group]) for group in groups]
    return X / np.exp(0.5 * np.interp(mean, middles, levels))


def selected(adata, key="bsufs"):
    return adata.var_names[adata.var[f"{key}_selected"]].tolist()


@pytest.mark.parametrize("purpose", ["clusters", "reconstruction", "neighbors"])
def test_markers_are_selected_and_annotated(purpose):
    adata = normalized()
    assert genes.select_genes(adata, 10, purpose=purpose) is None
    if purpose == "clusters":
        assert sum(name.startswith("MARK") for name in selected(adata)) >= 9
    expected = bsufs.select(in_units(adata.X.toarray(), purpose), 10, purpose=purpose)
    assert adata.var["bsufs_rank"].tolist() == expected.ranking_.tolist()
    np.testing.assert_allclose(adata.var["bsufs_score"], expected.scores_)
    assert adata.uns["bsufs"]["params"]["n"] == 10
    assert adata.uns["bsufs"]["version"] == bsufs.__version__


def test_counts_are_normalized_as_scanpy_does():
    adata, raw = normalized(), counts()
    genes.select_genes(adata, 10)
    genes.select_genes(raw, 10, normalize=True)
    assert selected(raw) == selected(adata)
    layered = genes.select_genes(
        adata, 10, layer="counts", normalize=True, key_added="p", copy=True
    )
    assert selected(layered, "p") == selected(adata)
    assert "p_selected" not in adata.var
    # Whole numbers of another type, dense, with an empty cell and in columns.
    for X in (raw.X.toarray().astype(np.int64), sparse.csc_matrix(raw.X)):
        other = raw.copy()
        other.X = X
        genes.select_genes(other, 10, normalize=True)
        assert selected(other) == selected(adata)


def test_annotations_can_be_written(tmp_path):
    adata = normalized()
    genes.select_genes(adata, 10, must_keep=["G20"], never_keep="^MT-", min_cells=3, max_mean=4.0)
    adata.write_h5ad(tmp_path / "a.h5ad")
    found = ad.read_h5ad(tmp_path / "a.h5ad")
    assert selected(found) == selected(adata)
    assert list(found.uns["bsufs"]["params"]["must_keep"]) == ["G20"]
    assert "layer" not in found.uns["bsufs"]["params"]


@pytest.mark.filterwarnings("ignore:Trying to modify attribute")
def test_a_part_of_an_object_is_annotated_and_the_whole_is_not():
    adata = normalized()
    part = adata[:200, 5:]
    genes.select_genes(part, np.int64(7), must_keep=pd.Index(["RPS6"]))
    assert len(selected(part)) == 7
    assert part.uns["bsufs"]["params"] == {
        "n": 7, "must_keep": ["RPS6"], "purpose": "clusters", "normalize": False,
        "noise_units": True,
    }  # fmt: skip
    assert (list(adata.var), list(adata.uns)) == ([], [])


def test_scanpy_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "scanpy", None)
    adata = counts()
    genes.select_genes(adata, 10, normalize=True)
    assert len(selected(adata)) == 10


def test_what_was_asked_for_is_recorded_and_can_be_written(tmp_path):
    adata = normalized()
    asked = {"must_keep": {"G20"}, "never_keep": iter(["MT-CO1"]), "random_state": 3}
    genes.select_genes(adata, 10, clusters=[4, 8], adjust_for=adata.obs[["kind"]], **asked)
    assert "G20" in selected(adata)
    adata.write_h5ad(tmp_path / "a.h5ad")
    params = ad.read_h5ad(tmp_path / "a.h5ad").uns["bsufs"]["params"]
    assert (list(params["must_keep"]), list(params["never_keep"])) == (["G20"], ["MT-CO1"])
    assert (params["random_state"], list(params["clusters"])) == (3, [4, 8])


@pytest.mark.parametrize("is_backed", [False, True])
def test_batches_and_other_values_are_taken_out_together(is_backed, tmp_path):
    adata = normalized(batches=3)
    adata.X = adata.X.toarray()
    shown = adata.X[:, 0] + adata.X[:, 4]
    donors = pd.get_dummies(adata.obs["donor"]).to_numpy(dtype=float)
    fit = np.linalg.lstsq(np.column_stack([donors, shown]), adata.X, rcond=None)[0]
    cleared = adata.X - np.column_stack([donors, shown]) @ fit
    expected = bsufs.select(cleared, 8, scale_columns="none")
    if is_backed:
        adata.write_h5ad(tmp_path / "a.h5ad")
        adata = ad.read_h5ad(tmp_path / "a.h5ad", backed="r")
    genes.select_genes(adata, 8, batch_key="donor", adjust_for=shown, noise_units=False)
    assert adata.var["bsufs_rank"].tolist()[:8] == expected.ranking_.tolist()[:8]
    if is_backed:
        adata.file.close()


def test_dask_arrays_are_computed_in_chunks(monkeypatch):
    array = pytest.importorskip("dask.array", reason="needs the extra dask")
    monkeypatch.setattr(genes, "_CHUNK_NUMBERS", 60 * 50)
    adata = normalized()
    genes.select_genes(adata, 10)
    blocks = array.from_array(adata.X.toarray(), chunks=(70, 60))
    for X in (blocks, blocks.map_blocks(sparse.csr_matrix)):
        adata.X = X
        genes.select_genes(adata, 10, key_added="blocks")
        assert selected(adata, "blocks") == selected(adata)


class Watched:
    """A matrix in a file that takes down how many rows are read at a time."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.n_rows = matrix, matrix.shape, []

    def __getitem__(self, rows):
        found = self.matrix[rows]
        self.n_rows.append(found.shape[0])
        return found


def test_a_backed_file_is_read_in_chunks(tmp_path, monkeypatch):
    of, watched = genes._Cells.of, []

    def watch(adata, layer):
        cells = of(adata, layer)
        if adata.isbacked:
            watched.append(Watched(cells.matrix))
            cells = replace(cells, matrix=watched[-1])
        return cells

    monkeypatch.setattr(genes._Cells, "of", watch)
    adata = counts()
    dense = adata.copy()
    dense.X = adata.X.toarray()
    genes.select_genes(adata, 10, normalize=True, max_mean=3.0)
    monkeypatch.setattr(genes, "_CHUNK_NUMBERS", 60 * 50)
    for number, one in enumerate((adata, dense)):
        one.write_h5ad(tmp_path / f"{number}.h5ad")
        backed = ad.read_h5ad(tmp_path / f"{number}.h5ad", backed="r")
        genes.select_genes(backed, 10, normalize=True, max_mean=3.0, key_added="again")
        assert backed.var["again_rank"].equals(adata.var["bsufs_rank"].rename("again_rank"))
        assert backed.isbacked
        # Looked at, measured and selected from, never more than 50 of 240 cells at a time.
        assert max(watched[-1].n_rows) == 50
        assert sum(watched[-1].n_rows) == 3 * 240
        with pytest.raises(ValueError, match="copy=True must have an AnnData in memory"):
            genes.select_genes(backed, 10, normalize=True, copy=True)
        with pytest.raises(ValueError, match=r"a view must have an AnnData in memory.*to_memory"):
            genes.select_genes(backed[:100], 10, normalize=True)
        backed.file.close()


def test_a_file_that_is_stored_by_genes_is_not_read_whole_behind_the_back(tmp_path):
    adata = normalized()
    adata.X = adata.X.tocsc()
    adata.write_h5ad(tmp_path / "a.h5ad")
    backed = ad.read_h5ad(tmp_path / "a.h5ad", backed="r")
    assert "X is stored by genes (CSC). Pass adata.to_memory()" in refusal(
        genes.select_genes, 5, adata=backed
    )
    backed.file.close()


def test_genes_are_kept_and_left_out_by_name_pattern_and_filter():
    adata = normalized()
    genes.select_genes(adata, 20, must_keep=["MT-CO1", "G30"], never_keep=r"^(RP[SL]|MARK1)")
    chosen = selected(adata)
    assert {"MT-CO1", "G30"} < set(chosen)
    assert not {"RPS6", "MARK1", "MARK10", "MARK11"} & set(chosen)
    assert len(chosen) == 20
    assert adata.var["bsufs_rank"].isna().sum() == 4
    assert adata.var.loc[["MT-CO1", "G30"], "bsufs_rank"].max() == 2
    means, expressing = logs(counts()).mean(axis=0), (counts().X > 0).sum(axis=0).A1
    genes.select_genes(adata, 5, max_mean=1.0, min_cells=100, must_keep="^RPS6$", key_added="few")
    allowed = ((means <= 1.0) & (expressing >= 100)) | (adata.var_names == "RPS6")
    assert adata.var["few_rank"].notna().tolist() == allowed.tolist()
    assert "RPS6" in selected(adata, "few")


def test_genes_that_are_never_expressed_are_left_out():
    adata = counts()
    X = adata.X.toarray()
    X[:, 15] = 0.0
    adata.X = X
    genes.select_genes(adata, 59, normalize=True)
    assert selected(adata) == [name for name in adata.var_names if name != adata.var_names[15]]
    with pytest.raises(ValueError, match="n must be at most 59"):
        genes.select_genes(adata, 60, normalize=True)


@pytest.mark.parametrize("selector", [ClusterAlignment, NeighborAlignment])
def test_a_panel_is_extended_by_what_it_does_not_say(selector):
    """Of four programs with five noisy copies each, the panel has three copies of two."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(16, size=600)
    programs = np.array([(kinds >> bit) & 1 for bit in range(4)]).T * 3.0
    X = np.repeat(programs, 5, axis=1) + 0.4 * rng.standard_normal((600, 20))
    X = np.hstack([X, 0.4 * rng.standard_normal((600, 30))])
    panel = [0, 1, 2, 5, 6, 7]
    chosen = selector(8, must_keep=panel).fit(X).selected_features_.tolist()
    assert sorted(chosen[:6]) == panel
    assert sorted(gene // 5 for gene in chosen[6:]) == [2, 3]


@pytest.mark.parametrize("purpose", ["clusters", "neighbors"])
def test_genes_that_are_added_to_a_panel_do_not_repeat_it(purpose):
    """Of eight programs with ten genes each, the panel has seven genes of three."""
    rng = np.random.default_rng(0)
    on = rng.integers(2, size=(500, 8), dtype=bool)
    means = np.hstack([np.where(np.repeat(on, 10, axis=1), 5.0, 0.3), np.full((500, 120), 0.6)])
    adata = ad.AnnData(rng.poisson(means).astype(np.float32))
    adata.var_names = [f"P{i // 10}-{i % 10}" if i < 80 else f"G{i}" for i in range(200)]
    panel = [f"P{program}-{i}" for program in range(3) for i in range(7)]
    genes.select_genes(adata, 36, purpose=purpose, normalize=True, must_keep=panel)
    added = set(selected(adata)) - set(panel)
    assert {name[:2] for name in added} == {"P3", "P4", "P5", "P6", "P7"}


@pytest.mark.parametrize("purpose", ["clusters", "reconstruction", "neighbors"])
def test_no_gene_is_selected_because_it_marks_a_batch(purpose, tmp_path, monkeypatch):
    adata = normalized(batches=3)
    marks = adata.var_names[N_MARKERS : N_MARKERS + 3]
    genes.select_genes(adata, 10, purpose=purpose)
    before = adata.var.loc[marks, "bsufs_rank"].to_numpy()
    genes.select_genes(adata, 10, purpose=purpose, batch_key="donor", key_added="cleared")
    X, donors = adata.X.toarray(), adata.obs["donor"].to_numpy()
    means = np.array([X[donors == donor].mean(axis=0) for donor in donors])
    units = np.divide(X, in_units(X, purpose), out=np.zeros_like(X), where=X > 0).max(axis=0)
    expected = bsufs.select((X - means) / units, 10, purpose=purpose)
    # Behind them are genes that show no clusters at all.
    ranks = adata.var["cleared_rank"].to_numpy()
    assert ranks.clip(max=20).tolist() == expected.ranking_.clip(max=20).tolist()
    if purpose == "clusters":
        assert before.min() <= 10
        assert adata.var.loc[marks, "cleared_rank"].min() > 10
    monkeypatch.setattr(genes, "_CHUNK_NUMBERS", 60 * 50)
    adata.write_h5ad(tmp_path / "a.h5ad")
    backed = ad.read_h5ad(tmp_path / "a.h5ad", backed="r")
    genes.select_genes(backed, 10, purpose=purpose, batch_key="donor")
    assert backed.var["bsufs_rank"].clip(upper=20).tolist() == ranks.clip(max=20).tolist()
    backed.file.close()


def refusal(call, *words, **settings):
    """Return what is said, after a look that nothing was annotated."""
    adata = settings.pop("adata", None)
    adata = normalized(n=60, d=20) if adata is None else adata
    before = (list(adata.var.columns), list(adata.uns))
    with pytest.raises((ValueError, TypeError)) as error:
        call(adata, *words, **settings)
    assert (list(adata.var.columns), list(adata.uns)) == before
    return str(error.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"layer": "logs"}, "layer must be a layer of adata, got 'logs'; there are: 'counts'"),
        ({"batch_key": "lane"}, "must be one column of obs, got 'lane'; there are: 'kind'"),
        ({"layer": "counts"}, "look like counts: whole numbers up to .* Pass normalize=True"),
        ({"normalize": True}, "normalize=True needs counts, .*there are fractions"),
        ({"purpose": "types"}, "purpose must be one of 'clusters'"),
        ({"must_keep": ["GENE"]}, "must_keep must hold names of columns of X, got the unknown"),
        ({"must_keep": "^ERCC"}, "must_keep must match some names .*'\\^ERCC' matches no name"),
        ({"never_keep": "."}, "never_keep must match some names .* matches every name"),
        ({"never_keep": "("}, "never_keep must be a regular expression, got '\\('"),
        ({"must_keep": ["RPS6"], "never_keep": "^RP"}, "no gene in common, but both hold 'RPS6'"),
        ({"must_keep": "^MARK"}, "n counts the genes of must_keep, so it must be at least 12"),
        ({"n": 13, "never_keep": "MARK"}, "n must be at most 8"),
        ({"n": 2.5}, "'n' .* must be an int .* a float in the range \\(0.0, 1.0\\) or .* Got 2.5"),
        (
            {"min_cells": 1000},
            "n must be at most 0, the number of genes that are expressed and pass",
        ),
        ({"n": "auto", "min_cells": 1000}, "n must be at most 0, .* got auto. .*, or loosen them"),
        ({"batch_key": "kind1"}, "every batch must have at least two cells, but '1'"),
        ({"batch_key": "same"}, "must tell two batches apart, got one"),
        ({"batch_key": "gaps"}, "must name a batch for every cell"),
        ({"n": 0}, "'n' .* must be an int in the range \\[1, inf\\)"),
        ({"n": 1.0}, "'n' .* Got 1.0"),
        ({"n": None}, "'n' .* Got None"),
        ({"n": "many"}, "'n' .* a str among {'auto'}. Got 'many'"),
        ({"n": 21}, "n must be at most 20"),
        ({"min_cells": 0.1}, "'min_cells' .* must be an int .* Got 0.1"),
        ({"max_mean": "1"}, "'max_mean' .* must be a float .* Got '1'"),
        ({"max_mean": np.nan}, "'max_mean' .* Got nan"),
        ({"normalize": "no"}, "'normalize' .* must be .*bool.* Got 'no'"),
        ({"layer": ["counts"]}, "'layer' .* must be an instance of 'str' or None"),
        ({"batch_key": ["kind", "donor"]}, "'batch_key' .* must be an instance of 'str' or None"),
        ({"batch_key": "twice"}, "batch_key must be one column of obs, got 'twice'"),
        ({"key_added": None}, "'key_added' .* Got None"),
        ({"key_added": "a/b"}, "key_added must be a name under which a file .* got 'a/b'"),
        ({"key_added": ""}, "key_added must be a name under which a file .* got ''"),
        ({"purpose": ["clusters"]}, "purpose must be one of 'clusters'"),
        ({"random_state": "x"}, "'random_state' .* Got 'x'"),
        ({"groups": [0] * 20}, "groups is about .* bsufs.select\\(adata.to_df\\(\\), n, groups"),
        ({"adjust_for": ["MARK0"]}, "adjust_for must hold values, one row for each cell"),
        ({"seed": 1}, "ClusterAlignment, which has no parameter 'seed'"),
    ],
)
def test_what_is_wrong_is_said_with_its_cure(settings, said):
    adata = normalized(n=60, d=20)
    adata.obs["kind1"] = ["1"] + ["2"] * 59
    adata.obs["same"] = "a"
    adata.obs["gaps"] = pd.Categorical([None] + ["a"] * 59, categories=["a", "unused"])
    twice = pd.DataFrame([["a", "b"]] * 60, columns=["twice", "twice"], index=adata.obs_names)
    adata.obs = pd.concat([adata.obs, twice], axis=1)
    assert re.search(said, refusal(genes.select_genes, **{"n": 5, **settings}, adata=adata))


def test_names_that_repeat_gaps_and_foreign_objects_are_refused():
    adata = normalized(n=60, d=20)
    adata.var_names = ["A", "A", *adata.var_names[2:]]
    said = refusal(genes.select_genes, 5, adata=adata)
    assert "'A' occurs more than once. Call adata.var_names_make_unique() first" in said
    adata = normalized(n=60, d=20)
    adata.X = adata.X.toarray()
    adata.X[7, 3] = np.nan
    assert "contains NaN: the first of 1 such entries is in row 7, column 'MARK3'" in refusal(
        genes.select_genes, 5, adata=adata
    )
    adata.X[7, 3] = -1.0
    assert "a smallest entry of -1" in refusal(genes.select_genes, 5, normalize=True, adata=adata)
    with pytest.raises(TypeError, match=r"must be an AnnData object, got ndarray.*bsufs\.select"):
        genes.select_genes(np.eye(3), 2)
    empty = ad.AnnData(obs=pd.DataFrame(index=list("abc")), var=pd.DataFrame(index=list("xy")))
    assert "must have an X to select from" in refusal(genes.select_genes, 2, adata=empty)
    empty.raw = ad.AnnData(np.ones((3, 2)), obs=empty.obs, var=empty.var)
    assert "or pass adata.raw.to_adata()" in refusal(genes.select_genes, 2, adata=empty)
    few = ad.AnnData(np.array([[0.0, 2.0], [3.0, 0.0]], dtype=np.float32))
    assert "whole numbers up to 3" in refusal(genes.select_genes, 1, adata=few)
    assert "at least two rows" in refusal(genes.select_genes, 1, adata=few[:1].copy())
    zeros = ad.AnnData(np.zeros((5, 4), dtype=np.float32))
    for normalize in (True, False):
        said = refusal(genes.select_genes, 2, normalize=normalize, adata=zeros)
        assert "got zeros only" in said


def test_the_door_for_tables_points_to_that_for_cells():
    with pytest.raises(TypeError, match=r"got an AnnData object. Use bsufs\.genes\.select_genes"):
        bsufs.select(normalized(n=60, d=20), 5)


def test_reconstruction_says_how_much_memory_it_would_need(monkeypatch):
    monkeypatch.setattr(genes, "available_memory", lambda: 10_000)
    said = refusal(genes.select_genes, 5, purpose="reconstruction")
    assert "needs 60 cells x 20 genes as a dense array" in said


def test_weak_markers_are_found_below_the_noise_of_abundant_genes():
    rng = np.random.default_rng(0)
    n, d = 400, 300
    kinds = rng.integers(4, size=n)
    means = np.tile(rng.lognormal(0.5, 1.0, size=d), (n, 1))
    for marker in range(20):
        means[:, marker] = np.where(kinds == marker % 4, 1.0, 0.05)
    adata = ad.AnnData(rng.poisson(means).astype(np.float32))
    genes.select_genes(adata, 20, normalize=True)
    genes.select_genes(adata, 20, normalize=True, noise_units=False, key_added="plain")
    assert adata.var["bsufs_selected"][:20].sum() >= 18
    assert adata.var["plain_selected"][:20].sum() < 15


def test_only_the_genes_that_vary_most_are_looked_at(monkeypatch):
    monkeypatch.setattr(genes, "_MOST_GENES", 30)
    adata = normalized()
    genes.select_genes(adata, 2, must_keep=["RPS6"])
    assert adata.var["bsufs_rank"].notna().sum() == 30
    assert "RPS6" in selected(adata)
    for share, number in ((0.5, 30), (0.05, 3)):
        genes.select_genes(adata, share)
        assert adata.var["bsufs_selected"].sum() == number
    # What is centered has no mean by which noise could be told.
    adata.X = adata.X.toarray() - np.asarray(adata.X.mean(axis=0))
    genes.select_genes(adata, 8)
    assert not adata.uns["bsufs"]["params"]["noise_units"]
    most = np.sort(np.argsort(-np.asarray(adata.X).var(axis=0))[:40])
    assert np.flatnonzero(adata.var["bsufs_rank"].notna()).tolist() == most.tolist()
