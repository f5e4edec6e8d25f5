"""Iterates cut into blocks of rows: the alternation written once, for one block or for many.

Apart from the W-step, which ties all rows together, an iteration treats every row by itself. So an
algorithm states what it does with some rows (`Rules`: before the W-step and after it) and decides
on vectors with one entry per row and on sums over rows. Where the rows are is the business of
`RowBlocks`: here all of them in one block, on a cluster some of them with every worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter import Scatter
from bsufs.solvers.w_steps import WStep
from bsufs.stiefel import polar_factor

# Rows that have died are taken out of the arrays when they are this share of them. In between they
# are zero, which changes nothing but the cost.
_PACK_SHARE = 0.2


@dataclass(frozen=True)
class Report:
    """What some rows tell of themselves after an iteration."""

    totals: Array
    by_row: tuple[Array, ...]


class Rules(Protocol):
    """What an algorithm does with some rows; a small object of pure functions.

    What it keeps for them beside W, the copies, is an object with the arrays `U` and `V`, and where
    rows die with a method `restricted` that returns the same for some of the rows.
    """

    def begin(
        self, W: Array, SW: Array, frames: tuple[Array | None, ...], by_row: tuple[Any, ...]
    ) -> tuple[Any, Report]:
        """Return the copies at the start, and the first report."""
        ...

    def before(self, W: Array, copies: Any, alive: Mask) -> tuple[Any, Array]:
        """Return the copies and the linear term of the W-step."""
        ...

    def after(self, W: Array, SW: Array, copies: Any) -> tuple[Any, Report]:
        """Return the copies after the W-step, and the report."""
        ...


class Snapshot(Protocol):
    """The iterates as they were after some iteration."""

    @property
    def rows(self) -> Indices:
        """The rows that have not been taken out."""
        ...

    def iterates(self) -> tuple[Array, Array, Array]:
        """Return W, U and V, with the rows named by `rows`."""
        ...


class RowBlocks(Protocol):
    """The operator S and the iterates on the rows that have not been taken out.

    Vectors with one entry per row, in and out, are in the order of `rows`, which is ascending.
    """

    rows: Indices
    alive: Mask

    def start(
        self, rules: Rules, frames: tuple[Any, ...] = (), by_row: tuple[Any, ...] = ()
    ) -> Report:
        """Set the copies up from W, further frames, and vectors with one entry per row."""
        ...

    def advance(self, rules: Rules, alive: Mask | None = None) -> Report:
        """Do an iteration, after which only some of the rows live; all that did by default."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the iterates as they are now."""
        ...


@dataclass(frozen=True)
class _Arrays:
    """A snapshot of arrays that nobody writes to."""

    rows: Indices
    W: Array
    U: Array
    V: Array

    def iterates(self) -> tuple[Array, Array, Array]:
        return self.W, self.U, self.V


class OneBlock:
    """All rows in one block, with the arrays at hand."""

    def __init__(self, scatter: Scatter, W: Array, w_step: WStep) -> None:
        self.scatter = scatter
        self.w_step = w_step
        self.rows: Indices = np.arange(W.shape[0])
        self.alive: Mask = np.ones(W.shape[0], dtype=bool)
        self.W = W
        self.SW = scatter @ W
        self._copies: Any = None

    def __matmul__(self, W: Array) -> Array:
        """Return the product with S over living rows: zero in the others, like W itself."""
        product = self.scatter @ W
        product[~self.alive] = 0.0
        return product

    def start(
        self, rules: Rules, frames: tuple[Any, ...] = (), by_row: tuple[Any, ...] = ()
    ) -> Report:
        """Set the copies up from W, further frames, and vectors with one entry per row."""
        self._copies, report = rules.begin(self.W, self.SW, frames, by_row)
        return report

    def advance(self, rules: Rules, alive: Mask | None = None) -> Report:
        """Do an iteration, after which only some of the rows live."""
        if alive is not None:
            self._bury(alive)
        self._copies, L = rules.before(self.W, self._copies, self.alive)
        if alive is not None:
            L[~self.alive] = 0.0
        self.W, self.SW = self.w_step(self, self.W, self.SW, L)
        self._copies, report = rules.after(self.W, self.SW, self._copies)
        return report

    def _bury(self, alive: Mask) -> None:
        """Let all but some rows die; take the dead ones out when they are many."""
        self.alive = alive
        if worth_packing(alive, self.scatter):
            self.scatter = self.scatter.restricted(alive)
            self.rows = self.rows[alive]
            self.W, self.SW = self.W[alive], self.SW[alive]
            self._copies = self._copies.restricted(alive)
            self.alive = np.ones(self.rows.size, dtype=bool)
        else:
            self.SW[~alive] = 0.0
        if self.w_step.starts_on_manifold:
            # W must be a frame over the living rows again.
            self.W = polar_factor(np.where(self.alive[:, None], self.W, 0.0))
            self.SW = self @ self.W

    def snapshot(self) -> Snapshot:
        """Return the iterates as they are now."""
        return _Arrays(self.rows, self.W, self._copies.U, self._copies.V)


def worth_packing(alive: Mask, scatter: Scatter) -> bool:
    """Return whether so many rows are dead that taking them out is worth the copy."""
    dead_share = 1.0 - np.count_nonzero(alive) / alive.size
    return bool(dead_share > max(_PACK_SHARE, scatter.costly_to_restrict))


def row_blocks(scatter: Scatter, W: Any, w_step: WStep) -> RowBlocks:
    """Return the rows of a frame, ready to iterate."""
    if isinstance(W, np.ndarray):
        return OneBlock(scatter, W, w_step)
    blocks: RowBlocks = W.row_blocks(scatter, w_step)
    return blocks
