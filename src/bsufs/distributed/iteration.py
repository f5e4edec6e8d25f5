"""Iterations on blocks of rows with many workers.

The state of a block is a small immutable object; pure functions lead from it to the next one. What
a block must know of the others is the Gram matrix B'B (m x m) and the product X B (n x m) of the
new iterate before it is made orthonormal, summed in one tree of tasks. The graph of an iteration
has the same size every time, and the client waits once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._memory import KnownSize
from bsufs._typing import Array, Indices, Mask
from bsufs.distributed._tasks import compute, persist, shared, task, tree_sum
from bsufs.distributed.columns import BlockFrame, BlockScatter, gram
from bsufs.solvers.row_blocks import Report, Rules, Snapshot, worth_packing
from bsufs.solvers.w_steps import PolarStep, WStep
from bsufs.stiefel import polar_multiplier


@dataclass(frozen=True)
class BlockState(KnownSize):
    """The iterates of one block."""

    W: Array
    SW: Array
    copies: Any
    report: Report

    def restricted(self, rows: Mask) -> BlockState:
        """Return the state of some of the rows."""
        return BlockState(self.W[rows], self.SW[rows], self.copies.restricted(rows), self.report)


@dataclass(frozen=True)
class _Opened(KnownSize):
    """A block in the middle of an iteration: the matrix B = 2 S W + L of the polar step.

    Also what B is made of, and what comes after the step.
    """

    B: Array
    L: Array
    copies: Any
    dead: Mask | None
    # Where B is decomposed by itself: the orthonormal part, and the small rest.
    Q: Array | None = None
    R: Array | None = None


@dataclass(frozen=True)
class _Joint(KnownSize):
    """What a block must know of the others: R with W = B R (or Q R), and Y = X W."""

    turn: Array
    Y: Array
    sound: bool = True


@dataclass(frozen=True)
class _BlockSnapshot:
    """States kept where they are until somebody looks at them."""

    rows: Indices
    scatter: BlockScatter
    states: list[Any]

    def iterates(self) -> tuple[Array, Array, Array]:
        """Return W, U and V, brought here."""
        pieces = compute(*(task(_iterates_of, state) for state in self.states))
        W, U, V = (self.scatter.joined(part) for part in zip(*pieces, strict=True))
        return W, U, V


class DaskRows:
    """Blocks of rows with the workers of a cluster."""

    def __init__(self, scatter: BlockScatter, W: BlockFrame, w_step: WStep) -> None:
        if not isinstance(w_step, PolarStep) or w_step.n_steps is None:
            raise ValueError(
                "w_step must be a given number of polar steps for data in column blocks, got "
                f"{w_step!r}."
            )
        self.scatter = scatter
        self.n_steps = w_step.n_steps
        self.rows: Indices = np.arange(scatter.shape[0])
        self.alive: Mask = np.ones(scatter.shape[0], dtype=bool)
        self._start = W
        self._states: list[Any] = []
        # Whether Gram matrices tell enough; else the blocks are decomposed themselves.
        self._by_gram = True

    def start(
        self, rules: Rules, frames: tuple[Any, ...] = (), by_row: tuple[Any, ...] = ()
    ) -> Report:
        """Set the states up from W, further frames, and vectors with one entry per row."""
        scatter = self.scatter
        pieces = self._start.pieces
        Y = tree_sum(scatter.each(_image, pieces))
        own_frames = [
            [None if frame is None else frame.pieces[i] for frame in frames]
            for i in range(len(pieces))
        ]
        own_vectors = [[vector[block.rows] for vector in by_row] for block in scatter.blocks]
        states = scatter.each(
            _begin, pieces, Y, scatter.factor, shared(rules), own_frames, own_vectors
        )
        return self._settle(states, shared(True))[0]

    def advance(self, rules: Rules, alive: Mask | None = None) -> Report:
        """Do an iteration, after which only some of the rows live."""
        if alive is not None:
            self._bury(alive)
        before = self._states
        report, sound = self._settle(*self._iteration(rules, before))
        if self._by_gram and not sound:
            # The step is done again from the states before it, with more care.
            self._by_gram = False
            report, sound = self._settle(*self._iteration(rules, before))
        self._by_gram = sound
        return report

    def _bury(self, alive: Mask) -> None:
        self.alive = alive
        if worth_packing(alive, self.scatter):
            living = [
                (state, alive[block.rows])
                for state, block in zip(self._states, self.scatter.blocks, strict=True)
                if alive[block.rows].any()
            ]
            self._states = [task(BlockState.restricted, *pair) for pair in living]
            (self._states,) = persist(self._states)
            self.scatter = self.scatter.restricted(alive)
            self.rows = self.rows[alive]
            self.alive = np.ones(self.rows.size, dtype=bool)

    def _iteration(self, rules: Rules, states: list[Any]) -> tuple[list[Any], Any]:
        """Return the lazy states after an iteration, and whether Gram matrices told enough."""
        scatter = self.scatter
        common = shared(rules)
        bits = [np.packbits(self.alive[block.rows]) for block in scatter.blocks]
        opened = scatter.each(_open, states, common, bits)
        opened, joint, sound = self._polar(opened)
        for _ in range(self.n_steps - 1):
            opened = scatter.each(_opened_again, opened, joint, scatter.factor)
            opened, joint, well = self._polar(opened)
            sound = task(_both, sound, well)
        return scatter.each(_close, opened, joint, scatter.factor, common), sound

    def _polar(self, opened: list[Any]) -> tuple[list[Any], Any, Any]:
        """Return the blocks, what they must know of each other, and whether that is sound.

        What they must know is one lazy `_Joint` for all, or a list with one for each.
        """
        joint = task(_joint_by_gram, tree_sum(self.scatter.each(_gram_and_image, opened)))
        sound = task(_is_sound, joint)
        if self._by_gram:
            return opened, joint, sound
        opened = [task(_decomposed, block) for block in opened]
        turns = task(_joint_turns, [task(_triangle, block) for block in opened])
        own = [task(getitem, turns, i) for i in range(len(opened))]
        Y = tree_sum(self.scatter.each(_turned_image, opened, own))
        return opened, [task(_Joint, turn, Y) for turn in own], sound

    def _settle(self, states: list[Any], sound: Any) -> tuple[Report, bool]:
        """Have the iteration computed; keep the states where they are, bring the reports here."""
        lazy = [task(_report_of, state) for state in states]
        self._states, lazy, (sound,) = persist(states, lazy, [sound])
        *reports, well = compute(*lazy, sound)
        totals = np.sum([report.totals for report in reports], axis=0)
        vectors = zip(*(report.by_row for report in reports), strict=True)
        return Report(totals, tuple(self.scatter.joined(pieces) for pieces in vectors)), bool(well)

    def snapshot(self) -> Snapshot:
        """Return the iterates as they are now, left where they are."""
        return _BlockSnapshot(self.rows, self.scatter, self._states)


# ------------------------------------------------------------------ what a worker does with a block


def _both(one: bool, other: bool) -> bool:
    return one and other


def _iterates_of(state: BlockState) -> tuple[Array, Array, Array]:
    return state.W, state.copies.U, state.copies.V


def _report_of(state: BlockState) -> Report:
    return state.report


def _image(X: Array, W: Array) -> Array:
    return X @ W


def _begin(
    X: Array,
    W: Array,
    Y: Array,
    factor: float,
    rules: Rules,
    frames: list[Any],
    by_row: list[Any],
) -> BlockState:
    SW = factor * (X.T @ Y)
    copies, report = rules.begin(W, SW, tuple(frames), tuple(by_row))
    return BlockState(W, SW, copies, report)


def _open(X: Array, state: BlockState, rules: Rules, alive_bits: Any) -> _Opened:
    alive = np.unpackbits(alive_bits, count=state.W.shape[0]).astype(bool)
    copies, L = rules.before(state.W, state.copies, alive)
    dead = None if alive.all() else ~alive
    return _Opened(_bound(state.SW, L, dead), L, copies, dead)


def _opened_again(X: Array, opened: _Opened, joint: _Joint, factor: float) -> _Opened:
    """Return the block ready for another polar step with the same linear term."""
    B = _bound(factor * (X.T @ joint.Y), opened.L, opened.dead)
    return _Opened(B, opened.L, opened.copies, opened.dead)


def _bound(SW: Array, L: Array, dead: Mask | None) -> Array:
    B: Array = 2.0 * SW + L
    if dead is not None:
        B[dead] = 0.0
    return B


def _gram_and_image(X: Array, opened: _Opened) -> Array:
    """Return B'B on top of X B: the sums of both over blocks take one tree."""
    return np.vstack([gram(opened.B), X @ opened.B])


def _joint_by_gram(stacked: Array) -> _Joint:
    m = stacked.shape[1]
    factor = polar_multiplier(stacked[:m])
    if factor is None or factor.needs_polish:
        # The step is done again with more care, and this one is never looked at.
        return _Joint(np.zeros((m, m)), np.zeros_like(stacked[m:]), sound=False)
    # X W = (X B) R: the product with the new frame is there before the frame is.
    return _Joint(factor.multiplier, stacked[m:] @ factor.multiplier)


def _is_sound(joint: _Joint) -> bool:
    return joint.sound


def _turned(opened: _Opened, turn: Array) -> Array:
    """Return the rows of the polar factor."""
    return (opened.B if opened.Q is None else opened.Q) @ turn


def _turned_image(X: Array, opened: _Opened, turn: Array) -> Array:
    return X @ _turned(opened, turn)


def _decomposed(opened: _Opened) -> _Opened:
    Q, R = linalg.qr(opened.B, mode="economic", check_finite=False)
    return replace(opened, Q=Q, R=R)


def _triangle(opened: _Opened) -> Array | None:
    return opened.R


def _joint_turns(triangles: list[Array]) -> list[Array]:
    """Return what turns the Q of each block into its rows of the polar factor of all."""
    stacked = np.vstack(triangles)
    scale = np.abs(stacked).max()
    P, _, Qt = linalg.svd(stacked / scale if scale else stacked, full_matrices=False)
    ends = np.cumsum([triangle.shape[0] for triangle in triangles])[:-1]
    return [np.ascontiguousarray(piece) for piece in np.split(P @ Qt, ends)]


def _close(X: Array, opened: _Opened, joint: _Joint, factor: float, rules: Rules) -> BlockState:
    W = _turned(opened, joint.turn)
    SW = factor * (X.T @ joint.Y)
    if opened.dead is not None:
        SW[opened.dead] = 0.0
    copies, report = rules.after(W, SW, opened.copies)
    return BlockState(W, SW, copies, report)
