"""Orthonormal frames: polar factor, tangent projection, retraction.

A frame is a d x m matrix W with W'W = I; the set of them is the Stiefel manifold St(d, m). The
metric is the Frobenius inner product throughout.
"""

import numpy as np
from scipy import linalg

from bsufs._typing import Array

# The Gram matrix squares the condition number. Up to the first bound its rounding error stays
# below 1e-13; up to the second, one Newton-Schulz step squares the error away; beyond, only a
# decomposition of the matrix itself is safe.
_WELL_CONDITIONED = 1e2
_POLISHABLE = 1e8


def polar_factor(B: Array) -> Array:
    """Return the frame W that maximizes <B, W>: the polar factor of a tall, finite matrix.

    For full column rank it is unique, W = B (B'B)^(-1/2), and comes from the m x m Gram matrix,
    ten times cheaper than a singular value decomposition of B. Ill-conditioned, rank-deficient
    and badly scaled matrices take the decomposition; the maximizer is then not unique, and the
    one returned is the same for the same input. W'W = I to 1e-12.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.stiefel import polar_factor
    >>> polar_factor(np.array([[3.0], [4.0]])).ravel()
    array([0.6, 0.8])
    """
    d, m = B.shape
    if d < m:
        raise ValueError(
            f"B must be at least as tall as wide to have an orthonormal frame, got shape {B.shape}."
        )
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        gram = B.T @ B
    if not np.isfinite(gram).all():
        return _polar_by_svd(B)
    # For so small a matrix SciPy takes longer to choose a routine than to run it.
    eigenvalues, Q = np.linalg.eigh(gram)
    smallest, largest = eigenvalues[0], eigenvalues[-1]
    limits = np.finfo(gram.dtype)
    if not smallest * _POLISHABLE > largest or largest < limits.tiny / limits.eps**2:
        return _polar_by_svd(B)
    W: Array = B @ ((Q / np.sqrt(eigenvalues)) @ Q.T)
    return _newton_schulz(W) if smallest * _WELL_CONDITIONED < largest else W


def _newton_schulz(W: Array) -> Array:
    """Square the distance of a nearly orthonormal W from orthonormality."""
    return 1.5 * W - 0.5 * (W @ (W.T @ W))


def _polar_by_svd(B: Array) -> Array:
    scale = np.abs(B).max(initial=0.0)
    if scale > 0:
        B = B / scale
    P, _, Qt = linalg.svd(B, full_matrices=False, check_finite=False)
    return _newton_schulz(P @ Qt)


def symmetric_part(A: Array) -> Array:
    """Return (A + A') / 2."""
    return 0.5 * (A + A.T)


def tangent_projection(W: Array, Z: Array) -> Array:
    """Project Z onto the tangent space {M : W'M + M'W = 0} at W, to Z - W sym(W'Z)."""
    return Z - W @ symmetric_part(W.T @ Z)


def retraction_factor(B: Array) -> Array:
    """Return the m x m matrix R with B R on the manifold, for B a frame plus a tangent matrix.

    This is the polar retraction, a second-order one. The Gram matrix of such a B has no eigenvalue
    below one, so its inverse square root is safe. Handing out the factor rather than the frame lets
    a caller who knows S B have S (B R) with no further product.
    """
    eigenvalues, Q = linalg.eigh(B.T @ B, check_finite=False)
    return (Q / np.sqrt(eigenvalues)) @ Q.T


def flip_signs(W: Array) -> Array:
    """Sign each column so that its entry of largest modulus is positive."""
    if W.size == 0:
        return W
    peaks = W[np.abs(W).argmax(axis=0), np.arange(W.shape[1])]
    return W * np.where(peaks < 0, -1.0, 1.0).astype(W.dtype)
