"""The page: whole, self-contained, escaped, small, and the same every time."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from bsufs import BSUFS, ClusterAlignment, alternatives
from bsufs._names import shortened
from bsufs.inspection import Findings, make_report
from bsufs.inspection.page import _page as page_module
from bsufs.inspection.page import _pictures as pictures_module
from bsufs.selectors import LaplacianScore, MaxVariance
from bsufs.tuning import ConsensusSelector, LabelFreeSearch


def factors(n=40, d=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d))


class _Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.anchors, self.names = [], [], [], [], []
        self._in_name = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.links += [attributes[key] for key in ("src", "href") if key in attributes]
        self.ids += [attributes["id"]] if "id" in attributes else []
        self._in_name = tag == "bdi"
        if self._in_name:
            self.names.append("")
        # An attribute that is a handler would run, and one that is a style would be refused.
        assert not [key for key in attributes if key.startswith("on") or key == "style"]

    def handle_endtag(self, tag):
        self._in_name = self._in_name and tag != "bdi"

    def handle_data(self, data):
        if self._in_name:
            self.names[-1] += data


def columns_of(page):
    """Return what the script of a page is given."""
    packed = re.search('<template id="columns">([A-Za-z0-9+/=]*)</template>', page).group(1)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.fixture(scope="module")
def page():
    X = pd.DataFrame(factors())
    X.columns = [f"column {i}" for i in range(30)]
    comparison = pd.DataFrame(
        {"method": ["BSUFS", "<i>Random</i>"], "ACC": [0.81234567, None], "k": [8, 8]}
    )
    return make_report(
        BSUFS(8, must_keep=["column 3"]).fit(X),
        X,
        n_subsamples=3,
        image_shape=(5, 6),
        comparison=comparison,
        about={"Table": "a & b.csv"},
        command="bsufs select 'a & b.csv' -k 8",
    )


def test_the_page_asks_for_nothing_else(page):
    reader = _Reader(page)
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    assert reader.tags.count("script") == 1
    assert not {"iframe", "img", "object", "embed"} & set(reader.tags)
    assert "url(" not in page
    assert "@import" not in page
    # A name space is a name and no address.
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}


def test_every_part_is_there_and_linked(page):
    reader = _Reader(page)
    anchors = {link[1:] for link in reader.links if link.startswith("#")}
    expected = "which why how-many how-sure more together table made"
    assert anchors == set(expected.split())
    pictures = "numbers scores stability chance redundancy samples pixels path comparison repeat"
    assert anchors | set(pictures.split()) <= set(reader.ids)
    assert len(reader.ids) == len(set(reader.ids))


def test_what_was_asked_and_how_to_repeat_it(page):
    assert "<dd>a &amp; b.csv</dd>" in page
    assert "bsufs select &#39;a &amp; b.csv&#39; -k 8" in page
    assert "BSUFS(must_keep=[&#39;column 3&#39;], n_features_to_select=8).fit(X)" in page
    assert "Kept: always (must_keep)." in page
    assert re.search(r"scikit-learn \d", page)
    assert "Seed of the subsamples: 0." in page


def test_a_comparison_is_shown_as_it_is(page):
    assert "&lt;i&gt;Random&lt;/i&gt;" in page
    assert 'data-v="0.81234567">0.8123</td>' in page
    assert 'data-v="">\N{EN DASH}</td>' in page


def test_the_python_lines_make_the_same_selector(page):
    lines = re.search(r"<code>(from bsufs.*?)</code>", page, flags=re.DOTALL).group(1)
    X = pd.DataFrame(factors(), columns=[f"column {i}" for i in range(30)])
    scope = {"X": X}
    exec(html.unescape(lines), scope)
    assert scope["selector"].selected_features_[0] == "column 3"


def test_the_same_selection_gives_the_same_bytes(tmp_path):
    X = factors()
    paths = [
        make_report(MaxVariance(4).fit(X), X, tmp_path / name, n_subsamples=2)
        for name in ("a.html", "b.html", "a.html")
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


NAMES = ["<script>alert(1)</script>", "</script><b>", "'\"><img src=x onerror=alert(1)>"]
NAMES += ["\x00\x1b[2J\n", "{{ 7 * 7 }}", "&amp;", "\udcff", "</title>", "-->", "ก็中é"]


@settings(max_examples=6, deadline=None)
@given(st.permutations(NAMES), st.integers(0, 99))
def test_names_are_shown_and_never_run(names, seed):
    X = factors(n=12, d=len(names), seed=seed)
    selector = MaxVariance(6).fit(X)
    text = make_report(
        selector,
        X,
        title=names[0],
        feature_names=names,
        n_subsamples=2,
        about={names[1]: names[2]},
        command=names[3],
        comparison=pd.DataFrame({"<b>": pd.Series([names[4]], dtype=object)}),
        image_shape=(2, 5),
        notes=[names[5]],
        alternatives=alternatives(selector, X, n=2),
    )
    text.encode("utf-8")
    reader = _Reader(text)
    assert reader.tags.count("script") == 1
    assert not {"img", "iframe"} & set(reader.tags)
    # Kept names are shown in the markup, and all are handed to the script as they are.
    chosen = [names[column] for column in np.argsort(selector.ranking_)[:6]]
    assert reader.names == [shortened(name, 60) for name in chosen]
    assert sorted(columns_of(text)["names"]) == sorted(names)
    assert "\x00" not in text


def test_fifty_thousand_features_stay_small():
    X = factors(n=20, d=50_000)
    names = [f"ENSG{7919 * i % 10**9:09d}_transcript variant {i % 13}" for i in range(50_000)]
    text = make_report(MaxVariance(450).fit(X), X, feature_names=names, n_subsamples=2)
    assert len(text.encode("utf-8")) < 2_000_000
    columns = columns_of(text)
    assert len(columns["names"]) == len(columns["variance"]) == 50_000
    assert "The best 80 of 450 kept" in text
    assert "and 50 more, in the table below" in text
    assert "The table of all columns has the other 390." in text
    assert "choose among the 5,000 columns that rank best" in text


def test_the_columns_of_the_table_say_what_was_found():
    X = factors()
    X[:, 7] = 3.0
    X[:, 8] = -2 * X[:, 9]
    selector = BSUFS(8, must_keep=[2], never_keep=[3]).fit(X)
    found = Findings(selector, X, n_subsamples=2)
    columns = columns_of(make_report(selector, X, n_subsamples=2))
    assert columns["kept"] == 8
    assert columns["names"] == found.names[found.best_first].tolist()
    reasons = [columns["reasons"][reason] for reason in columns["reason"]]
    by_name = dict(zip(columns["names"], reasons, strict=True))
    assert by_name["x2"] == "always kept"
    assert by_name["x3"] == "never kept"
    assert by_name["x7"] == "constant"
    twins = {by_name["x8"], by_name["x9"]}
    assert "duplicate" in twins or "correlated" in twins
    closest, correlation = found.closest
    for place, column in enumerate(found.best_first.tolist()):
        if closest[column] >= 0:
            assert columns["names"][columns["closest"][place] - 1] == f"x{closest[column]}"
            assert columns["correlation"][place] == round(100 * correlation[column])
        else:
            assert columns["correlation"][place] is None
    again = 100 * found.stability.frequency[found.best_first]
    assert columns["again"] == pytest.approx(again)
    assert columns["explained"] == pytest.approx(100 * found.curve, abs=0.051)
    assert columns["redundancy"] == [float(f"{value:.2f}") for value in found.redundancy]
    assert dict(columns["agreement"]) == {
        number: float(f"{value:.2f}") for number, value in found.agreement.items()
    }
    assert columns["step"] == found.eliminated_at[found.best_first].tolist()
    assert columns["stands"] == [found.stands_for[column].size for column in found.chosen.tolist()]
    shares = 100 * found.variance_share[found.best_first]
    assert columns["decimals"] == 2 - np.floor(np.log10(shares.max()))
    assert columns["variance"] == pytest.approx(shares, abs=0.51 * 10.0 ** -columns["decimals"])


def test_what_says_nothing_is_dropped():
    X = StandardScaler().fit_transform(factors(n=60))
    columns = columns_of(make_report(ClusterAlignment(4).fit(X), X, n_subsamples=0))
    # Its scores are its ranks, and the columns have the same variance.
    assert not {"score", "variance", "again", "step", "others"} & set(columns)
    assert len(columns["clusters"]) == 30
    columns = columns_of(make_report(LaplacianScore(4).fit(factors()), factors(), n_subsamples=1))
    assert {"score", "variance", "again"} <= set(columns)
    assert "clusters" not in columns


def test_what_was_not_measured_is_said():
    X = factors()
    text = make_report(LaplacianScore(4).fit(X), X, n_subsamples=0)
    assert "Stability was not measured. It was not asked for." in text
    assert "again" not in columns_of(text)
    assert 'id="path"' not in text
    assert 'id="stability"' not in text


def test_a_refit_that_fails_leaves_the_rest():
    X = np.zeros((12, 3))
    X[0] = [1, 2, 3]
    text = make_report(BSUFS(1).fit(X), X)
    assert "Stability was not measured. BSUFS cannot be fitted to 6 of the 12 rows" in text
    # One feature alone is redundant with nobody.
    assert 'id="redundancy"' not in text


def test_sparse_constant_and_wild_data_are_described():
    X = factors()
    X[:, 0] = 0
    X[:, 1] *= 1e6
    text = make_report(
        MaxVariance(4).fit(X), sparse.csr_array(X), n_subsamples=0, image_shape=(5, 6)
    )
    assert "sparse, 96.67% of the entries" in text
    assert "<dt>Constant columns</dt><dd>1</dd>" in text
    assert "standardize them first" in text
    constant = np.ones((5, 3))
    text = make_report(MaxVariance(2).fit(constant), constant, n_subsamples=0)
    assert "Largest variance" not in text


def test_what_is_too_large_is_left_out(monkeypatch):
    X = factors()
    selector = MaxVariance(4).fit(X)
    monkeypatch.setattr(pictures_module, "_MOST_PIXELS", 5)
    # The curve of more features than regression is worth.
    unknown = [np.nan] * 8
    monkeypatch.setattr(Findings, "curve", np.array([0.5, 0.7, *unknown]))
    monkeypatch.setattr(Findings, "ceiling", np.array([0.6, np.nan, *unknown]))
    text = make_report(selector, X, n_subsamples=0, image_shape=(5, 6))
    assert text.count("columns: variance explained") == 2
    assert "</b> of the variance explained" not in text
    assert columns_of(text)["explained"] == [50, 70, *[None] * 8]
    # No mean image behind the pixels.
    assert "crispEdges" not in text


def test_the_title_is_that_of_the_table_or_says_how_many():
    X = factors()
    selector = MaxVariance(4).fit(X)
    text = make_report(selector, X, n_subsamples=0, about={"Table": "folder/a & b.csv"})
    assert "<h1>a &amp; b.csv</h1>" in text
    assert "<h1>Selected columns</h1>" in make_report(selector, X, n_subsamples=0)
    assert "<h1>Mine</h1>" in make_report(selector, X, n_subsamples=0, title="Mine")


def test_alternatives_and_notes_are_shown_where_there_are_any():
    X = factors()
    selector = MaxVariance(4).fit(X)
    several = alternatives(selector, X, n=2)
    text = make_report(selector, X, n_subsamples=0, notes=["Depth is large."], alternatives=several)
    assert '<p class="note" role="note">Depth is large.</p>' in text
    section = re.search('<section id="more">.*?</section>', text, flags=re.DOTALL).group()
    assert section.count("<article>") == 2
    for one in several:
        assert f"<h3>{one.title.capitalize()}</h3>" in section
        assert f"<dd>{one.variance_share:.1%}</dd>" in section
        assert f"<dd>{one.overlap:.2f}</dd>" in section
        large, *_, small = one.cluster_sizes
        assert f"<dd>{len(one.cluster_sizes)}, of {small} to {large} rows</dd>" in section
        assert all(f">x{column}</li>" in section for column in one.selected_features_)
    assert 'href="#more"' in text
    assert 'id="more"' not in make_report(selector, X, n_subsamples=0)


def test_a_notebook_shows_the_page_in_a_frame(tmp_path):
    X = factors()
    selector = MaxVariance(4).fit(X)
    view = make_report(selector, X, n_subsamples=0, display=True)
    frame = view._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "allow-same-origin" not in frame
    source = re.search('srcdoc="([^"]*)"', frame).group(1)
    assert html.unescape(source) == str(view) == make_report(selector, X, n_subsamples=0)
    assert len(repr(view)) < 80
    both = make_report(selector, X, tmp_path / "a.html", n_subsamples=0, display=True)
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == str(both)


def test_a_number_left_to_the_method_is_told():
    X = factors()
    selector = BSUFS().fit(X)
    k = int(selector.support_.sum())
    text = make_report(selector, X, n_subsamples=0)
    assert f"<dd>auto, which gave {k} of 30</dd>" in text
    assert "<dd>the defaults</dd>" in text


def test_lines_of_python_repeat_it():
    X = factors()
    selector = BSUFS(3).fit(X)
    text = make_report(selector, X, n_subsamples=0)
    assert "<code>from bsufs.selectors import BSUFS\n\nselector = BSUFS(n_features" in text
    text = make_report(selector, X, n_subsamples=0, script="fit(log(X))")
    assert "<code>fit(log(X))</code>" in text


def test_no_column_of_standardized_data_is_called_the_largest():
    X = factors()
    text = make_report(BSUFS(3).fit(X), X, n_subsamples=0)
    assert "Largest variance" in text
    X = StandardScaler().fit_transform(X)
    text = make_report(BSUFS(3).fit(X), X, n_subsamples=0)
    assert "Largest variance" not in text
    assert "the same in all columns that vary" in text


def test_a_consensus_takes_the_number_of_its_estimator():
    X = factors()
    consensus = ConsensusSelector(BSUFS(4), n_pairs=2).fit(X)
    assert "<dd>4 of 30</dd>" in make_report(consensus, X, n_subsamples=0)


def test_of_a_search_the_best_selector_is_shown():
    X = factors()
    search = SimpleNamespace(best_estimator_=BSUFS(5, p=0.7).fit(X))
    text = make_report(search, X, n_subsamples=0)
    assert "<dt>Settings chosen by</dt><dd>SimpleNamespace</dd>" in text
    assert "BSUFS(n_features_to_select=5, p=0.7).fit(X)" in text
    assert 'id="path"' in text
    # It does not say what it tried.
    assert 'id="tuning"' not in text


def test_how_a_search_came_to_its_settings():
    X = factors()
    search = LabelFreeSearch(
        BSUFS(4), param_grid={"p": [0.0, 1.0], "n_components": [2, 3]}, report=["redundancy"],
        criterion="reconstruction",
    ).fit(X)  # fmt: skip
    text = make_report(search, X, n_subsamples=0)
    section = re.search('<div id="tuning">.*?<h3 id="repeat">', text, flags=re.DOTALL).group()
    assert "4 settings were tried" in section
    assert "Reconstruction decided, with " in section
    assert "reconstruction (decides, larger is better)" in section
    assert "redundancy (smaller is better)" in section
    assert section.count("<tr") == 5
    ranks = re.findall(r'<tr[^>]*><td class="n" data-v="(\d)">', section)
    assert ranks == ["1", "2", "3", "4"]
    assert section.count('<tr class="best">') == 1
    assert "Redundancy: how far the features repeat one another." in section


def test_of_many_candidates_the_best_are_shown(monkeypatch):
    monkeypatch.setattr(page_module, "_MOST_CANDIDATES", 2)
    X = factors()
    search = LabelFreeSearch(
        LaplacianScore(4), param_grid={"n_neighbors": [3, 4, 5]}, criterion="redundancy"
    ).fit(X)
    text = make_report(search, X, n_subsamples=0)
    section = re.search('<div id="tuning">.*?<h3 id="repeat">', text, flags=re.DOTALL).group()
    assert "3 settings were tried" in section
    assert "The table shows the best 2." in section
    assert section.count("<tr") == 3


def test_forced_and_barred_features_are_named():
    X = factors()
    names = [f"gene {i}" for i in range(30)]
    selector = BSUFS(4, must_keep=[3, 1], never_keep=[7]).fit(X)
    text = make_report(selector, X, feature_names=names, n_subsamples=0)
    assert "<dt>Always kept</dt><dd>gene 1, gene 3</dd>" in text
    assert "<dt>Never kept</dt><dd>gene 7</dd>" in text


def test_wrong_parameters_are_named():
    X = factors()
    selector = MaxVariance(2).fit(X)
    with pytest.raises(ValueError, match="image_shape"):
        make_report(selector, X, n_subsamples=0, image_shape=(4, 4))


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    X = factors()
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="full"):
        make_report(MaxVariance(2).fit(X), X, path, n_subsamples=0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


def test_clusters_are_shown_where_the_method_knows_of_them():
    X = np.random.default_rng(0).standard_normal((60, 8))
    X[:30, :3] += 4.0
    for selector, shown, hidden in (
        (ClusterAlignment(3), "share between clusters", "A step between the kept"),
        (BSUFS(3), "A step between the kept", "share between clusters"),
    ):
        page = make_report(selector.fit(X), X, n_subsamples=0)
        assert shown in page
        assert hidden not in page


def test_the_page_says_what_decided_and_how_many_groups():
    X = np.random.default_rng(0).standard_normal((60, 6)) * [3.0, 1.0, 1.0, 2.0, 1.0, 1.0]
    selector = ClusterAlignment(groups=["a", "a", "a", "b", "c", "c"]).fit(X)
    text = str(make_report(selector, X, n_subsamples=0))
    assert "as well as more would. Agreement: " in text
    assert f"in {selector.selected_groups_.size} groups" in text
    assert "as well as more would" not in str(make_report(BSUFS(2).fit(X), X, n_subsamples=0))


def test_there_are_no_empty_sections():
    X = factors()
    one = make_report(MaxVariance(1).fit(X), X, n_subsamples=2)
    assert "<h2>Maps" not in one
    assert "#together" not in one
    assert "<h2>Maps" in make_report(MaxVariance(2).fit(X), X, n_subsamples=0)
    # Where all are kept, how often each is kept again says nothing.
    whole = make_report(MaxVariance(X.shape[1]).fit(X), X, n_subsamples=2)
    assert "Chosen again" not in whole
    assert "chosen again on part of the rows" not in whole
    assert "was not measured" not in make_report(MaxVariance(30).fit(X), X, n_subsamples=0)
