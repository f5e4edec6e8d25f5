"""Many restarts of k-means at once: what a clustering score of a feature selection costs.

Lloyd's iterations, no approximation. Three things make the batch fast: the runs share every matrix
product with X where they can; bounds on the distances (Hamerly 2010) prove for most samples that
their nearest center is still the same, so that only the others are looked at; and the sums of the
clusters are updated by the samples that moved. Runs that have converged leave the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array, check_random_state

from bsufs._typing import Array, Indices, Mask

# Runs are worked on together as long as their distances to all samples fit into so many bytes.
_BATCH_BYTES = 32 * 2**20
# So many runs look at all samples in one product.
_RUNS = 8
# Where more than this share of the samples is in doubt, looking at all of them is faster.
_WORTH_ALL = 0.5
# The largest finite number of single precision, read as an integer.
_LARGEST_KEY = np.float32(np.finfo(np.float32).max).view(np.int32)
# Bounds are widened by a few units of rounding, and by what may underflow in single precision.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)
_TINY = 1e-30
# Centers this many times farther out than the data do not fit into single precision.
_FARTHEST = 2.0**30


@dataclass(frozen=True)
class KMeansRuns:
    """What every run of k-means came to.

    Parameters
    ----------
    labels : array of int of shape (n_runs, n_samples)
        The nearest center of every sample.
    inertia : array of shape (n_runs,)
        Sums of squared distances of the samples to their centers: smaller is better.
    centers : array of shape (n_runs, n_clusters, n_features)
        Where the centers ended.
    n_iter : array of int of shape (n_runs,)
        Iterations done, counting the last one that changed nothing.
    """

    labels: NDArray[np.int32]
    inertia: Array
    centers: Array
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
    tol: float = 0.0,
    random_state: Any = None,
) -> KMeansRuns:
    r"""Run Lloyd's k-means from many starts at once.

    .. math:: \min_{C, \ell} \sum_i \|x_i - c_{\ell(i)}\|^2

    by taking turns: each sample goes to its nearest center (of equally near ones to the first),
    each center to the mean of its samples.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers; never changed.
    n_clusters : int
        Number of centers, from 1 to n_samples.
    n_runs : int, default=50
        Number of starts; that of the array where `init` is one.
    init : {"k-means++", "random", "greedy-k-means++"} or array, default="k-means++"
        Where the centers start. "k-means++" draws one sample after another with a probability
        that grows with its squared distance from those drawn before; "greedy-k-means++" draws
        2 + log(n_clusters) candidates each time and keeps the one that lowers the inertia most,
        as scikit-learn does; "random" takes distinct samples. An array of shape (n_runs,
        n_clusters, n_features) holds the centers themselves.
    max_iter : int, default=200
        Most iterations of a run.
    tol : float, default=0.0
        A run also ends when the squared movements of its centers sum to no more than this, in
        units of the mean variance of the columns. With 0 it ends when no sample changes cluster.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. Run i is the same whatever `n_runs` is.

    Returns
    -------
    KMeansRuns
        Labels, inertia, centers and iterations of every run, in the order of the starts.

    Notes
    -----
    Labels, inertia and iterations are those of ``sklearn.cluster.KMeans(init=centers, n_init=1,
    algorithm="lloyd")`` from the same centers, save for rounding where a sample is equally far
    from two centers, and for runs in which clusters lose all samples: there scikit-learn may empty
    another cluster to fill them.

    A cluster that has lost all samples takes the sample farthest from its center, among clusters
    of at least two samples; several such clusters take the farthest one after another. Where all
    those samples sit on their centers (fewer distinct samples than clusters), it stays empty and
    its center stays where it was.

    References
    ----------
    Lloyd, S. (1982). Least squares quantization in PCM. IEEE Transactions on Information Theory
    28(2).

    Arthur, D., Vassilvitskii, S. (2007). k-means++: the advantages of careful seeding. Proceedings
    of SODA.

    Hamerly, G. (2010). Making k-means even faster. Proceedings of the SIAM International
    Conference on Data Mining.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.metrics import batched_kmeans
    >>> runs = batched_kmeans(load_iris().data, 3, n_runs=10, random_state=0)
    >>> runs.labels.shape
    (10, 150)
    >>> round(float(runs.inertia.min()), 2)
    78.85
    """
    data: Array = check_array(X, dtype=np.float64)
    _check_counts(data.shape[0], n_clusters=n_clusters, n_runs=n_runs, max_iter=max_iter)
    if tol < 0:
        raise ValueError(f"tol must be zero or positive, got {tol}.")
    # In units of the largest entry nothing overflows; distances of centered data lose fewer digits
    # when they are read off products.
    exponent = math.frexp(float(np.abs(data).max()))[1]
    data = np.ldexp(data, -exponent)
    mean = data.mean(axis=0)
    data -= mean
    if isinstance(init, str):
        starts = _starts(data, n_clusters, n_runs, init, check_random_state(random_state))
    else:
        given = _given_centers(init, n_clusters, data.shape[1])
        starts = np.ldexp(given, -exponent) - mean
    threshold = tol * float(data.var(axis=0).mean())
    size = max(1, _BATCH_BYTES // (8 * data.shape[0] * n_clusters))
    parts = [
        _Batch(data, starts[first : first + size]).run(max_iter, threshold)
        for first in range(0, len(starts), size)
    ]
    labels, inertia, centers, n_iter = (np.concatenate(part) for part in zip(*parts, strict=True))
    return KMeansRuns(
        labels, np.ldexp(inertia, 2 * exponent), np.ldexp(centers + mean, exponent), n_iter
    )


def _check_counts(n_samples: int, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a positive integer, got {count!r}.")
    if counts["n_clusters"] > n_samples:
        raise ValueError(
            f"n_clusters must be at most n_samples = {n_samples}, got {counts['n_clusters']}."
        )


def _given_centers(init: ArrayLike, n_clusters: int, n_features: int) -> Array:
    centers = np.asarray(init, dtype=np.float64)
    if centers.ndim != 3 or centers.shape[1:] != (n_clusters, n_features) or not len(centers):
        raise ValueError(
            "init as an array must have shape (n_runs, n_clusters, n_features) = "
            f"(n_runs, {n_clusters}, {n_features}), got {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise ValueError("init must hold finite numbers, got NaN or infinity.")
    return centers


# --- starts -----------------------------------------------------------------------------------


def _starts(X: Array, n_clusters: int, n_runs: int, init: str, rng: np.random.RandomState) -> Array:
    """Return the first centers of every run, all of them samples."""
    n = X.shape[0]
    if init == "random":
        drawn = np.stack([rng.permutation(n)[:n_clusters] for _ in range(n_runs)])
    elif init in ("k-means++", "greedy-k-means++"):
        trials = 1 if init == "k-means++" else 2 + int(np.log(n_clusters))
        # Run by run, so that more runs do not change the first ones.
        uniform = rng.random_sample((n_runs, n_clusters, trials))
        size = max(1, _BATCH_BYTES // (8 * n * trials))
        drawn = np.concatenate(
            [_plus_plus(X, uniform[first : first + size]) for first in range(0, n_runs, size)]
        )
    else:
        raise ValueError(
            "init must be 'k-means++', 'random', 'greedy-k-means++' or an array of centers, "
            f"got {init!r}."
        )
    return X[drawn]


def _plus_plus(X: Array, uniform: Array) -> Indices:
    """Draw the samples of k-means++ for all runs, one center after another."""
    n_runs, n_clusters, trials = uniform.shape
    n = X.shape[0]
    squares = np.einsum("ij,ij->i", X, X)
    drawn = np.empty((n_runs, n_clusters), dtype=np.intp)
    drawn[:, 0] = np.minimum((uniform[:, 0, 0] * n).astype(np.intp), n - 1)
    closest = _squared_distances(X, squares, drawn[:, 0])
    every = np.arange(n_runs)
    for step in range(1, n_clusters):
        cumulated = np.cumsum(closest, axis=1)
        # Strictly below the total, so that no sample of distance zero is drawn after the last.
        heights = uniform[:, step] * cumulated[:, -1:]
        candidates = np.stack(
            [np.searchsorted(*pair, side="right") for pair in zip(cumulated, heights, strict=True)]
        )
        np.minimum(candidates, n - 1, out=candidates)
        distances = _squared_distances(X, squares, candidates.ravel())
        distances = distances.reshape(n_runs, trials, n)
        np.minimum(distances, closest[:, None], out=distances)
        best = distances.sum(axis=2).argmin(axis=1) if trials > 1 else np.zeros_like(every)
        drawn[:, step] = candidates[every, best]
        closest = distances[every, best]
    return drawn


def _squared_distances(X: Array, squares: Array, chosen: Indices) -> Array:
    """Return the squared distances of some samples (rows) to all (columns)."""
    distances = (-2.0 * X[chosen]) @ X.T
    distances += squares
    distances += squares[chosen, None]
    np.maximum(distances, 0.0, out=distances)
    # A sample is never drawn twice while others are left: rounding must not keep it apart.
    distances[np.arange(chosen.size), chosen] = 0.0
    return distances


# --- Lloyd's iterations -----------------------------------------------------------------------


class _Batch:
    """Runs of Lloyd's iterations that go on together.

    For every run and sample, `upper` bounds the distance to the center of its label from above
    and `lower` that to all other centers from below. When centers move by known distances the
    bounds follow; a sample whose upper bound is below its lower bound cannot have changed.
    """

    def __init__(self, X: Array, starts: Array) -> None:
        runs, self.k, self.d = starts.shape
        self.n = X.shape[0]
        self.X = X
        self.squares = np.einsum("ij,ij->i", X, X)
        self.extended = np.empty((self.n, self.d + 2), dtype=np.float32)
        self.extended[:, : self.d] = X
        self.extended[:, self.d] = self.squares
        self.extended[:, self.d + 1] = 1.0
        # X is in units of its largest entry, which is about 1.
        self.near = bool(np.abs(starts).max() < _FARTHEST)
        # What concerns the active runs shrinks as they end; the results of all are kept aside.
        self.active = np.arange(runs)
        self.centers = starts.copy()
        self.sums = np.zeros(starts.shape)
        self.counts = np.zeros((runs, self.k), dtype=np.intp)
        self.labels = np.full((runs, self.n), -1, dtype=np.int32)
        self.upper = np.full((runs, self.n), np.inf)
        self.lower = np.zeros((runs, self.n))
        self.final_labels = np.empty((runs, self.n), dtype=np.int32)
        self.final_centers = np.empty(starts.shape)
        self.settled = np.zeros(runs, dtype=bool)
        self.n_iter = np.zeros(runs, dtype=np.intp)

    def run(self, max_iter: int, threshold: float) -> tuple[NDArray[Any], ...]:
        """Iterate until every run has ended; return labels, inertia, centers and iterations."""
        for iteration in range(1, max_iter + 1):
            previous = self.labels.copy()
            self._assign(self.upper >= self.lower)
            changed = np.flatnonzero(self.labels != previous)
            filled = self._fill_empty_clusters(previous, changed)
            if filled.any():
                changed = np.flatnonzero(self.labels != previous)
            drift = self._move_centers(previous, changed)
            unchanged = np.bincount(changed // self.n, minlength=self.active.size) == 0
            ended = unchanged | (np.einsum("ij,ij->i", drift, drift) <= threshold)
            if iteration == max_iter:
                ended[:] = True
            if ended.any():
                self._retire(ended, unchanged & ~filled, iteration)
                drift = drift[~ended]
                if self.active.size == 0:
                    break
            self._follow(drift)
        return self._results()

    def _assign(self, doubtful: Mask) -> None:
        """Find the nearest center, and new bounds, for the samples in doubt."""
        if not self.near:
            self._assign_exactly(np.flatnonzero(doubtful))
            return
        lengths = np.einsum("rkd,rkd->rk", self.centers, self.centers)
        reach = lengths.max(axis=1)
        # With [x, |x|^2, 1] on the other side, one product gives whole squared distances.
        weights = np.empty((*lengths.shape, self.d + 2), dtype=np.float32)
        np.multiply(self.centers, -2.0, out=weights[..., : self.d], casting="same_kind")
        weights[..., self.d] = 1.0
        weights[..., self.d + 1] = lengths
        per_run = np.count_nonzero(doubtful, axis=1)
        whole = per_run > _WORTH_ALL * self.n
        unclear = [self._assign_runs(np.flatnonzero(whole), weights, reach)]
        if not whole.all():
            doubtful[whole] = False
            per_run[whole] = 0
            unclear.append(self._assign_pairs(np.flatnonzero(doubtful), per_run, weights, reach))
        # Where single precision cannot tell the nearest from the next, double precision decides.
        self._assign_exactly(np.sort(np.concatenate(unclear)))

    def _assign_runs(self, runs: Indices, weights: Array, reach: Array) -> Indices:
        """Look at all samples of some runs; return the pairs that stay unclear."""
        unclear = [np.zeros(0, dtype=np.intp)]
        for first in range(0, runs.size, _RUNS):
            some = runs[first : first + _RUNS]
            distances = weights[some].reshape(-1, self.d + 2) @ self.extended.T
            found = self._read(
                distances.reshape(some.size, self.k, self.n), self.squares + reach[some, None]
            )
            self.labels[some], self.upper[some], self.lower[some], doubt = found
            within, samples = np.nonzero(doubt)
            unclear.append(some[within] * self.n + samples)
        return np.concatenate(unclear)

    def _assign_pairs(
        self, pairs: Indices, per_run: Indices, weights: Array, reach: Array
    ) -> Indices:
        """Look at some samples of each run; return the pairs that stay unclear."""
        ends = np.concatenate([[0], np.cumsum(per_run)])
        samples = pairs - np.repeat(np.arange(per_run.size) * self.n, per_run)
        distances = np.empty((self.k, pairs.size), dtype=np.float32)
        for run in np.flatnonzero(per_run):
            block = slice(ends[run], ends[run + 1])
            rows = self.extended.take(samples[block], axis=0)
            np.matmul(weights[run], rows.T, out=distances[:, block])
        sizes = self.squares[samples] + np.repeat(reach, per_run)
        nearest, upper, lower, doubt = self._read(distances[None], sizes[None])
        self.labels.reshape(-1)[pairs] = nearest[0]
        self.upper.reshape(-1)[pairs] = upper[0]
        self.lower.reshape(-1)[pairs] = lower[0]
        unclear: Indices = pairs[doubt[0]]
        return unclear

    def _read(self, distances: NDArray[np.float32], sizes: Array) -> tuple[NDArray[Any], ...]:
        """Return labels, upper and lower bounds, and whether single precision leaves a doubt.

        `distances`, of shape (runs, n_clusters, samples), is overwritten. Read as integers,
        floats keep their order: with the number of the center in the last bits, one minimum
        gives the smallest distance and where it is, many times faster than argmin.
        """
        bits = (self.k - 1).bit_length()
        mask = np.int32((1 << bits) - 1)
        keys = distances.view(np.int32)
        keys &= ~mask
        keys |= np.arange(self.k, dtype=np.int32)[:, None]
        smallest = keys.min(axis=1)
        nearest = smallest & mask
        runs, k, m = keys.shape
        places = nearest * np.intp(m)
        places += np.arange(m)
        places += np.arange(runs)[:, None] * (k * m)
        keys.reshape(-1)[places] = _LARGEST_KEY
        first = (smallest & ~mask).view(np.float32).astype(np.float64)
        second = (keys.min(axis=1) & ~mask).view(np.float32).astype(np.float64)
        # Rounding of the products goes both ways; the bits taken off only made numbers smaller.
        unit = float(np.finfo(np.float32).eps)
        slack = sizes * ((self.d + 16) / 2 * unit)
        slack += _TINY
        np.maximum(first, 0.0, out=first)
        first *= 1.0 + 2.0**bits * unit
        first += slack
        second -= slack
        np.maximum(second, 0.0, out=second)
        doubt = second <= first
        return nearest, np.sqrt(first, out=first), np.sqrt(second, out=second), doubt

    def _assign_exactly(self, pairs: Indices) -> None:
        """Find the nearest centers of (run, sample) pairs in double precision."""
        lengths = np.einsum("rkd,rkd->rk", self.centers, self.centers)
        ends = np.searchsorted(pairs, np.arange(len(self.centers) + 1) * self.n)
        for run in np.flatnonzero(np.diff(ends)):
            samples = pairs[ends[run] : ends[run + 1]] - run * self.n
            distances = self.X[samples] @ (-2.0 * self.centers[run].T)
            distances += lengths[run]
            nearest = distances.argmin(axis=1)
            every = np.arange(samples.size)
            squares = self.squares[samples]
            first = distances[every, nearest] + squares
            distances[every, nearest] = np.inf
            second = distances.min(axis=1) + squares
            slack = _ROUNDING * (self.d + 8) * (squares + lengths[run].max())
            self.labels[run, samples] = nearest
            self.upper[run, samples] = np.sqrt(np.maximum(first, 0.0) + slack)
            self.lower[run, samples] = np.sqrt(np.maximum(second - slack, 0.0))

    def _fill_empty_clusters(self, previous: NDArray[np.int32], changed: Indices) -> Mask:
        """Give clusters without samples the farthest ones; return which runs were touched."""
        counts = self.counts
        base = changed // self.n * self.k
        lost = previous.reshape(-1)[changed]
        gained = np.bincount(base + self.labels.reshape(-1)[changed], minlength=counts.size)
        counts += gained.reshape(counts.shape)
        # Before the first iteration there is no cluster to leave.
        left = np.bincount((base + lost)[lost >= 0], minlength=counts.size)
        counts -= left.reshape(counts.shape)
        touched = np.zeros(len(counts), dtype=bool)
        for run in np.flatnonzero((counts == 0).any(axis=1)):
            labels = self.labels[run]
            offsets = self.X - self.centers[run, labels]
            farness = np.einsum("ij,ij->i", offsets, offsets)
            order = iter(np.argsort(-farness, kind="stable"))
            for cluster in np.flatnonzero(counts[run] == 0):
                sample = next((i for i in order if counts[run, labels[i]] > 1), None)
                if sample is None or farness[sample] == 0:
                    break
                counts[run, labels[sample]] -= 1
                counts[run, cluster] = 1
                labels[sample] = cluster
                # Nothing is known about its distances to the other centers.
                self.upper[run, sample], self.lower[run, sample] = np.inf, 0.0
                touched[run] = True
        return touched

    def _move_centers(self, previous: NDArray[np.int32], changed: Indices) -> Array:
        """Move the centers to the means of their samples; return how far each one went."""
        runs, samples = np.divmod(changed, self.n)
        base = runs * self.k
        lost = previous.reshape(-1)[changed]
        left = lost >= 0
        rows = np.concatenate([base + self.labels.reshape(-1)[changed], (base + lost)[left]])
        columns = np.concatenate([samples, samples[left]])
        signs = np.ones(rows.size)
        signs[samples.size :] = -1.0
        present = np.bincount(rows, minlength=self.counts.size) > 0
        touched = np.flatnonzero(present)
        rows = (np.cumsum(present) - 1)[rows]
        sums = self.sums.reshape(-1, self.d)
        exchanged = sparse.csr_array((signs, (rows, columns)), shape=(touched.size, self.n))
        new = sums[touched]
        new += exchanged @ self.X
        sums[touched] = new
        counts = self.counts.reshape(-1)[touched]
        if not counts.all():
            sums[touched[counts == 0]] = 0.0
            touched, new, counts = touched[counts > 0], new[counts > 0], counts[counts > 0]
        centers = self.centers.reshape(-1, self.d)
        new /= counts[:, None]
        steps = centers[touched]
        steps -= new
        centers[touched] = new
        drift = np.zeros(len(centers))
        drift[touched] = np.sqrt(np.einsum("ij,ij->i", steps, steps))
        return drift.reshape(-1, self.k)

    def _follow(self, drift: Array) -> None:
        """Let the bounds follow the centers, which moved by `drift`."""
        drift = drift * (1.0 + _ROUNDING * self.d)
        runs = np.arange(len(drift), dtype=np.int32)[:, None]
        self.upper += drift.reshape(-1).take(self.labels + np.int32(self.k) * runs)
        self.upper *= 1.0 + _ROUNDING
        farthest = drift.argmax(axis=1)[:, None]
        others = drift.copy()
        np.put_along_axis(others, farthest, 0.0, axis=1)
        self.lower -= np.where(
            self.labels == farthest, others.max(axis=1)[:, None], drift.max(axis=1)[:, None]
        )

    def _retire(self, ended: Mask, settled: Mask, iteration: int) -> None:
        """Keep the labels and centers of runs that have ended, and go on with the others."""
        gone = self.active[ended]
        self.final_labels[gone] = self.labels[ended]
        self.final_centers[gone] = self.centers[ended]
        self.settled[gone] = settled[ended]
        self.n_iter[gone] = iteration
        for name in ("active", "labels", "upper", "lower", "sums", "counts", "centers"):
            setattr(self, name, getattr(self, name)[~ended])

    def _results(self) -> tuple[NDArray[Any], ...]:
        """Compute centers and inertia afresh, free of the rounding of many small updates."""
        labels, centers = self.final_labels, self.final_centers
        sums, counts = self._sums(labels)
        centers = np.where(counts[..., None] > 0, sums / np.maximum(counts, 1)[..., None], centers)
        hasty = np.flatnonzero(~self.settled)
        if hasty.size:
            # These ended with a movement of the centers: the labels have to follow.
            self.centers = centers[hasty]
            self.labels, self.upper, self.lower = (
                np.empty((hasty.size, self.n), dtype=dtype)
                for dtype in (np.int32, np.float64, np.float64)
            )
            self._assign_exactly(np.arange(self.labels.size))
            labels[hasty] = self.labels
            sums[hasty], counts[hasty] = self._sums(labels[hasty])
        total = self.squares.sum()
        lengths = np.einsum("rkd,rkd->rk", centers, centers)
        inertia = total + np.einsum("rk,rk->r", counts, lengths)
        inertia -= 2.0 * np.einsum("rkd,rkd->r", centers, sums)
        for run in np.flatnonzero(inertia < 1e-3 * total):
            offsets = self.X - centers[run, labels[run]]
            inertia[run] = np.vdot(offsets, offsets)
        return labels, inertia, centers, self.n_iter

    def _sums(self, labels: NDArray[np.int32]) -> tuple[Array, Indices]:
        """Return the sums and the numbers of the samples in each cluster of each run."""
        runs = labels.shape[0]
        counts = _counts(labels, self.k)
        order = np.argsort(labels, axis=1, kind="stable").ravel()
        starts = np.concatenate([[0], np.cumsum(counts)])
        members = sparse.csr_array(
            (np.ones(order.size), order, starts), shape=(runs * self.k, self.n)
        )
        return (members @ self.X).reshape(runs, self.k, self.d), counts


def _counts(labels: NDArray[np.int32], k: int) -> Indices:
    """Count the samples in each cluster of each run."""
    runs = labels.shape[0]
    flat = labels + k * np.arange(runs)[:, None]
    return np.bincount(flat.ravel(), minlength=runs * k).reshape(runs, k)
