"""Tables that nobody here wrote, with nothing said about them, through both commands."""

import json

import pytest
from sklearn import datasets

from bsufs.tables import prepare

# What each table is taken as: numbers, categories, dates and columns left out, and its scale.
SCIKIT_LEARN = {
    "iris": (5, 0, 0, 0, "standard"),
    "wine": (14, 0, 0, 0, "standard"),
    "breast_cancer": (31, 0, 0, 0, "standard"),
    "diabetes": (11, 0, 0, 0, "standard"),
    "linnerud": (6, 0, 0, 0, "standard"),
    "digits": (65, 0, 0, 0, "none"),
}
VEGA = {
    "airports": (2, 2, 0, 3, "standard"),
    "barley": (2, 2, 0, 0, "standard"),
    "burtin": (3, 2, 0, 1, "standard"),
    "cars": (6, 1, 1, 1, "standard"),
    "driving": (2, 1, 0, 1, "standard"),
    "iowa_electricity": (1, 1, 1, 0, "standard"),
    "iris": (4, 1, 0, 0, "standard"),
    "la_riots": (3, 3, 1, 4, "standard"),
    "ohlc": (5, 1, 1, 0, "standard"),
    "seattle_weather": (4, 1, 1, 0, "standard"),
    "us_employment": (23, 0, 1, 0, "standard"),
    "wheat": (3, 0, 0, 0, "standard"),
}


def _frame(package, name):
    if package == "scikit-learn":
        return getattr(datasets, f"load_{name}")(as_frame=True).frame
    vega = pytest.importorskip("vega_datasets", reason="vega_datasets is not installed")
    return getattr(vega.local_data, name)()


TABLES = [("scikit-learn", name) for name in SCIKIT_LEARN] + [("vega", name) for name in VEGA]


@pytest.mark.parametrize(("package", "name"), TABLES)
def test_what_real_tables_are_taken_as(package, name):
    table = prepare(_frame(package, name))
    kinds = [column.kind for column in table.columns]
    counts = [kinds.count(kind) for kind in ("number", "category", "date", "left out")]
    assert (*counts, table.scale) == (SCIKIT_LEARN if package == "scikit-learn" else VEGA)[name]


@pytest.mark.parametrize(("package", "name"), TABLES)
def test_real_tables_need_no_option(package, name, tmp_path, invoke):
    frame = _frame(package, name).head(400)
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "o.csv"
    path, document = tmp_path / "t.csv", tmp_path / "r.json"
    result = invoke("select", path, "-o", out, "--json", document, "--scale", "auto")
    assert result.status == 0, result.err
    found = json.loads(document.read_text())
    kept = [row["name"] for row in found["selected"]]
    carried = [row["name"] for row in found["columns"] if row["kind"] == "left out"]
    header = out.read_text(encoding="utf-8").splitlines()[0].replace('"', "")
    assert header == ",".join(c for c in frame.columns if c in {*kept, *carried})
    methods = ("--methods", "ClusterAlignment,BSUFS,ColumnSubset,LaplacianScore")
    compared = invoke("compare", path, "-k", 1, *methods, "--scale", "auto")
    assert compared.status == 0, compared.err
