"""Runs of the reference implementations and the data they ran on, where they are at hand."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat

_ROOT = Path(__file__).resolve().parents[1]


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable, _ROOT.parent / "shared" / name))


def golden_runs(method: str, dataset: str) -> list[dict[str, Any]]:
    """Return the comparable runs of a method; none where the files are absent."""
    path = _folder("BSUFS_REFERENCE", "reference") / f"{method}_{dataset}.json"
    if not path.exists():
        return []
    return [run for run in json.loads(path.read_text())["runs"] if run["comparable"]]


def golden_cases(method: str, *datasets: str) -> list[Any]:
    """Return pytest parameters (dataset, run); a single skipped one where there are none."""
    cases = [
        pytest.param(dataset, run, id=f"{dataset}-{run['run']}")
        for dataset in datasets or ("USPS", "lung_small")
        for run in golden_runs(method, dataset)
    ]
    reason = f"no reference runs of {method}; set BSUFS_REFERENCE to their folder"
    return cases or [pytest.param(None, None, marks=pytest.mark.skip(reason=reason))]


@cache
def golden_data(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and labels, prepared as for the reference runs; read-only."""
    path = _folder("BSUFS_DATA", "data") / f"{dataset}.mat"
    if not path.exists():
        pytest.skip(f"{path.name} is absent; set BSUFS_DATA to its folder")
    X, y = _read(path)
    if dataset == "umist":
        X = X / 255
    if dataset == "USPS":
        first = [np.flatnonzero(y == label)[:100] for label in np.unique(y)]
        keep = np.concatenate(first)
        X, y = X[keep], y[keep]
    X.flags.writeable = y.flags.writeable = False
    return X, y


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    stored = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    if "Train_DAT" in stored:
        X = np.hstack([stored["Train_DAT"], stored["Test_DAT"]]).T
        y = np.hstack([stored["trainlabels"], stored["testlabels"]])
        return np.array(X, dtype=np.float64, order="C"), np.ravel(y).astype(int)
    X = next(stored[name] for name in ("X", "fea", "data") if name in stored)
    y = next(stored[name] for name in ("Y", "y", "gnd", "label", "labels") if name in stored)
    return np.array(X, dtype=np.float64, order="C"), np.ravel(y).astype(int)


def score_difference(scores: np.ndarray, run: dict[str, Any]) -> float:
    """Return the largest difference of a score, relative to the largest score."""
    expected = np.asarray(run["scores"])
    return float(np.abs(scores - expected).max() / np.abs(expected).max())


def assert_agrees(scores: np.ndarray, run: dict[str, Any], tolerance: float = 1e-6) -> None:
    """Check the scores, and the ranking but for the order of scores closer than the tolerance."""
    difference = score_difference(scores, run)
    assert difference <= tolerance, f"scores differ by {difference:.1e} of the largest"
    expected = np.asarray(run["scores"])
    close = 2 * tolerance * expected.max()
    ours = np.argsort(-scores, kind="stable")
    informative = min(run["n_informative"], len(run["ranking_0based"]))
    for place in range(informative):
        theirs = run["ranking_0based"][place]
        if ours[place] != theirs:
            gap = abs(expected[ours[place]] - expected[theirs])
            assert gap <= close, f"place {place}: {ours[place]} instead of {theirs}"
