"""Groups of columns that are kept or left out together, and what keeping them costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bsufs._linalg import group_sums
from bsufs._typing import Array, Indices, Mask
from bsufs.selectors._columns import feature_mask
from bsufs.solvers.budget import Budget


@dataclass(frozen=True)
class Groups:
    """The number of the group of each column, in the order of their first columns, and labels."""

    of: Indices
    labels: NDArray[Any]

    @classmethod
    def singletons(cls, n_features: int) -> Self:
        numbers = np.arange(n_features)
        return cls(numbers, numbers)

    @classmethod
    def parsed(cls, groups: Any, n_features: int, names: Sequence[str] | None) -> Self:
        """Read one label per column, or a dict of the columns of each group."""
        by_column = (
            _labels_from_dict(groups, n_features, names)
            if isinstance(groups, Mapping)
            else _labels_from_array(groups, n_features)
        )
        numbers: dict[Any, int] = {}
        of = np.array([numbers.setdefault(label, len(numbers)) for label in by_column])
        labels = np.empty(len(numbers), dtype=object)
        labels[:] = list(numbers)
        if all(isinstance(label, int | np.integer) for label in numbers):
            labels = labels.astype(np.intp)
        return cls(of, labels)

    @property
    def n_groups(self) -> int:
        return self.labels.size

    @property
    def are_single(self) -> bool:
        return self.n_groups == self.of.size

    @cached_property
    def first(self) -> Indices:
        """The first column of each group."""
        return np.unique(self.of, return_index=True)[1]

    def closed(self, columns: Mask) -> Mask:
        """Return all columns of the groups that have a member among some columns."""
        return np.bincount(self.of, columns, minlength=self.n_groups)[self.of] > 0

    def count(self, columns: Mask) -> int:
        """Return how many groups some columns are, which are all of their groups."""
        return int(np.count_nonzero(columns[self.first]))

    def gathered(self, best_first: Indices) -> Indices:
        """Let every group rank where its best member does, its members behind one another."""
        groups = self.of[best_first]
        place = np.empty(self.n_groups, dtype=np.intp)
        # The last one written stays: of each group the member that ranks best.
        place[groups[::-1]] = np.arange(groups.size)[::-1]
        return best_first[np.argsort(place[groups], kind="stable")]

    def ends(self, gathered: Indices) -> Indices:
        """Return how many columns the first 1, 2, ... groups have."""
        changes = np.flatnonzero(np.diff(self.of[gathered])) + 1
        return np.append(changes, gathered.size)

    def among(self, columns: Indices) -> tuple[Indices, Indices]:
        """Return the groups of some columns, numbered as these meet them, and which they are."""
        which, first, group = np.unique(self.of[columns], return_index=True, return_inverse=True)
        by_first = np.argsort(first)
        return np.argsort(by_first)[group], which[by_first]

    def mask(self, parameter: str, features: Any, names: Sequence[str] | None) -> Mask:
        """Turn a caller's list of groups or members into a mask of all their columns."""
        if features is None or self.labels.dtype != object:
            return self.closed(feature_mask(parameter, features, self.of.size, names))
        features = [features] if isinstance(features, str | Integral) else features
        labels = {label: i for i, label in enumerate(self.labels) if isinstance(label, str)}
        columns = set(() if names is None else names)
        named = [f for f in features if isinstance(f, str) and f in labels and f not in columns]
        others = [f for f in features if not isinstance(f, str) or f not in named]
        mask = feature_mask(parameter, others, self.of.size, names)
        return self.closed(mask | np.isin(self.of, [labels[label] for label in named]))


def _labels_from_array(groups: Any, n_features: int) -> list[Any]:
    labels = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    wrong = [label for label in labels if label is None or not _is_label(label)]
    if len(labels) != n_features or wrong:
        got = f"{wrong[0]!r}" if wrong else f"{len(labels)} labels"
        raise ValueError(
            f"groups must hold one name or number for each of the {n_features} columns of X, or be "
            f"a dict of the columns of each group; got {got}. Give a column that belongs to no "
            "group a label of its own, or use a dict, which may leave it out."
        )
    return labels


def _labels_from_dict(
    groups: Mapping[Any, Any], n_features: int, names: Sequence[str] | None
) -> list[Any]:
    own = list(range(n_features)) if names is None else list(names)
    labels = own.copy()
    grouped = np.zeros(n_features, dtype=bool)
    for label, members in groups.items():
        mask = feature_mask(f"groups[{label!r}]", members, n_features, names)
        twice = np.flatnonzero(mask & grouped)
        if twice.size or not mask.any() or not _is_label(label):
            got = f"column {own[twice[0]]!r} in two" if twice.size else f"{label!r}: {members!r}"
            raise ValueError(
                "groups must give every group a name or number and at least one column, and no "
                f"column two groups; got {got}. Take it out."
            )
        grouped |= mask
        for column in np.flatnonzero(mask):
            labels[column] = label
    alone = {label for label, taken in zip(own, grouped, strict=True) if not taken}
    for label in alone & set(groups):
        raise ValueError(
            f"groups must not name a group {label!r} like a column outside of it. Rename the "
            "group, or put the column in."
        )
    return labels


def _is_label(label: Any) -> bool:
    return isinstance(label, str | int | float | np.integer) and label == label


def parsed_budget(
    costs: Any, budget: float | None, wanted: Any, groups: Groups, names: Sequence[str] | None
) -> Budget | None:
    """Return a budget where there is one, in place of a number of features that is wanted."""
    if costs is None and budget is None:
        return None
    if costs is None or budget is None:
        missing = "costs" if costs is None else "budget"
        raise ValueError(f"costs and budget must be given together, got no {missing}.")
    if wanted != "auto":
        raise ValueError(
            "n_features_to_select must be 'auto' where a budget decides, got "
            f"{wanted!r}. Leave one of them out."
        )
    return Budget(_costs_of_groups(costs, groups, names), float(budget))


def _costs_of_groups(costs: Any, groups: Groups, names: Sequence[str] | None) -> Array:
    """Read a cost for each column or each group, by number or by name."""
    d, n_groups = groups.of.size, groups.n_groups
    if isinstance(costs, Mapping):
        return _costs_from_dict(costs, groups, names)
    given = _positive(costs)
    if given.shape == (d,):
        return group_sums(groups.of, given)
    if given.shape == (n_groups,):
        return given
    of_groups = "" if groups.are_single else f", for each of the {n_groups} groups"
    raise ValueError(
        f"costs must hold a number for each of the {d} columns of X{of_groups}, or be a dict by "
        f"name; got shape {given.shape}."
    )


def _costs_from_dict(
    costs: Mapping[Any, Any], groups: Groups, names: Sequence[str] | None
) -> Array:
    """Return what each group costs: as given for it, else the sum over its columns."""
    _positive(list(costs.values()))
    found, columns = np.zeros(groups.n_groups), range(groups.of.size) if names is None else names
    for name, group in zip(columns, groups.of, strict=True):
        if groups.labels[group] in costs:
            found[group] = costs[groups.labels[group]]
        elif name in costs:
            found[group] += costs[name]
        else:
            raise ValueError(
                f"costs must name every column of X or its group, got none for {name!r}. Add it."
            )
    return found


def _positive(costs: Any) -> Array:
    try:
        given = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"costs must be positive numbers, got something else: {error}.") from error
    wrong = ~((given > 0) & np.isfinite(given))
    if wrong.any():
        raise ValueError(
            f"costs must be positive finite numbers, got {given[wrong][0]:g} among them. Give what "
            "is free a tiny cost."
        )
    return given
