"""AnnData files through the command line: layers, symbols, patterns, and a panel that comes out."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from bsufs.genes import select_genes

ad = pytest.importorskip("anndata", reason="needs the extra h5ad")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
# What anndata says of pandas is no business of this package.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def cells(tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=90)
    means = np.full((90, 12), 2.0)
    for gene in range(6):
        means[kinds == gene % 3, gene] = 20.0
    counts = rng.poisson(means).astype(np.float32)
    names = [f"MARK{i}" for i in range(6)] + [f"G{i}" for i in range(5)] + ["MT-1"]
    adata = ad.AnnData(
        sparse.csr_matrix(np.log1p(counts)),
        obs=pd.DataFrame({"kind": kinds.astype(str)}, index=[f"c{i}" for i in range(90)]),
        var=pd.DataFrame({"symbol": names}, index=[f"ENSG{i}" for i in range(12)]),
        layers={"counts": sparse.csr_matrix(counts)},
        uns={"study": "a"},
    )
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    return path


def test_a_panel_keeps_all_annotations(invoke, cells, tmp_path):
    panel = tmp_path / "panel.h5ad"
    words = ("select", cells, "-k", 4, "--names-from", "symbol", "--never-keep-matching", "^MT-")
    result = invoke(*words, "--must-keep-matching", "^G3$", "-o", panel, "--order", "rank")
    assert result.status == 0, result.err
    assert "counts" not in result.err
    assert "--ignore to carry it to other files than .h5ad" in result.err
    found = ad.read_h5ad(panel)
    assert found.var["symbol"].tolist()[0] == "G3"
    assert found.var["symbol"].str.startswith("MARK").sum() == 3
    assert found.shape == (90, 4)
    assert (found.uns["study"], list(found.layers), list(found.obs)) == ("a", ["counts"], ["kind"])
    whole = ad.read_h5ad(cells)
    assert (whole[:, found.var_names].X != found.X).nnz == 0


def test_a_batch_does_not_decide(invoke, cells, tmp_path):
    adata = ad.read_h5ad(cells)
    adata.obs["donor"] = np.array(["x", "y"])[np.arange(90) % 2]
    X = adata.X.toarray()
    X[::2, 6:9] += 8.0
    adata.X = X
    adata.write_h5ad(tmp_path / "two.h5ad")
    words = ("select", tmp_path / "two.h5ad", "-k", 3, "--names-from", "symbol", "-q")
    assert "G" in invoke(*words).out
    result = invoke(*words, "--batch-key", "donor")
    assert result.status == 0, result.err
    assert all(name.startswith("MARK") for name in result.out.split())
    assert "--batch-key 'lane' is no column" in invoke(*words, "--batch-key", "lane").err
    adata.obs["gaps"] = pd.Categorical(["x", "y", None] * 30)
    adata.write_h5ad(tmp_path / "two.h5ad")
    said = invoke(*words, "--batch-key", "gaps").err
    assert "'gaps' must have a value in every row, but 30 are missing, the first in row 3" in said


@pytest.mark.parametrize("numbers", [int, str, "category"])
def test_batches_that_are_numbers_are_groups(invoke, cells, tmp_path, numbers):
    adata = ad.read_h5ad(cells)
    donors = np.arange(90) % 4
    adata.obs["donor"] = pd.Series(donors, index=adata.obs_names).astype(numbers)
    X = adata.X.toarray()
    # No line through the numbers of the donors follows what marks one of them.
    X[donors == 1, 6:9] += 8.0
    adata.X = X
    adata.write_h5ad(tmp_path / "four.h5ad")
    words = ("select", tmp_path / "four.h5ad", "-k", 3, "--names-from", "symbol", "-q")
    found = invoke(*words, "--batch-key", "donor").out.split()
    assert all(name.startswith("MARK") for name in found)
    adjusted = invoke(*words, "--adjust-for", "donor").out.split()
    assert (adjusted == found) == (numbers is not int)
    select_genes(adata, 3, batch_key="donor", noise_units=True)
    panel = adata.var[adata.var["bsufs_selected"]]["symbol"]
    assert set(panel) == set(invoke(*words, "--batch-key", "donor", "--scale", "noise").out.split())


def test_genes_count_in_units_of_noise_where_clusters_are_sought(invoke, tmp_path):
    rng = np.random.default_rng(0)
    means = np.tile(rng.lognormal(0.5, 1.0, size=300), (400, 1))
    for marker in range(20):
        means[:, marker] = np.where(np.arange(400) % 4 == marker % 4, 0.9, 0.05)
    adata = ad.AnnData(np.log1p(rng.poisson(means)).astype(np.float32))
    adata.write_h5ad(tmp_path / "weak.h5ad")

    def markers(*more):
        found = invoke("select", tmp_path / "weak.h5ad", "-k", 20, *more)
        return sum(int(name) < 20 for name in found.out.split()), found.err

    for scale, units in (("auto", "columns count in units of the noise"), ("noise", "")):
        number, said = markers("--scale", scale)
        assert number >= 18
        assert units in said
    assert markers("--scale", "none")[0] < 17
    number, said = markers("--scale", "auto", "--purpose", "neighbors")
    assert (number < 15, "units of the noise" in said) == (True, False)
    # What is centered has no mean by which noise could be told.
    adata.X -= adata.X.mean(axis=0)
    adata.write_h5ad(tmp_path / "weak.h5ad")
    assert "columns keep their scale" in markers("--scale", "auto")[1]


def test_a_layer_is_used_and_an_unknown_one_refused(invoke, cells):
    result = invoke("select", cells, "-k", 2, "--layer", "counts")
    assert "the entries look like counts" in result.err
    for name in ("--array", "--layer"):
        result = invoke("select", cells, "-k", 2, name, "nosuch")
        assert (result.status, result.out) == (2, "")
        assert "--layer 'nosuch' is no layer; there are: 'counts'" in result.err
    result = invoke("select", cells, "-k", 2, "--names-from", "gene")
    assert "--names-from 'gene' is no column of var; there are: 'symbol'" in result.err


def test_equal_and_missing_names_of_genes_have_a_cure(invoke, cells, tmp_path):
    adata, path = ad.read_h5ad(cells), tmp_path / "names.h5ad"
    adata.var["twice"] = ["A", "A", *adata.var["symbol"][2:]]
    adata.var["gaps"] = ["A", None, "", *adata.var["symbol"][3:]]
    adata.write_h5ad(path)
    said = invoke("select", path, "--names-from", "twice").err
    assert "'A' occurs more than once. Name another column of var with --names-from, or" in said
    said = invoke("select", path, "--names-from", "gaps").err
    assert "--names-from 'gaps' must name every feature, but 2 of 12 have no name, the" in said
    assert "first 'ENSG1'. Fill them in, name another column of var, or leave --names-from" in said
    adata.var_names = adata.var["twice"].tolist()
    adata.write_h5ad(path)
    said = invoke("select", path).err
    assert "Call adata.var_names_make_unique() and write the file again, or name them by" in said
    assert "--no-header" not in said


def test_a_folder_of_zarr_is_read_and_no_pipe(invoke, cells, tmp_path, monkeypatch):
    pytest.importorskip("zarr", reason="zarr is not installed")
    with warnings.catch_warnings():
        # anndata says that it will write another version of the format some day.
        warnings.simplefilter("ignore", UserWarning)
        ad.read_h5ad(cells).write_zarr(tmp_path / "cells.zarr")
    expected = invoke("select", cells, "-k", 3, "-q")
    result = invoke("select", tmp_path / "cells.zarr", "-k", 3, "-q")
    assert (result.status, result.out) == (0, expected.out), result.err
    with cells.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        piped = invoke("select", "-", "--format", "h5ad")
    assert "standard input: .h5ad files cannot be read from a pipe" in piped.err
    (tmp_path / "no.zarr").mkdir()
    assert "cannot be read as a valid AnnData file" in invoke("select", tmp_path / "no.zarr").err
    assert invoke("select", tmp_path / "missing.zarr").status != 0


def test_what_is_no_anndata_says_what_to_do(invoke, cells, table, tmp_path):
    (tmp_path / "cells.loom").write_bytes(b"\x89HDF")
    result = invoke("select", tmp_path / "cells.loom")
    assert "Save a .loom file as .h5ad" in result.err
    result = invoke("select", table, "--ignore", "id,kind", "-o", tmp_path / "o.h5ad")
    assert "only what was read from a .h5ad or .zarr file can be written to one" in result.err
    assert not (tmp_path / "o.h5ad").exists()
    result = invoke("select", table, "--names-from", "symbol")
    assert "--names-from is for .h5ad files only" in result.err


def test_patterns_serve_every_kind_of_table(invoke, table):
    words = ("select", table, "-k", 2, "--ignore", "id,kind", "-q")
    assert invoke(*words, "--must-keep-matching", "^[cf]$").out in ("c\nf\n", "f\nc\n")
    out = invoke(*words, "--must-keep-matching", "^c$", "--never-keep-matching", "[be]").out
    assert out.startswith("c\n")
    assert not set(out.split()) & {"b", "e"}
    for pattern, said in (("z", "matches no name"), (".", "matches every name"), ("(", "regular")):
        result = invoke(*words, "--never-keep-matching", pattern)
        assert (result.status, result.out) == (2, "")
        assert f"--never-keep-matching must {'be a' if pattern == '(' else 'match'}" in result.err
        assert said in result.err
    result = invoke(*words, "--method", "MCFS", "--must-keep-matching", "c")
    assert "--must-keep cannot be used with MCFS" in result.err
