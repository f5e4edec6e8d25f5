"""Many restarts of k-means at once, by Lloyd's iterations and without approximation.

Three things make the batch fast: runs share the product with X that gives their distances, in
single precision; only samples for which that leaves a doubt are looked at in double precision; and
the sums of the clusters are updated by the samples that moved.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array, check_random_state, gen_batches

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter._clearing import weighted_mean

# Runs are worked on together as long as their distances to all samples fit into so many bytes.
_BATCH_BYTES = 32 * 2**20

Labels = NDArray[np.int32]


@dataclass(frozen=True)
class KMeansRuns:
    """What every run of k-means came to; the first axis of every array is that of the runs."""

    # The nearest center of every sample, and the sum of squared distances to it.
    labels: Labels
    inertia: Array
    centers: Array
    # Iterations done, counting the last one that changed nothing.
    n_iter: NDArray[np.intp]

    @property
    def best(self) -> int:
        """The number of the run with the smallest inertia."""
        return int(np.argmin(self.inertia))


def batched_kmeans(
    X: ArrayLike,
    n_clusters: int,
    *,
    n_runs: int = 50,
    init: Literal["k-means++", "random", "greedy-k-means++"] | ArrayLike = "k-means++",
    max_iter: int = 200,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> KMeansRuns:
    r"""Run Lloyd's k-means from many starts at once.

    .. math:: \min_{C, \ell} \sum_i w_i \|x_i - c_{\ell(i)}\|^2

    by turns: each sample goes to its nearest center (the first of those equally near), each center
    to the mean of its samples, until no sample changes cluster or no center moves.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers; never changed.
    n_clusters : int
        Number of centers, from 1 to n_samples.
    n_runs : int, default=50
        Number of starts; that of the array where `init` is one.
    init : {"k-means++", "random", "greedy-k-means++"} or array, default="k-means++"
        Where the centers start. "k-means++" (Arthur and Vassilvitskii, 2007) draws one sample
        after another with a probability proportional to its squared distance from those before;
        "greedy-k-means++" keeps the best of 2 + log(n_clusters) such draws, as scikit-learn does;
        "random" takes distinct samples. Or an array of shape (n_runs, n_clusters, n_features).
    max_iter : int, default=200
        Most iterations of a run.
    sample_weight : array-like of shape (n_samples,), optional
        Positive weights; a weight w counts like w copies of the sample.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. Run i is the same whatever `n_runs` is.

    Returns
    -------
    KMeansRuns
        Labels, inertia, centers and iterations of every run, in the order of the starts.

    Notes
    -----
    From the same centers, the results are those of ``sklearn.cluster.KMeans(n_init=1, tol=0)``,
    save for rounding where a sample is equally far from two centers, and for clusters that lose all
    samples: each takes the sample farthest from its center, among clusters of at least two samples.
    Where these all sit on their centers, it stays empty and its center stays where it was.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.metrics import batched_kmeans
    >>> runs = batched_kmeans(load_iris().data, 3, n_runs=10, random_state=0)
    >>> round(float(runs.inertia.min()), 2)
    78.85
    """
    data: Array = check_array(X, dtype=np.float64)
    for name, count in (("n_clusters", n_clusters), ("n_runs", n_runs), ("max_iter", max_iter)):
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a positive integer, got {count!r}.")
    n, d = data.shape
    if n_clusters > n:
        raise ValueError(f"n_clusters must be at most n_samples = {n}, got {n_clusters}.")
    # In units of the largest entry nothing overflows; distances of centered data lose fewer digits
    # when they are read off products.
    exponent = np.frexp(np.abs(data).max())[1]
    data = np.ldexp(data, -exponent)
    weight = _checked_weight(sample_weight, n)
    mean = weighted_mean(data, None if sample_weight is None else weight)
    data -= mean
    if isinstance(init, str):
        starts = _starts(data, n_clusters, n_runs, init, check_random_state(random_state), weight)
    else:
        starts = np.asarray(init, dtype=np.float64)
        if starts.shape[1:] != (n_clusters, d) or not len(starts):
            raise ValueError(
                "init as an array must have shape (n_runs, n_clusters, n_features) = "
                f"(n_runs, {n_clusters}, {d}), got {starts.shape}."
            )
        if not np.isfinite(starts).all():
            raise ValueError("init must hold finite numbers, got NaN or infinity.")
        starts = np.ldexp(starts, -exponent) - mean
    samples = _Samples(data, weight)
    size = max(1, _BATCH_BYTES // (8 * n * n_clusters))
    parts = [samples.lloyd(starts[batch], max_iter) for batch in gen_batches(len(starts), size)]
    labels, inertia, centers, n_iter = (np.concatenate(part) for part in zip(*parts, strict=True))
    centers = np.ldexp(centers + mean, exponent)
    return KMeansRuns(labels, np.ldexp(inertia, 2 * exponent), centers, n_iter)


def _checked_weight(sample_weight: ArrayLike | None, n: int) -> Array:
    weight: Array = np.asarray(np.ones(n) if sample_weight is None else sample_weight, np.float64)
    if weight.shape != (n,) or not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(
            f"sample_weight must hold a positive number for each of the {n} samples, got an array "
            f"of shape {weight.shape}. Leave out samples without weight."
        )
    return weight


def _starts(
    X: Array,
    n_clusters: int,
    n_runs: int,
    init: str,
    rng: np.random.RandomState,
    weight: Array | float = 1.0,
) -> Array:
    """Return the first centers of every run, all of them samples."""
    if init == "random":
        return X[np.stack([rng.permutation(len(X))[:n_clusters] for _ in range(n_runs)])]
    trials = {"k-means++": 1, "greedy-k-means++": 2 + int(np.log(n_clusters))}.get(init)
    if trials is None:
        raise ValueError(
            "init must be 'k-means++', 'random', 'greedy-k-means++' or an array of centers, "
            f"got {init!r}."
        )
    # Run by run, so that more runs do not change the first ones.
    uniform = rng.random_sample((n_runs, n_clusters, trials))
    size = max(1, _BATCH_BYTES // (8 * len(X) * trials))
    drawn = [_plus_plus(X, weight, uniform[batch]) for batch in gen_batches(n_runs, size)]
    return X[np.concatenate(drawn)]


def _plus_plus(X: Array, weight: Array | float, uniform: Array) -> Indices:
    """Draw the samples of k-means++ for all runs, one center after another."""
    n_runs, n_clusters, trials = uniform.shape
    every, squares = np.arange(n_runs), _squares(X)
    drawn = np.empty((n_runs, n_clusters), dtype=np.intp)
    # Without a center all samples are equally likely, and farther away than from any center.
    closest = np.full((n_runs, len(X)), 2.0**900)
    for step in range(n_clusters):
        cumulated = np.cumsum(closest * weight, axis=1)
        # Strictly below the total, so that no sample of distance zero is drawn after the last.
        heights = uniform[:, step, : trials if step else 1] * cumulated[:, -1:]
        chosen = (cumulated[:, None] <= heights[..., None]).sum(axis=2).ravel()
        np.minimum(chosen, len(X) - 1, out=chosen)
        distances = (-2.0 * X[chosen]) @ X.T
        distances += squares
        distances += squares[chosen, None]
        # A sample is never drawn twice while others are left: rounding must not keep it apart.
        distances[np.arange(chosen.size), chosen] = 0.0
        distances = np.clip(distances.reshape(n_runs, -1, len(X)), 0.0, closest[:, None])
        best = (distances * weight).sum(axis=2).argmin(axis=1) if trials > 1 else 0 * every
        drawn[:, step] = chosen.reshape(n_runs, -1)[every, best]
        closest = distances[every, best]
    return drawn


class _Samples:
    """Samples to cluster, in units of their largest entry."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.squares, self.weight = X, _squares(X), weight
        self.n, self.d = X.shape
        # With [-2c, |c|^2, 1] on the other side, one product gives whole squared distances.
        self.extended = np.ones((self.d + 2, self.n), dtype=np.float32)
        self.extended[:-2], self.extended[-1] = X.T, self.squares

    def lloyd(self, centers: Array, max_iter: int) -> tuple[NDArray[Any], ...]:
        """Move centers until every run has ended; return labels, inertia, centers, iterations."""
        runs = len(centers)
        labels, sums = np.full((runs, self.n), -1, dtype=np.int32), np.zeros(centers.shape)
        hasty, n_iter = np.ones(runs, dtype=bool), np.zeros(runs, dtype=np.intp)
        active = np.arange(runs)  # The runs that go on; only these have sums.
        for iteration in range(1, max_iter + 1):
            before, last = labels[active], centers[active]
            after = self._nearest(last)
            filled = self._fill_empty_clusters(after, last)
            sums += self._exchanged(before, after, last.shape)
            weights = self._weights(after, last.shape[1])
            sums[weights == 0] = 0.0
            means = _means(sums, weights, last)
            unchanged = (after == before).all(axis=1)
            labels[active], centers[active], n_iter[active] = after, means, iteration
            hasty[active] = ~unchanged | filled
            on = ~unchanged & _squares(means - last).any(axis=1)
            active, sums = active[on], sums[on]
            if active.size == 0:
                break
        return *self._finished(labels, centers, hasty), n_iter

    def _nearest(self, centers: Array) -> Labels:
        """Return the nearest center of every sample (column) in every run (row)."""
        runs, k, _ = centers.shape
        if np.abs(centers).max() > 2.0**30:
            # So far out of the data, they do not fit into single precision.
            labels = np.zeros((runs, self.n), dtype=np.int32)
            return self._decide_exactly(labels, centers, labels == 0)
        lengths = _squares(centers)
        weights = np.dstack([-2.0 * centers, lengths, np.ones((runs, k))]).astype(np.float32)
        distances = (weights.reshape(-1, self.d + 2) @ self.extended).reshape(runs, k, self.n)
        # What rounding and underflow may do to two products, from the largest numbers in them.
        unit = (self.d + 18) * float(np.finfo(np.float32).eps)
        slack = (self.squares + lengths.max(axis=1)[:, None]) * unit + 1e-30
        bound = (np.maximum(distances.min(axis=1), 0.0) + slack).astype(np.float32)
        near = (distances <= bound[:, None]).view(np.int8)
        # The sum of the numbers of the near centers is that of the nearest where only one is near;
        # much faster than argmin.
        labels = np.einsum("rkn,k->rn", near, np.arange(k, dtype=np.int32))
        return self._decide_exactly(labels, centers, near.sum(axis=1, dtype=np.int32) > 1)

    def _decide_exactly(self, labels: Labels, centers: Array, doubt: Mask) -> Labels:
        """Find the nearest centers of some samples in double precision, in place."""
        lengths = _squares(centers)
        for run in np.flatnonzero(doubt.any(axis=1)):
            distances = self.X[doubt[run]] @ (-2.0 * centers[run].T) + lengths[run]
            labels[run, doubt[run]] = distances.argmin(axis=1)
        return labels

    def _weights(self, labels: Labels, k: int) -> Array:
        """Return the weight of every cluster (column) in every run (row)."""
        of_samples = np.broadcast_to(self.weight, labels.shape).ravel()
        return np.asarray(_counts(labels, k, of_samples), dtype=np.float64)

    def _fill_empty_clusters(self, labels: Labels, centers: Array) -> Mask:
        """Give clusters without samples the farthest ones; return the runs touched."""
        counts = _counts(labels, centers.shape[1])
        touched = np.zeros(len(counts), dtype=bool)
        for run in np.flatnonzero((counts == 0).any(axis=1)):
            farness = _squares(self.X - centers[run, labels[run]])
            order = iter(np.argsort(-farness, kind="stable"))
            for cluster in np.flatnonzero(counts[run] == 0):
                sample = next((i for i in order if counts[run, labels[run, i]] > 1), None)
                if sample is None or farness[sample] == 0:
                    break
                counts[run, labels[run, sample]] -= 1
                counts[run, cluster] = 1
                labels[run, sample] = cluster
                touched[run] = True
        return touched

    def _exchanged(self, before: Labels, after: Labels, shape: tuple[int, ...]) -> Array:
        """Return the sums of the samples that came to each cluster, less those that left it."""
        changed = np.flatnonzero(before != after)
        runs, samples = np.divmod(changed, self.n)
        came, left = (runs * shape[1] + labels.ravel()[changed] for labels in (after, before))
        # Before the first iteration there is no cluster to leave.
        leaving = before.ravel()[changed] >= 0
        rows = np.concatenate([came, left[leaving]])
        columns = np.concatenate([samples, samples[leaving]])
        signs = np.where(np.arange(rows.size) < came.size, 1.0, -1.0) * self.weight[columns]
        exchange = sparse.csr_array((signs, (rows, columns)), shape=(shape[0] * shape[1], self.n))
        return np.reshape(exchange @ self.X, shape)

    def _finished(self, labels: Labels, centers: Array, hasty: Mask) -> tuple[NDArray[Any], ...]:
        """Compute centers and inertia afresh, free of the rounding of many small updates."""
        unassigned, k = np.full_like(labels, -1), centers.shape[1]
        sums = self._exchanged(unassigned, labels, centers.shape)
        centers = _means(sums, self._weights(labels, k), centers)
        if hasty.any():
            # These ended with a movement of the centers: the labels have to follow.
            self._decide_exactly(labels, centers, np.repeat(hasty[:, None], self.n, axis=1))
            sums = self._exchanged(unassigned, labels, centers.shape)
        total = (self.squares * self.weight).sum()
        inertia = total + np.einsum("rk,rk->r", self._weights(labels, k), _squares(centers))
        inertia -= 2.0 * np.einsum("rkd,rkd->r", centers, sums)
        for run in np.flatnonzero(inertia < 1e-3 * total):
            inertia[run] = self.weight @ _squares(self.X - centers[run, labels[run]])
        return labels, inertia, centers


def _squares(A: Array) -> Array:
    return np.asarray(np.einsum("...d,...d->...", A, A))


def _counts(labels: Labels, k: int, weights: Array | None = None) -> NDArray[Any]:
    flat = labels + k * np.arange(len(labels))[:, None]
    return np.bincount(flat.ravel(), weights, len(labels) * k).reshape(-1, k)


def _means(sums: Array, weights: Array, otherwise: Array) -> Array:
    """Return the means of clusters, and something else for those without samples."""
    filled = weights[..., None] > 0
    return np.where(filled, sums / np.where(filled, weights[..., None], 1.0), otherwise)
