"""Rows of one recorded run, or of several runs one behind another."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from fsm_dyn.core.arrays import BoolArray, FloatArray, IntArray

_ONE_RUN = np.zeros(0, np.int64)  # in the place of the first rows


@dataclass  # not frozen: a frozen one takes six times as long to fill
class Rows:
    """Rows of 1 to n runs, one run behind another: one row per accepted step, two at a transition (before and after).

    Attributes
    ----------
    t : ndarray, shape (n,)
        Times, s, never decreasing within a run; equal neighbours are the two sides of a transition or of an input's
        jump.
    x, x_dot : ndarray, shape (n, n_q + n_u)
        States and their rates, SI.
    x_mid : ndarray, shape (n, n_q + n_u)
        State in the middle of the step before this row; not read for the first row of an interval.
    mode : ndarray of int, shape (n,)
        Mode index; the last row of a step has the mode of the step.
    held : ndarray, shape (n, 4 n_w + n_contacts + n_memory)
        The context without the parameters: inputs, two rates, slip directions, memory, third rates; from the right at a
        first row of an interval, else from the left.
    begin : ndarray of int, shape (runs + 1,)
        First row of each run, and the number of rows; by default of one run.
    """

    t: FloatArray
    x: FloatArray
    x_dot: FloatArray
    x_mid: FloatArray
    mode: IntArray
    held: FloatArray
    begin: IntArray = field(default_factory=lambda: _ONE_RUN, kw_only=True)

    def __post_init__(self) -> None:
        if self.begin is _ONE_RUN:
            self.begin = np.array([0, len(self.t)])

    @classmethod
    def of_table(cls, table: FloatArray, mode: IntArray, n_x: int, **others: Any) -> Self:
        """Return rows of the runtime's table: time, state, rates, state in the middle of the step, context.

        Parameters
        ----------
        table : ndarray, shape (n, 1 + 3 n_x + n_held)
            The time is copied, the others are views.
        mode : ndarray of int, shape (n,)
        n_x : int
            Number of coordinates and speeds.
        others
            Further fields.
        """
        x, x_dot, x_mid = (table[:, 1 + k * n_x : 1 + (k + 1) * n_x] for k in range(3))
        return cls(table[:, 0].copy(), x, x_dot, x_mid, mode, table[:, 1 + 3 * n_x :], **others)

    @cached_property
    def starts(self) -> BoolArray:
        """First rows of intervals: the first of a run, and the later of two rows at one time; shape (n,)."""
        begins = np.ones(len(self.t), dtype=np.bool_)
        begins[1:] = self.t[1:] == self.t[:-1]
        if len(self.begin) > 2:
            begins[self.begin[:-1]] = True
        return begins

    def runs_of(self, rows: IntArray) -> IntArray:
        """Return the number of the run of each row; both of shape (m,)."""
        return np.searchsorted(self.begin, rows, side="right") - 1
