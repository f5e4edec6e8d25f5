"""From a registered file to samples, labels and names."""

from __future__ import annotations

import os
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from bsufs._matlab import matlab_arrays
from bsufs._typing import Array
from bsufs_paper.datasets._files import fetch, find_dataset, record_checksum
from bsufs_paper.datasets._registry import DatasetInfo, SourceFile, dataset_info
from bsufs_paper.datasets._synthetic import (
    RandomState,
    add_gaussian_noise,
    add_salt_and_pepper,
    append_noise_features,
    feature_names,
    make_dartboard1,
    make_diamond9,
)


def load_dataset(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    noise_scale: float = 1.0,
    random_state: RandomState = 0,
) -> Bunch:
    """Load a registered dataset; fetch its file where it is not at hand.

    The file is looked for in `data_home`, in the folder of the environment variable
    ``BSUFS_DATA`` and in the user's cache, in this order; its checksum is verified. Otherwise it
    is downloaded into the first of these that can be written; Diamond9 and Dartboard1 are drawn
    instead, by `make_diamond9` and `make_dartboard1`.

    Parameters
    ----------
    name : str
        A registered name, see `list_datasets`.
    data_home : path-like, default=None
        The folder to look into first.
    noise_scale : float, default=1.0
        Standard deviation of appended noise features, as a multiple of that of the true ones (the
        root of their mean variance). Only for names with such features.
    random_state : int, RandomState instance or None, default=0
        Seed of the noise, for names with noise.

    Returns
    -------
    sklearn.utils.Bunch
        With the attributes

        - `data`, array of float of shape (n_samples, n_features);
        - `target`, array of int of shape (n_samples,): places in `target_names`;
        - `feature_names` and `target_names`, arrays of str;
        - `true_features`, the columns that are not appended noise;
        - `image_shape` and `image_order`: ``data[i].reshape(image_shape, order=image_order)`` is
          a picture; None where there is none;
        - `DESCR`, source, license and citation in words, and `name`.

    Raises
    ------
    FileNotFoundError
        If the file is not there and cannot be fetched; the message says what to put where.
    ValueError
        If the file is not the registered one or cannot be read.

    See Also
    --------
    list_datasets : What is registered.
    make_diamond9 : Points of the same shape with no file.

    Examples
    --------
    >>> from bsufs_paper.datasets import load_dataset
    >>> coil = load_dataset("COIL20")  # doctest: +SKIP
    >>> coil.data.shape  # doctest: +SKIP
    (1440, 1024)
    """
    validate_parameter_constraints(
        {
            "name": [str],
            "data_home": [str, os.PathLike, None],
            "noise_scale": [Interval(Real, 0, None, closed="left")],
            "random_state": ["random_state"],
        },
        {
            "name": name,
            "data_home": data_home,
            "noise_scale": noise_scale,
            "random_state": random_state,
        },
        caller_name="load_dataset",
    )
    info = dataset_info(name)
    drawn = info.generator is not None and find_dataset(name, data_home) is None
    if drawn:
        X, labels = _drawn_samples_and_labels(info)
    else:
        path = fetch(info.file, data_home)
        X, labels = _samples_and_labels(path, info)
        record_checksum(path, info.file)
    classes, target = np.unique(labels, return_inverse=True)
    n_true = X.shape[1]
    if info.has_noise:
        X = _with_noise(X, info, noise_scale, check_random_state(random_state))
    return Bunch(
        data=X,
        target=target.astype(np.intp),
        feature_names=_feature_names(info, n_true),
        target_names=np.array(info.target_names or classes.astype(str)),
        true_features=np.arange(n_true),
        image_shape=info.image_shape,
        image_order=info.image_order,
        DESCR=_description(info, drawn),
        name=info.name,
    )


def _drawn_samples_and_labels(info: DatasetInfo) -> tuple[Array, NDArray[np.int64]]:
    make = {"make_diamond9": make_diamond9, "make_dartboard1": make_dartboard1}[str(info.generator)]
    drawn = make(info.shape[0], n_noise_features=0, random_state=0)
    return drawn.data, drawn.target


def _samples_and_labels(path: Path, info: DatasetInfo) -> tuple[Array, NDArray[np.int64]]:
    stored = _read_arrays(path, info.file)
    parts = [_numbers(stored, key, path, info.file) for key in info.data_keys]
    X = np.vstack([part.T if info.features_in_rows else part for part in parts])
    y = np.concatenate(
        [_numbers(stored, key, path, info.file).ravel() for key in info.target_keys]
    ).astype(np.int64)
    if len(X) == len(y) and info.first_per_class is not None:
        keep = [np.flatnonzero(y == label)[: info.first_per_class] for label in np.unique(y)]
        X, y = X[np.concatenate(keep)], y[np.concatenate(keep)]
    expected = (info.shape[0], info.shape[1] - info.n_noise_features)
    n_classes = len(np.unique(y))
    if X.shape != expected or y.shape != expected[:1] or n_classes != info.n_classes:
        raise ValueError(
            f"{path} must hold {expected[0]} samples of {expected[1]} features in "
            f"{info.n_classes} classes, got samples of shape {X.shape} and {len(y)} labels of "
            f"{n_classes} classes. {_cure(info.file)}"
        )
    return np.array(X / info.divisor, order="C"), y


def _read_arrays(path: Path, source: SourceFile) -> dict[str, Any]:
    kind = "NumPy archive" if path.suffix == ".npz" else "MATLAB file"
    try:
        if path.suffix == ".npz":
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return dict(archive)
        with path.open("rb") as stream:
            return matlab_arrays(stream)
    # What the reader raises on foreign bytes depends on where they cease to make sense.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a {kind}, it is truncated or of another kind "
            f"({type(error).__name__}: {error}). {_cure(source)}"
        ) from error


def _numbers(stored: dict[str, Any], key: str, path: Path, source: SourceFile) -> Array:
    if key not in stored:
        raise ValueError(
            f"{path} must hold an array {key!r}, it holds {sorted(stored)}. {_cure(source)}"
        )
    value = stored[key].toarray() if issparse(stored[key]) else stored[key]
    if value.dtype.kind not in "biuf" or not np.isfinite(value).all():
        raise ValueError(f"The array {key!r} of {path} must hold finite numbers. {_cure(source)}")
    return np.asarray(value, dtype=np.float64)


def _cure(source: SourceFile) -> str:
    return f"Replace it with {source.url}." if source.url else "Mend the file, or its description."


def _with_noise(
    X: Array, info: DatasetInfo, noise_scale: float, random: np.random.RandomState
) -> Array:
    X = append_noise_features(X, info.n_noise_features, noise_scale, random)
    if info.corruption == "gaussian":
        return add_gaussian_noise(X, random_state=random)
    if info.corruption == "salt-and-pepper":
        return add_salt_and_pepper(X, random_state=random)
    return X


def _feature_names(info: DatasetInfo, n_true: int) -> NDArray[np.str_]:
    if info.image_shape is None:
        return feature_names(n_true, info.n_noise_features, info.feature_prefix)
    order: Any = info.image_order
    rows, columns = np.unravel_index(np.arange(n_true), info.image_shape, order=order)
    places = zip(rows, columns, strict=True)
    return np.array([f"{info.feature_prefix}_{row}_{column}" for row, column in places])


def _description(info: DatasetInfo, drawn: bool) -> str:
    license = info.file.license or "none stated"
    source = info.file.url or info.file.name
    return "\n".join(
        [
            f"{info.name}: {info.description}",
            f"{info.shape[0]} samples, {info.shape[1]} features, {info.n_classes} classes.",
            f"Source: drawn by {info.generator}, like {source}" if drawn else f"Source: {source}",
            f"License: {license}. {info.file.license_note}".rstrip(),
            f"Reference: {info.citation}",
        ]
    )
