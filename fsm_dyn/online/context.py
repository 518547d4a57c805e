"""What the evaluation of one mode embedded on line works with: its tables, its chart, its workspace.

Every mode has a context of its own, as a closure has; the address of the context is all that the kernels standing for
the mode hand on (:mod:`fsm_dyn.online.kernels`).

A *chart* is an array of integers: first where things begin in the workspace, which follows from the sizes of the
automaton and is worked out once; then which rows and speeds are taken.  Compiled code reads places from the array
because passing thirty numbers from function to function costs more than a small mechanism's evaluation.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# which kernel of a mode is asked for
RHS: Final = 0
FULL: Final = 1

# positions in ``Online.programs``
ROWS: Final = 0
MOTION: Final = 1
WATCH: Final = 2

# what a guard looks at (``Online.guard_quantity``)
GAP: Final = 0
MEETING: Final = 1  # the gap of a pad with loss: what left faster than the surface follows may meet it again before
FIRMNESS: Final = 2  # factor of a pad's force that a loss may bring to zero
NORMAL_FORCE: Final = 3
FRICTION_LIMIT: Final = 4
SLIP: Final = 5
REACH: Final = 6
CONDITION: Final = 7  # of a written transition
LARGEST_GAP: Final = 9  # of a corner from the faces of a convex polygon
FRICTION_CIRCLE: Final = 8  # of a contact in space: squares of the limit and of the force

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
AT_FIRM: Final = 13
AT_ASPECT: Final = 14
AT_HIDDEN_M: Final = 15  # rows of M and f and columns of A of the speeds hidden in the choice of speeds (n_k, ...)
AT_HIDDEN_F: Final = 16
AT_HIDDEN_A: Final = 17
AT_X: Final = 18  # state with dependent speeds recomputed
AT_P: Final = 19  # eliminated rows, b and gamma behind (n_rows, n_u + 2)
AT_H: Final = 20  # eliminated rows of forces (n_rows, n_u)
AT_Q: Final = 21  # scratch of the choice of a chart (n_rows, n_u)
AT_MT: Final = 22  # M T, then scales
AT_MASS: Final = 23  # reduced mass matrix
AT_RIGHT: Final = 24  # reduced forces, then independent accelerations
AT_FORCE: Final = 25  # forces of the mode
AT_G: Final = 26  # forces less what dependent speeds take
AT_U_DOT: Final = 27
AT_MULTIPLIERS: Final = 28
AT_OPEN: Final = 29  # forces left open by rows that repeat each other (n_rows, n_rows)
AT_PROBE: Final = 30  # state to difference at
AT_PROBE_C: Final = 31  # context there
AT_GUARDS: Final = 32  # guard values there, twice
AT_WAY: Final = 33  # components of slip directions (n_contacts, 2)
PLACES: Final = 34

# the chart proper
CHOSEN: Final = 34  # 1: there is a chart
RANK: Final = 35  # rows that are independent
ACTIVE: Final = 36  # rows held; those beyond the rank are implied by the others
SLIDES: Final = 37  # whether a contact slides under a normal force, so that forces act off the rows
CHOICES: Final = 38  # charts chosen so far
BUSY: Final = 39  # contacts that are not open
PUSHES: Final = 40  # whether one of them pushes along rows that are not held
# then rows (n_rows), the contact sliding at each or -1 (n_rows), speeds, dependent ones first (n_u), the busy contacts
LISTS: Final = 41


# entries of ``Online.alarm``
FLOOR: Final = 0
LEVEL: Final = 1
KEPT: Final = 2


class Online(NamedTuple):
    """One mode embedded on line.

    Attributes
    ----------
    sizes, row_role, contact_kind, contact_flags, contact_rows, contact_outline
        As in :class:`~fsm_dyn.simulation.tables.Tables`.
    programs : int64 array, shape (3,)
        Addresses of the kernels ``rows motion watch`` (:mod:`fsm_dyn.online.programs`).
    states : int8 array, shape (n_contacts,)
        State of every contact.
    guard_quantity, guard_subject : int64 arrays, shape (n_guards,)
        What each guard looks at, and of which contact; for ``CONDITION`` the transition.
    guard_sign : float64 array, shape (n_guards,)
        The guard is the quantity times this; of a friction limit the slip direction that a slide would take.
    alarm : float64 array, shape (3,)
        Scaled pivots below which another chart is chosen: ``FLOOR`` in any case, ``LEVEL`` for the present chart, which
        is the share ``KEPT`` of the best that it has shown.
    chart : int64 array
        See the constants above.
    room : float64 array
        Workspace.
    floats, integers, top
        An arena.
    """

    sizes: Integers
    programs: Integers
    states: NDArray[np.int8]
    row_role: Integers
    contact_kind: Integers
    contact_flags: Integers
    contact_rows: Integers
    contact_outline: Integers
    guard_quantity: Integers
    guard_subject: Integers
    guard_sign: Floats
    alarm: Floats
    chart: Integers
    room: Floats
    floats: Floats
    integers: Integers
    top: Integers


ONLINE: Final = Bundle(Online, {"contact_rows": 2})


def _lengths(sizes: Integers, guards: int) -> list[int]:
    """Lengths of what the workspace holds, in the order of the constants above."""
    n_q, U, K, R, C, W = (int(sizes[i]) for i in (tb.N_Q, tb.N_U, tb.N_K, tb.N_ROWS, tb.N_CONTACTS, tb.N_TRANSITIONS))
    rows = [R * U, R]
    motion = [n_q, U * U, U, R, C, C]
    watch = [C, R, W, C, C, C, C, K * U, K, R * K]
    scratch = [n_q + U, R * (U + 2), R * U, R * U, max(U, 2) * U, U * U, U, U, U, U, R, R * R, n_q + U]
    return [*rows, *motion, *watch, *scratch, tb.context_length(sizes), 2 * guards, 2 * C]


def new_chart(sizes: Integers, guards: int) -> tuple[Integers, Floats]:
    """Return a chart in which nothing is chosen yet, and the workspace, for a mode with so many guards."""
    lengths = _lengths(sizes, guards)
    chart = np.zeros(LISTS + 2 * int(sizes[tb.N_ROWS]) + int(sizes[tb.N_U]) + int(sizes[tb.N_CONTACTS]), np.int64)
    chart[1:PLACES] = np.cumsum(lengths)[:-1]
    return chart, np.zeros(sum(lengths))
