"""Files of arrays: NumPy, MATLAB and AnnData. Nothing is ever unpickled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from bsufs.tables._files import RawFile, TableError, unreadable
from bsufs.tables._rows import Rows, numbered_names

# How a matrix of features is called where a file holds several.
_USUAL_NAMES = ("X", "data", "fea")
ANNDATA = (".h5ad", ".zarr")
# Whole numbers beyond this are counts: logarithms of counts hardly get there, and are not whole.
LARGEST_LEVEL = 10
# The arrays that `write_table` adds to a .npz, to hold names and carried columns.
FEATURE_NAMES = "feature_names"
CARRIED_NAMES = "carried_names"
# And those in which SciPy saves a sparse matrix, together with "data".
_SPARSE_PARTS = ("indices", "indptr", "format", "shape")


class ArrayRows(Rows):
    """The rows of a matrix, with the vectors beside it as further columns."""

    _matrix: Any
    _vectors: dict[str, Any]

    # The object that the file holds, where it holds one.
    adata: Any = None

    def __init__(
        self, file: RawFile, kind: str, array: str | None, names_from: str | None = None
    ) -> None:
        self.file = file
        self.features = self.row_names = ()
        self._vectors = {}
        if kind in ANNDATA:
            self._read_anndata(kind, array, names_from)
        elif kind == ".npy":
            self._read_npy()
        elif kind == ".npz":
            self._read_npz(array)
        else:
            self._read_mat(array)
        if self._matrix.dtype.kind == "f" and self._matrix.dtype.itemsize not in (4, 8):
            # Neither Arrow nor SciPy knows of these.
            self._matrix = self._matrix.astype(np.float64)
        if sparse.issparse(self._matrix):
            self._matrix = sparse.csr_array(self._matrix)
        self.n_rows = self.most_rows = int(self._matrix.shape[0])
        self.features = self.features or numbered_names(self._matrix.shape[1])
        self.names = (*self._vectors, *(n for n in self.features if n not in self._vectors))
        self.ambiguous = frozenset(self.features) & frozenset(self._vectors)

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
        columns = self._vectors | dict(zip(wanted, dense.T, strict=True))
        yield pa.record_batch([pa.array(columns[name]) for name in names], names=list(names))

    def _read_npy(self) -> None:
        with self.file.open() as stream, _reading(self.file.source, "NumPy"):
            matrix = np.load(stream, allow_pickle=False)
        if not isinstance(matrix, np.ndarray):
            raise TableError(f"{self.file.source}: this is an archive of arrays: name it .npz.")
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise TableError(
                f"{self.file.source}: the array must be a matrix of numbers, got shape "
                f"{matrix.shape} of {matrix.dtype}."
            )
        self._matrix = matrix

    def _read_npz(self, array: str | None) -> None:
        """Read a matrix and the vectors beside it, dense or as SciPy saves it."""
        with self.file.open() as stream:
            with _reading(self.file.source, "NumPy"):
                archive = np.load(stream, allow_pickle=False)
                is_single = isinstance(archive, np.ndarray)
                stored = {} if is_single else {key: archive[key] for key in archive.files}
            if is_single:
                raise TableError(f"{self.file.source}: this is a single array: name it .npy.")
            if {*_SPARSE_PARTS, "data"} <= set(stored):
                stream.seek(0)
                with _reading(self.file.source, "SciPy sparse"):
                    stored["data"] = sparse.load_npz(stream)
                for part in _SPARSE_PARTS:
                    del stored[part]
        names = stored.pop(FEATURE_NAMES, None)
        carried = {
            str(name): stored.pop(f"carried_{place}")
            for place, name in enumerate(np.ravel(stored.pop(CARRIED_NAMES, ())))
            if f"carried_{place}" in stored
        }
        self._choose(stored, array)
        if names is not None and names.shape == self._matrix.shape[1:]:
            self.features = tuple(names.astype(str).tolist())
        self._vectors, self.row_names = carried or self._vectors, tuple(carried)

    def _read_mat(self, array: str | None) -> None:
        # SciPy's readers take a while to import.
        from bsufs._matlab import matlab_arrays

        with self.file.open() as stream, _reading(self.file.source, "MATLAB"):
            stored = matlab_arrays(stream)
        self._choose(stored, array)

    def _read_anndata(self, kind: str, layer: str | None, names_from: str | None) -> None:
        """Read expression and the columns of `obs`."""
        source = self.file.source
        try:
            anndata = import_module("anndata")
        except ImportError as error:
            raise TableError(
                f'{source}: to read {kind} files, anndata is needed: pip install "bsufs[h5ad]".'
            ) from error
        with _reading(source, "valid AnnData"):
            read = anndata.read_h5ad if kind == ".h5ad" else anndata.read_zarr
            found = self.adata = read(self.file.path)
        if layer is not None and layer not in found.layers:
            there = ", ".join(map(repr, found.layers)) or "none"
            raise TableError(f"{source}: --array {layer!r} is no layer; there are: {there}.")
        matrix = found.X if layer is None else found.layers[layer]
        if matrix is None:
            raise TableError(f"{source}: the file has no X. Name a layer with --layer.")
        if names_from is not None and names_from not in found.var:
            there = ", ".join(map(repr, found.var.columns)) or "none"
            raise TableError(
                f"{source}: --names-from {names_from!r} is no column of var; there are: {there}."
            )
        self._matrix = matrix if sparse.issparse(matrix) else np.asarray(matrix)
        names = found.var_names if names_from is None else found.var[names_from]
        self.features = tuple(map(str, names))
        # A column of that name is the user's own and goes before the index.
        self._vectors = {"obs_names": found.obs_names.to_numpy().astype(str)}
        self._vectors |= {str(name): found.obs[name].to_numpy() for name in found.obs.columns}
        self.row_names = ("obs_names",)
        if _looks_like_counts(self._matrix):
            self.notices = (
                f"{source}: the entries look like counts; log-normalized expression selects better "
                "(scanpy.pp.normalize_total and log1p, or bsufs.genes.select_genes)",
            )

    def _choose(self, stored: Mapping[str, Any], array: str | None) -> None:
        """Take the matrix that was asked for, or the one there is, and all vectors beside it."""
        source = self.file.source
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
        self._matrix = matrices[chosen]
        self._vectors = {
            key: np.asarray(value).ravel()
            for key, value in stored.items()
            if key != chosen and _is_vector(value, self._matrix.shape[0])
        }


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
        if "allow_pickle" not in str(error):
            raise unreadable(source, kind, error) from error
        raise TableError(
            f"{source}: the file holds Python objects, which are never unpickled."
        ) from error


def _is_matrix(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) or sparse.issparse(value)
    return is_array and value.ndim == 2 and value.dtype.kind in "biuf" and value.shape[1] > 1


def _is_vector(value: Any, n_rows: int) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "biufU"
        and value.size == n_rows == max(value.shape, default=0)
    )


def _looks_like_counts(matrix: Any) -> bool:
    entries = matrix.data if sparse.issparse(matrix) else matrix
    return bool(
        entries.max(initial=0) > LARGEST_LEVEL
        and entries.min(initial=0) >= 0
        and (entries == np.rint(entries)).all()
    )


def _shapes(matrices: Mapping[str, Any]) -> str:
    if not matrices:
        return "is none"
    every = [f"{name!r} ({value.shape[0]} x {value.shape[1]})" for name, value in matrices.items()]
    return f"{'is' if len(every) == 1 else 'are'} {', '.join(every)}"
