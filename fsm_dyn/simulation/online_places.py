"""Where the chart and the workspace of on-line embedding keep what.

A *chart* is an array of integers: first where things begin in the workspace, which follows from the sizes of the
automaton and is worked out once; then which rows and speeds are taken.  Compiled code reads places from the array
because passing thirty numbers from function to function costs more than a small mechanism's evaluation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb

Integers = NDArray[np.int64]

# places in the workspace
AT_A: Final = 0  # rows of all contacts and constraints (n_rows, n_u); what the program ``rows`` gives begins here
AT_B: Final = 1
AT_Q_DOT: Final = 2  # what the program ``motion`` gives begins here
AT_M: Final = 3
AT_F: Final = 4
AT_GAMMA: Final = 5
AT_KINETIC: Final = 6
AT_ELASTIC: Final = 7
AT_STATIC: Final = 8  # what the program ``watch`` gives begins here
AT_RESIDUAL: Final = 9
AT_WHEN: Final = 10
AT_REACH: Final = 11
AT_REACH_RATE: Final = 12
AT_HIDDEN_M: Final = 13  # rows of M and f and columns of A of the speeds hidden in the choice of speeds (n_k, ...)
AT_HIDDEN_F: Final = 14
AT_HIDDEN_A: Final = 15
AT_X: Final = 16  # state with dependent speeds recomputed
AT_P: Final = 17  # eliminated rows, b and gamma behind (n_rows, n_u + 2)
AT_H: Final = 18  # eliminated rows of forces (n_rows, n_u)
AT_Q: Final = 19  # scratch of the choice of a chart (n_rows, n_u)
AT_MT: Final = 20  # M T, then scales
AT_MASS: Final = 21  # reduced mass matrix
AT_RIGHT: Final = 22  # reduced forces, then independent accelerations
AT_FORCE: Final = 23  # forces of the mode
AT_G: Final = 24  # forces less what dependent speeds take
AT_U_DOT: Final = 25
AT_MULTIPLIERS: Final = 26
AT_OPEN: Final = 27  # forces left open by rows that repeat each other (n_rows, n_rows)
AT_PROBE: Final = 28  # state to difference at
AT_INPUTS: Final = 29  # inputs and their rates, kept meanwhile
AT_GUARDS: Final = 30  # guard values there, twice

# the chart proper
RANK: Final = 31  # rows that are independent
ACTIVE: Final = 32  # rows held; those beyond the rank are implied by the others
SLIDES: Final = 33  # whether a contact slides under a normal force, so that forces act off the rows
LISTS: Final = 34  # then rows (n_rows), the contact sliding at each or -1 (n_rows), speeds, dependent ones first (n_u)


def _lengths(sizes: Integers) -> list[int]:
    """Lengths of what the workspace holds, in the order of the constants above."""
    n_q, U, K, R, C, W = (int(sizes[i]) for i in (tb.N_Q, tb.N_U, tb.N_K, tb.N_ROWS, tb.N_CONTACTS, tb.N_TRANSITIONS))
    rows = [R * U, R]
    motion = [n_q, U * U, U, R, C, C]
    watch = [C, R, W, C, C, K * U, K, R * K]
    scratch = [n_q + U, R * (U + 2), R * U, R * U, max(U, 2) * U, U * U, U, U, U, U, R, R * R, n_q + U]
    return [*rows, *motion, *watch, *scratch, 2 * int(sizes[tb.N_W]), 2 * int(sizes[tb.MAX_GUARDS])]


def workspace(sizes: Integers) -> tuple[int, int]:
    """Return how many floats of workspace an evaluation needs, and how long a chart is."""
    return sum(_lengths(sizes)), LISTS + 2 * int(sizes[tb.N_ROWS]) + int(sizes[tb.N_U])


def new_chart(sizes: Integers) -> Integers:
    """Return a chart for an automaton of these sizes: places, nothing chosen yet."""
    chart = np.zeros(workspace(sizes)[1], np.int64)
    chart[1:RANK] = np.cumsum(_lengths(sizes))[:-1]
    return chart
