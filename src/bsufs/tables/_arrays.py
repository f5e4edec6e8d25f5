"""Files of arrays: NumPy, MATLAB and AnnData. Nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._extras import needs
from bsufs.tables._arrow import pa
from bsufs.tables._files import RawFile, TableError, reading
from bsufs.tables._rows import ROW_NAMES, Rows, numbered_names

# How a matrix of features is called where a file holds several.
_USUAL_NAMES = ("X", "data", "fea")
ANNDATA = (".h5ad", ".zarr")
# Whole numbers beyond this are counts: logarithms of counts hardly get there, and are not whole.
_LARGEST_LEVEL = 10
# The arrays that `write_table` adds to a .npz, to hold names and carried columns.
FEATURE_NAMES = "feature_names"
CARRIED_NAMES = "carried_names"
# And those in which SciPy saves a sparse matrix, together with "data".
_SPARSE_PARTS = ("indices", "indptr", "format", "shape")


@dataclass
class Entries:
    """What the entries of a matrix are like, of which there may be several parts."""

    least: float = 0.0
    largest: float = 0.0
    all_whole: bool = True

    def add(self, X: Any) -> None:
        """Take in a part, dense or sparse."""
        entries = X.data if sparse.issparse(X) else X
        self.least = min(self.least, float(entries.min(initial=0)))
        self.largest = max(self.largest, float(entries.max(initial=0)))
        self.all_whole = self.all_whole and bool((entries == np.rint(entries)).all())

    @property
    def may_be_counts(self) -> bool:
        """Whether all are whole numbers from zero."""
        return self.all_whole and self.least >= 0

    @property
    def look_like_counts(self) -> bool:
        """Whether they are, and too large for logarithms."""
        return self.may_be_counts and self.largest > _LARGEST_LEVEL


class ArrayRows(Rows):
    """The rows of a matrix, with the vectors beside it as further columns."""

    # The object that the file holds, where it holds one.
    adata: Any = None

    def __init__(
        self,
        file: RawFile,
        matrix: Any,
        vectors: Mapping[str, Any],
        features: Sequence[str] = (),
        row_names: Sequence[str] = (),
    ) -> None:
        if matrix.dtype.kind == "f" and matrix.dtype.itemsize not in (4, 8):
            # Neither Arrow nor SciPy knows of these.
            matrix = matrix.astype(np.float64)
        self.file, self._vectors, self.row_names = file, dict(vectors), tuple(row_names)
        self._matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
        self.n_rows = self.most_rows = int(matrix.shape[0])
        self.features = tuple(features) or numbered_names(matrix.shape[1])
        self.names = (*self._vectors, *(n for n in self.features if n not in self._vectors))
        self.ambiguous = frozenset(self.features) & frozenset(self._vectors)

    def matrix(self, names: Sequence[str]) -> Any:
        if tuple(names) == self.features:
            return self._matrix
        place = {name: number for number, name in enumerate(self.features)}
        return self._matrix[:, [place[name] for name in names]]

    def batches(
        self, names: Sequence[str], most_rows: int | None, numeric: Collection[str] = ()
    ) -> Iterator[Any]:
        features = set(self.features)
        wanted = [name for name in names if name in features]
        part = self.matrix(wanted)
        dense = part.toarray() if sparse.issparse(part) else part
        columns = self._vectors | dict(zip(wanted, dense.T, strict=True))
        chosen = [columns[name] for name in names]
        # Gaps in text are NaN for pandas.
        arrays = [pa.array(column, from_pandas=column.dtype == object) for column in chosen]
        yield pa.record_batch(arrays, names=list(names))


def array_rows(
    file: RawFile, kind: str, array: str | None, names_from: str | None, transpose: bool = False
) -> ArrayRows:
    """Return the rows of a file of arrays, of the one that was asked for.

    An AnnData object is not transposed here: its rows have names that its columns can take.
    """
    if kind in ANNDATA:
        return _anndata_rows(file, kind, array, names_from)
    if kind == ".npy":
        matrix = _npy_matrix(file)
        return ArrayRows(file, matrix.T if transpose else matrix, {})
    if kind == ".npz":
        return _npz_rows(file, array, transpose)
    # SciPy's readers take a while to import.
    from bsufs._matlab import matlab_arrays

    needed = needs("reading MATLAB files not saved with '-v7'", "h5ad")
    with file.open() as stream, reading(file.source, "MATLAB"), needed:
        stored = matlab_arrays(stream)
    return ArrayRows(file, *_chosen(file.source, stored, array, transpose))


def _npy_matrix(file: RawFile) -> Any:
    with file.open() as stream, reading(file.source, "NumPy"):
        matrix = np.load(stream, allow_pickle=False)
    if not isinstance(matrix, np.ndarray):
        raise TableError(f"{file.source}: this is an archive of arrays: name it .npz.")
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TableError(
            f"{file.source}: the array must be a matrix of numbers, got shape {matrix.shape} of "
            f"{matrix.dtype}."
        )
    return matrix


def _npz_rows(file: RawFile, array: str | None, transpose: bool) -> ArrayRows:
    """Read a matrix and the vectors beside it, dense or as SciPy saves it."""
    with file.open() as stream, reading(file.source, "NumPy"):
        archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise TableError(f"{file.source}: this is a single array: name it .npy.")
        stored = {key: archive[key] for key in archive.files}
        if {*_SPARSE_PARTS, "data"} <= set(stored):
            stream.seek(0)
            stored["data"] = sparse.load_npz(stream)
            for part in _SPARSE_PARTS:
                del stored[part]
    names = stored.pop(FEATURE_NAMES, None)
    carried = {
        str(name): stored.pop(f"carried_{place}")
        for place, name in enumerate(np.ravel(stored.pop(CARRIED_NAMES, ())))
        if f"carried_{place}" in stored
    }
    matrix, vectors = _chosen(file.source, stored, array, transpose)
    if transpose:
        # The names of the columns are now those of the rows.
        is_named = names is not None and names.shape == matrix.shape[:1]
        vectors |= {ROW_NAMES: names.astype(str)} if is_named else {}
        return ArrayRows(file, matrix, vectors, (), [ROW_NAMES] if is_named else ())
    is_named = names is not None and names.shape == matrix.shape[1:]
    features = names.astype(str).tolist() if is_named else ()
    return ArrayRows(file, matrix, carried or vectors, features, tuple(carried))


def _anndata_rows(file: RawFile, kind: str, layer: str | None, names_from: str | None) -> ArrayRows:
    """Read expression and the columns of `obs`."""
    source = file.source
    try:
        anndata = import_module("anndata")
    except ImportError as error:
        raise TableError(
            f'{source}: to read {kind} files, anndata is needed: pip install "bsufs[h5ad]".'
        ) from error
    if file.is_held:
        raise TableError(f"{source}: {kind} files cannot be read from a pipe. Write it to a file.")
    with reading(source, "valid AnnData"):
        found = (anndata.read_h5ad if kind == ".h5ad" else anndata.read_zarr)(file.path)
    for option, name, known, what in (
        ("--layer", layer, list(found.layers), "layer"),
        ("--names-from", names_from, list(found.var.columns), "column of var"),
    ):
        if name is not None and name not in known:
            there = ", ".join(map(repr, known)) or "none"
            raise TableError(f"{source}: {option} {name!r} is no {what}; there are: {there}.")
    matrix = found.X if layer is None else found.layers[layer]
    if matrix is None:
        raise TableError(f"{source}: the file has no X. Name a layer with --layer.")
    matrix = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    # A column of that name is the user's own and goes before the index.
    vectors = {"obs_names": found.obs_names.to_numpy().astype(str)}
    vectors |= {str(name): _cells_of(found.obs[name]) for name in found.obs.columns}
    names = found.var_names if names_from is None else _feature_names(source, found, names_from)
    rows = ArrayRows(file, matrix, vectors, [str(name) for name in names], ["obs_names"])
    rows.adata = found
    rows.how_to_rename = (
        "Call adata.var_names_make_unique() and write the file again, or name them by a column of "
        "var with --names-from"
        if names_from is None
        else "Name another column of var with --names-from, or leave it out"
    )
    entries = Entries()
    entries.add(matrix)
    if entries.look_like_counts:
        rows.notices = (
            f"{source}: the entries look like counts; log-normalized expression selects better "
            "(scanpy.pp.normalize_total and log1p, or bsufs.genes.select_genes)",
        )
    return rows


def _feature_names(source: str, adata: Any, column: str) -> Any:
    """Return what a column of `var` calls the features, which must be something."""
    names = adata.var[column]
    unnamed = (names.isna() | (names.astype(str).str.strip() == "")).to_numpy()
    if unnamed.any():
        raise TableError(
            f"{source}: --names-from {column!r} must name every feature, but {unnamed.sum()} of "
            f"{unnamed.size} have no name, the first {adata.var_names[unnamed.argmax()]!r}. Fill "
            "them in, name another column of var, or leave --names-from out."
        )
    return names


def _cells_of(column: Any) -> Any:
    """Return a column of `obs`; categories are text, whatever they are called by."""
    if str(column.dtype) != "category":
        return column.to_numpy()
    return column.astype("string").to_numpy(dtype=object, na_value=None)


def _chosen(
    source: str, stored: Mapping[str, Any], array: str | None, transpose: bool
) -> tuple[Any, Any]:
    """Return the matrix that was asked for, or the one there is, and all vectors beside it."""
    matrices = {key: value for key, value in stored.items() if _is_matrix(value)}
    if array is not None and array not in matrices:
        raise TableError(
            f"{source}: --array must name a matrix of numbers, got {array!r}; there "
            f"{_shapes(matrices)}."
        )
    if not matrices:
        raise TableError(
            f"{source}: there is no matrix of numbers with at least two columns in the file, "
            f"which holds {', '.join(map(repr, stored)) or 'nothing'}."
        )
    usual = [name for name in _USUAL_NAMES if name in matrices]
    if array is None and len(matrices) > 1 and not usual:
        raise TableError(f"{source}: name one matrix with --array; there {_shapes(matrices)}.")
    chosen = array or (usual or list(matrices))[0]
    matrix = matrices[chosen].T if transpose else matrices[chosen]
    vectors = {
        key: np.asarray(value).ravel()
        for key, value in stored.items()
        if key != chosen and _is_vector(value, matrix.shape[0])
    }
    return matrix, vectors


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
