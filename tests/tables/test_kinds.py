import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsufs.tables import Column, TableError, open_table, prepare

N = 24


def _frame(**more):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=N).round(3),
            "color": ["red", "blue", "green", "blue"] * (N // 4),
            "sex": ["f", "m"] * (N // 2),
            "ok": [True, False, False] * (N // 3),
            "day": pd.date_range("2024-01-30", periods=N).strftime("%Y-%m-%d"),
            "weight": rng.normal(70, 9, size=N).round(2),
        }
        | more
    )


def _open(frame, tmp_path, batch_rows=None, **options):
    frame.to_csv(tmp_path / "t.csv", index=False)
    return open_table(tmp_path / "t.csv", batch_rows=batch_rows, **options)


def _kinds(table):
    return {column.name: column.kind for column in table.columns}


def _whys(table):
    return {column.name: column.why for column in table.columns if column.why}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("batch_rows", [None, 5])
def test_a_table_of_categories_alone(tmp_path, name, batch_rows):
    frame = _frame()[["color", "sex"]]
    if name == "t.csv":
        frame.to_csv(tmp_path / name, index=False)
    else:
        frame.to_parquet(tmp_path / name)
    kinds = {"color": "category", "sex": "category"}
    table = open_table(tmp_path / name, kinds=kinds, batch_rows=batch_rows)
    values = np.concatenate(list(table.batches()))
    assert values.shape == (N, 4)
    np.testing.assert_allclose(values.std(axis=0)[3], 1.0)


def test_numbers_are_no_dates(tmp_path):
    with pytest.raises(TableError, match=r"must hold dates, .*; it holds numbers"):
        _open(_frame(n=range(5, 5 + N)), tmp_path, kinds={"n": "date"})


def test_a_column_of_a_matrix_may_be_a_category(tmp_path):
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[:, 1] = np.arange(N) % 3
    np.save(tmp_path / "t.npy", X)
    table = open_table(tmp_path / "t.npy", kinds={"x1": "category"})
    assert table.groups.tolist() == [0, 1, 1, 1, 2]
    np.testing.assert_array_equal(table.values[:, [0, 4]], X[:, [0, 2]])


def test_how_numbers_and_dates_were_read_is_said(tmp_path):
    commas = [f"{i % 7},{i % 10}5" for i in range(N)]
    days = [f"{1 + i:02}.03.2024" for i in range(N)]
    table = _open(_frame(day=days, share=commas), tmp_path)
    said = "4 numbers (with decimal commas: share), 2 categories (color, sex), 1 date (read as"
    assert said in table.notices[0]


def test_each_column_is_taken_as_what_it_holds(tmp_path):
    table = _open(_frame(), tmp_path)
    assert _kinds(table) == {
        "size": "number",
        "color": "category",
        "sex": "category",
        "ok": "number",
        "day": "date",
        "weight": "number",
    }
    assert table.names == ("size", "color", "sex", "ok", "day", "weight")
    # Two values need one column, three need three.
    assert table.groups.tolist() == [0, 1, 1, 1, 2, 3, 4, 5]
    assert table.matrix_names[1:4] == ["color=blue", "color=green", "color=red"]
    assert "3 numbers, 2 categories (color, sex), 1 date (day)" in table.notices[0]


def test_numbers_of_the_matrix():
    text = "a,c,d\n" + "".join(f"{i * i},{'xyz'[i % 3]},2024-01-{i + 1:02}\n" for i in range(12))
    table = open_table(io.BytesIO(text.encode()), missing="keep")
    numbers, indicators, days = table.values[:, 0], table.values[:, 1:4], table.values[:, 4]
    np.testing.assert_array_equal(numbers, np.arange(12) ** 2)
    np.testing.assert_array_equal(np.diff(days), 1.0)
    # As a whole a category varies as much as the median column of numbers and dates.
    usual = np.median([numbers.std(), days.std()])
    np.testing.assert_allclose(np.sqrt(indicators.var(axis=0).sum()), usual)
    np.testing.assert_allclose(indicators.mean(axis=0), 0.0, atol=1e-12)


def test_scaled_to_one_a_category_counts_like_one_column(tmp_path):
    table = _open(_frame(), tmp_path, scale="standard")
    variances = table.values.var(axis=0)
    np.testing.assert_allclose(np.bincount(table.groups, variances), 1.0)


def test_gaps_that_are_kept_hide_no_number_below_zero():
    frame = pd.DataFrame({"a": [1.0, np.nan, 4.0], "b": [2.0, -1.0, 0.0]})
    table = prepare(frame, missing="keep", scale="noise", strict=True)
    assert (table.scale, table.why_scaled) == ("none", "below zero, no mean tells of the noise")
    table = prepare(frame.abs(), missing="keep", scale="noise", strict=True)
    assert table.scale == "noise"


def test_of_many_numbers_that_are_left_out_for_a_word_the_word_is_said(tmp_path):
    noise = np.random.default_rng(1).standard_normal((3, 2500)).round(6)
    frame = pd.DataFrame({"a": noise[0], "b": noise[1], "age": list(map(str, noise[2]))})
    frame.loc[2000:, "age"] = "inf"
    frame.loc[2400:, "age"] = ["unknown", "Infinity"] * 50
    table = _open(frame, tmp_path)
    assert _whys(table) == {"age": "it holds numbers, but also 'unknown'"}


def test_what_names_or_counts_the_rows_is_left_out_and_carried(tmp_path):
    rng = np.random.default_rng(1)
    frame = _frame(
        row=np.arange(5, 5 + N),
        patient_id=rng.permutation(1000)[:N],
        name=[f"n{i}" for i in range(N)],
        note=[f"text {i % 9}" for i in range(N)],
        age=["unknown", *map(str, range(20, 19 + N))],
        constant=["same"] * N,
        empty=[None] * N,
        gappy=[1.5, None, None] * (N // 3),
    )
    table = _open(frame, tmp_path)
    assert _whys(table) == {
        "row": "it counts the rows",
        "patient_id": "it names the rows",
        "name": "it is different in every row",
        "note": "it has 9 different texts in 24 rows",
        "age": "it holds numbers, but also 'unknown'",
        "constant": "it is 'same' in every row",
        "empty": "100% is missing",
        "gappy": "67% is missing",
    }
    assert set(table.carried_names) == set(_whys(table))
    assert not set(table.names) & set(_whys(table))


@pytest.mark.parametrize("name", ["id", "ID", "user_id", "userId", "Sample.ID", "Unnamed: 0"])
def test_names_that_say_that_rows_are_named(name, tmp_path):
    values = np.random.default_rng(1).permutation(1000)[:N]
    assert _whys(_open(_frame(**{name: values}), tmp_path)) == {name: "it names the rows"}
    assert not _whys(_open(_frame(**{f"{name}eal": values}), tmp_path))


def test_a_measurement_that_differs_in_every_row_is_kept(tmp_path):
    frame = _frame(population=np.random.default_rng(0).permutation(10**6)[:N], valid=[0, 1] * 12)
    assert _kinds(_open(frame, tmp_path))["population"] == "number"


def test_of_two_columns_none_is_left_out_for_counting(tmp_path):
    assert _open(pd.DataFrame({"a": range(N), "b": [0, 1] * 12}), tmp_path).names == ("a", "b")


def test_what_the_user_says_goes_first(tmp_path):
    frame = _frame(code=[10, 20, 20] * 8, row=range(N), when=["31/12/1999", "01/02/2000"] * 12)
    kinds = {"code": "category", "row": "number", "when": "date", "sex": "category"}
    table = _open(frame, tmp_path, kinds=kinds)
    assert {name: _kinds(table)[name] for name in kinds} == kinds
    assert _whys(table)["when"] == "read as %d/%m/%Y"
    with pytest.raises(TableError, match="--dates color: the column must hold dates"):
        _open(frame, tmp_path, kinds={"color": "date"})
    with pytest.raises(TableError, match="--numbers color: the column must hold numbers"):
        _open(frame, tmp_path, kinds={"color": "number"})
    with pytest.raises(TableError, match="--categories 'none' is no column"):
        _open(frame, tmp_path, kinds={"none": "category"})


def test_strict_refuses_what_is_no_number(tmp_path):
    with pytest.raises(TableError, match="3 columns 'color', 'sex', 'day' hold text"):
        _open(_frame(), tmp_path, strict=True)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,5", "-2", "1.234,25"], [1.5, -2, 1234.25]),
        (["1,234,567", "12", "1,000.5"], [1234567, 12, 1000.5]),
        (["0,125", "0,500", "NA"], [0.125, 0.5, 0.3125]),
    ],
)
def test_commas_in_numbers(cells, numbers, tmp_path):
    frame = pd.DataFrame({"a": cells * 4, "b": np.arange(12) ** 2})
    table = _open(frame, tmp_path)
    np.testing.assert_array_equal(table.values[:3, 0], numbers)


def test_commas_that_could_mean_either_are_not_guessed(tmp_path):
    table = _open(
        pd.DataFrame({"a": ["1,234", "5,678"] * 6, "b": range(12), "c": [1, 2] * 6}), tmp_path
    )
    assert _whys(table)["a"] == "1,234 could be 1234 or 1.234"


@pytest.mark.parametrize("batch_rows", [None, 5])
@pytest.mark.parametrize(
    ("cells", "numbers", "why"),
    [
        (["$1,034.20", "-$5.50", "$ 12"], [1034.2, -5.5, 12], "in $ with commas between thousands"),
        (["€ 12", "€ 7", "€ 1200"], [12, 7, 1200], "in €"),
        (["1.034,20 €", "12,5 €", "7€"], [1034.2, 12.5, 7], "in € with decimal commas"),
        (["45 %", "12.5 %", "- 3%"], [45, 12.5, -3], "in %"),
        (["1 200 km", "1\u00a0200\u202f300 km", "12.25 km"], [1200, 1200300, 12.25], "in km"),
        (["21.5 °C", "-3 °C", "+7 °C"], [21.5, -3, 7], "in °C"),
        (["12.5 km/h", "3 km/h", "NA"], [12.5, 3, 7.75], "in km/h"),
    ],
)
def test_numbers_with_one_unit(cells, numbers, why, batch_rows, tmp_path):
    frame = pd.DataFrame({"a": cells * 4, "b": np.arange(12) ** 2})
    table = _open(frame, tmp_path, batch_rows)
    values = np.concatenate(list(table.batches()))
    np.testing.assert_array_equal(values[:3, 0], numbers)
    assert f"2 numbers ({why}: a)" in table.notices[0]
    assert next(table.cells(["a"])).column(0)[1].as_py() == cells[1]


@pytest.mark.parametrize("batch_rows", [None, 5])
@pytest.mark.parametrize(
    "cells",
    [
        ["$5", "5", "7"],
        ["5 km", "5 m", "7 km"],
        ["5 m", "5 mm", "7 m"],
        ["$5", "€5", "$7"],
        ["$5 m", "$6 m", "$7 m"],
        ["s01", "s02", "s03"],
        ["5a", "6a", "7a"],
        ["12 34 km", "1 km", "2 km"],
        ["5 %", "about 6 %", "7 %"],
    ],
)
def test_texts_that_are_no_numbers_of_one_unit(cells, batch_rows, tmp_path):
    texts = pd.DataFrame({"a": cells * 4, "b": np.arange(12) ** 2, "c": [1, 2] * 6})
    assert _kinds(_open(texts, tmp_path, batch_rows))["a"] == "category"


def test_a_unit_does_not_say_what_a_comma_means(tmp_path):
    frame = pd.DataFrame({"a": ["$1,234", "$5,678"] * 6, "b": range(12), "c": [1, 2] * 6})
    assert _whys(_open(frame, tmp_path))["a"] == "$1,234 could be $1234 or $1.234"
    frame["a"] = ["950 €", "1.200 €"] * 6
    assert _whys(_open(frame, tmp_path))["a"] == "1.200 € could be 1.200 € or 1200 €"


def test_typed_columns_need_no_guess(tmp_path):
    stamps = pd.date_range("2024-01-01", periods=N, freq="h")
    columns = {
        "day": pa.array(stamps.date),
        "stamp": pa.array(stamps, pa.timestamp("ns", "UTC")),
        "time": pa.array(stamps.time),
        "wait": pa.array(stamps - stamps[0]),
        "kind": pa.array(["u", "v"] * 12).dictionary_encode(),
        "list": pa.array([[1]] * N),
        "bytes": pa.array([b"x"] * N),
        "view": pa.array([str(i * i) for i in range(N)], pa.string_view()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", missing="keep")
    assert {name: kind for name, kind in _kinds(table).items() if kind != "date"} == {
        "kind": "category",
        "list": "left out",
        "bytes": "left out",
        "view": "number",
    }
    np.testing.assert_allclose(np.diff(table.values[:, 1]), 1 / 24, atol=1e-9)


@pytest.mark.parametrize("batch_rows", [1, 5, 100])
@pytest.mark.parametrize("scale", ["auto", "none", "standard"])
def test_batches_change_nothing(batch_rows, scale, tmp_path):
    frame = _frame(row=range(N), gappy=[1.0, 5.5, None] * 8, part=["p", None, "q", "r"] * 6)
    held = _open(frame, tmp_path, scale=scale)
    streamed = _open(frame, tmp_path, batch_rows, scale=scale)
    assert (streamed.columns, streamed.scale) == (held.columns, held.scale)
    np.testing.assert_array_equal(np.concatenate(list(streamed.batches())), held.values)
    chosen = [4, 1]
    part = np.concatenate(list(streamed.batches(chosen)))
    np.testing.assert_array_equal(part, next(held.batches(chosen)))


def test_missing_categories_are_none_of_them(tmp_path):
    table = _open(_frame(part=["p", None, "q", "r"] * 6), tmp_path, scale="none")
    assert table.missing.n_missing == 6
    columns = [n for n, name in enumerate(table.matrix_names) if name.startswith("part=")]
    assert len(set(map(tuple, table.values[:, columns].round(9)))) == 4


@pytest.mark.parametrize("how", ["drop-rows", "drop-columns"])
def test_gaps_of_categories_are_dropped_like_others(how, tmp_path):
    table = _open(_frame(part=["p", None, "q", "r"] * 6), tmp_path, missing=how)
    assert table.n_rows == (18 if how == "drop-rows" else N)
    assert ("part" in table.names) == (how == "drop-rows")


def _units(columns, **options):
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    return open_table(io.BytesIO("\n".join(lines).encode()), scale="auto", **options)


def test_columns_are_scaled_where_they_share_no_unit():
    a, b, c, d = np.random.default_rng(0).normal(size=(4, 40)).round(4)
    alike = {"a": a, "b": 2 * b, "c": 2 * c, "d": d}
    assert _units(alike).scale == "none"
    assert _units(alike | {"d": 100 * d}).scale == "standard"
    assert "'d' varies" in _units(alike | {"d": 100 * d}).why_scaled
    assert _units({"a": a, "b": 2 * b, "c": 5 * c}).why_scaled.startswith("'c' alone has")
    assert "no unit in common" in _units(alike | {"e": list("xyyx") * 10}).why_scaled


def test_counts_share_a_unit():
    counts = np.random.default_rng(0).poisson(0.2, size=(120, 30)) * np.arange(1, 121)[:, None] ** 2
    assert _units({f"g{i}": row for i, row in enumerate(counts)}).scale == "none"


@given(
    st.lists(
        st.sampled_from(["", "1", "2.5", "x", "true", "2024-05-01", "1,5", "3,000", "?", "inf"]),
        min_size=12,
        max_size=30,
    ),
    st.integers(1, 30),
)
def test_any_cells_are_taken_alike_whole_and_in_batches(cells, batch_rows):
    text = "a,b,c\n" + "".join(f'"{cell}",{i * i % 7},{i % 5}\n' for i, cell in enumerate(cells))
    whole = open_table(io.BytesIO(text.encode()), scale="auto")
    assert np.isfinite(whole.values).all()
    assert whole.values.shape == (len(cells), len(whole.matrix_names))


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "dict"])
def test_data_frames_are_taken_like_files(kind, tmp_path):
    frame = _frame(row=range(N), part=["p", None, "q", "r"] * 6)
    expected = _open(frame, tmp_path, scale="auto")
    given = {
        "pandas": lambda: frame,
        "arrow": lambda: pa.Table.from_pandas(frame),
        "polars": lambda: pytest.importorskip(
            "polars", reason="polars is not installed"
        ).from_pandas(frame),
        "dict": lambda: frame.to_dict("list"),
    }[kind]()
    table = prepare(given)
    assert table.columns == expected.columns
    np.testing.assert_array_equal(table.values, expected.values)
    with pytest.raises(TableError, match="the table: --ignore 'zzz' is no column"):
        prepare(given, ignore=["zzz"])


def test_cells_of_several_kinds_in_one_column_become_text():
    frame = pd.DataFrame({"a": [1, "x", None, 2.5] * 5, "b": range(20), "c": [1, 2] * 10})
    assert prepare(frame).columns[0].categories == ("1", "2.5", "x")


def test_columns_are_looked_up_by_name_not_by_comparing_each_with_all(monkeypatch, tmp_path):
    monkeypatch.setattr(Column, "__eq__", lambda *_: pytest.fail("columns were compared"))
    assert _open(_frame(row=range(N)), tmp_path).n_features == 6


def test_rows_are_counted_afresh_where_a_long_row_makes_a_second_start_necessary(tmp_path):
    lines = ["a,b", *(f"{i},{i * i}" for i in range(9)), f"9,{'x' * 2**21}"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(TableError, match=r"row 10 of 'b'|in column 'b' \(row 10\)"):
        open_table(tmp_path / "t.csv", kinds={"a": "number"}, strict=True)


def test_numbers_too_large_for_a_variance_are_not_scaled():
    text = "a,b,c\n1e308,1.5,2\n-0.5,2,1\n1,3.5,4\n"
    table = open_table(io.BytesIO(text.encode()), scale="auto")
    assert (table.scale, table.why_scaled[:18]) == ("none", "the numbers of 'a'")
    with pytest.raises(TableError, match="'a' are too large to have a variance"):
        open_table(io.BytesIO(text.encode()), scale="standard")


def test_such_numbers_behind_a_category_are_named():
    rows = [f"{'xyz'[i % 3]},{x}" for i, x in enumerate(["1e308", "-1e308", "1.5", "2.5"] * 3)]
    table = open_table(io.BytesIO("\n".join(["kind,a", *rows]).encode()), scale="auto")
    assert table.why_scaled == "the numbers of 'a' are too large to have a variance"
    assert np.isfinite(table.values).all()


@pytest.mark.parametrize("batch_rows", [None, 9])
def test_gaps_beside_categories_are_an_error_where_that_is_asked_for(tmp_path, batch_rows):
    frame = pd.DataFrame({"a": range(30), "b": list("xyz") * 10, "c": [None, *range(2, 31)]})
    frame["a"] **= 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match="1 value is missing, the first in row 1 of column 'c'"):
        open_table(tmp_path / "t.csv", missing="error", batch_rows=batch_rows)
