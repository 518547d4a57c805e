"""Tables of a compiled automaton, as the arrays that the runtime reads.

All arrays are C-contiguous.  Mode, guard and row numbers are stable: modes derived during a
run are appended to the mode and guard arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.laws import Law
from fsm_dyn.runtime.abi import ContactFlag, Sizes


def law_flags(law: Law) -> int:
    """Return the bits of the properties that a law declares."""
    flags = (
        (ContactFlag.RIGID if law.rigid else 0)
        | (ContactFlag.COMPLIANT if law.compliant else 0)
        | (ContactFlag.SWITCHED if law.switched else 0)
    )
    flags |= (ContactFlag.NO_GAP if law.rigid and not law.has_gap else 0) | (
        ContactFlag.FORCE_LIMIT if law.force_limit else 0
    )
    return flags | (ContactFlag.FRICTION_ONLY if law.friction_only else 0) | (ContactFlag.LOADED if law.loaded else 0)


def context_length(sizes: NDArray[np.int64] | Sequence[int]) -> int:
    """Return the length of a kernel's context ``c``, from ``Tables.sizes``."""
    return int(sizes[Sizes.N_P] + 4 * sizes[Sizes.N_W] + sizes[Sizes.N_CONTACTS] + sizes[Sizes.N_MEMORY])


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
