"""Files of arrays: NumPy, MATLAB and AnnData. Nothing is ever unpickled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from bsufs.tables._files import RawFile, TableError, unreadable_message
from bsufs.tables._rows import Rows

# How a matrix of features is called where a file holds several.
_USUAL_NAMES = ("X", "data", "fea")
# The arrays that `write_table` adds to a .npz, to hold names and carried columns.
FEATURE_NAMES = "feature_names"
CARRIED_NAMES = "carried_names"
SPARSE_PARTS = ("indices", "indptr", "format", "shape", "data")


@dataclass(frozen=True)
class Arrays:
    """A matrix of features, and vectors with one entry per row that may go along."""

    matrix: Any
    features: tuple[str, ...]
    vectors: Mapping[str, Any] = field(default_factory=dict)
    always_carried: tuple[str, ...] = ()


class ArrayRows(Rows):
    """The rows of a matrix, with the vectors beside it as further columns."""

    def __init__(self, file: RawFile, kind: str, array: str | None) -> None:
        self.file = file
        found = _read(file, kind, array)
        matrix = found.matrix
        if matrix.dtype.kind == "f" and matrix.dtype.itemsize not in (4, 8):
            # Neither Arrow nor SciPy knows of these.
            matrix = matrix.astype(np.float64)
        self._matrix, self.features, self._vectors = matrix, found.features, found.vectors
        self.n_rows = self.most_rows = int(matrix.shape[0])
        self.names = (*found.vectors, *(n for n in found.features if n not in found.vectors))
        self.row_names = found.always_carried
        self.ambiguous = frozenset(found.features) & frozenset(found.vectors)

    def matrix(self, names: Sequence[str]) -> Any:
        if tuple(names) == self.features:
            return self._matrix
        place = {name: number for number, name in enumerate(self.features)}
        return self._matrix[:, [place[name] for name in names]]

    def batches(self, names: Sequence[str], most_rows: int | None) -> Iterator[Any]:
        import pyarrow as pa

        features = set(self.features)
        wanted = [name for name in names if name in features]
        part = self.matrix(wanted)
        dense = part.toarray() if sparse.issparse(part) else part
        columns = dict(self._vectors) | dict(zip(wanted, dense.T, strict=True))
        yield pa.record_batch([pa.array(columns[name]) for name in names], names=list(names))


def _read(file: RawFile, kind: str, array: str | None) -> Arrays:
    if kind == ".h5ad":
        return _read_h5ad(file)
    with file.open() as stream:
        if kind == ".npy":
            return _read_npy(stream, file.source)
        if kind == ".npz":
            return _read_npz(stream, file.source, array)
        # SciPy's readers take a while to import.
        from bsufs._matlab import matlab_arrays

        with _reading(file.source, "MATLAB"):
            stored = matlab_arrays(stream)
        return _matrix_and_vectors(stored, file.source, array)


@contextlib.contextmanager
def _reading(source: str, kind: str) -> Iterator[None]:
    """Say in one line that a file is of another kind."""
    try:
        yield
    except NotImplementedError as error:
        raise TableError(
            f"{source}: MATLAB 7.3 files are not read; save it in MATLAB with '-v7'."
        ) from error
    # What a reader raises on foreign bytes depends on where they cease to make sense.
    except Exception as error:
        if "allow_pickle" in str(error):
            message = "the file holds Python objects, which are never unpickled."
        else:
            message = unreadable_message(kind, error)
        raise TableError(f"{source}: {message}") from error


def _read_npy(stream: BinaryIO, source: str) -> Arrays:
    with _reading(source, "NumPy"):
        matrix = np.load(stream, allow_pickle=False)
    if not isinstance(matrix, np.ndarray):
        raise TableError(f"{source}: this is an archive of arrays: name it .npz.")
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TableError(
            f"{source}: the array must be a matrix of numbers, got shape {matrix.shape} of "
            f"{matrix.dtype}."
        )
    return Arrays(matrix, _numbered(matrix.shape[1]))


def _read_npz(stream: BinaryIO, source: str, array: str | None) -> Arrays:
    """Read a matrix and the vectors beside it, dense or as SciPy saves it."""
    with _reading(source, "NumPy"):
        archive = np.load(stream, allow_pickle=False)
    if isinstance(archive, np.ndarray):
        raise TableError(f"{source}: this is a single array: name it .npy.")
    with archive, _reading(source, "NumPy"):
        stored = {key: archive[key] for key in archive.files}
    if set(SPARSE_PARTS) <= set(stored):
        stream.seek(0)
        with _reading(source, "SciPy sparse"):
            built = sparse.load_npz(stream)
        stored = {key: value for key, value in stored.items() if key not in SPARSE_PARTS}
        stored["data"] = built
    carried = _carried_vectors(stored)
    names = stored.pop(FEATURE_NAMES, None)
    found = _matrix_and_vectors(stored, source, array)
    if names is not None and names.shape == found.matrix.shape[1:]:
        found = replace(found, features=tuple(names.astype(str).tolist()))
    return replace(found, vectors=carried, always_carried=tuple(carried)) if carried else found


def _read_h5ad(file: RawFile) -> Arrays:
    """Read counts and the columns of `obs`."""
    try:
        anndata = import_module("anndata")
    except ImportError as error:
        raise TableError(
            f'{file.source}: to read .h5ad files, anndata is needed: pip install "bsufs[h5ad]".'
        ) from error
    with _reading(file.source, "AnnData"):
        found = anndata.read_h5ad(file.path)
    if found.X is None:
        raise TableError(f"{file.source}: the file has no X.")
    matrix = sparse.csr_array(found.X) if sparse.issparse(found.X) else np.asarray(found.X)
    vectors = {str(name): found.obs[name].to_numpy() for name in found.obs.columns}
    # A column of that name is the user's own and goes before the index.
    vectors = {"obs_names": found.obs_names.to_numpy().astype(str), **vectors}
    return Arrays(matrix, tuple(map(str, found.var_names)), vectors, ("obs_names",))


def _carried_vectors(stored: dict[str, Any]) -> dict[str, Any]:
    names = stored.pop(CARRIED_NAMES, None)
    if names is None:
        return {}
    vectors = {str(name): stored.pop(f"carried_{i}", None) for i, name in enumerate(names)}
    return {name: vector for name, vector in vectors.items() if vector is not None}


def _matrix_and_vectors(stored: Mapping[str, Any], source: str, array: str | None) -> Arrays:
    matrices = {key: value for key, value in stored.items() if _is_matrix(value)}
    if array is not None and array not in matrices:
        raise TableError(
            f"{source}: --array must name a matrix of numbers, got {array!r}; there "
            f"{_shapes(matrices)}."
        )
    if not matrices:
        raise TableError(
            f"{source}: there is no matrix of numbers with at least two columns in the file, which "
            f"holds {', '.join(map(repr, stored)) or 'nothing'}."
        )
    usual = [name for name in _USUAL_NAMES if name in matrices]
    if array is None and len(matrices) > 1 and not usual:
        raise TableError(f"{source}: name one matrix with --array; there {_shapes(matrices)}.")
    chosen = array or (usual or list(matrices))[0]
    matrix = matrices[chosen]
    vectors = {
        key: np.asarray(value).ravel()
        for key, value in stored.items()
        if key != chosen and _is_vector(value, matrix.shape[0])
    }
    if sparse.issparse(matrix):
        matrix = sparse.csr_array(matrix)
    return Arrays(matrix, _numbered(matrix.shape[1]), vectors)


def _is_matrix(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) or sparse.issparse(value)
    return is_array and value.ndim == 2 and value.dtype.kind in "biuf" and value.shape[1] > 1


def _is_vector(value: Any, n_rows: int) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "biufU"
        and value.size == n_rows == max(value.shape, default=0)
    )


def _shapes(matrices: Mapping[str, Any]) -> str:
    if not matrices:
        return "is none"
    every = [f"{name!r} ({value.shape[0]} x {value.shape[1]})" for name, value in matrices.items()]
    return f"{'is' if len(every) == 1 else 'are'} {', '.join(every)}"


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{number}" for number in range(n_columns))
