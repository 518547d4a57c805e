"""A compiled automaton as the arrays that the compiled loop reads.

All arrays are C-contiguous.  Mode, guard and row numbers are stable: whoever derives further modes during a
run only appends to the mode and guard arrays.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# positions in ``Tables.sizes``
N_Q: Final = 0
N_U: Final = 1
N_K: Final = 2
N_P: Final = 3
N_W: Final = 4
N_CONTACTS: Final = 5
N_MEMORY: Final = 6
N_ROWS: Final = 7
N_MODES: Final = 8
MAX_GUARDS: Final = 9
N_TRANSITIONS: Final = 10
N_TERMS: Final = 11  # length of the output of the terms kernel
SIZE_COUNT: Final = 12

# what a guard announces (``Tables.guard_event``)
CLOSES: Final = 1
OPENS: Final = 2
SLIDES: Final = 3
STICKS: Final = 4
WRITTEN: Final = 5

# states of a contact (``Tables.mode_states``)
FREE: Final = 0
HELD: Final = 1
SLIDING: Final = 2

# bits of ``Tables.mode_flags``
PROJECTS: Final = 1  # the mode has configuration rows or closed gaps: project after each accepted step

# columns of ``Tables.transitions``
TRANSITION_TARGET: Final = 0  # mode, or -1: whatever is resolved
TRANSITION_STOP: Final = 1  # 1: the run ends here
TRANSITION_RESET: Final = 2  # address of the reset kernel, 0: none
TRANSITION_EVENT: Final = 3  # 0: has a guard of its own, else fires with this event of TRANSITION_CONTACT
TRANSITION_CONTACT: Final = 4
TRANSITION_WIDTH: Final = 5


class Tables(NamedTuple):
    """What the compiled loop knows of an automaton.

    Attributes
    ----------
    sizes : int64 array, shape (SIZE_COUNT,)
        Lengths, indexed by ``N_Q`` ... ``N_TERMS``.
    terms : int64 array, shape (1,)
        Address of the terms kernel (0 where there is none).
    mode_rhs, mode_full : int64 arrays, shape (n_modes,)
        Addresses of the kernels of each mode.  ``rhs`` writes ``x_dot`` (n_q + n_u); ``full`` writes ``x_dot``,
        ``u`` (n_u), pivot (1), guards (n_g), slopes (n_g), multipliers (n_rows), in this order.
    mode_states : int8 array, shape (n_modes, n_contacts)
        State of every contact in each mode.
    mode_flags : int64 array, shape (n_modes,)
        Bits, see ``PROJECTS``.
    mode_group : int64 array, shape (n_modes,)
        Modes with the same number are charts of the same active set: same states, other independent speeds.
    mode_guard_start : int64 array, shape (n_modes + 1,)
        Guards of mode ``m`` are numbers ``mode_guard_start[m]`` up to (not including) ``mode_guard_start[m + 1]``.
    guard_event : int64 array, shape (n_guards,)
        What the guard announces.  Every guard fires when it falls through zero.
    guard_contact : int64 array, shape (n_guards,)
        The contact concerned; for ``WRITTEN`` the transition.
    guard_direction : float64 array, shape (n_guards,)
        Slip direction that a slide beginning here would take.
    row_role, row_contact : int64 arrays, shape (n_rows,)
        For the resolution alone.
    contact_rows : int64 array, shape (n_contacts, 2)
        Normal and tangent row of each contact, -1 where there is none.
    contact_flags : int64 array, shape (n_contacts,)
        For the resolution alone.
    transitions : int64 array, shape (n_transitions, TRANSITION_WIDTH)
        Written transitions.
    quaternions : int64 array, shape (n_quaternions,)
        Index in ``q`` of the first of four consecutive Euler parameters, renormalised after each step.
    tolerances : float64 array, shape (TOLERANCE_COUNT,)
        The table of :mod:`fsm_dyn.simulation.tolerances`.
    """

    sizes: NDArray[np.int64]
    terms: NDArray[np.int64]
    mode_rhs: NDArray[np.int64]
    mode_full: NDArray[np.int64]
    mode_states: NDArray[np.int8]
    mode_flags: NDArray[np.int64]
    mode_group: NDArray[np.int64]
    mode_guard_start: NDArray[np.int64]
    guard_event: NDArray[np.int64]
    guard_contact: NDArray[np.int64]
    guard_direction: NDArray[np.float64]
    row_role: NDArray[np.int64]
    row_contact: NDArray[np.int64]
    contact_rows: NDArray[np.int64]
    contact_flags: NDArray[np.int64]
    transitions: NDArray[np.int64]
    quaternions: NDArray[np.int64]
    tolerances: NDArray[np.float64]
