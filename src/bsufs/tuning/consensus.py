"""One ranking out of many: over settings, rotated starts and halves of the rows."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array, Indices, Mask
from bsufs.metrics.label_free import wilson_interval
from bsufs.selectors._base import NUMBER_OF_FEATURES, BaseSelector, Scored, in_order_of_rank
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import POSITIVE, constraints
from bsufs.selectors.bsufs import BSUFS
from bsufs.stiefel import polar_factor
from bsufs.tuning._settings import (
    WRAPPING,
    WrappingSelector,
    checked_settings,
    with_most_components,
)

# The settings of `BSUFS` over which a consensus is formed.
_PATHS = {"p": [0.0, 0.5, 1.0], "beta_row": [3.0, 10.0, 30.0]}


@dataclass(repr=False, eq=False)
class ConsensusSelector(WrappingSelector):
    """Rank features by what many runs of a selector agree on.

    The runs differ in their settings, in where they start and, if asked for, in the rows that they
    see. How often each feature is selected tells how far to trust the selection; halves of the rows
    also give a set with a bound on the expected number of false selections.

    Parameters
    ----------
    estimator : selector, optional
        The method to run, one of `bsufs.selectors`; `BSUFS()` by default. Its `must_keep` and
        `never_keep` hold for the consensus too.
    n_features_to_select : int, float, "auto" or None, default=None
        How many features to keep; as the estimator says by default. "auto": as many as the
        estimator keeps on all rows.
    param_grid : dict or list of dicts, optional
        Settings to run: names of parameters of the estimator with lists of values. By default, for
        `BSUFS`, 0, 1/2 and 1 for `p` with 3, 10 and 30 for `beta_row`; for other methods, and with
        ``{}``, the estimator as it is.
    n_rotations : int, default=1
        Randomly rotated starts for each setting, besides the principal components themselves (or
        the matrix that is the estimator's `init`). Only `BSUFS` has a start to rotate.
    n_pairs : int, default=0
        Random splits of the rows into two halves, each of which is a draw of its own. With 0 all
        runs see all rows. Methods other than `BSUFS` need it, or a `param_grid`: without either
        there is a single run, whose ranking it is, and every frequency is 0 or 1.
    aggregate : {"score", "rank"}, default="score"
        What is averaged over the runs: scores, brought to the range from 0 to 1 in each run (for
        `BSUFS` the share of the path that a feature survives), or ranks.
    max_false_selections : float, optional
        Ask for `stable_support_`, with at most this many false selections in expectation. Needs
        `n_pairs` (see Notes).
    threshold : float, default=0.75
        Share of the draws that must select a feature for it to be in `stable_support_`, above 1/2.
    random_state : int, RandomState instance or None, default=0
        Seed of rotations and halves, and of the estimator where it has none.
    n_jobs : int, optional
        Threads to work with; the result is the same for any number.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Mean score over all runs; larger is better.
    %(fitted)s
    selection_frequencies_ : array of shape (n_features,)
        Share of the draws (of the runs, where all see all rows) in which the feature is among the
        first `n_features_to_select`.
    selection_frequency_intervals_ : array of shape (n_features, 2)
        Wilson intervals of these frequencies (95 %), as if draws were independent.
    trial_rankings_ : array of int of shape (n_trials, n_features)
        The ranking in each draw (in each run, where all see all rows).
    stable_support_ : array of bool of shape (n_features,)
        With `max_false_selections`: the features that at least `threshold` of the draws have among
        their first `n_per_draw_`. There may be none.
    n_per_draw_ : int
        With `max_false_selections`: how many features each draw proposes, q.
    false_selection_bound_ : float
        With `max_false_selections`: the bound that holds for `stable_support_`.

    Notes
    -----
    Stability selection: of d columns that vary and may be selected each draw proposes its first q.
    Those that a share of at least t of the draws propose hold no more than ``q**2 / ((2*t - 1)*d)``
    false ones in expectation, and q is the largest number for which this is at most
    `max_false_selections`. What "false" means is an assumption, which the guide on choosing without
    labels states; it does not mean that a stable feature is useful.

    A draw is half of the rows; all settings and starts see the same one, and their mean score
    ranks the features in it. The scatter and its principal components are computed once per draw.

    References
    ----------
    Meinshausen, N., Bühlmann, P. (2010). Stability selection. Journal of the Royal Statistical
    Society B 72(4).

    Shah, R. D., Samworth, R. J. (2013). Variable selection with error control: another look at
    stability selection. Journal of the Royal Statistical Society B 75(1).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs.tuning import ConsensusSelector
    >>> selector = ConsensusSelector(n_features_to_select=16).fit(load_digits().data)
    >>> int((selector.selection_frequencies_ == 1).sum()) <= 16
    True
    """

    estimator: BaseSelector | None = None
    _: KW_ONLY
    n_features_to_select: int | float | str | None = None
    param_grid: Any = None
    n_rotations: int = 1
    n_pairs: int = 0
    aggregate: str = "score"
    max_false_selections: float | None = None
    threshold: float = 0.75
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints = constraints(
        **WRAPPING,
        n_features_to_select=[*NUMBER_OF_FEATURES, None],
        n_rotations=[Interval(Integral, 0, None, closed="left")],
        n_pairs=[Interval(Integral, 0, None, closed="left")],
        aggregate=[StrOptions({"score", "rank"})],
        max_false_selections=[*POSITIVE, None],
        threshold=[Interval(Real, 0.5, 1, closed="right")],
    )
    _default_estimator = BSUFS

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override] # as the estimator inside does
        return self._inside()._accepts_sparse

    def _fit(self, data: FitData) -> Scored:
        self._plan_error_control(data)
        inside, seed = self._seeded()
        if self.n_features_to_select is not None:
            inside.set_params(n_features_to_select=self.n_features_to_select)
        runs = list(self._runs(inside, seed))

        def scores_on(rows: Indices) -> Array:
            half = data.part(rows)
            return np.asarray(np.mean([self._scores(run, half) for run in runs], axis=0))

        if self.n_pairs:
            found = self._in_threads(scores_on, self._halves(data.X.shape[0], seed))
        else:
            first = with_most_components(runs)
            found = self._in_threads(lambda run: self._scores(run, data), runs, first)
        forced, barred = self._forced_and_barred()
        ties = (data.place, -data.variances)
        best_first = [
            in_order_of_rank(scores, data.variances, forced, barred, ties) for scores in found
        ]
        self.trial_rankings_ = (np.argsort(best_first, axis=1) + 1).astype(np.int32)
        return Scored(
            scores=np.mean(found, axis=0),
            variances=data.variances,
            position=data.place,
            auto_n_features=lambda _: int(np.count_nonzero(clone(inside).fit(data).support_)),
        )

    def _plan_error_control(self, data: FitData) -> None:
        """Find out how many features a draw may propose for the bound to hold."""
        if self.n_pairs and data.X.shape[0] < 4:
            raise ValueError(
                "n_pairs splits the rows into halves of at least two, but X has n_samples = "
                f"{data.X.shape[0]}. Pass more rows, or n_pairs=0."
            )
        if self.max_false_selections is None:
            return
        if not self.n_pairs:
            raise ValueError(
                "max_false_selections needs halves of the rows, but n_pairs is 0. Pass n_pairs=50, "
                "the usual number."
            )
        _, barred = self._forced_and_barred()
        d = max(1, int(np.count_nonzero((data.variances > 0) & ~barred)))
        slack = (2.0 * self.threshold - 1.0) * d
        q = min(math.isqrt(math.floor(self.max_false_selections * slack + 1e-9)), d)
        if q < 1:
            raise ValueError(
                f"max_false_selections must be at least {1 / slack:.3g} for {d} features and "
                f"threshold={self.threshold:g}, got {self.max_false_selections:g}: no draw could "
                "propose a feature. Raise it, or the threshold."
            )
        self.n_per_draw_ = q
        self.false_selection_bound_ = q**2 / slack

    def _runs(self, inside: BaseSelector, seed: int) -> Iterator[BaseSelector]:
        """Yield a selector for every setting and start."""
        has_start = isinstance(inside, BSUFS)
        grid = self.param_grid
        if grid is None:
            grid = _PATHS if has_start else {}
        for setting in checked_settings(grid, inside):
            run = clone(inside).set_params(**setting)
            given = has_start and not isinstance(run.init, str)
            yield run.set_params(init="pca") if has_start and not given else run
            for rotation in range(1, self.n_rotations + 1 if has_start else 1):
                draw = np.random.default_rng([seed, rotation])
                if given:
                    start = np.asarray(run.init)
                    turn = polar_factor(draw.standard_normal(2 * start.shape[1:]))
                    yield clone(run).set_params(init=start @ turn)
                else:
                    own_seed = int(draw.integers(2**31))
                    yield clone(run).set_params(init="rotated-pca", random_state=own_seed)

    def _halves(self, n: int, seed: int) -> Iterator[Indices]:
        """Yield halves of the rows in complementary pairs."""
        for number in range(self.n_pairs):
            shuffled = np.random.default_rng([seed, number]).permutation(n)
            yield np.sort(shuffled[: n // 2])
            yield np.sort(shuffled[n // 2 : 2 * (n // 2)])

    def _scores(self, run: BaseSelector, draw: FitData) -> Array:
        """Return the scores, or ranks, of a run in the range from 0 to 1."""
        found = clone(run).fit(draw).scores_
        if self.aggregate == "rank":
            found = rankdata(found)
        return np.asarray((found - found.min()) / (np.ptp(found) or 1.0))

    def _finish(self, scored: Scored) -> None:
        super()._finish(scored)
        k, n_trials = np.count_nonzero(self.support_), len(self.trial_rankings_)
        self.selection_frequencies_ = (self.trial_rankings_ <= k).mean(axis=0)
        self.selection_frequency_intervals_ = np.column_stack(
            wilson_interval(self.selection_frequencies_, n_trials)
        )
        if self.max_false_selections is not None:
            proposed = (self.trial_rankings_ <= self.n_per_draw_).mean(axis=0)
            self.stable_support_: Mask = proposed >= self.threshold
