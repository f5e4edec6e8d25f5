"""Reading the arrays of MATLAB files: numbers and text, dense and sparse."""

from __future__ import annotations

import inspect
import io
import struct
import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import matfile_version

# From SciPy 1.20 on sparse arrays are the default, and newer ones warn until one has chosen; older
# ones know only sparse matrices. Both are read alike.
_SPARSE_ARRAYS = {"spmatrix": False} if "spmatrix" in inspect.signature(loadmat).parameters else {}
# Codes of the format, version 5: types of elements, classes of arrays, the flag of complex numbers.
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13}
_TEXT = {16, 17, 18}
_MATRIX, _COMPRESSED = 14, 15
_CHARACTERS, _SPARSE = 4, 5
_DENSE = range(6, 16)
_COMPLEX = 0x0800
_HEADER = 128
# What version 7.3 calls arrays of numbers; names of its own begin with a mark.
_HDF5_NUMBERS = {"double", "single", "logical"}
_HDF5_NUMBERS |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def matlab_arrays(file: Any) -> dict[str, Any]:
    """Return the arrays of a MATLAB file; what is neither numbers nor text is None."""
    others: dict[str, Any] = {}
    version = matfile_version(file)[0]
    if version == 2:
        return _hdf5_arrays(file)
    if version == 1:
        file, others = _checked(file)
    stored = loadmat(file, **_SPARSE_ARRAYS)
    for value in stored.values():
        if sparse.issparse(value):
            value.check_format(full_check=True)
    return others | {name: value for name, value in stored.items() if not name.startswith("__")}


def _hdf5_arrays(file: Any) -> dict[str, Any]:
    """Return the numbers of a file of version 7.3, dense and sparse."""
    h5py = import_module("h5py")
    arrays: dict[str, Any] = {}
    with h5py.File(file, "r") as stored:
        for name, value in stored.items():
            kind = bytes(value.attrs.get("MATLAB_class", b"")).decode()
            if kind not in _HDF5_NUMBERS or "MATLAB_empty" in value.attrs:
                arrays[name] = None
            elif "MATLAB_sparse" in value.attrs:
                rows, starts = value["ir"][()], value["jc"][()]
                shape = int(value.attrs["MATLAB_sparse"]), len(starts) - 1
                arrays[name] = sparse.csc_array((value["data"][()], rows, starts), shape)
                arrays[name].check_format(full_check=True)
            else:
                # MATLAB counts along columns first, HDF5 along rows.
                arrays[name] = value[()].T
    return arrays


def _checked(file: Any) -> tuple[io.BytesIO, dict[str, Any]]:
    """Return the arrays of a file of version 5, unpacked, and the names of what else is in it.

    SciPy's reader trusts the types that a file says its parts have, and crashes where one is none.
    """
    file.seek(0)
    checked = io.BytesIO()
    header = file.read(_HEADER)
    checked.write(header)
    order = "<" if header[126:] == b"IM" else ">"
    others: dict[str, Any] = {}
    for kind, content in _elements(memoryview(file.read()), order):
        if kind == _COMPRESSED:
            kind, content = next(_elements(memoryview(zlib.decompress(content)), order))
        if kind != _MATRIX:
            raise ValueError(f"an element of type {kind} is no array")
        name, is_array = _look_at(content, order)
        if is_array:
            checked.write(struct.pack(order + "II", _MATRIX, len(content)))
            checked.write(content)
        else:
            others[name] = None
    checked.seek(0)
    return checked, others


def _look_at(content: memoryview, order: str) -> tuple[str, bool]:
    """Return the name of a variable, and whether it is an array, whose parts are checked."""
    parts = list(_elements(content, order))
    if [kind for kind, _ in parts[:3]] != [6, 5, 1] or len(parts[0][1]) != 8:
        raise ValueError("an array has no flags, no shape or no name")
    flags = struct.unpack(order + "I", parts[0][1][:4])[0]
    kind = flags & 0xFF
    name = bytes(parts[2][1]).decode("latin1")
    if kind not in {_CHARACTERS, _SPARSE, *_DENSE}:
        return name, False
    # Of a sparse array rows, starts of the columns and values; twice the values of complex numbers.
    needed = (3 if kind == _SPARSE else 1) + bool(flags & _COMPLEX)
    types = [part for part, _ in parts[3:]]
    if len(types) != needed or not set(types) <= (
        _NUMBERS | _TEXT if kind == _CHARACTERS else _NUMBERS
    ):
        raise ValueError(f"the array {name!r} has parts of types {types}")
    return name, True


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the type and the content of each element."""
    place = 0
    while place < len(content):
        kind, size = struct.unpack_from(order + "II", content, place)
        start = place + 8
        if kind >> 16:
            # Type and size share a word where the content is as short as the other.
            start, size, kind = place + 4, kind >> 16, kind & 0xFFFF
        if start + size > len(content) or (start < place + 8 and size > 4):
            raise ValueError(f"an element of {size} bytes is longer than what is left")
        yield kind, content[start : start + size]
        place = start + size
        if kind != _COMPRESSED:
            # The next one begins at a multiple of eight bytes.
            place += -place % 8
