"""Tables of a compiled automaton, as the arrays that the runtime reads.

All arrays are C-contiguous.  Mode, guard and row numbers are stable: modes derived during a
run are appended to the mode and guard arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn import laws
from fsm_dyn.laws import Event, Law

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
SEQUENTIAL: Final = 12  # 1: impacts of several contacts one after the other
ON_INCONSISTENT: Final = 13  # 1: where no combination agrees with the accelerations, an impact without collision
ON_SEVERAL: Final = 14  # 1: where several motions agree, the one that changes least continues
N_CONTROLLERS: Final = 15
N_SHAPES: Final = 16
MAX_MOVING: Final = 17  # arguments of an enclosure that change in a step, at most
MAX_VALUES: Final = 18  # values of an enclosure
PROOF_WORDS: Final = 19  # numbers kept of all modes for proofs
SIZE_COUNT: Final = 20

NEVER: Final = 2**63 - 1  # entry of ``Tables.mode_allowance``

# event of a guard (``Tables.guard_event``)
CLOSES: Final = int(Event.CLOSES)
OPENS: Final = int(Event.OPENS)
SLIDES: Final = int(Event.SLIDES)
STICKS: Final = int(Event.STICKS)
WRITTEN: Final = int(Event.TRANSITION)
LEAVES: Final = int(Event.LEAVES)

# states of a contact (``Tables.mode_states``)
FREE: Final = laws.FREE
HELD: Final = laws.HELD
SLIDING: Final = laws.SLIDING
SLIDING_UNDER: Final = laws.SLIDING_UNDER  # a slot pressed on its other face

# bits of ``Tables.mode_flags``
PROJECTS: Final = 1  # the mode has configuration rows or closed gaps: project after each accepted step
REPEATS: Final = 8  # rows of the mode are redundant: whether they still agree is asked after each step
TURNS: Final = 4  # a contact slides in space: its slip direction is kept up with after each accepted step
RANKS: Final = 16  # constraints on coordinates hold: their rows may lose rank
WATCHES_GATES: Final = 2  # a contact with a closes_if is open in the mode

# columns of ``Tables.transitions``
TRANSITION_STOP: Final = 0  # 1: the run ends here; 2: a coordinate leaves its range; 3: a held row passes a kink
TRANSITION_RESET: Final = 1  # address of the reset kernel, 0: none
TRANSITION_EVENT: Final = 2  # 0: has a guard of its own, else fires with this event of TRANSITION_CONTACT
TRANSITION_CONTACT: Final = 3
TRANSITION_WHEN: Final = 4  # of one that has a guard, see ``ConditionKind``
TRANSITION_WIDTH: Final = 5

# bits of ``Tables.contact_flags``
FRICTION: Final = 1  # has a tangent row
STICKS_ALWAYS: Final = 2  # infinite friction: never slides
GATED: Final = 4  # has a closes_if
LIMITED: Final = 8  # is on a face that ends
TWO_SIDED: Final = 16  # a slot: always closed, its normal force may have either sign
POISSON: Final = 32  # restitution of impulses, not of speeds
IN_SPACE: Final = 64  # slips in two directions: the row after its tangent row is the second
RIGID: Final = 128  # its normal force is a constraint force, which the contact problem determines
COMPLIANT: Final = 256  # its normal force is a function of the state, no constraint force
SWITCHED: Final = 512  # its constraint acts while it is held: transitions switch it
FRICTION_ONLY: Final = 1024  # a friction force with given bounds, and no normal force
NO_GAP: Final = 2048  # its law is on the level of speeds: there is no distance that closes
FORCE_LIMIT: Final = 4096  # its constraint lets go at the force that the term ``static`` gives
LOADED: Final = 8192  # its bounds are coefficients of the resultant of the forces of its load rows
WHOLE_CIRCLE: Final = 16384  # of a circle touched from outside: its aspect is that of its far side
GROUP: Final = 65536  # bits from here on: number of the first contact of the same entry of the model


def law_flags(law: Law) -> int:
    """Return the bits of the properties that a law declares."""
    flags = (RIGID if law.rigid else 0) | (COMPLIANT if law.compliant else 0) | (SWITCHED if law.switched else 0)
    flags |= (NO_GAP if law.rigid and not law.has_gap else 0) | (FORCE_LIMIT if law.force_limit else 0)
    return flags | (FRICTION_ONLY if law.friction_only else 0) | (LOADED if law.loaded else 0)


TURNING: Final = 100.0  # times the speed that counts as zero: slip in space that came to rest may be so much off it

# roles of rows (``Tables.row_role``)
KINEMATIC: Final = 0  # eliminated by the choice of speeds
ALWAYS: Final = 1  # a constraint on speeds
ALWAYS_POSITION: Final = 2  # a constraint on coordinates
CONTACT_ROW: Final = 3  # belongs to a contact


def context_length(sizes: NDArray[np.int64] | Sequence[int]) -> int:
    """Return the length of a kernel's context ``c``, from ``Tables.sizes``."""
    return int(sizes[N_P] + 4 * sizes[N_W] + sizes[N_CONTACTS] + sizes[N_MEMORY])


class Tables(NamedTuple):
    """What the compiled loop knows of an automaton.

    Attributes
    ----------
    sizes : int64 array, shape (SIZE_COUNT,)
        Lengths, indexed by ``N_Q`` ... ``N_TERMS``, and the model's choices ``SEQUENTIAL ON_INCONSISTENT ON_SEVERAL``.
    terms : int64 array, shape (1,)
        Address of the terms kernel (0 where there is none).
    sample : int64 array, shape (1,)
        Address of the kernel that writes all memory as it is after a sample of controllers, 0 without any.
    mode_rhs, mode_full : int64 arrays, shape (n_modes,)
        Addresses of the kernels of each mode.  ``rhs`` writes ``x_dot`` (n_q + n_u); ``full`` writes ``x_dot``,
        ``u`` (n_u), pivot (1), guards (n_g), slopes (n_g), multipliers (n_rows), in this order.
    mode_core : int64 array, shape (n_modes,)
        Addresses of kernels as ``full``, with zeros for the guards that have a kernel in
        ``guard_kernels``, 0 where a mode has none; empty where no guard may be left out of a step, as the next two.
    guard_kernels : int64 array, shape (n_guards,)
        Addresses of kernels that write value and slope of one guard, 0 where the core has it.
    shape_centres : int64 array, shape (1,)
        Address of the kernel that writes positions and velocities (n_shapes, 6) of the centres of round shapes.
    enclosure_code : int64 array
        Programs that enclose the guards of modes, one after the other: where its constants begin among
        ``enclosure_numbers``, then :attr:`fsm_dyn.programs.enclosure_code.EnclosureCode.words`.
    enclosure_numbers : float64 array
        The constants of all.
    mode_enclosure : int64 array, shape (n_modes,)
        Where each mode's program begins, -1 where there is none.
    guard_enclosure : int64 array, shape (n_guards,)
        The value of its mode's program that encloses a guard, -1 where none does.
    enclosure_room : int64 array, shape (n_modes,)
        Where the bounds kept of a mode begin among the ``PROOF_WORDS`` of all.
    mode_states : int8 array, shape (n_modes, n_contacts)
        State of every contact in each mode.
    mode_flags : int64 array, shape (n_modes,)
        Bits, see ``PROJECTS``.
    mode_group : int64 array, shape (n_modes,)
        Modes with the same number are charts of the same active set: same states, other independent speeds.
    mode_allowance : int64 array, shape (n_modes,)
        Evaluations in a run after which a mode that is embedded online has earned kernels of its own; ``NEVER`` for
        modes that have them, or are to have none.
    mode_guard_start : int64 array, shape (n_modes + 1,)
        Guards of mode ``m`` are numbers ``mode_guard_start[m]`` up to (not including) ``mode_guard_start[m + 1]``.
    guard_event : int64 array, shape (n_guards,)
        Event of the guard.  Every guard fires at its falling zero crossing.
    guard_contact : int64 array, shape (n_guards,)
        The contact concerned; for ``WRITTEN`` the transition.
    guard_direction : float64 array, shape (n_guards,)
        Slip direction that a slide beginning here would take.
    row_role : int64 array, shape (n_rows,)
        ``KINEMATIC`` ... ``CONTACT_ROW``.
    row_positional : int8 array, shape (n_rows,)
        1 where the row has a residual on the level of coordinates.
    contact_flags : int64 array, shape (n_contacts,)
        Bits, see ``FRICTION``: properties of the contact and of its law (:mod:`fsm_dyn.laws`).
    contact_rows : int64 array, shape (n_contacts, 4)
        Normal and tangent row of each contact, -1 where there is none (a lock has a normal row only, dry friction
        a tangent row only); then the rows that load a bearing.
    contact_ends : int64 array, shape (n_contacts, 3)
        Of a corner on a straight face its number, and those of the corners in which the face ends, see
        :attr:`fsm_dyn.modes.unconstrained_system.ContactInfo.ends`; -1 where there is none.
    contact_outline : int64 array, shape (n_contacts,)
        Of the contacts of one corner with all faces of one convex polygon, which share a guard for closing, the first;
        -1 for other contacts.  Compliant ones have guards of their own: -2 less the first.
    row_begin, row_columns, mass_begin, mass_columns : int64 arrays
        Columns of the rows and of the mass matrix, among the ``n_u`` declared speeds, whose entries can differ from
        zero, ascending: those of row ``r`` are ``row_columns[row_begin[r]]`` up to (not including)
        ``row_columns[row_begin[r + 1]]``.
    transitions : int64 array, shape (n_transitions, TRANSITION_WIDTH)
        User-defined transitions.
    transition_states : int8 array, shape (n_transitions, n_contacts)
        Contact states that a transition's target asks for, -1 where it leaves them open.
    transition_leaves : int8 array, shape (n_transitions, n_modes)
        1 where the transition leaves the mode.
    quaternions : int64 array, shape (n_quaternions,)
        Index in ``q`` of the first of four consecutive Euler parameters, renormalised after each step.
    state_unit : float64 array, shape (n_q + n_u,)
        Unit of each coordinate and speed in the mechanism's own units: its length (m) for a length, 1 for an angle.
    row_unit : float64 array, shape (n_rows,)
        Unit of each row's residual over the mechanism's length: 1 for a length, 1 over that length for an angle.
    guard_unit : float64 array, shape (n_guards,)
        Unit of each guard in the mechanism's own units.
    tolerances : float64 array, shape (TOLERANCE_COUNT,)
        The table of :mod:`fsm_dyn.simulation.tolerances`.
    """

    sizes: NDArray[np.int64]
    terms: NDArray[np.int64]
    sample: NDArray[np.int64]
    mode_rhs: NDArray[np.int64]
    mode_full: NDArray[np.int64]
    mode_core: NDArray[np.int64]
    guard_kernels: NDArray[np.int64]
    shape_centres: NDArray[np.int64]
    enclosure_code: NDArray[np.int64]
    enclosure_numbers: NDArray[np.float64]
    mode_enclosure: NDArray[np.int64]
    guard_enclosure: NDArray[np.int64]
    enclosure_room: NDArray[np.int64]
    mode_states: NDArray[np.int8]
    mode_flags: NDArray[np.int64]
    mode_group: NDArray[np.int64]
    mode_allowance: NDArray[np.int64]
    mode_guard_start: NDArray[np.int64]
    guard_event: NDArray[np.int64]
    guard_contact: NDArray[np.int64]
    guard_direction: NDArray[np.float64]
    row_role: NDArray[np.int64]
    row_positional: NDArray[np.int8]
    contact_flags: NDArray[np.int64]
    contact_rows: NDArray[np.int64]
    contact_ends: NDArray[np.int64]
    contact_outline: NDArray[np.int64]
    row_begin: NDArray[np.int64]
    row_columns: NDArray[np.int64]
    mass_begin: NDArray[np.int64]
    mass_columns: NDArray[np.int64]
    transitions: NDArray[np.int64]
    transition_states: NDArray[np.int8]
    transition_leaves: NDArray[np.int8]
    quaternions: NDArray[np.int64]
    state_unit: NDArray[np.float64]
    row_unit: NDArray[np.float64]
    guard_unit: NDArray[np.float64]
    tolerances: NDArray[np.float64]


def nonzero_columns(entries: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each row's columns begin, and the columns, of a matrix's entries that can differ from zero."""
    begin = np.concatenate([[0], np.cumsum(entries.sum(axis=1))]).astype(np.int64)
    return begin, np.nonzero(entries)[1].astype(np.int64)
