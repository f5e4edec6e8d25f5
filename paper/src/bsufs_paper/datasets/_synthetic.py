"""Points in the plane whose classes are plain to see, hidden among features of noise."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_array, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from bsufs._typing import Array

RandomState = int | np.random.RandomState | None

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]


def _checked(**constraints: list[Any]) -> Callable[[_Function], _Function]:
    constraints["random_state"] = ["random_state"]
    return validate_params(constraints, prefer_skip_nested_validation=True)


def _generator(n_classes: int) -> Callable[[_Function], _Function]:
    return _checked(
        n_samples=[Interval(Integral, n_classes, None, closed="left")],
        n_noise_features=[Interval(Integral, 0, None, closed="left")],
        noise_scale=_NOT_NEGATIVE,
    )


@_generator(n_classes=9)
def make_diamond9(
    n_samples: int = 3000,
    *,
    n_noise_features: int = 7,
    noise_scale: float = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    r"""Draw points from nine diamonds that touch at their corners, and append noise features.

    Squares turned by 45 degrees around the points of a 3 x 3 lattice with spacing 2,

    .. math:: |x - a| + |y - b| \le 1, \quad a \in \{-1, 1, 3\}, \; b \in \{0, 2, 4\}

    each filled evenly.

    Parameters
    ----------
    n_samples : int, default=3000
        Number of points, shared among the classes as evenly as possible.
    n_noise_features : int, default=7
        Number of features of Gaussian noise after the two true ones.
    noise_scale : float, default=1.0
        Standard deviation of the noise features, as a multiple of that of the true ones (the root
        of their mean variance).
    random_state : int, RandomState instance or None, default=None
        Seed of the points and of the noise.

    Returns
    -------
    sklearn.utils.Bunch
        With `data`, `target`, `feature_names`, `target_names`, `true_features`, `image_shape`
        and `image_order` (None), `DESCR` and `name`.

    Examples
    --------
    >>> from bsufs_paper.datasets import make_diamond9
    >>> diamonds = make_diamond9(900, random_state=0)
    >>> diamonds.data.shape
    (900, 9)
    >>> diamonds.feature_names[:3].tolist()
    ['true_0', 'true_1', 'noise_0']
    """
    random = check_random_state(random_state)
    target = _even_classes(n_samples, 9)
    sides = random.uniform(-1, 1, size=(n_samples, 2))
    # (u + v, u - v) / 2 takes the square [-1, 1]^2 to the diamond |x| + |y| <= 1.
    inside = sides @ np.array([[0.5, 0.5], [0.5, -0.5]])
    centers = np.column_stack([2 * (target % 3) - 1, 2 * (target // 3)])
    return _with_noise(
        "make_diamond9",
        "Nine diamonds in the plane that touch at their corners",
        centers + inside,
        target,
        n_noise_features,
        noise_scale,
        random,
    )


@_generator(n_classes=4)
def make_dartboard1(
    n_samples: int = 1000,
    *,
    n_noise_features: int = 7,
    noise_scale: float = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    """Put points on four concentric rings, and append noise features.

    The rings have the radii 0.1, 0.2, 0.3 and 0.4 around (-0.5, 0.5). Their points are evenly
    spaced; where they begin on each ring is drawn.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, shared among the classes as evenly as possible.
    n_noise_features : int, default=7
        Number of features of Gaussian noise after the two true ones.
    noise_scale : float, default=1.0
        Standard deviation of the noise features, as a multiple of that of the true ones (the root
        of their mean variance).
    random_state : int, RandomState instance or None, default=None
        Seed of the points and of the noise.

    Returns
    -------
    sklearn.utils.Bunch
        With `data`, `target`, `feature_names`, `target_names`, `true_features`, `image_shape`
        and `image_order` (None), `DESCR` and `name`.

    Notes
    -----
    The first class is the outermost ring.

    Examples
    --------
    >>> from bsufs_paper.datasets import make_dartboard1
    >>> rings = make_dartboard1(400, random_state=0)
    >>> rings.data.shape
    (400, 9)
    """
    random = check_random_state(random_state)
    target = _even_classes(n_samples, 4)
    sizes = np.bincount(target)
    first = random.uniform(0, 2 * np.pi, size=4)
    place = np.concatenate([np.arange(size) / size for size in sizes])
    angle = first[target] + 2 * np.pi * place
    radius = (4 - target) / 10
    points = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None] + [-0.5, 0.5]
    return _with_noise(
        "make_dartboard1",
        "Four concentric rings in the plane",
        points,
        target,
        n_noise_features,
        noise_scale,
        random,
    )


@_checked(X=["array-like"], sd=_NOT_NEGATIVE)
def add_gaussian_noise(
    X: ArrayLike, sd: float = 0.01, random_state: RandomState = None
) -> NDArray[np.float64]:
    """Return a copy with independent Gaussian noise of mean zero on every value."""
    values = check_array(X, dtype=np.float64)
    noise = check_random_state(random_state).normal(0, sd, size=values.shape)
    return np.asarray(values + noise)


@_checked(X=["array-like"], share=[Interval(Real, 0, 1, closed="both")])
def add_salt_and_pepper(
    X: ArrayLike, share: float = 0.03, random_state: RandomState = None
) -> NDArray[np.float64]:
    """Return a copy where some values are the least or the largest of their column.

    Exactly the share of all values is hit, rounded, wherever they are; either end is as likely.
    """
    random = check_random_state(random_state)
    values = check_array(X, dtype=np.float64, copy=True, order="C")
    ends = np.vstack([values.min(axis=0), values.max(axis=0)])
    hit = random.permutation(values.size)[: round(share * values.size)]
    values.flat[hit] = ends[random.randint(2, size=hit.size), hit % values.shape[1]]
    return np.asarray(values)


def append_noise_features(
    X: Array, n_noise_features: int, noise_scale: float, random: np.random.RandomState
) -> Array:
    """Return the columns with columns of Gaussian noise of mean zero after them."""
    sd = noise_scale * np.sqrt(X.var(axis=0).mean())
    return np.hstack([X, random.normal(0, sd, size=(len(X), n_noise_features))])


def feature_names(n_true: int, n_noise: int, prefix: str = "true") -> NDArray[np.str_]:
    """Return the names of true features and of noise features."""
    true = [f"{prefix}_{column}" for column in range(n_true)]
    return np.array(true + [f"noise_{column}" for column in range(n_noise)])


def _even_classes(n_samples: int, n_classes: int) -> NDArray[np.intp]:
    return np.arange(n_samples) * n_classes // n_samples


def _with_noise(
    name: str,
    what: str,
    points: Array,
    target: NDArray[np.intp],
    n_noise_features: int,
    noise_scale: float,
    random: np.random.RandomState,
) -> Bunch:
    return Bunch(
        data=append_noise_features(points, n_noise_features, noise_scale, random),
        target=target,
        feature_names=feature_names(2, n_noise_features),
        target_names=np.unique(target).astype(str),
        true_features=np.arange(2),
        image_shape=None,
        image_order=None,
        DESCR=f"{what}, with {n_noise_features} features of Gaussian noise; drawn by {name}.",
        name=name,
    )
