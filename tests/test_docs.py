"""What README and documentation show is executed; links lead somewhere; the site check checks.

The gallery runs in `make docs`, where each example is executed once and its warnings are errors:
all of them together take longer than the tests should.
"""

import ast
import importlib.util
import re
import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import bsufs

ROOT = Path(__file__).resolve().parents[1]
# Written by the build, from docstrings and examples.
BUILT = {"_build", "gallery", "generated"}
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if not BUILT & set(path.parts)
)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))

# Lines of the shell that are not executed, by how they begin, and why.
NOT_EXECUTED = {
    "make": "sets up an environment, and runs these tests",
    "pip": "changes the environment",
    "bsufs app": "serves until Ctrl-C; tests/app runs it",
    "bsufs-paper": "needs the paper's datasets; paper/tests/cli runs it on small ones",
}
# What is executed on fewer rows and with fewer repetitions, to take seconds instead of minutes.
SMALLER = {"load_digits().data\n": "load_digits().data[::6]\n", "n_pairs=50": "n_pairs=1"}
FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)


def blocks(page, language):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(page):
    for block in blocks(page, "console"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words and not any(
                words[: len(start.split())] == start.split() for start in NOT_EXECUTED
            ):
                yield words


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_blocks_of_python_run_one_after_another(page, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page, "python"):
        for shown, executed in SMALLER.items():
            block = block.replace(shown, executed)
        exec(compile(block, page, "exec"), names)
    pyplot.close("all")


def write_tables(folder):
    """Write the tables that the documentation names."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 60))
    wide = pd.DataFrame(
        factors + rng.standard_normal((60, 60)), columns=[f"c{j}" for j in range(60)]
    )
    wide.to_csv(folder / "table.csv", index=False)
    wide.to_csv(folder / "big.csv.gz", index=False)
    wide.to_parquet(folder / "big.parquet")
    wines = wide.iloc[:, :13]
    wines.insert(0, "id", [f"w{row}" for row in range(60)])
    wines.assign(kind=np.repeat(["red", "white"], 30)).to_csv(folder / "wines.csv", index=False)
    sensors = {
        f"{place}.{what}": wide[f"c{j}"]
        for j, (place, what) in enumerate(
            (place, what)
            for place in ("roof", "hall", "cellar", "attic")
            for what in ("cold", "damp")
        )
    }
    pd.DataFrame(sensors).to_csv(folder / "sensors.csv", index=False)
    (folder / "groups.csv").write_text("column,group\nc1,first\nc2,first\n")
    (folder / "prices.csv").write_text("".join(f"c{j},{1 + j % 4}\n" for j in range(13)))
    gaps = wide.iloc[:, :6].copy()
    gaps.iloc[3, 1] = np.nan
    gaps.to_csv(folder / "gaps.csv", index=False)


def write_cells(folder):
    """Write the cells and the panel that the documentation names."""
    anndata = pytest.importorskip("anndata", reason="needs the extra h5ad")
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 1.0, size=(4, 60))[rng.integers(4, size=90)] * rng.uniform(size=(90, 60))
    names = [f"MT-{i}" if i < 3 else f"GENE{i}" for i in range(60)]
    adata = anndata.AnnData(X, layers={"logs": X})
    adata.var["symbol"] = adata.var_names = names
    adata.obs["donor"] = np.arange(90) % 3
    adata.obs["S_score"], adata.obs["G2M_score"] = rng.standard_normal((2, 90))
    adata.write_h5ad(folder / "cells.h5ad")
    (folder / "panel.txt").write_text("GENE7\nGENE9\n")


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))])
def test_the_commands_run(page, tmp_path, monkeypatch, capsys):
    from bsufs.cli._program import run

    write_tables(tmp_path)
    if any("cells.h5ad" in words for words in commands(page)):
        write_cells(tmp_path)
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        assert words[0] == "bsufs", f"{words} is neither run nor excepted with a reason"
        written = [tmp_path / word for word in words if Path(word).suffix == ".html"]
        with pytest.raises(SystemExit) as ended:
            run([*words[1:], *(["--force"] if "select" in words else [])])
        assert ended.value.code == 0, (words, capsys.readouterr().err)
        assert all(path.stat().st_size > 10_000 for path in written)


def anchors(path):
    """Return the anchors of a page's headings, as a code host makes them."""
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_the_citation_has_the_version_of_the_package():
    assert f"version: {bsufs.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_reference_has_every_public_name():
    listed = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/api/*.rst"))
    modules = re.findall(r"^Module ``([\w.]+)``", listed, flags=re.MULTILINE)
    names = set(re.findall(r"^   (\w+)$", listed, flags=re.MULTILINE))
    public = {
        name for module in modules for name in getattr(import_module(module), "__all__", [])
    } | set(bsufs.__all__) - {"__version__"}
    assert public <= names
    modules += re.findall(r"automodule:: ([\w.]+)", listed)
    for module in ROOT.glob("src/bsufs/*/__init__.py"):
        inside = f"bsufs.{module.parent.name}"
        if "__all__" in module.read_text(encoding="utf-8"):
            assert inside in modules


def test_the_building_blocks_are_there():
    listed = (ROOT / "docs/api/building-blocks.rst").read_text(encoding="utf-8")
    functions = re.findall(r"autofunction:: ([\w.]+)\.(\w+)", listed)
    assert {module.split(".")[1] for module, _ in functions} == {"solvers"}
    for module, name in functions:
        assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_a_place_in_the_gallery(example):
    title, underline = ast.get_docstring(ast.parse(example.read_text())).splitlines()[:2]
    assert underline == "=" * len(title)
    assert f'"{example.name}"' in (ROOT / "docs/conf.py").read_text()


@pytest.fixture
def check_site():
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "docs/check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("piece", "complaint"),
    [
        ('<a href="other.html#there">', None),
        ('<a href="sub/#here">', None),
        ('<a href="https://example.org">', None),
        ('<link rel="next" href="other.html">', None),
        ('<a href="gone.html">', "links to gone.html, which does not exist"),
        ('<a href="other.html#gone">', "links to other.html#gone, which has no such anchor"),
        ('<a href="#gone">', "links to #gone, which has no such anchor"),
        ('<img src="gone.png">', "links to gone.png, which does not exist"),
        ('<script src="https://example.org/x.js">', "fetches https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "fetches //example.org/x.css"),
        ('<img srcset="//example.org/x.png 2x">', "fetches //example.org/x.png"),
    ],
)
def test_the_check_of_the_site(check_site, tmp_path, piece, complaint):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text('<p id="here">')
    (tmp_path / "other.html").write_text('<p id="there">')
    (tmp_path / "index.html").write_text(piece)
    found = check_site.problems(tmp_path)
    assert found == ([] if complaint is None else [f"index.html: {complaint}"])


def test_the_check_of_the_site_looks_into_styles_and_misses_no_site(check_site, tmp_path):
    assert "holds no pages" in check_site.problems(tmp_path)[0]
    (tmp_path / "index.html").write_text("<p>")
    (tmp_path / "x.css").write_text("@font-face { src: url('https://example.org/x.woff2') }")
    assert check_site.problems(tmp_path) == ["x.css: fetches https://example.org/x.woff2"]
