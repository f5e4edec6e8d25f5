"""Gene panels: select genes of an AnnData object, in the manner of scanpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

import bsufs
from bsufs._memory import available_memory, size_in_words
from bsufs._typing import Array, Indices, Mask
from bsufs.purposes import selector_for
from bsufs.selectors._base import NUMBER_OF_FEATURES
from bsufs.selectors._columns import feature_mask, matching
from bsufs.selectors._dask_input import is_dask
from bsufs.selectors._data import FitData
from bsufs.selectors._nuisance import (
    KnownColumns,
    Nuisance,
    batch_regressors,
    given_regressors,
    names_columns,
    with_regressors,
)
from bsufs.selectors._validation import non_finite, require_two_rows
from bsufs.tables._arrays import Entries
from bsufs.tables._prepare import usual_deviations

# Rows that are read or worked on at once hold about so many numbers, zeros included.
_CHUNK_NUMBERS = 2**24
# So many genes are looked at in the end, as scanpy does, or so many for each that is selected.
_MOST_GENES, _FOR_EACH = 2000, 5
# Everything else is written down in the object.
_NOT_RECORDED = {"adata", "key_added", "copy", "parameters"}
_CONSTRAINTS: dict[str, list[Any]] = {
    "n": NUMBER_OF_FEATURES,
    "layer": [str, None],
    "batch_key": [str, None],
    "min_cells": [Interval(Integral, 0, None, closed="left"), None],
    "max_mean": [Interval(Real, -np.inf, np.inf, closed="both"), None],
    "normalize": ["boolean"],
    "noise_units": ["boolean", None],
    "key_added": [str],
    "copy": ["boolean"],
}


def select_genes(
    adata: Any,
    n: int | float | str = "auto",
    *,
    purpose: str = "clusters",
    layer: str | None = None,
    batch_key: str | None = None,
    must_keep: str | Sequence[str] | None = None,
    never_keep: str | Sequence[str] | None = None,
    min_cells: int | None = None,
    max_mean: float | None = None,
    normalize: bool = False,
    noise_units: bool | None = None,
    key_added: str = "bsufs",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    r"""Select genes of an AnnData object without labels, and annotate it with them.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells by genes, log-normalized: in memory, dense or sparse, or backed by a file. A backed
        file is read in chunks of cells.
    n : int, float or "auto", default="auto"
        How many genes to select, those of `must_keep` included: a number, a share of the genes that
        may be selected, or "auto".
    purpose : {"clusters", "reconstruction", "neighbors"}, default="clusters"
        What the genes are for: to tell cell types apart, to predict the expression of all other
        genes, or to keep which cells are near each other; see `bsufs.select`.
    layer : str, optional
        The layer to select from; X by default.
    batch_key : str, optional
        Column of `obs` with the batch of each cell. Differences between the means of batches are
        taken out first, so that no gene is selected because it marks a batch.
    must_keep : str or sequence of str, optional
        Genes that are always selected, such as a panel to extend: a list of names, or a regular
        expression that is searched for in the names. The others are chosen beside them.
    never_keep : str or sequence of str, optional
        Genes that are never selected, in the same form: ``r"^(MT-|RP[SL])"``.
    min_cells : int, optional
        Only genes that are expressed in at least so many cells.
    max_mean : float, optional
        Only genes whose mean is no larger, for panels on which abundant genes cannot be read.
    normalize : bool, default=False
        Whether the data are counts, to be divided by size factors and turned into logarithms first,
        as ``scanpy.pp.normalize_total`` and ``scanpy.pp.log1p`` do. Without it counts are refused.
    noise_units : bool, optional
        Whether each gene counts in units of the standard deviation that is usual for genes of its
        mean, most of which is noise; see Notes. By default so for ``purpose="clusters"``.
    key_added : str, default="bsufs"
        What the names of the annotations begin with.
    copy : bool, default=False
        Whether to annotate and return a copy.
    **parameters
        Further parameters of the selector, such as ``random_state``; `adjust_for` are values with a
        row for each cell, such as scores of the cell cycle.

    Returns
    -------
    anndata.AnnData or None
        The annotated copy if `copy`. All at once at the end are set ``var["bsufs_selected"]``;
        ``var["bsufs_rank"]``, 1 for the best gene, and ``var["bsufs_score"]``, larger is better,
        both missing for genes that were not looked at; and ``uns["bsufs"]``, all parameters.

    Notes
    -----
    Genes of `must_keep` pass every filter. Genes that are zero in all cells are left out. Counts
    are recognized as whole numbers, none below zero and some above 1.

    Logarithms of counts vary most where counting noise does, whether genes tell anything or not.
    `noise_units` divide by the running median of standard deviations over 20 groups of genes with
    similar means; data with negative entries are taken as they are. The genes that then vary most
    are looked at: five times as many as are selected, at least 2000. ``purpose="reconstruction"``
    needs these as a dense array in memory.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from bsufs.genes import select_genes
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(rng.gamma(1.0, 3.0, size=(5, 40))[rng.integers(5, size=200)])
    >>> adata = anndata.AnnData(counts.astype("float32"))
    >>> select_genes(adata, 8, normalize=True, never_keep="^1")
    >>> adata.var_names[adata.var["bsufs_selected"]].size
    8
    """
    validate_parameter_constraints(_CONSTRAINTS, locals(), "select_genes")
    given = {name: value for name, value in locals().items() if name not in _NOT_RECORDED}
    adjust_for = parameters.pop("adjust_for", None)
    selector = _selector(purpose, parameters)
    _check_object(adata, key_added, copy)
    cells, names = _Cells.of(adata, layer), adata.var_names
    forced, barred = _kept_and_barred(must_keep, never_keep, names)
    known = np.hstack([_batches(adata, batch_key), _values(adjust_for, adata.n_obs)])
    counted = _Counted.of(cells, names)
    counted.check(normalize)
    if normalize:
        cells = replace(cells, size_factors=counted.size_factors())
    means, variances = cells.moments()
    candidates = ~barred & (counted.n_expressing >= max(min_cells or 0, 1))
    if max_mean is not None:
        candidates &= means <= max_mean
    genes = np.flatnonzero(candidates | forced)
    if not isinstance(n, str | Integral):
        n = max(1, round(n * genes.size))
    _check_number(n, genes.size, forced)
    noise_units = purpose == "clusters" if noise_units is None else noise_units
    noise_units = noise_units and counted.entries.least >= 0
    if noise_units:
        noise = usual_deviations(means, variances)
        cells, variances = replace(cells, units=noise), variances / noise**2
    genes = _most_variable(genes, variances, forced, n)
    must = np.flatnonzero(forced[genes]).tolist()
    selector.set_params(n_features_to_select=n, must_keep=must or None)
    _fit(selector, cells, genes, known)
    given |= parameters | {"noise_units": noise_units}
    for parameter, named in (("must_keep", forced), ("never_keep", barred)):
        if not isinstance(given[parameter], str):
            given[parameter] = names[named].astype(str).tolist() or None
    annotated = adata.copy() if copy else adata
    _annotate(annotated, selector, genes, key_added, given)
    return annotated if copy else None


@dataclass(frozen=True)
class _Cells:
    """Expression in chunks of cells, as it is to be selected from."""

    matrix: Any
    is_dense_file: bool
    # What the counts of each cell are divided by before logarithms are taken; None for neither.
    size_factors: Array | None = None
    # What each gene is divided by; None for nothing.
    units: Array | None = None

    @classmethod
    def of(cls, adata: Any, layer: str | None) -> _Cells:
        if layer is not None and layer not in adata.layers:
            there = ", ".join(map(repr, adata.layers)) or "none"
            raise ValueError(f"layer must be a layer of adata, got {layer!r}; there are: {there}.")
        matrix = adata.X if layer is None else adata.layers[layer]
        if matrix is None:
            raise ValueError(
                "adata must have an X to select from, got none. Name a layer, or pass "
                "adata.raw.to_adata() where that has one."
            )
        is_backed = bool(adata.isbacked) and layer is None
        if is_backed and getattr(matrix, "format", "csr") == "csc":
            raise ValueError(
                "a backed adata must be stored by cells (CSR) to be read in chunks of cells, but X "
                "is stored by genes (CSC). Pass adata.to_memory(), or write X.tocsr() to a file."
            )
        require_two_rows(matrix.shape[0])
        # Rows of a matrix that is stored by columns are slow to come by.
        matrix = matrix.tocsr() if sparse.issparse(matrix) else matrix
        return cls(matrix, is_dense_file=is_backed and not hasattr(matrix, "format"))

    def chunks(self, genes: Indices | None = None) -> Iterator[tuple[slice, Any]]:
        """Go through the rows, dense or sparse as they are stored, with some of the genes."""
        n, d = self.matrix.shape
        genes = np.arange(d) if genes is None else genes
        size = max(1, _CHUNK_NUMBERS // max(d, 1))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            X = self.matrix[rows]
            X = X.compute() if is_dask(X) else X
            X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
            X = X if genes.size == d else X[:, genes]
            if self.size_factors is not None:
                X = _times(X, 1.0 / self.size_factors[rows], axis=0)
                X = X.log1p() if sparse.issparse(X) else np.log1p(X)
            if self.units is not None:
                X = _times(X, 1.0 / self.units[genes], axis=1)
            yield rows, X

    def of_genes(self, genes: Indices) -> Any:
        """Return some genes of all cells, as the numbers that a selector takes."""
        parts = [X if X.dtype.kind == "f" else X.astype(np.float64) for _, X in self.chunks(genes)]
        return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)

    def moments(self) -> tuple[Array, Array]:
        """Return the mean and the variance of each gene."""
        n, d = self.matrix.shape
        total, squares = np.zeros(d), np.zeros(d)
        for _, X in self.chunks():
            X = X.astype(np.float64)
            total += X.sum(axis=0)
            squares += (X**2).sum(axis=0)
        return total / n, np.maximum(squares / n - (total / n) ** 2, 0.0)


def _times(X: Any, factors: Array, axis: int) -> Any:
    """Return rows (axis 0) or columns times factors, in the precision of the entries."""
    kind = X.dtype if X.dtype.kind == "f" else np.float32
    if not sparse.issparse(X):
        return (X * np.expand_dims(factors, 1 - axis)).astype(kind, copy=False)
    each = factors[X.indices] if axis == 1 else np.repeat(factors, np.diff(X.indptr))
    return sparse.csr_array(((X.data * each).astype(kind), X.indices, X.indptr), shape=X.shape)


def _most_variable(genes: Indices, variances: Array, forced: Mask, n: Any) -> Indices:
    """Return the genes to look at, in their order: those that vary most."""
    most = _MOST_GENES if n == "auto" else max(_MOST_GENES, _FOR_EACH * n)
    first = np.lexsort((genes, -variances[genes], ~forced[genes]))[:most]
    return np.sort(genes[first])


@dataclass
class _Counted:
    """What one pass over all cells tells of cells and genes."""

    n_expressing: Array
    per_cell: Array
    entries: Entries = field(default_factory=Entries)

    @classmethod
    def of(cls, cells: _Cells, names: Any) -> _Counted:
        n, d = cells.matrix.shape
        found = cls(np.zeros(d), np.empty(n))
        for rows, X in cells.chunks():
            if X.dtype.kind not in "biuf":
                raise ValueError(f"adata must hold numbers, got entries of type {X.dtype}.")
            wrong = non_finite(X)
            if wrong is not None:
                raise wrong.moved(rows.start, 0).error(names)
            found.entries.add(X)
            found.per_cell[rows] = X.sum(axis=1, dtype=np.float64)
            found.n_expressing += (X != 0).sum(axis=0)
        return found

    def check(self, normalize: bool) -> None:
        """Say where counts are not where they should be, or there is nothing at all."""
        entries = self.entries
        # Zeros and ones may stand for something else than counts.
        if not normalize and entries.may_be_counts and entries.largest > 1:
            raise ValueError(
                "adata must hold log-normalized expression, but its entries look like counts: "
                f"whole numbers up to {entries.largest:g}. Pass normalize=True, name the layer "
                "with the logarithms, or call scanpy.pp.normalize_total and scanpy.pp.log1p first."
            )
        if normalize and not entries.may_be_counts:
            least = entries.least
            got = "fractions" if least >= 0 else f"a smallest entry of {least:g}"
            raise ValueError(
                f"normalize=True needs counts, whole numbers from zero, but there are {got}. Leave "
                "it out for data that are normalized already, or name the layer with the counts."
            )
        if not self.n_expressing.any():
            raise ValueError("adata must hold expression, got zeros only. Nothing can be selected.")

    def size_factors(self) -> Array:
        """Return them as scanpy does: in units of the median over cells that have any count."""
        factors = self.per_cell / np.median(self.per_cell[self.per_cell > 0])
        return np.where(factors > 0, factors, 1.0)


def _selector(purpose: str, parameters: dict[str, Any]) -> Any:
    """Return the selector with parameters that need no genes, checked before any is looked at."""
    for name in {"groups", "costs", "budget"} & set(parameters):
        raise TypeError(
            f"{name} is about the columns of a table. Use bsufs.select(adata.to_df(), n, "
            f"{name}=...)."
        )
    selector: Any = selector_for(purpose, **parameters)
    selector._validate_params()
    return selector


def _check_object(adata: Any, key_added: str, copy: bool) -> None:
    if not all(hasattr(adata, name) for name in ("X", "layers", "obs", "var_names", "uns")):
        raise TypeError(
            f"adata must be an AnnData object, got {type(adata).__name__}. For a table use "
            "bsufs.select."
        )
    names = adata.var_names
    if not names.is_unique:
        twice = names[names.duplicated()].unique()
        raise ValueError(
            f"the names of genes must differ, but {str(twice[0])!r} occurs more than once"
            f"{f' (and {twice.size - 1} others do)' if twice.size > 1 else ''}. Call "
            "adata.var_names_make_unique() first."
        )
    # Files hold annotations by name, in folders.
    if not key_added.strip(".") or set(key_added) & set("/\0"):
        raise ValueError(
            "key_added must be a name under which a file can hold annotations, with no '/', got "
            f"{key_added!r}."
        )
    if adata.isbacked and (copy or adata.is_view):
        what = "copy=True" if copy else "a view"
        raise ValueError(
            f"{what} must have an AnnData in memory, got a backed one. Pass the whole object "
            "without copy, or call to_memory() first."
        )


def _kept_and_barred(must_keep: Any, never_keep: Any, names: Any) -> tuple[Mask, Mask]:
    """Return the genes that lists name or regular expressions match."""
    as_text = names.astype(str)
    forced, barred = (
        matching(parameter, wanted, as_text)
        if isinstance(wanted, str)
        else feature_mask(parameter, wanted, names.size, as_text)
        for parameter, wanted in (("must_keep", must_keep), ("never_keep", never_keep))
    )
    both = names[forced & barred]
    if both.size:
        raise ValueError(
            f"must_keep and never_keep must have no gene in common, but both hold {str(both[0])!r}"
            f"{f' and {both.size - 1} others' if both.size > 1 else ''}. Take it out of one."
        )
    return forced, barred


def _check_number(n: int | float | str, n_candidates: int, forced: Mask) -> None:
    n_forced = int(np.count_nonzero(forced))
    asked = max(1, n_forced) if isinstance(n, str) else n
    if asked > n_candidates:
        raise ValueError(
            f"n must be at most {n_candidates}, the number of genes that are expressed and pass "
            f"never_keep, min_cells and max_mean, got {n}. Ask for fewer, or loosen them."
        )
    if asked < n_forced:
        raise ValueError(
            f"n counts the genes of must_keep, so it must be at least {n_forced}, got {n}. Ask for "
            "more, or shorten must_keep."
        )


def _batches(adata: Any, key: str | None) -> Array:
    """Return a column for each batch but one, none without a key."""
    if key is None:
        return np.empty((adata.n_obs, 0))
    if list(adata.obs.columns).count(key) != 1:
        there = ", ".join(map(repr, adata.obs.columns)) or "none"
        raise ValueError(f"batch_key must be one column of obs, got {key!r}; there are: {there}.")
    if adata.obs[key].isna().any():
        raise ValueError(
            f"batch_key {key!r} must name a batch for every cell, but some have none. Fill them, "
            "or leave those cells out."
        )
    of_cells = adata.obs[key].astype(str).to_numpy(dtype=str)
    return batch_regressors(of_cells, f"batch_key {key!r}", "cell")


def _values(adjust_for: Any, n_cells: int) -> Array:
    """Return further columns to adjust for, none without any."""
    if adjust_for is None:
        return np.empty((n_cells, 0))
    if names_columns(adjust_for):
        raise ValueError(
            f"adjust_for must hold values, one row for each cell, got the names {adjust_for!r}. "
            "Pass columns of obs, such as adata.obs[['S_score']]."
        )
    return given_regressors(adjust_for, n_cells, None)


def _fit(selector: Any, cells: _Cells, genes: Indices, regressors: Array) -> None:
    """Select among some genes."""
    takes_sparse = selector.__sklearn_tags__().input_tags.sparse
    if cells.is_dense_file and takes_sparse:
        behind = list(range(genes.size, genes.size + regressors.shape[1]))
        selector.set_params(adjust_for=behind or None)
        chunks = (X for _, X in cells.chunks(genes))
        selector.fit_batches(with_regressors(chunks, regressors))
        return
    if not takes_sparse:
        _require_memory_for(cells.matrix.shape[0], genes.size)
    X = cells.of_genes(genes)
    if not takes_sparse:
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    centered = np.full(genes.size, bool(selector.get_params().get("center_rows")))
    known = KnownColumns(np.zeros(genes.size, dtype=bool), centered)
    nuisance = Nuisance(known, regressors) if regressors.size or centered.any() else None
    data: Any = FitData(X, nuisance=nuisance)
    if not isinstance(selector.n_features_to_select, str):
        # Nobody asks how much the genes explain, which takes longer than to select them.
        data.explained_curve = None
    selector.fit(data)


def _require_memory_for(n: int, d: int) -> None:
    needed, free = 3 * 8 * n * d, available_memory()
    if needed > free:
        raise ValueError(
            f"this purpose needs {n} cells x {d} genes as a dense array, with working copies "
            f"{size_in_words(needed)}, but {size_in_words(free)} of memory is available. Use "
            "another purpose, or leave out genes with min_cells."
        )


def _annotate(adata: Any, selector: Any, genes: Indices, key: str, given: dict[str, Any]) -> None:
    """Set all annotations; everything that may fail has happened before."""
    found: dict[str, Any] = {f"{key}_selected": np.zeros(adata.n_vars, dtype=bool)}
    found |= {f"{key}_{name}": np.full(adata.n_vars, np.nan) for name in ("rank", "score")}
    fitted = (selector.support_, selector.ranking_, selector.scores_)
    for column, values in zip(found.values(), fitted, strict=True):
        column[genes] = values[: genes.size]
    var = adata.var.assign(**found)
    # Of what is not there, or no text and no number, nothing can be written to a file.
    params = {
        name: value for name, value in given.items() if np.asarray(value).dtype.kind in "biufU"
    }
    method = {"selector": type(selector).__name__, "version": bsufs.__version__}
    adata.var = var
    adata.uns[key] = {"params": params, **method}
