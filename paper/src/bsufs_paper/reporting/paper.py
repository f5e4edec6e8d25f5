"""What the paper prints, number by number, and where it contradicts itself."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

DATASETS = ("COIL20", "Isolet", "USPS", "umist", "GLIOMA", "pie", "LUNG", "MSTAR")
# The file of MSTAR is not public at a known checksum, so no target asks for it.
PUBLIC_DATASETS = DATASETS[:-1]
METHODS = (
    *("ALLfea", "LapScore", "SOGFS", "RNE", "UDFS", "SPCAFS", "FSPCA", "SPCA-PSD"),
    *("FEN-PCAFS", "BSUFS"),
)
CASES = ("Case I", "Case II", "Case III", "Case IV")

# Means of printed numbers with two decimals are off by at most half a unit of the last, and the
# authors will have rounded once more.
_ROUNDING = 0.0100001


@cache
def _read(name: str) -> pd.DataFrame:
    path = files("bsufs_paper.reporting") / "printed" / f"{name}.csv"
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False, na_values={"n_features": [""]})


def load_printed(name: str) -> pd.DataFrame:
    """Return a table of the paper, in percent where it is a score."""
    return _read(name).copy()


def average_notes(table: pd.DataFrame) -> list[str]:
    """Check the printed averages over the datasets against the printed cells."""
    cells = table[table["dataset"] != "Average"]
    printed = table[table["dataset"] == "Average"].set_index("method")
    means = cells.groupby("method", sort=False)[["mean", "sd"]].mean()
    notes = []
    for method, row in means.iterrows():
        for column, word in (("mean", "average"), ("sd", "average spread")):
            found, said = row[column], printed.loc[method, column]
            if abs(found - said) > _ROUNDING:
                notes.append(
                    f"The paper prints an {word} of {said:.2f} for {method}; "
                    f"its cells have the mean {found:.2f}."
                )
    return notes or ["Every printed average is the mean of the printed cells."]


def mark_notes(table: pd.DataFrame, ignore: tuple[str, ...] = ()) -> list[str]:
    """Check the numbers that the paper marks as the top two of a row."""
    notes = []
    for dataset, row in table[~table["method"].isin(ignore)].groupby("dataset", sort=False):
        best = row.nlargest(2, "mean")
        for mark, expected in zip(("first", "second"), best.itertuples(), strict=True):
            marked = row[row["mark"] == mark]
            if len(marked) == 1 and marked["mean"].iloc[0] != expected.mean:
                notes.append(
                    f"On {dataset} the paper marks {marked['method'].iloc[0]} "
                    f"({marked['mean'].iloc[0]:.2f}) as {mark}; by its numbers it is "
                    f"{expected.method} ({expected.mean:.2f})."
                )
    return notes


def agreement_notes(metric: str) -> list[str]:
    """Check numbers that the paper prints in two tables."""
    main = _read(f"clustering-{metric}")
    ablation = _read(f"ablation-{metric}").set_index(["dataset", "method"])["mean"]
    faces = _read("pixels")
    bsufs = main[(main["method"] == "BSUFS") & (main["dataset"] != "Average")]
    pairs = [
        (f"BSUFS on {row.dataset}", row.mean, ablation[row.dataset, "Case IV"])
        for row in bsufs.itertuples(index=False)
    ]
    pairs += [
        (f"{row.method} on {row.dataset}", row.mean, ablation[row.dataset, row.method])
        for row in faces[faces["metric"] == metric.upper()].itertuples(index=False)
    ]
    notes = [
        f"The paper prints {first:.2f} and {second:.2f} for {what}."
        for what, first, second in pairs
        if first != second
    ]
    return notes or [f"The {len(pairs)} numbers that the paper prints twice agree."]


def all_features_note() -> str:
    """Say what number of features the paper prints for all features."""
    counts = _read("clustering-acc").query("method == 'ALLfea'")["n_features"].dropna().unique()
    sizes = _read("datasets").query("type == 'Real-world'")["features"]
    said = ", ".join(f"{count:.0f}" for count in counts)
    return (
        f"The paper prints ({said}) as the number of features of ALLfea on every dataset, "
        f"where all features are {sizes.min()} to {sizes.max()}."
    )


def feature_count_note() -> str:
    """Say how often the paper's NMI has another number of features than its ACC."""
    keys = ["dataset", "method"]
    both = _read("clustering-acc").merge(_read("clustering-nmi"), on=keys).dropna()
    both = both[both["method"] != "ALLfea"]
    different = int((both["n_features_x"] != both["n_features_y"]).sum())
    return (
        f"In {different} of {len(both)} cells the paper prints another number of features for NMI "
        "than for ACC, so NMI was maximized over the number of features once more, at the "
        "parameters that are best for ACC."
    )
