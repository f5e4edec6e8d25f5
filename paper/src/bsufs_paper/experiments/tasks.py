"""The units of work: what one is, what determines its result, and how it is done.

A task is plain data, so that it can be hashed, stored beside its result and sent to another
process or machine. Each kind of task is one function of this module.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

import bsufs
from bsufs._typing import Array, Indices
from bsufs.selectors import all_selectors
from bsufs_paper.datasets import dataset_checksum, dataset_info, find_dataset, load_dataset
from bsufs_paper.experiments.protocol import judge

# A column of a result by name: numbers or strings, all columns of the same length.
Columns = dict[str, Any]

# Raised above 1 when a kind of task comes to mean something else: its old results no longer count.
_MEANING: dict[str, int] = {}


class SkippedTask(Exception):
    """Raised by a task that cannot be done here, with the reason."""


@dataclass(frozen=True)
class Task:
    """A piece of work."""

    kind: str
    text: str

    @classmethod
    def of(cls, kind: str, **arguments: Any) -> Task:
        """Make a task of a kind."""
        if kind not in _WORK:
            raise ValueError(f"kind must be one of {', '.join(_WORK)}, got {kind!r}.")
        return cls(kind, canonical_json(arguments))

    @property
    def arguments(self) -> dict[str, Any]:
        """What the task is called with."""
        return dict(json.loads(self.text))

    @cached_property
    def key(self) -> str:
        """A hash of all that determines the result: task, data, meaning and release.

        The code of a selector from outside this package is not part of it.
        """
        return hashlib.sha256(
            canonical_json(
                {
                    "kind": self.kind,
                    "meaning": _MEANING.get(self.kind, 1),
                    "arguments": self.arguments,
                    "data": _identity(self.arguments["dataset"]),
                    "release": bsufs.__version__,
                }
            ).encode()
        ).hexdigest()[:32]

    def perform(self) -> Columns:
        """Do the work."""
        return _WORK[self.kind](**self.arguments)


@lru_cache(maxsize=256)
def _identity(dataset: str) -> str:
    """Return what tells a dataset from all others; looked up once, for it is asked very often."""
    info = asdict(dataset_info(dataset))
    # What is said about the data does not change them; their file is known by its checksum.
    for name in ("description", "citation", "target_names", "file"):
        del info[name]
    return canonical_json(info | {"checksum": dataset_checksum(dataset)})


def canonical_json(value: Any) -> str:
    """Return JSON that is the same for the same values, in whatever order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def set_id(features: Iterable[int]) -> str:
    """Return a name for a set of features, whatever their order."""
    ordered = np.unique(np.fromiter(features, dtype=np.int64))
    return hashlib.sha256(ordered.tobytes()).hexdigest()[:24]


def make_selector(selector: str, n_features: int, parameters: dict[str, Any]) -> Any:
    """Make a selector by name."""
    if ":" in selector:
        module, _, name = selector.partition(":")
        found = getattr(importlib.import_module(module), name)
    else:
        known = all_selectors()
        if selector not in known:
            raise ValueError(
                f"selector must be one of {', '.join(known)}, or module:Class, got {selector!r}."
            )
        found = known[selector]
    return found(n_features, **parameters)


# ------------------------------------------------------------------------------ the kinds of work


@lru_cache(maxsize=2)
def _loaded(name: str, noise_scale: float = 1.0, draw: int = 0) -> Any:
    try:
        bunch = load_dataset(name, noise_scale=noise_scale, random_state=draw)
    except FileNotFoundError as error:
        raise SkippedTask(
            f"the file {dataset_info(name).file.name} is not at hand and could not be fetched; "
            f"`bsufs-paper datasets show {name}` says where to put it"
        ) from error
    except (OSError, ValueError) as error:
        # Can be mended without this run: by another file, or by what is to be installed.
        raise SkippedTask(str(error)) from error
    # Tasks share them: one that wrote into them would change the results of the next.
    bunch.data.flags.writeable = False
    bunch.target.flags.writeable = False
    return bunch


def _dataset(*, dataset: str) -> Columns:
    """Tell the size of a dataset, and whether it was drawn in the place of a file."""
    bunch = _loaded(dataset)
    n_samples, n_features = bunch.data.shape
    return {
        "n_samples": [n_samples],
        "n_features": [n_features],
        "n_classes": [int(np.unique(bunch.target).size)],
        "drawn": [find_dataset(dataset) is None],
    }


def _fitted(X: Array, *, selector: str, parameters: dict[str, Any], n_features: int) -> Any:
    return make_selector(selector, min(n_features, X.shape[1]), parameters).fit(X)


def _best_first(fitted: Any, n_features: int) -> Indices:
    ranking = np.asarray(fitted.ranking_)
    if ranking.ndim != 1:
        raise ValueError(f"ranking_ must have one place for each feature, got {ranking.shape}")
    return np.argsort(ranking, kind="stable")[:n_features]


def _rank(*, dataset: str, n_features: int, **fit: Any) -> Columns:
    """Rank the features and keep the best."""
    fitted = _fitted(_loaded(dataset).data, n_features=n_features, **fit)
    best = _best_first(fitted, n_features)
    return {"feature": best, "score": np.asarray(fitted.scores_)[best]}


def _cluster(*, dataset: str, sets: list[list[int]], **judging: Any) -> Columns:
    """Judge sets of features."""
    bunch = _loaded(dataset)
    n_clusters = int(np.unique(bunch.target).size)
    parts: list[Columns] = []
    for features in sets:
        # In ascending order: the same set gives the same sums, whoever ranked it.
        columns = np.sort(np.asarray(features, dtype=np.intp))
        scores = judge(
            np.ascontiguousarray(bunch.data[:, columns]), bunch.target, n_clusters, **judging
        )
        n = judging["repetitions"]
        parts.append({"set": [set_id(features)] * n, "repetition": np.arange(n), **scores})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _recover(
    *, dataset: str, noise_scale: float, parameters: dict[str, Any], draws: list[int], **fit: Any
) -> Columns:
    """Select two features in every draw of the noise."""
    chosen = []
    for draw in draws:
        bunch = _loaded(dataset, noise_scale, draw)
        seeded = {name: draw if value == "draw" else value for name, value in parameters.items()}
        chosen.append(_best_first(_fitted(bunch.data, parameters=seeded, n_features=2, **fit), 2))
    best = np.stack(chosen)
    return {
        "draw": np.asarray(draws),
        "first": best[:, 0],
        "second": best[:, 1],
        "found": (np.sort(best, axis=1) == [0, 1]).all(axis=1),
    }


def _points(*, dataset: str, noise_scale: float, features: list[int], draw: int) -> Columns:
    """Return the samples of one draw in the plane of two features."""
    bunch = _loaded(dataset, noise_scale, draw)
    x, y = features
    return {"x": bunch.data[:, x], "y": bunch.data[:, y], "label": bunch.target}


def _weights(*, dataset: str, matrix: str, **fit: Any) -> Columns:
    """Return the entries of a transformation matrix: an attribute, or "both" sparse copies of W.

    Both: the row-sparse copy, with a zero also where the element-sparse copy has one.
    """
    fitted = _fitted(_loaded(dataset).data, **fit)
    if matrix == "both":
        W = fitted.row_sparse_components_.T * (fitted.element_sparse_components_.T != 0)
    else:
        W = getattr(fitted, matrix).T
    feature, component = np.indices(W.shape)
    return {"feature": feature.ravel(), "component": component.ravel(), "value": W.ravel()}


def _correlate(*, dataset: str, n_features: int, **fit: Any) -> Columns:
    """Correlate the selected features."""
    X = _loaded(dataset).data
    best = _best_first(_fitted(X, n_features=n_features, **fit), n_features)
    i, j = np.indices((best.size, best.size))
    return {
        "i": i.ravel() + 1,
        "j": j.ravel() + 1,
        "feature_i": best[i].ravel(),
        "feature_j": best[j].ravel(),
        "r": np.corrcoef(X[:, best], rowvar=False).ravel(),
    }


def _objective(*, dataset: str, parameters: dict[str, Any], **fit: Any) -> Columns:
    """Return the objective after every iteration, and how many features were alive."""
    alive: list[int] = []

    def watch(progress: Any) -> None:
        alive.append(int(progress.n_alive))

    X = _loaded(dataset).data
    fitted = _fitted(X, parameters=parameters | {"callback": watch}, **fit)
    history = fitted.objective_history_
    return {
        "iteration": np.arange(history.size),
        "value": history,
        "n_alive": [X.shape[1], *alive][: history.size],
    }


def _images(*, dataset: str, n_features: int, n_images: int, seed: int, **fit: Any) -> Columns:
    """Return a few pictures and which of their pixels were selected."""
    bunch = _loaded(dataset)
    best = _best_first(_fitted(bunch.data, n_features=n_features, **fit), n_features)
    selected = np.zeros(bunch.data.shape[1], dtype=bool)
    selected[best] = True
    shown = np.random.default_rng(seed).choice(len(bunch.data), n_images, replace=False)
    shape, order = bunch.image_shape, bunch.image_order
    pictures = [bunch.data[sample].reshape(shape, order=order) for sample in shown]
    row, column = np.indices(shape)
    pixels = row.size
    return {
        "sample": np.repeat(np.arange(n_images), pixels),
        "row": np.tile(row.ravel(), n_images),
        "column": np.tile(column.ravel(), n_images),
        "value": np.concatenate([picture.ravel() for picture in pictures]),
        "selected": np.tile(selected.reshape(shape, order=order).ravel(), n_images),
    }


_WORK: dict[str, Callable[..., Columns]] = {
    "dataset": _dataset,
    "rank": _rank,
    "cluster": _cluster,
    "recover": _recover,
    "points": _points,
    "weights": _weights,
    "correlate": _correlate,
    "objective": _objective,
    "images": _images,
}
