"""Findings by feature: a category is one, whatever number of indicator columns stands for it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.inspection.findings import Findings, Judged, Stability
from bsufs.metrics.label_free import redundancy_of_features


class FeatureFindings(Judged):
    """What `Findings` holds of columns, by feature; features are numbered best first.

    All that is not by column is that of the findings. The columns of a feature follow one another
    in the ranking.
    """

    def __init__(self, found: Findings) -> None:
        self.found = found
        self._starts = np.append(0, found.ends[:-1])
        self._first = found.best_first[self._starts]
        self.widths = np.diff(found.ends, prepend=0)
        self.n_features = self.widths.size
        self.n_selected = int(np.searchsorted(found.ends, found.n_selected)) + 1
        self.n_foremost = int(np.searchsorted(found.ends, found.foremost.size)) + 1
        self.names = found.feature_names_of_columns[self._first]
        self.best_first = np.arange(self.n_features)
        self.chosen = self.best_first[: self.n_selected]
        self.ranking = self.best_first + 1
        self.support = self.ranking <= self.n_selected
        self.scores = np.asarray(found.scores, dtype=np.float64)[self._first]
        self.eliminated_at = found.eliminated_at[self._first]
        self.groups: Any = None if found.groups is None else found.groups[self._first]
        self.n_others = np.where(self.widths > 1, 0, found.n_others[self._first])
        self.is_adjusted_for = found.is_adjusted_for[self._first]
        self.forced_and_barred = tuple(mask[self._first] for mask in found.forced_and_barred)
        self.variance_share = self._sums(found.variance_share)
        # Where the first 1, 2, ... features end among the columns.
        self._last = found.ends[: self.n_foremost] - 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.found, name)

    def columns(self, feature: int) -> Indices:
        """Return the numbers of the columns of a feature, in the order of the table."""
        start = self._starts[feature]
        return np.sort(self.found.best_first[start : start + self.widths[feature]])

    def folded(self, by_column: Any) -> Any:
        """Return what the best column of each feature has."""
        return by_column[self._first]

    def in_table_order(self, mask: Mask) -> list[str]:
        """Return the names of some features in the order of their columns."""
        return self.names[mask][np.argsort(self._first[mask])].tolist()

    def _sums(self, by_column: Array) -> Array:
        return np.add.reduceat(by_column[self.found.best_first], self._starts)

    @cached_property
    def curve(self) -> Array:
        return self.found.curve[self._last]

    @cached_property
    def ceiling(self) -> Array:
        return self.found.ceiling[self._last]

    @cached_property
    def redundancy(self) -> Array:
        found = self.found
        if (self.widths == 1).all():
            return found.redundancy
        feature = np.repeat(self.best_first, self.widths)[: found.foremost.size]
        return redundancy_of_features(found.data.columns(found.foremost), feature)

    @cached_property
    def cluster_share(self) -> Array:
        if (self.widths == 1).all():
            return self.found.cluster_share[self._first]
        between = self._sums(self.found.variance_share * self.found.cluster_share)
        return between / np.where(self.variance_share > 0, self.variance_share, 1.0)

    @cached_property
    def stability(self) -> Stability:
        frequency, low, high, failure = self.found.stability
        return Stability(self.folded(frequency), self.folded(low), self.folded(high), failure)

    @cached_property
    def closest(self) -> tuple[Indices, Array]:
        """What the column of each feature has that is most correlated with another one kept."""
        found, feature = self.found, np.repeat(self.best_first, self.widths)
        closest, correlation = (values[found.best_first] for values in found.closest)
        strength = np.nan_to_num(np.abs(correlation), nan=-1.0)
        strongest = np.lexsort((-strength, feature))[self._starts]
        closest, correlation = closest[strongest], correlation[strongest]
        return np.where(closest < 0, -1, feature[found.ranking[closest] - 1]), correlation

    @cached_property
    def correlations(self) -> Array:
        """Of the correlations between the columns of two features, the strongest."""
        starts, among = self._starts[: self.n_selected], self.found.correlations
        high, low = (
            extreme.reduceat(extreme.reduceat(among, starts, axis=0), starts, axis=1)
            for extreme in (np.maximum, np.minimum)
        )
        return np.where(high >= -low, high, low)

    @cached_property
    def unique_shares(self) -> Array:
        of_columns, ends = self.found.unique_shares, self.found.ends
        chosen, data = self.found.chosen, self.found.data
        if np.isnan(of_columns).any() or (self.widths == 1).all():
            return of_columns
        whole = float(data.explained_curve(chosen)[-1])
        lost = []
        for feature in range(min(self.n_selected, of_columns.size)):
            others = np.delete(chosen, np.s_[self._starts[feature] : ends[feature]])
            lost.append(whole - (float(data.explained_curve(others)[-1]) if others.size else 0.0))
        return np.maximum(lost, 0.0)

    def values_of(self, feature: int) -> tuple[Array, list[str]]:
        """Return the values of a feature in the rows that were clustered.

        Those of a category are the places of its levels, which are returned too, by number.
        """
        start, columns = self._starts[feature], self.columns(feature)
        if columns.size == 1:
            return self.found.rows_of_foremost[:, start], []
        places = start + np.argsort(self.found.best_first[start : start + columns.size])
        rows = self.found.rows_of_foremost[:, places]
        # Each indicator has two values, whatever they were scaled to; 0 and 1 as halves.
        is_on = rows > rows.min(axis=0) / 2 + rows.max(axis=0) / 2
        prefix = len(self.names[feature]) + 1
        levels = [name[prefix:] for name in self.found.names[columns].tolist()]
        return is_on.argmax(axis=1).astype(np.float64), levels
