"""The lines of Python in a report select what the command selected."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def mixed(tmp_path):
    rng = np.random.default_rng(3)
    sort = rng.integers(0, 3, 80)
    frame = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(80)],
            "a.x": sort + 0.2 * rng.standard_normal(80),
            "a.y": rng.standard_normal(80),
            "b": 100.0 * rng.standard_normal(80),
            "c": np.array(["red", "green", "blue"])[sort],
            "d": rng.integers(0, 4, 80),
            "batch": np.array(["u", "v"])[rng.integers(0, 2, 80)],
        }
    )
    frame.loc[5, "b"] = np.nan
    path = tmp_path / "it's a table.csv"
    frame.to_csv(path, index=False, sep=";")
    return path


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-k", 2],
        ["-k", 3, "--method", "BSUFS", "--seed", 4, "--set", "p=0.5"],
        ["-k", 3, "--must-keep", "c", "--never-keep", "b", "--delimiter", ";"],
        ["-k", 2, "--categories", "d", "--ignore", "a.y", "--scale", "standard"],
        ["-k", 2, "--group-by", "."],
        ["-k", 2, "--adjust-for", "batch", "--missing", "drop-rows"],
        ["-k", 2, "--batch-key", "d", "--adjust-for", "a.y"],
        ["-k", 2, "--batch-key", "d", "--adjust-for", "d,batch"],
        ["-k", 3, "--purpose", "neighbors", "--center-rows"],
        ["-k", 3, "--method", "ColumnSubset", "--label", "batch"],
        ["-k", "2,3", "--tune"],
        ["--budget", 3, "--costs", "COSTS"],
    ],
    ids=lambda options: " ".join(map(str, options)) or "none",
)
def test_they_select_the_same(invoke, mixed, tmp_path, options):
    costs = tmp_path / "costs.csv"
    costs.write_text("column,cost\na.x,1\na.y,1\nb,2\nc,1.5\nd,1\nbatch,1\n")
    options = [costs if option == "COSTS" else option for option in options]
    if "--scale" not in options:
        options += ["--scale", "auto"]
    page, names, results = (tmp_path / name for name in ("page.html", "names.txt", "all.json"))
    written = ["--report", page, "--names", names, "--json", results]
    done = invoke("select", mixed, *options, *written, "--subsamples", 0, "-q")
    assert done.status == 0, done
    (lines,) = re.findall('<pre id="lines"><code>(.*?)</code>', page.read_text(), re.DOTALL)
    assert json.loads(results.read_text())["python"] == html.unescape(lines)
    space = {}
    exec(html.unescape(lines), space)
    assert space["selector"].selected_features_.tolist() == names.read_text().splitlines()


def test_they_say_what_they_cannot_do(invoke, mixed):
    for method, is_told in (("MCFS", True), ("BSUFS", False)):
        words = ("-k", 2, "--method", method, "--batch-key", "batch", "--json", "-", "-q")
        lines = json.loads(invoke("select", mixed, *words).out)["python"]
        said = "# MCFS cannot take off by itself what --batch-key did."
        assert lines.startswith(said) == is_told
