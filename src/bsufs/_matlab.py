"""Reading MATLAB files with every SciPy that is supported."""

from __future__ import annotations

import inspect
from typing import Any

from scipy.io import loadmat

# From SciPy 1.20 on sparse arrays are the default, and newer ones warn until one has chosen; older
# ones know only sparse matrices. Both are read alike.
_SPARSE_ARRAYS = {"spmatrix": False} if "spmatrix" in inspect.signature(loadmat).parameters else {}


def matlab_arrays(file: Any) -> dict[str, Any]:
    """Return the arrays of a MATLAB file."""
    stored = loadmat(file, **_SPARSE_ARRAYS)
    return {name: value for name, value in stored.items() if not name.startswith("__")}
