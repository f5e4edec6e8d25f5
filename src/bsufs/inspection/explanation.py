"""Why features were kept or left out, and how far to trust that: a table, never a label in sight.

`explain` says it of each feature; `selected_correlations` and `explained_variance` of the selection
as a whole. Plots and reports draw what these return.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from bsufs._extras import needs
from bsufs._names import shortened
from bsufs._typing import Array, Indices, Mask
from bsufs.metrics.label_free import standardized, wilson_interval
from bsufs.scatter import make_scatter, safe_unit_exponent
from bsufs.selectors._columns import column_variances, feature_mask
from bsufs.selectors._data import FitData

with needs("bsufs.inspection.explanation", "plot"):
    import pandas as pd

# Column blocks of about this many bytes, so that no temporary array is felt beside X.
_BLOCK_BYTES = 32 * 2**20
# Correlations that agree to so many decimals are the same: the better ranked feature stands.
_DECIMALS = 12
# Below this a correlation is no reason to leave a feature out.
_NOTABLE = 0.5
# At this a column says nothing that the other has not said.
_COPY = 1.0 - 1e-9
# More principal components than this are cheap only where the data have a short side.
_CHEAP_COMPONENTS = 200
_SHORT_SIDE = 1000
_NAME_WIDTH = 60


class SubsampleError(ValueError):
    """The selector cannot be fitted to a part of the rows."""


def explain(
    selector: Any,
    X: Any,
    *,
    n_subsamples: int = 20,
    subsample: float = 0.5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Say of each feature why it was kept or left out, and how sure that is.

    Parameters
    ----------
    selector : selector
        A fitted selector of the library; of a search, the selector that it found best, with its
        settings as they are.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The data it was fitted to.
    n_subsamples : int, default=20
        How often the selector is fitted again to a random part of the rows; 0 to skip that.
    subsample : float, default=0.5
        Share of the rows in each part, drawn without replacement.
    random_state : int, RandomState instance or None, default=0
        Seed of the parts, and of selectors with chance in them.
    n_jobs : int, optional
        Fits at a time, as for joblib; the answer does not depend on it.
    feature_names : sequence of str, optional
        Names of the columns, where X has none; ``x0``, ``x1``, ... otherwise.

    Returns
    -------
    pandas.DataFrame
        A row per feature, best first; the index is the number of the column. Its columns:

        - `name`; `rank`, 1 for the best; `score`; `selected`;
        - `died_at`: the step of the path (or, with a fixed weight, the iteration) at which the
          feature died; missing for those that lived to the end, and for methods without survival;
        - `frequency`: the share of the parts of X on which as many features as here include this
          one; `frequency_low` and `frequency_high`: its 95 % interval (Wilson);
        - `variance_share`: its share of the total variance;
        - `cluster_share`: how much of its own variance lies between the clusters that the method
          looks at; missing for methods that look at none;
        - `closest`, `correlation`: the other selected feature that it is most correlated with,
          which stands for a feature left out; missing for constant columns;
        - `reason`: the same in plain words.

    Notes
    -----
    The interval is that of the share over all parts of this size of these rows. It does not know
    of rows that were never seen. Sample weights are not remembered by a selector, so variances and
    correlations are those of rows that count alike.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
    Journal of the American Statistical Association 22(158).

    Meinshausen, N., Bühlmann, P. (2010). Stability selection. JRSS B 72(4).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs import BSUFS
    >>> from bsufs.inspection.explanation import explain
    >>> X = load_iris(as_frame=True).data
    >>> table = explain(BSUFS(2).fit(X), X)
    >>> table.loc[3, "reason"]
    'left out: 0.96 correlated with petal length (cm)'
    """
    _check_subsampling(n_subsamples, subsample)
    selector = fitted_method(selector)
    numbers = _numbers(selector, X)
    names = names_of(selector, feature_names)
    d = len(names)
    ranking, selected = np.asarray(selector.ranking_), np.asarray(selector.support_)
    chosen = best_selected(selector)
    forced, barred = forced_and_barred(selector)
    closest, correlation = _closest_selected(numbers, chosen)
    closest_names = names[closest]
    closest_names[closest < 0] = None
    variances = _variances(numbers)
    total = variances.sum()
    frame = pd.DataFrame(
        {
            # As objects: a name may hold what no column of text can.
            "name": pd.Series(names, dtype=object),
            "rank": ranking,
            "score": np.asarray(selector.scores_, dtype=np.float64),
            "selected": selected,
            "died_at": _died_at(selector, barred),
            "frequency": np.nan,
            "frequency_low": np.nan,
            "frequency_high": np.nan,
            "variance_share": variances / total if total > 0 else variances,
            "cluster_share": getattr(selector, "cluster_shares_", np.nan),
            "closest": pd.Series(closest_names, dtype=object),
            "correlation": correlation,
        },
        index=pd.RangeIndex(d, name="column"),
    )
    if n_subsamples:
        rows = X.X if isinstance(X, FitData) else X
        counts = _selection_counts(selector, rows, n_subsamples, subsample, random_state, n_jobs)
        frame["frequency"] = counts / n_subsamples
        frame["frequency_low"], frame["frequency_high"] = wilson_interval(
            frame["frequency"].to_numpy(), n_subsamples
        )
    frame["reason"] = _reasons(frame, forced, barred, variances <= 0, selector)
    return frame.loc[np.argsort(ranking)]


def selected_correlations(selector: Any, X: Any) -> Array:
    """Return the correlations among the selected features."""
    Z = standardized(_dense(_numbers(selector, X), best_selected(selector)))
    correlations: Array = np.clip(Z.T @ Z, -1.0, 1.0)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def explained_variance(selector: Any, X: Any) -> pd.DataFrame:
    """Return what the best 1, 2, ... features explain, and what no linear method can exceed."""
    numbers = _numbers(selector, X)
    chosen = best_selected(selector)
    k = chosen.size
    scatter = make_scatter(sparse.csr_array(numbers) if sparse.issparse(numbers) else numbers)
    total = scatter.trace()
    # Of data that do not vary nothing is left to explain.
    explained: Array = np.ones(k)
    bound: Array = np.ones(k)
    if total > 0:
        explained = scatter.explained_curve(chosen)
        n_cheap = k if min(numbers.shape) <= _SHORT_SIDE else min(k, _CHEAP_COMPONENTS)
        n_components = min(n_cheap, scatter.max_rank)
        values, _ = scatter.leading_eigenvectors(n_components)
        bound[:n_components] = np.minimum(np.cumsum(values) / total, 1.0)
        bound[n_components:] = 1.0 if n_components == scatter.max_rank else np.nan
    return pd.DataFrame(
        {"explained": explained, "bound": bound},
        index=pd.RangeIndex(1, k + 1, name="n_features"),
    )


def fitted_method(selector: Any) -> Any:
    """Return the selector that did the work: of a search, the one that it found best."""
    return getattr(selector, "best_estimator_", selector)


def best_selected(selector: Any) -> Indices:
    """Return the numbers of the selected columns, best first."""
    check_is_fitted(selector)
    best_first: Indices = np.argsort(selector.ranking_)[: int(np.sum(selector.support_))]
    return best_first


def has_path(selector: Any) -> bool:
    """Return whether a selector has followed a path of at least one step."""
    path = getattr(fitted_method(selector), "path_", None)
    return path is not None and len(path.get("n_alive", ())) > 0


def names_of(selector: Any, feature_names: Sequence[str] | None = None) -> NDArray[np.object_]:
    """Return the names of all features."""
    check_is_fitted(selector)
    d = int(selector.n_features_in_)
    if feature_names is None:
        known = getattr(selector, "feature_names_in_", None)
        feature_names = [f"x{i}" for i in range(d)] if known is None else list(known)
    if len(feature_names) != d:
        raise ValueError(
            f"feature_names must have a name for each of the {d} features, got "
            f"{len(feature_names)}."
        )
    names = np.empty(d, dtype=object)
    names[:] = [str(name) for name in feature_names]
    return names


def check_image_shape(image_shape: tuple[int, int], n_features: int) -> tuple[int, int]:
    """Return the height and width of an image, if the features fill it."""
    if len(image_shape) != 2 or image_shape[0] * image_shape[1] != n_features:
        raise ValueError(
            f"image_shape must be (rows, columns) with rows * columns = {n_features}, the number "
            f"of features, got {tuple(image_shape)}."
        )
    return int(image_shape[0]), int(image_shape[1])


def around_the_cut(explanation: pd.DataFrame, max_features: int) -> pd.DataFrame:
    """Return the rows of an explanation on both sides of the place where the selection ends."""
    n_selected = int(explanation["selected"].sum())
    end = min(len(explanation), n_selected + max(1, max_features // 3))
    return explanation.iloc[max(0, end - max_features) : end]


def _check_subsampling(n_subsamples: int, subsample: float) -> None:
    if n_subsamples < 0:
        raise ValueError(
            f"n_subsamples must be 0 (to skip the refits) or more, got {n_subsamples}."
        )
    if not 0 < subsample < 1:
        raise ValueError(
            f"subsample must be a share of the rows between 0 and 1, got {subsample}. 0.5 is usual."
        )


def _numbers(selector: Any, X: Any) -> Any:
    """Return X as a dense array or a CSC matrix, checked against what the selector has seen."""
    check_is_fitted(selector)
    if isinstance(X, FitData):
        return sparse.csc_array(X.X) if sparse.issparse(X.X) else X.X
    X = validate_data(
        selector,
        X,
        reset=False,
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        ensure_min_samples=2,
    )
    return sparse.csc_array(X) if sparse.issparse(X) else X


def _dense(X: Any, columns: Indices | slice) -> Array:
    part = X[:, columns]
    return np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)


def _blocks(n_columns: int, height: int) -> Iterator[slice]:
    """Cut the columns so that an array of that height stays small."""
    width = max(1, _BLOCK_BYTES // (8 * max(height, 1)))
    for start in range(0, n_columns, width):
        yield slice(start, min(start + width, n_columns))


def _closest_selected(X: Any, chosen: Indices) -> tuple[Indices, Array]:
    """Return the other selected column that each is most correlated with, -1 for none."""
    n, d = X.shape
    selected = standardized(_dense(X, chosen))
    place = np.full(d, -1)
    place[chosen] = np.arange(chosen.size)
    closest = np.full(d, -1)
    correlation = np.full(d, np.nan)
    for block in _blocks(d, max(n, chosen.size)):
        among = selected.T @ standardized(_dense(X, block))
        strength = np.round(np.abs(among), _DECIMALS)
        own = np.flatnonzero(place[block] >= 0)
        strength[place[block][own], own] = 0.0
        best = strength.argmax(axis=0)
        columns = np.arange(best.size)
        found = strength[best, columns] > 0
        closest[block][found] = chosen[best[found]]
        correlation[block][found] = among[best, columns][found]
    return closest, np.clip(correlation, -1.0, 1.0)


def _variances(X: Any) -> Array:
    """Return the variances of the columns, in units in which no square overflows."""
    d = X.shape[1]
    values = X.data if sparse.issparse(X) else X
    exponent = safe_unit_exponent(float(np.abs(values).max(initial=0.0)))
    variances = np.empty(d)
    for block in _blocks(d, X.shape[0]):
        variances[block] = column_variances(np.ldexp(_dense(X, block), -exponent))
    return variances


def _died_at(selector: Any, barred: Mask) -> Any:
    """Return the step after the last at which each feature was alive; missing if it never died."""
    survival = getattr(selector, "survival_", None)
    if survival is None:
        return pd.array([pd.NA] * barred.size, dtype="Int64")
    survival = np.asarray(survival, dtype=np.int64)
    # Barred features took no part, so they did not die either.
    return pd.arrays.IntegerArray(survival + 1, (survival >= selector.n_iter_) | barred)


def forced_and_barred(selector: Any) -> list[Mask]:
    """Return the features that a user wants to be kept or left out; methods may know neither."""
    names = getattr(selector, "feature_names_in_", None)
    return [
        feature_mask(parameter, getattr(selector, parameter, None), selector.n_features_in_, names)
        for parameter in ("must_keep", "never_keep")
    ]


def _selection_counts(
    selector: Any,
    X: Any,
    n_subsamples: int,
    subsample: float,
    random_state: Any,
    n_jobs: int | None,
) -> Indices:
    """Return how often each feature is selected on random parts of the rows."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    n = _num_samples(X)
    n_rows = min(n, max(2, round(subsample * n)))
    # Drawn before the work is shared out: the answer does not depend on who does it.
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_subsamples)
    fresh = _quiet_clone(selector)
    # Threads share X; most of a fit is linear algebra, which does not hold up the others.
    supports = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_support_on_part)(fresh, X, n_rows, int(seed)) for seed in seeds
    )
    counts: Indices = np.sum(supports, axis=0)
    return counts


def _quiet_clone(selector: Any) -> Any:
    """Return a selector that asks for as many features as this one has, and says nothing."""
    fresh = clone(selector)
    wanted = {
        "n_features_to_select": int(np.sum(selector.support_)),
        "callback": None,
        "verbose": 0,
    }
    known = fresh.get_params(deep=False)
    return fresh.set_params(**{name: value for name, value in wanted.items() if name in known})


def _support_on_part(selector: Any, X: Any, n_rows: int, seed: int) -> Mask:
    random = np.random.default_rng(seed)
    n = _num_samples(X)
    rows = np.sort(random.choice(n, n_rows, replace=False))
    fresh = clone(selector)
    if "random_state" in fresh.get_params(deep=False):
        fresh.set_params(random_state=int(random.integers(np.iinfo(np.int32).max)))
    part = _safe_indexing(X, rows)
    if sparse.issparse(part) and not fresh.__sklearn_tags__().input_tags.sparse:
        part = part.toarray()
    try:
        support: Mask = np.asarray(fresh.fit(part).support_)
    except ValueError as error:
        raise SubsampleError(
            f"{type(selector).__name__} cannot be fitted to {n_rows} of the {n} rows: {error} "
            "Raise subsample, or set n_subsamples=0."
        ) from error
    return support


class _Feature(NamedTuple):
    """What a reason is made of: some cells of a row of the explanation."""

    rank: int
    selected: bool
    died_at: Any
    frequency: float
    variance_share: float
    cluster_share: float
    closest: str | None
    correlation: float


def _reasons(
    frame: pd.DataFrame, forced: Mask, barred: Mask, constant: Mask, selector: Any
) -> list[str]:
    """Return a line of plain words for each feature."""
    n_selected = int(frame["selected"].sum())
    cells = zip(*(frame[column].tolist() for column in _Feature._fields), strict=True)
    lines = []
    for place, feature in enumerate(map(_Feature._make, cells)):
        if feature.selected and forced[place]:
            why = "always (must_keep)"
        elif barred[place]:
            why = "never to be kept (never_keep)"
        elif constant[place]:
            why = "constant, but no other column was left" if feature.selected else "constant"
        elif feature.selected:
            why = _why_kept(feature, len(frame), selector)
        else:
            why = _why_left_out(feature, len(frame), n_selected, selector)
        lines.append(f"{'kept' if feature.selected else 'left out'}: {why}")
    return lines


def _why_kept(feature: _Feature, n_features: int, selector: Any) -> str:
    life = _life(feature, selector)
    if not life and has_path(selector):
        life = ", lived to the end of the path"
    again = f", chosen again on {feature.frequency:.0%} of subsamples"
    if np.isnan(feature.frequency):
        again = ""
    return f"ranked {feature.rank} of {n_features}{life}{again}"


def _why_left_out(feature: _Feature, n_features: int, n_selected: int, selector: Any) -> str:
    like = ""
    if feature.closest is not None:
        closest = shortened(feature.closest, _NAME_WIDTH)
        if abs(feature.correlation) >= _COPY:
            return f"a copy of {closest} (correlation {feature.correlation:.2f})"
        if abs(feature.correlation) >= _NOTABLE:
            return f"{feature.correlation:.2f} correlated with {closest}"
        like = f"; closest is {closest} ({feature.correlation:.2f})"
    return (
        f"ranked {feature.rank} for {n_selected} places{_life(feature, selector)}, "
        f"{_times(n_features * feature.variance_share)} the mean variance{like}"
    )


def _life(feature: _Feature, selector: Any) -> str:
    """Return what a method with clusters or survival knows of a feature."""
    if not np.isnan(feature.cluster_share):
        return f", clusters explain {feature.cluster_share:.0%} of it"
    if feature.died_at is pd.NA:
        return ""
    return f", died at step {feature.died_at} of {selector.n_iter_}"


def _times(ratio: float) -> str:
    if ratio < 0.01:
        return "less than 0.01 times"
    if 0.95 < ratio < 1.05:
        # As in every table whose columns were standardized.
        return "about"
    return f"{ratio:.2g} times" if ratio < 100 else f"{ratio:.0f} times"
