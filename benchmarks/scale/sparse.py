"""Sparse data that fit in memory, and little more than that."""

from typing import ClassVar

import numpy as np

from benchmarks.scale.measure import Clock, forget_peak, peak_megabytes

N_COMPONENTS = 20
N_SELECTED = 50


def sparse_factor_model(n, d, n_nonzero, *, kind="csr", index="int32", value="float64"):
    """Return sparse data with factors, made block by block: every row has as many non-zeros.

    Column c follows factor c modulo 20; a row has one non-zero in each of equal ranges of columns,
    so that they are sorted and differ.
    """
    from scipy import sparse

    rng = np.random.default_rng(0)
    per_row = n_nonzero // n
    width = d // per_row
    indices = np.empty((n, per_row), dtype=index)
    data = np.empty((n, per_row), dtype=value)
    starts = np.arange(per_row) * width
    step = max(1, 2**22 // per_row)
    for first in range(0, n, step):
        rows = slice(first, min(first + step, n))
        shape = (rows.stop - first, per_row)
        columns = starts + rng.integers(0, width, shape)
        factors = rng.standard_normal((shape[0], N_COMPONENTS))
        indices[rows] = columns
        noise = 0.3 * rng.standard_normal(shape)
        data[rows] = 1.0 + noise + np.take_along_axis(factors, columns % N_COMPONENTS, axis=1)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=index)
    X = sparse.csr_array((data.ravel(), indices.ravel(), indptr), shape=(n, d))
    # The constructor takes the smallest type that will do; large data come with the larger one.
    X.indices, X.indptr = X.indices.astype(index, copy=False), X.indptr.astype(index, copy=False)
    return X if kind == "csr" else X.asformat(kind)


class CountedPasses:
    """Counts how often the non-zeros are run over, by one vector or by many at a time."""

    # There and back again, or one way only.
    _COUNTED: ClassVar = {"_product": 2, "_centered": 1, "_centered_transpose": 1}

    def __init__(self):
        from bsufs.scatter import SparseScatter

        self.single = self.block = 0
        self._kind = SparseScatter
        self._plain = {name: getattr(SparseScatter, name) for name in self._COUNTED}

    def __enter__(self):
        for name, plain in self._plain.items():
            setattr(self._kind, name, self._counting(plain, self._COUNTED[name]))
        return self

    def _counting(self, plain, n_passes):
        def counted(operator, W, *block):
            # What is multiplied with a block of rows is part of a product.
            if not block and W.ndim == 1:
                self.single += n_passes
            elif not block:
                self.block += n_passes
            return plain(operator, W, *block)

        return counted

    def __exit__(self, *_):
        for name, plain in self._plain.items():
            setattr(self._kind, name, plain)


def sparse_fit(
    n,
    d,
    n_nonzero,
    kind="csr",
    index="int32",
    value="float64",
    method="BSUFS",
    n_components=N_COMPONENTS,
):
    import bsufs

    X = sparse_factor_model(n, d, n_nonzero, kind=kind, index=index, value=value)
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    selector = getattr(bsufs, method)(N_SELECTED, n_components=n_components)
    forget_peak()
    with Clock() as fitting, CountedPasses() as passes:
        selector.fit(X)
    return {
        "seconds": fitting.seconds,
        "cpu_seconds": fitting.cpu_seconds,
        "peak_mb": peak_megabytes(),
        "input_mb": size,
        "found_components": selector.n_components_,
        "single_passes": passes.single,
        "block_passes": passes.block,
    }
