"""Structures of arrays passed by Python to the runtime, as named tuples of the arrays.

Written by ``fsm_dyn.runtime.abi_build`` from the headers in this folder (``make abi``): change those.  Arrays are
C-contiguous; kernels are addresses.  ``DIMENSIONS`` has the number of dimensions of those that have more than one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fsm_dyn.core.arrays import Codes, Floats, Integers


class Tables(NamedTuple):
    """An automaton. Modes, guards and rows keep their numbers when modes are appended."""

    sizes: Integers
    terms: Integers  # (1,): the terms kernel (NULL: none).
    sample: Integers  # (1,): the kernel for all memory (n_memory) after a sample; NULL without controllers.
    # (n_modes,): the kernels of each mode.  `rhs` writes `x_dot` (n_q + n_u); `full` writes `x_dot`, `u` (n_u), pivot
    # (1), guards (n_g), slopes (n_g), multipliers (n_rows), in this order.
    mode_rhs: Integers
    mode_full: Integers
    # (n_modes,) or empty: address of what embeds a mode online (struct fsm_online_mode), 0 where kernels stand for it.
    mode_online: Integers
    online_routine: Integers  # (1,) or empty: address of fsm_online_evaluate.
    # Empty if no guard may be left out of a step (far_guards.c). (n_modes,): `full` without the guards with a kernel in
    # `guard_kernels`, zeros for these; NULL if the mode has none.
    mode_core: Integers
    guard_kernels: Integers  # (n_guards,): writes value and slope of one guard; NULL for guards in the core.
    shape_centres: Integers  # (1,): writes positions and velocities (n_shapes, 6) of centres of round shapes.
    # Enclosures of guards (enclosure.h): programs one after the other, and the constants of all.
    enclosure_code: Integers
    enclosure_numbers: Floats
    # (n_modes,): start of the program of each mode in `enclosure_code`, -1: its guards have none.
    mode_enclosure: Integers
    guard_enclosure: Integers  # (n_guards,): the enclosing value of a guard in its mode's program, -1: none.
    enclosure_room: Integers  # (n_modes,): start of the data of a mode among the words of guard_proof.c.
    mode_states: Codes  # (n_modes, n_contacts): state of every contact in each mode.
    mode_flags: Integers  # (n_modes,): bits, enum fsm_mode_flag.
    # (n_modes,): modes with the same number are charts of the same active set: same states, other independent speeds.
    mode_group: Integers
    # (n_modes,): evaluations in a run after which a mode embedded online gets derived kernels; FSM_NEVER for modes with
    # them, or never to have them.
    mode_allowance: Integers
    # (n_modes + 1,): guards of mode `m` are numbers `mode_guard_start[m]` up to (not including) `mode_guard_start[m +
    # 1]`.
    mode_guard_start: Integers
    guard_event: Integers  # (n_guards,): enum fsm_event; every guard fires when it falls through zero.
    guard_contact: Integers  # (n_guards,): the contact concerned; for FSM_EVENT_TRANSITION the transition.
    guard_direction: Floats  # (n_guards,): slip direction of a slide beginning here.
    row_role: Integers  # (n_rows,): enum fsm_row_role.
    row_positional: Codes  # (n_rows,): 1 if the row has a residual on the level of coordinates.
    contact_flags: Integers  # (n_contacts,): bits, enum fsm_contact_flag.
    # (n_contacts, 4): normal and tangent row of each contact, -1: none (a lock has a normal row only, dry friction a
    # tangent row only); then the load rows of a bearing.
    contact_rows: Integers
    # (n_contacts, 3): of a corner on a straight face its number, and those of the corners at the ends of the face, -1:
    # none.
    contact_ends: Integers
    # (n_contacts,): of the contacts of one corner with all faces of one convex polygon, which share a guard for
    # closing, the first; -1 for other contacts.  Compliant ones have guards of their own: -2 less the first.
    contact_outline: Integers
    # Columns of the rows and of the mass matrix, among the declared speeds, whose entries can differ from zero,
    # ascending: those of row r are `row_columns[row_begin[r]]` up to (not including) `row_columns[row_begin[r + 1]]`.
    row_begin: Integers
    row_columns: Integers
    mass_begin: Integers
    mass_columns: Integers
    # (n_transitions, FSM_TRANSITION_WIDTH): user-defined transitions, columns enum fsm_transition_column.
    transitions: Integers
    transition_states: Codes  # (n_transitions, n_contacts): contact states required by a transition's target, -1: any.
    transition_leaves: Codes  # (n_transitions, n_modes): 1 if the transition leaves the mode.
    # (n_quaternions,): index in `q` of the first of four consecutive Euler parameters, renormalised after each step.
    quaternions: Integers
    # (n_q + n_u,): unit of each coordinate and speed in the mechanism's own units: its length (m) for a length, 1 for
    # an angle.
    state_unit: Floats
    # (n_rows,): unit of each row's residual over the mechanism's length: 1 for a length, 1 over that length for an
    # angle.
    row_unit: Floats
    guard_unit: Floats  # (n_guards,): unit of each guard in the mechanism's own units.
    tolerances: Floats


class InputTables(NamedTuple):
    """Inputs as the compiled loop reads them."""

    counts: Integers
    start: Floats  # (n_segments,): time (s) at which each segment begins; the first is -inf in effect.
    origin: Floats  # (n_segments,): time (s) from which the polynomials of the segment count.
    pieces: Floats  # (n_segments, n_w, 4): coefficients of the cubics, constant first.
    # (n_segments,): first later segment with a possible jump of value or slope at its start, where a step must end;
    # n_segments if there is none.
    next_hard: Integers
    # (n_segments,): 1 if the contact states are decided again at such a start; 0 if no force can jump, as every input
    # is continuous and none with a kink drives a constraint.
    decides: Codes
    kernels: Integers  # Addresses of kernels for values and three rates of some inputs.
    kernel_start: Integers  # (n_kernels + 1,): start of the inputs of each kernel in `kernel_inputs`.
    kernel_inputs: Integers  # Input numbers.
    # Enclosing programs of the kernels (enclosure.h), as in fsm_tables; (n_kernels,): start of each, -1: none; (4 n,):
    # of each kernel the values that enclose its outputs.
    enclosure_code: Integers
    enclosure_numbers: Floats
    kernel_enclosure: Integers
    kernel_values: Integers
    jets: Floats  # workspace
    out: Floats  # (4 n_w,): workspace.


class MethodArrays(NamedTuple):
    """A tableau as the compiled step reads it.

    `a` (s*s) row by row; `nodes` (s); `weights` (3*(s+1)): those of the result, of the error estimate and of the state
    at mid-step; `counts`: number of stages, order, whether there is an error estimate, and the degree of the dense
    output in `dense`, which is nonzero if an implicit method is followed along it, see dense_output.
    """

    a: Floats
    nodes: Floats
    weights: Floats
    counts: Integers
    dense: Floats


class Options(NamedTuple):
    """Options of a run: see the index constants; `atol` per state, `mask` per mode (or one row)."""

    numbers: Floats
    counts: Integers
    atol: Floats
    mask: Codes


class RunState(NamedTuple):
    """State of the loop between two steps."""

    x: Floats
    x_dot: Floats
    c: Floats
    clock: Floats
    counters: Integers
    guards: Floats  # values, slopes, tolerances of all guards; then values and slopes of the fired ones
    armed: Integers  # enum fsm_guard_status of all guards
    fired: Integers  # numbers of guards fired together
    limits: Integers  # of each contact the event at its limit in this instant (0: none), then the direction
    conditions: Floats  # (n_transitions * FSM_CONDITION_WIDTH,), row by row
    spent: Integers  # (n_modes,): evaluations made for the steps taken in each mode
    history: Floats  # (FSM_RING_LENGTH * FSM_RING_WIDTH,): a ring of the last transitions
    drift: Floats  # energy put in by projections (J), largest residual reached
    rank: Floats


class Work(NamedTuple):
    """Workspace of the loop: stages, states at mid-step and end, kernel outputs, root isolation, resolution."""

    k: Floats  # stages
    y: Floats
    x_end: Floats
    x_mid: Floats
    full_end: Floats
    full_mid: Floats
    roots: Floats  # (FSM_ROOT_ROOM,)
    floats: Floats
    integers: Integers
    top: Integers
    addresses: Integers  # of the structure of terms
    wanted: Codes  # contact states of the next mode
    impulse: Floats
    energy: Floats
    notes: Integers
    u_before: Floats
    log: Floats  # candidates of the current decision
    implied: Integers  # 1: the gap of this open contact is determined by two closed ones
    c_after: Floats  # context after a pending transition; the state is in `x_mid`
    far: Floats  # Guards left out of steps (far_guards.c); empty if none may be.
    near: Integers  # (1 + max_guards,): number of guards not left out, and their numbers in the mode
    is_far: Codes  # (max_guards,)
    centres: Floats  # (4, n_shapes, 6): at their choice; at the start, the middle and the end of a step
    proof: Floats  # Room of guard_proof.c.
    proof_numbers: Integers
    proof_needed: Codes


class Buffers(NamedTuple):
    """Buffers for recorded rows and transitions.

    `rows`: t, x, x_dot, state at the middle of the step ending here, context from the inputs on. `modes`: mode of each
    row. `transitions`, `passages` through change points: see the index constants.
    """

    rows: Floats
    modes: Integers
    transitions: Floats
    passages: Floats


class Online(NamedTuple):
    """One mode embedded online."""

    sizes: Integers  # As in Tables.
    programs: Integers  # (3,): addresses of the kernels `rows motion watched` (programs).
    states: Codes  # (n_contacts,): state of every contact.
    row_role: Integers
    contact_flags: Integers
    contact_rows: Integers
    contact_outline: Integers
    # Columns of the rows and of the mass matrix whose entries can differ from zero, ascending: those of row r are
    # `row_columns[row_begin[r]]` up to (not including) `row_columns[row_begin[r + 1]]`.
    row_begin: Integers
    row_columns: Integers
    mass_begin: Integers
    mass_columns: Integers
    guard_quantity: Integers  # (n_guards,): quantity of each guard, and its contact; for `CONDITION` the transition.
    guard_subject: Integers
    # (n_guards,): the guard is the quantity times this; of a friction limit the slip direction of a slide.
    guard_sign: Floats
    state_unit: Floats  # (n_q + n_u,) and (n_rows,): unit of each coordinate and speed, and of each row, as in Tables.
    row_unit: Floats
    limits: Floats
    chart: Integers
    # The same of the matrices in the present chart, columns in its order (online_pivoting.c), rank r, m = n_u - r: rows
    # held (r), eliminated and solved for the dependent speeds; of each also the starts of the entries behind the
    # diagonal and of those of independent speeds.
    held_begin: Integers
    held_behind: Integers
    held_rest: Integers
    held_columns: Integers
    below_begin: Integers  # Columns below the diagonal of the rows held (r): rows.
    below_rows: Integers
    # Rows of the mass matrix (n_u): dependent speeds; rows of M T (n_u): independent speeds, counted from zero.
    tied_begin: Integers
    tied_columns: Integers
    moved_begin: Integers
    moved_columns: Integers
    # Rows of the reduced mass matrix (m), eliminated; of each also the start of the entries behind the diagonal.
    reduced_begin: Integers
    reduced_behind: Integers
    reduced_columns: Integers
    place: Integers  # (n_u,): position of each speed in the order of the chart.
    extent: Integers  # Workspace of the choice of a chart.
    # Workspace.  Entries of A, M and of the matrices derived from them that can only be zero are zero there and never
    # written.
    room: Floats
    floats: Floats
    integers: Integers
    top: Integers
    # Empty if `chart`, the lists and the workspace are this mode's alone.  (1,): of the modes that share them, the one
    # with its chart there (its address; 0: none).
    owner: Integers
    # What the mode has chosen, while another one owns the arrays: the choices of the chart from FSM_ONLINE_CHOSEN on,
    # rows active, speeds.
    kept: Integers


class Ring(NamedTuple):
    """The parts of the shared block written by every tick."""

    header: Integers
    rows: Floats
    records: Floats
    durations: Integers
    latenesses: Integers
    processor: Integers


class Checkpoints(NamedTuple):
    """The checkpoints of a session: a ring of copies of the state."""

    counts: Integers
    block: Integers  # The memory of the stepper's state.
    states: Integers  # (FSM_CHECKPOINTS_MOST, block.n): copies of it.
    # (FSM_CHECKPOINTS_MOST, 1 + n_w + 2 n_s): model time (s), inputs, rates and second rates of the smooth ones.
    inputs: Floats


class Tick(NamedTuple):
    """Data of a tick; n_a axes of ports, n_d of the device, n_w inputs, n_s of them smooth."""

    numbers: Floats
    counts: Integers
    places: Integers
    now: Floats  # (n_w,): inputs at the beginning and end of the tick, and target values of those without a device.
    next: Floats
    targets: Floats
    # (n_s,): inputs whose rates enter the equations: they run as cubics, with continuous rate and second rate.
    smooth: Integers
    motion: Floats  # (2 n_s,): rates and second rates of the smooth inputs at the beginning and the end of the tick.
    motion_next: Floats
    target_rate: Floats  # (n_s,): rate of the target value.
    bandwidth: Floats  # (n_s,): of the filter of each, rad per tick.
    switches: Integers  # (n_b,): boolean inputs: they change with the begin of a tick.
    device: Floats  # (2 n_d,): position and velocity read from the device, else those of the last accepted sample.
    taken: Floats  # (2 n_d,): position and velocity of the last accepted sample.
    source: Integers  # (n_a,): the device axis behind each axis of all ports, -1 for none.
    # (3 n_a,): the inputs for position, rate and engagement of each axis; of an axis prescribed by the device, the
    # position only, and its index among the smooth ones instead of the rate, with -1 for the engagement.
    slot: Integers
    # (n_a,): the constraint by which a device prescribes the axis, FSM_COUPLED for a coupler, FSM_APPLIED if the force
    # of the hand is an input, the first of `slot`.
    row: Integers
    scale: Floats  # (n_a,): model position = offset + scale * device position.
    offset: Floats
    ports: Floats  # (3 n_a,): force on the model, position and rate of the port, for all axes.
    force: Floats  # (n_d,): force on the device, and the same without limits, N or N m.
    wanted: Floats
    low: Floats  # (n_d,): the device's workspace, and its largest velocity along each axis.
    high: Floats
    fastest: Floats
    turns: Integers  # (n_d,): 1 for an axis in rad.
    part: Integers  # (n_d,): number of the device of each axis, from 0 and ascending: norms are of one device each.
    # (n_d,): position of the device in the tick before; excess energy, J; the force to dissipate it; time for which its
    # own damping does not count, s.
    before: Floats
    balance: Floats
    back: Floats
    distrust: Floats
    shown: Floats  # (n_d (FSM_LATEST + 2),): forces of the last ticks, the latest first, for each axis.
    device_damping: Floats  # (n_d,): known of the device, N s/m or N m s/rad.
    # (4 n_a,): of the tick before: forces on the model, positions of the device in the model, rates in the couplers,
    # rates of the ports.
    coupled: Floats
    # (n_a,): position of the port at the end of the last complete tick, of the tick before for an applied force.
    left: Floats
    changes: Floats  # (n_d,): of a sample since the one taken last, while it is examined.
    # (4 n_d,): for each axis what the velocities leave unexplained of its displacement lately, between two bounds (m or
    # rad), and the range of its velocity.
    tracks: Floats
    # (n_d,): of the track of the last accepted sample what no filter of velocities explains, m or rad.
    unexplained: Floats
    lag: Floats  # (n_d,): lag of an admittance device behind its port, because of the limits.
    # (2 n_a,): rate of the port beyond the device's at the engagement, and its present remainder: the end of the
    # coupler glides along with the port, and comes to the device's velocity with the ramp.
    glide: Floats
    # (n_a,): displacement of the coupler's end from a device with an absolute zero: it comes from the port with the
    # ramp.
    shift: Floats
    law: Integers  # (2 n_a,): stiffnesses and dampings of the couplers in the context, -1: none.
    full: Floats  # Output of a mode's kernel, for the multipliers.
    context: Floats  # (n_c,): in which the schedule is evaluated.


class Pace(NamedTuple):
    """Data of the paced loop apart from those of the tick."""

    numbers: Integers
    sample: Floats  # (2 n_d + 3,), written by the driver


class UdpLink(NamedTuple):
    """State of a connection by UDP (pacing.c)."""

    numbers: Integers
    dropped: Integers  # datagrams by enum fsm_drop_reason
    words: Integers  # the datagram, in one memory with `floats`
    floats: Floats
    position: Floats  # per axis, m or rad
    velocity: Floats
    times: Floats  # the device's time of the latest sample (s), and the rate of the velocity's filter (rad/s)
    header: Integers


class ScriptedHand(NamedTuple):
    """A scripted hand (pacing.c)."""

    numbers: Floats
    motion: Floats  # axis, amplitude, rad/s and phase of each sinusoid
    position: Floats  # per axis
    velocity: Floats
    force: Floats


DIMENSIONS: Final[dict[type, dict[str, int]]] = {
    Tables: {
        "mode_states": 2,
        "contact_rows": 2,
        "contact_ends": 2,
        "transitions": 2,
        "transition_states": 2,
        "transition_leaves": 2,
    },
    InputTables: {
        "pieces": 3,
    },
    Options: {
        "mask": 2,
    },
    Buffers: {
        "rows": 2,
        "transitions": 2,
        "passages": 2,
    },
    Online: {
        "contact_rows": 2,
    },
    Ring: {
        "rows": 2,
        "records": 2,
    },
    Checkpoints: {
        "states": 2,
        "inputs": 2,
    },
    ScriptedHand: {
        "motion": 2,
    },
}
