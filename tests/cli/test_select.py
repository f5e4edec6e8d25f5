import csv
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bsufs.selectors import all_selectors

OTHERS = ("--ignore", "id", "--label", "kind")


def _rows(text):
    return list(csv.DictReader(text.splitlines()))


def test_names_go_into_a_pipe_and_words_to_standard_error(invoke, table):
    result = invoke("select", table, "-k", 2, *OTHERS)
    assert (result.status, result.out) == (0, "b\ne\n")
    assert "ClusterAlignment selected 2 of 6 features from 40 rows" in result.err
    assert "k-means on selected columns: ACC 100.0, NMI 100.0" in result.err
    assert invoke("select", table, "-k", 2, *OTHERS, "-q").err == ""


def test_a_terminal_gets_a_table(invoke, table):
    result = invoke("select", table, "-k", 2, *OTHERS, terminal=True)
    assert "explained" in result.out
    assert "ClusterAlignment: 2 of 6 features" in result.out


def test_a_terminal_is_told_which_columns_a_kept_one_stands_for(invoke, tmp_path):
    rng = np.random.default_rng(0)
    one = rng.standard_normal(60)
    near = {f"near {i}": one + 0.1 * (i + 1) * rng.standard_normal(60) for i in range(3)}
    path = tmp_path / "t.csv"
    pd.DataFrame({"one": one, "other": rng.standard_normal(60), **near}).to_csv(path, index=False)
    words = ("select", path, "-k", 2, "--must-keep", "one,other", "--never-keep", "near 2")
    shown = invoke(*words, terminal=True).out
    assert "stands for" in shown
    assert "near 0 and 2 more" in " ".join(shown.split())
    streamed = invoke(*words, "--memory", "1kB", terminal=True).out
    assert "explained" in streamed
    assert "stands for" not in streamed


def test_a_purpose_stands_for_a_method(invoke, table):
    result = invoke("select", table, "-k", 2, *OTHERS, "--purpose", "Neighbors")
    assert "NeighborAlignment selected 2 of 6 features" in result.err
    result = invoke("select", table, "-k", 2, *OTHERS, "--purpose", "reconstruct")
    assert "--purpose 'reconstruct' is not known. Did you mean 'reconstruction'?" in result.err
    result = invoke("select", table, "--purpose", "clusters", "--method", "BSUFS")
    assert (result.status, result.out) == (2, "")
    assert "--purpose and --method both say how to select" in result.err


def test_what_is_written_keeps_cells_and_order(invoke, table, tmp_path):
    out, names, document = (tmp_path / name for name in ("o.csv", "n.txt", "r.json"))
    words = ("select", table, "-k", 2, *OTHERS, "-o", out, "--names", names, "--json", document)
    assert invoke(*words).status == 0
    before, after = _rows(table.read_text()), _rows(out.read_text())
    assert list(after[0]) == ["id", "b", "e", "kind"]
    assert all(old[key] == new[key] for old, new in zip(before, after, strict=True) for key in new)
    assert names.read_text() == "b\ne\n"
    found = json.loads(document.read_text())
    assert [entry["name"] for entry in found["selected"]] == ["b", "e"]
    assert found["clustering"]["selected"]["accuracy"] == 1.0
    refused = invoke(*words)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "the file exists. Replace it with --force" in refused.err
    assert invoke(*words, "--force", "--order", "rank").status == 0
    assert out.read_text().startswith("id,kind,b,e\n")


def test_the_table_goes_to_standard_output_as_csv(capfdbinary, table):
    from bsufs.cli._program import run

    with pytest.raises(SystemExit):
        run(["select", str(table), "-k", "1", *OTHERS, "-q", "-o", "-"])
    assert capfdbinary.readouterr().out.startswith(b"id,b,kind\n")


def test_forced_and_barred_features(invoke, table, tmp_path):
    (tmp_path / "bar.txt").write_text("b\n\ne\n")
    barred = f"@{tmp_path}/bar.txt"
    result = invoke("select", table, "-k", 2, *OTHERS, "--must-keep", "c", "--never-keep", barred)
    assert result.out.splitlines()[0] == "c"
    assert not {"b", "e"} & set(result.out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-k", "0"], "-k must be a whole number"),
        (["-k", "x"], "got 'x'"),
        (["-k", "7"], "-k must be at most 6"),
        (["--method", "Bsufz"], "Did you mean 'BSUFS'?"),
        (["--method", "???"], "There are BSUFS, ClusterAlignment"),
        (["--set", "n_neighbours=1"], "Did you mean 'n_neighbors'?"),
        (["--set", "lambda_row=1"], "Methods that have it: BSUFS, SPCAPSD"),
        (["--set", "zzz=1"], "Valid: clusters, components, max_samples"),
        (["--set", "random_state=1"], "use --seed"),
        (["--set", "verbose=1"], "no such parameter"),
        (["--set", "p"], "name=value"),
        (["--set", "n_runs=0"], "'n_runs' parameter of ClusterAlignment"),
        (["--must-keep", "bb"], "--must-keep 'bb' is not among the features to select from. Did"),
        (
            ["--must-keep", "b", "--method", "MaxVariance"],
            "methods that know it: BSUFS, ClusterAlignment",
        ),
        (["--must-keep", "b", "--never-keep", "b"], "--must-keep and --never-keep both name 'b'"),
        (["--never-keep", "@none.txt"], "none.txt: No such file"),
        (["--missing", "guess"], "--missing"),
        (["--nonsense"], "No such option"),
        (["--names", "x.txt", "--json", "x.txt"], "must name different files"),
        (["-o", "none/x.csv"], "there is no folder"),
        (["-o", "x.docx"], "extension must say"),
        (["--json", "."], "this is a folder"),
    ],
)
def test_wrong_words_are_one_line_and_status_2(invoke, table, words, message, monkeypatch):
    monkeypatch.chdir(table.parent)
    result = invoke("select", table, *OTHERS, *words)
    assert result.status == 2
    assert message in result.err
    assert result.err.startswith("bsufs: error: ")
    assert result.err.count("\n") == 1


def test_parameters_are_typed_and_any_method_will_do(invoke, table, tmp_path):
    path = tmp_path / "r.json"
    invoke("select", table, *OTHERS, "-k", 0.5, "--set", "n_runs=3", "--set", "clusters=auto",
           "--json", path)  # fmt: skip
    found = json.loads(path.read_text())
    assert found["parameters"]["n_runs"] == 3
    assert len(found["selected"]) == 3
    result = invoke("select", table, *OTHERS, "-k", 2, "--method", "randomselector", "--seed", 3)
    again = invoke("select", table, *OTHERS, "-k", 2, "--method", "RandomSelector", "--seed", 3)
    assert result.out == again.out
    assert invoke("select", table, *OTHERS, "--jobs", 1, "--scale", "standard").status == 0


def test_missing_values(invoke, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b,c\n1,2,3\n,5,7\n7,-inf,9\n4,2,1\n")
    assert "--missing median" in invoke("select", path, "-k", 1, "--strict").err
    out = tmp_path / "o.csv"
    result = invoke("select", path, "-k", 3, "--missing", "median", "-o", out)
    assert "medians stand for them" in result.err
    assert out.read_text() == path.read_text()
    invoke("select", path, "-k", 3, "--missing", "drop-rows", "-o", out, "--force")
    assert out.read_text() == "a,b,c\n1,2,3\n4,2,1\n"
    path.write_text("a,b,c\n1,2,3\n,5,7\n")
    assert "1 columns left out" in invoke("select", path, "-k", 1, "--missing", "drop-columns").err
    assert "two rows are needed" in invoke("select", path, "--missing", "drop-rows").err


def test_labels_that_are_no_classes(invoke, table):
    result = invoke("select", table, "--ignore", "kind", "--label", "id")
    assert "must hold classes" in result.err
    assert result.status == 2


def test_sparse_matrices_and_methods_that_need_dense_ones(invoke, tmp_path):
    X = sparse.random(30, 8, density=0.5, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "s.npz", X)
    for method in ("BSUFS", "ColumnSubset"):
        result = invoke("select", tmp_path / "s.npz", "-k", 2, "--method", method,
                        "--scale", "standard")  # fmt: skip
        assert result.status == 0
        assert len(result.out.split()) == 2


def test_a_constant_table_is_an_error_in_words(invoke, tmp_path):
    (tmp_path / "c.csv").write_text("a,b,c\n" + "1,1,2\n" * 4)
    for method in all_selectors():
        result = invoke("select", tmp_path / "c.csv", "-k", 1, "--method", method)
        assert (result.status, result.out) == (2, "")
        assert "every column is constant" in result.err


def test_values_whose_variance_is_beyond_all_numbers(invoke, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 4)) * 1e300
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d", comments="")
    result = invoke("select", tmp_path / "t.csv", "-k", 2)
    assert result.status == 0
    assert "warning" not in result.err


def test_names_that_would_break_a_line_or_steer_a_terminal(invoke, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text('"a\nb","[red]x","\x1b[2J"\n1,2,3\n4,9,6\n7,1,2\n')
    assert sorted(invoke("select", path, "-k", 3).out.splitlines()) == [
        "[red]x",
        "\\x1b[2J",
        "a\\nb",
    ]
    assert "[red]x" in invoke("select", path, "-k", 3, terminal=True).out


def test_a_report_is_written_like_the_other_outputs(invoke, table, tmp_path):
    path = tmp_path / "it's.html"
    words = ("select", table, "-k", 2, *OTHERS, "--report", path, "--subsamples", 3, "--scale",
             "standard", "--seed", 5)  # fmt: skip
    result = invoke(*words)
    assert (result.status, result.out) == (0, "")
    page = path.read_text(encoding="utf-8")
    assert "2 of 6 columns, best first" in page
    assert "repeated on 3 random parts of the rows" in page
    assert "Seed of the subsamples: 5." in page
    assert "labels were not used to select" in page
    refused = invoke(*words)
    assert refused.status == 2
    assert "Replace it with --force" in refused.err
    path.write_text("old")
    assert invoke(*words, "--force").status == 0
    assert path.read_text(encoding="utf-8") == page.replace("--seed 5", "--seed 5 --force")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_the_command_in_a_report_repeats_it(invoke, table, tmp_path):
    import html
    import shlex

    result = invoke("select", table, "-k", 2, *OTHERS, "--must-keep", "c", "--set", "n_neighbors=4",
                    "--report", "-", "--subsamples", 0, "-q")  # fmt: skip
    command = html.unescape(re.search("<code>(bsufs select .*?)</code>", result.out).group(1))
    assert invoke(*shlex.split(command)[1:]).out == result.out


def test_a_report_tells_what_was_missing(invoke, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b,c\n1,2,3\n,5,7\n7,-inf,9\n4,2,1\n")
    result = invoke("select", path, "-k", 1, "--missing", "median", "--report", "-", "--subsamples",
                    0)  # fmt: skip
    assert "<dd>1 value is missing and 1 value is infinite</dd>" in result.out


def test_a_report_needs_a_file_of_its_own(invoke, table, tmp_path):
    path = tmp_path / "x"
    result = invoke("select", table, *OTHERS, "--names", path, "--report", path)
    assert "--names and --report must name different files" in result.err
    assert not path.exists()


def test_a_column_that_hides_the_others_is_told(invoke, table):
    words = ("select", table, "-k", 2, *OTHERS)
    told = invoke(*words).err
    assert re.search(
        r"'b' alone has \d\d\.\d% of the variance: if the columns have different units, "
        r"--scale standard lets the others count",
        told,
    )
    assert "alone has" not in invoke(*words, "--scale", "standard").err
    # Of two columns one has always the larger half.
    assert "alone has" not in invoke(*words[:3], 1, *OTHERS, "--ignore", "a,c,d,f").err


@pytest.mark.parametrize(("shares", "told"), [((60, 20, 20), True), ((45, 30, 25), False)])
def test_a_column_hides_the_others_with_more_than_half_of_the_variance(
    invoke, tmp_path, shares, told
):
    # Columns that are orthogonal to each other, of exactly these variances.
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    np.save(tmp_path / "t.npy", np.tile(signs * np.sqrt(shares), (6, 1)))
    result = invoke("select", tmp_path / "t.npy", "-k", 1)
    assert result.status == 0
    assert ("'x0' alone has 60.0% of the variance" in result.err) is told
    assert ("alone has" in result.err) is told


def test_a_report_of_scaled_numbers_says_how_they_were_scaled(invoke, table, tmp_path):
    path = tmp_path / "page.html"
    words = ("select", table, "-k", 2, *OTHERS, "--report", path, "--subsamples", 0, "--force")
    assert invoke(*words).status == 0
    assert " scale=" not in path.read_text()
    assert invoke(*words, "--scale", "standard").status == 0
    assert " scale=&#39;standard&#39;" in path.read_text()


def test_columns_are_kept_in_groups(invoke, table, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("column,group\nb,strong\nc,strong\na,weak\nd,weak\n")
    words = ("select", table, *OTHERS, "--groups", groups)
    result = invoke(*words, "-k", 1, "--json", "-")
    rows = json.loads(result.out)["selected"]
    assert [(row["name"], row["group"]) for row in rows] == [("b", "strong"), ("c", "strong")]
    assert "selected 2 of 6 features in 1 group " in result.err
    assert invoke(*words, "-k", 2, "--must-keep", "weak").out.split()[:2] in (
        ["a", "d"],
        ["d", "a"],
    )
    streamed = invoke(*words, "-k", 1, "--memory", "1KB")
    assert streamed.out == "b\nc\n"
    compared = invoke(*words, "-k", 1, "--method", "MaxVariance", "--compare", "ColumnSubset")
    assert (compared.status, compared.out) == (0, "b\nc\n")
    assert "warning" not in compared.err


def test_groups_are_named_by_what_stands_before_a_mark(invoke, tmp_path):
    table = tmp_path / "t.csv"
    X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 1, 9, 1]
    np.savetxt(table, X, delimiter=",", header="x_1,x_2,y_old_1,y_old_2", comments="")
    assert invoke("select", table, "-k", 1, "--group-by", "_").out.split() == ["y_old_1", "y_old_2"]


def test_a_budget_decides_instead_of_a_number(invoke, table, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text(
        "".join(f"{name},{cost}\n" for name, cost in zip("abcdef", "151121", strict=True))
    )
    words = ("select", table, *OTHERS, "--costs", costs)
    result = invoke(*words, "--budget", 4)
    assert result.status == 0
    assert "b" not in result.out
    assert "e" in result.out
    for more, message in [
        ((), "--costs and --budget must be given together"),
        (("--budget", 4, "-k", 2), "both say how much to keep"),
        (("--budget", 0.5), "budget must pay for"),
        (("--budget", 4, "--method", "MCFS"), "--costs cannot be used with MCFS"),
    ]:
        refused = invoke(*words, *more)
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        assert message in refused.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b,strong\nbb,strong\n", "line 2: 'bb' is not among the features"),
        ("b\n", "line 1: must hold a column and a group with a comma between them, got 'b'"),
        ("column,group\n", "must hold lines of a column and a group, got none"),
        ("b,a\n", "must not name a group 'a' like a column outside of it"),
        (f"{'b' * 200_000},a\n", "must hold lines of text, but field larger than"),
    ],
)
def test_wrong_files_of_groups_are_one_line(invoke, table, tmp_path, text, message):
    groups = tmp_path / "groups.csv"
    groups.write_text(text)
    result = invoke("select", table, *OTHERS, "--groups", groups)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_auto_says_what_decided(invoke, table):
    result = invoke("select", table, *OTHERS, "--json", "-")
    curve = json.loads(result.out)["agreement_curve"]
    assert len(curve["n_features_to_select"]) == len(curve["agreement"])
    assert "auto keeps the fewest columns that show the clusters it looked for" in result.err


def test_alternatives_are_shown_and_written(invoke, table, tmp_path):
    document, page = tmp_path / "r.json", tmp_path / "page.html"
    words = ("--alternatives", 2, "--json", document, "--report", page, "--subsamples", 0)
    result = invoke("select", table, "-k", 2, *OTHERS, *words)
    assert result.status == 0
    assert "components 1 and 2" in result.err
    first, second = json.loads(document.read_text())["alternatives"]
    # The classes are in the first component, of which these two columns are made.
    assert set(first["features"]) == {"b", "e"}
    assert first["title"] == "components 1 and 2"
    assert first["overlap"]["others"] == second["overlap"]["others"]
    assert sum(first["cluster_sizes"]) == 40
    text = page.read_text()
    assert 'id="alternatives"' in text
    assert "Components 3 and 4" in text


def test_fewer_alternatives_than_asked_for_are_said(invoke, table):
    result = invoke("select", table, "-k", 2, *OTHERS, "--alternatives", 9)
    assert result.out == "b\ne\n"
    assert "alternatives for which the table has components: 3" in result.err


def test_alternatives_need_the_whole_table(invoke, table):
    result = invoke("select", table, "-k", 2, *OTHERS, "--alternatives", 2, "--memory", "1kB")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "--alternatives" in result.err


@pytest.fixture
def mixed(tmp_path):
    """Write a table of numbers, a category, an identifier and a column of gaps."""
    rng = np.random.default_rng(0)
    kinds = np.arange(60) % 3
    lines = ["id,size,kind,height,noise,mostly"]
    for i, kind in enumerate(kinds):
        size, height, noise = rng.normal([4 * kind, 0, 0])
        gap = "1.5" if i % 5 == 0 else ""
        lines.append(f"{i},{size:.4f},{'xyz'[kind]},{size + height / 9:.4f},{noise:.4f},{gap}")
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_ranking_tells_of_every_column_of_the_table(invoke, mixed, tmp_path):
    words = ("-k", 2, "--scale", "auto", "--ranking", tmp_path / "r.csv")
    assert "wrote" in invoke("select", mixed, *words).err
    rows = {row["name"]: row for row in _rows((tmp_path / "r.csv").read_text())}
    assert [rows[name]["rank"] for name in ("id", "mostly")] == ["", ""]
    assert rows["id"]["reason"] == "it counts the rows"
    assert rows["mostly"]["reason"] == "80% is missing"
    ranked = [row for row in rows.values() if row["rank"]]
    assert [row["rank"] for row in ranked] == ["1", "2", "3", "4"]
    assert [row["kept"] for row in ranked] == ["True", "True", "False", "False"]
    # A category is one column, in the places as in the words.
    assert "kind" in rows
    assert not any("kind=" in row["reason"] or "group" in row["reason"] for row in ranked)
    assert rows["noise"]["reason"].startswith(f"left out: ranked {rows['noise']['rank']} for 2")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /dev/stdin")
def test_a_table_from_a_redirected_file(mixed):
    with mixed.open() as stream:
        words = (sys.executable, "-m", "bsufs", "select", "/dev/stdin", "-k", "1", "-q")
        result = subprocess.run(words, stdin=stream, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.split()) == 1


def test_what_a_file_is_may_be_said(invoke, mixed, tmp_path):
    named = invoke("select", mixed, "-k", 2)
    plain = mixed.rename(tmp_path / "mixed")
    result = invoke("select", plain, "-k", 2, "--format", "csv")
    assert (result.status, result.out) == (0, named.out)
    result = invoke("select", plain, "-k", 2, "--format", "doc")
    assert (result.status, result.out) == (2, "")
    assert "--format 'doc' is not known" in result.err
    assert "--format csv" in invoke("select", plain, "-k", 2).err


def test_what_an_array_cannot_hold_is_said(invoke, table, tmp_path):
    result = invoke("select", table, "-k", 2, "-o", tmp_path / "o.npy", *OTHERS)
    assert "o.npy holds numbers alone: names and carried columns are not in it" in result.err


def test_rows_that_may_be_features_are_noticed(invoke, tmp_path):
    table = tmp_path / "t.csv"
    X = np.random.default_rng(0).normal(size=(1200, 4))
    rows = [f"gene{i}," + ",".join(f"{x:.3f}" for x in row) for i, row in enumerate(X)]
    table.write_text("\n".join(["gene,s1,s2,s3,s4", *rows]) + "\n")
    assert "use --transpose" in invoke("select", table, "-k", 2).err
    turned = invoke("select", table, "-k", 2, "--transpose")
    assert "use --transpose" not in turned.err
    assert "2 of 1200 features" in turned.err
    for cell in ("gene0,", "1.5,"):
        # Neither a text of many rows nor a word among numbers is a name for each row.
        rows = [f"{x:.5f}," + ",".join(f"{y:.3f}" for y in row) for x, *row in X.tolist()]
        rows[600] = cell + rows[600].partition(",")[2]
        texts = [f"town{i % 350},{row}" for i, row in enumerate(rows)]
        table.write_text("\n".join(["town,s1,s2,s3,s4", *texts]) + "\n")
        assert "use --transpose" not in invoke("select", table, "-k", 2).err


def test_names_and_patterns_alike_take_no_part_in_the_mean_of_a_row(invoke, tmp_path):
    table = tmp_path / "t.csv"
    X = np.random.default_rng(1).normal(size=(40, 6))
    X[:, 5] *= 50
    np.savetxt(table, X, delimiter=",", header="a,b,c,d,e,huge", comments="")
    words = ("select", table, "-k", 3, "--center-rows", "--json", "-")
    by_name = json.loads(invoke(*words, "--never-keep", "huge").out)
    by_pattern = json.loads(invoke(*words, "--never-keep-matching", "^hu").out)
    assert by_name["selected"] == by_pattern["selected"]
