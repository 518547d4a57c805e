"""Codes, positions, constants and texts shared by the runtime in C and Python.

Written by ``fsm_dyn.runtime.abi_build`` from the headers in this folder (``make abi``): change those.  A class of plain
numbers has the positions of a structure's fields in its array, ``COUNT`` their number.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


def fields_of(positions: type) -> tuple[str, ...]:
    """Return the names of a structure's fields in C, in their order, from the class of their positions."""
    return tuple(name.lower() for name in vars(positions) if name.isupper() and name != "COUNT")


# -- arena.h ---------------------------------------------------------------------------------------------------------


class ArenaTop:
    """Extent of an arena."""

    FLOATS: Final = 0  # handed out
    INTEGERS: Final = 1  # handed out
    MOST_FLOATS: Final = 2
    MOST_INTEGERS: Final = 3
    OVERFLOWN: Final = 4  # 1: more was asked for than there is
    SOLVED: Final = 5  # combinations of contact states solved so far
    DECISION: Final = 6  # where among the integers a decision is kept, counted from 1; 0: none
    COUNT: Final = 7


# -- codes.h ---------------------------------------------------------------------------------------------------------


class Status(IntEnum):
    """Statuses of a run, in the order of FSM_STATUSES."""

    CONTINUE = 0
    PAUSED = 1
    BUFFER_FULL = 2
    NEED_MODE = 3
    NEED_CHART = 4
    DONE = 5
    STOPPED = 6
    INTERRUPTED = 7
    TOO_MANY_STEPS = 8
    STEP_TOO_SMALL = 9
    NON_FINITE = 10
    CHATTERING = 11
    INCONSISTENT = 12
    NON_UNIQUE_STATE = 13
    NON_UNIQUE = 14
    SINGULAR = 15
    PENETRATION = 16
    PROJECTION_FAILED = 17
    MODE_NOT_LISTED = 18
    IMPACTS_DIVERGE = 19
    CONTRADICTORY = 20
    STRETCHED = 21
    UNDETERMINED = 22
    NO_BRANCH = 23
    PENETRATION_LATER = 24
    STEP_TOO_LONG = 25
    LEFT_RANGE = 26
    EVENT_IN_CHANGE_POINT = 27
    UNSOLVED = 28
    LAST_INTERNAL = 4


STATUS_TEXTS: Final[dict[int, tuple[str, str, str]]] = {
    Status.CONTINUE: (
        "running",
        "The run is under way.",
        "",
    ),
    Status.PAUSED: (
        "paused",
        "The run paused to report progress.",
        "",
    ),
    Status.BUFFER_FULL: (
        "buffer full",
        "The run paused for more room to record.",
        "",
    ),
    Status.NEED_MODE: (
        "mode needed",
        "The next mode has not been derived yet.",
        "",
    ),
    Status.NEED_CHART: (
        "chart needed",
        "The current chart degenerates (small pivot).",
        "",
    ),
    Status.DONE: (
        "done",
        "The run reached its final time.",
        "",
    ),
    Status.STOPPED: (
        "stopped",
        "A transition marked 'stop' ended the run.",
        "",
    ),
    Status.INTERRUPTED: (
        "interrupted",
        "The run was interrupted from outside; what was recorded is kept.",
        "",
    ),
    Status.TOO_MANY_STEPS: (
        "too many steps",
        "The run reached its limit on the number of steps.",
        "raise max_steps, loosen rtol and atol, or use method='radau' if the model is stiff",
    ),
    Status.STEP_TOO_SMALL: (
        "step size too small",
        "The tolerances require a step shorter than the resolution of time.",
        "loosen rtol and atol, use method='radau' if the model is stiff, and look for a law that jumps or grows "
        "without bound at this time",
    ),
    Status.NON_FINITE: (
        "non-finite state",
        "The state or its derivative became infinite or not a number.",
        "look for a division by zero or a root of a negative number in the loads and transitions, or shorten the step",
    ),
    Status.CHATTERING: (
        "chattering",
        "Transitions follow each other at one event time without limit.",
        "check the transitions recorded last: give user-defined transitions a hysteresis, or contacts friction or "
        "less restitution",
    ),
    Status.INCONSISTENT: (
        "inconsistent contact state",
        "No candidate satisfies the contact laws (Painlevé paradox, jamming).",
        "check the candidates and residuals reported; lower the friction, model the contact as compliant, or let an "
        "impact without collision resolve it: on_inconsistent: impact",
    ),
    Status.NON_UNIQUE_STATE: (
        "non-unique contact state",
        "Several candidates with different motions satisfy the contact laws.",
        "select the motion of the fewest state changes: on_nonunique: prefer_previous; lower the friction, or model "
        "the contact as compliant",
    ),
    Status.NON_UNIQUE: (
        "non-unique motion",
        "Redundant contacts with indeterminate friction forces leave the motion undetermined.",
        "give redundant contacts the same friction, remove one, or model them as compliant",
    ),
    Status.SINGULAR: (
        "singular configuration",
        "The active constraints lose rank, or the reduced mass matrix is singular, in every chart.",
        "start from another configuration, give every moving body inertia, or remove a redundant constraint",
    ),
    Status.PENETRATION: (
        "initial penetration",
        "A contact that should be open or touching penetrates deeper than the tolerance.",
        "move the start so that every gap is at least zero, or let closes_if admit the contact only above zero",
    ),
    Status.PROJECTION_FAILED: (
        "projection failed",
        "The drift projection onto the constraints did not converge.",
        "shorten the step or tighten rtol and atol; check that the constraints are consistent",
    ),
    Status.MODE_NOT_LISTED: (
        "mode not listed",
        "The motion leads into a mode that the model does not list.",
        "name this combination of contact states under modes, or drop only_listed",
    ),
    Status.IMPACTS_DIVERGE: (
        "impact sequence does not terminate",
        "Sequential impacts at one event time do not terminate.",
        "give the contacts restitutions below 1, or use impacts: simultaneous",
    ),
    Status.CONTRADICTORY: (
        "inconsistent constraints",
        "Redundant constraints have become inconsistent.",
        "check the lengths and axes of the redundant constraints, or remove one of them",
    ),
    Status.STRETCHED: (
        "stretched to its limit",
        "A loop is stretched to its limit and driven beyond it: no motion satisfies its constraints.",
        "end the run earlier, change the motion that drives the loop, or make a link compliant",
    ),
    Status.UNDETERMINED: (
        "undetermined at a change point",
        "The mechanism is at rest in a change point, where its constraints lose rank: several motions are possible.",
        "give it a speed, or start near the change point",
    ),
    Status.NO_BRANCH: (
        "speeds belong to no branch",
        "No motion through this change point has these speeds: it would violate the constraints that are lost here.",
        "give all speeds of one of the motions through the change point, or start near it",
    ),
    Status.PENETRATION_LATER: (
        "penetration during the run",
        "A contact penetrates deeper than the tolerance when its contact state is selected.",
        "tighten rtol and atol, shorten max_step or step, let closes_if admit the contact only above zero, or correct"
        " a transition at this instant whose reset or set moves a gap below zero",
    ),
    Status.STEP_TOO_LONG: (
        "step too long",
        "The fixed step does not resolve the oscillation of a compliant contact.",
        "shorten step, or use method='dopri5' or 'radau'",
    ),
    Status.LEFT_RANGE: (
        "left its range",
        "A coordinate left the range that the model states for it.",
        "widen the range, add a stop, or start elsewhere",
    ),
    Status.EVENT_IN_CHANGE_POINT: (
        "event in a change point",
        "A contact or condition becomes active in a change point, where the constraints lose rank.",
        "move the contact or the condition away from the configuration in which the links are in one line",
    ),
    Status.UNSOLVED: (
        "contact solve did not converge",
        "The sweeps over the contacts of a step of Moreau–Jean time stepping did not converge.",
        "use method='dopri5'; or avoid very different masses of bodies in contact, or model a contact as compliant",
    ),
}


class Event(IntEnum):
    """Which event a guard detects (`fsm_tables.guard_event`)."""

    CLOSES = 1
    OPENS = 2
    SLIDES = 3
    STICKS = 4
    TRANSITION = 5  # the condition of a user-defined transition is met
    LEAVES = 6  # leaves a bounded face


class ContactState(IntEnum):
    """States of a contact (`fsm_tables.mode_states`)."""

    FREE = 0
    HELD = 1
    SLIDING = 2
    SLIDING_UNDER = 3  # a slot pressed on its other face


class ModeFlag(IntEnum):
    """Bits of `fsm_tables.mode_flags`."""

    PROJECTS = 1  # configuration rows or closed gaps: drift is projected out after each accepted step
    WATCHES_GATES = 2  # a contact with a closes_if is open
    TURNS = 4  # a contact slides in space: its slip direction is updated after each accepted step
    REPEATS = 8  # rows are redundant: whether they are still consistent is asked after each step
    RANKS = 16  # constraints on coordinates are active: their rows may lose rank


class TransitionColumn:
    """Columns of `fsm_tables.transitions`."""

    STOP: Final = 0  # 1: the run ends here; or FSM_TRANSITION_LEFT_RANGE, FSM_TRANSITION_KINK
    RESET: Final = 1  # address of the reset kernel, 0: none
    EVENT: Final = 2  # 0: has a guard of its own, else fires with this event of FSM_TRANSITION_CONTACT
    CONTACT: Final = 3
    WHEN: Final = 4  # enum fsm_condition_kind, if it has a guard
    IMPULSE: Final = 5  # 1: its reset kernel adds impulses, which closed contacts answer without rebound
    FALLS: Final = 6  # 1: its first guard, or its only one, fires at falling crossings
    WIDTH: Final = 7


class ConditionKind(IntEnum):
    """Kind of the condition of a user-defined transition."""

    CROSSES = 0  # an expression crossing zero
    STRICT = 1  # comparisons, false if the guard is zero: < and >
    WIDE = 2  # comparisons, true if the guard is zero: <= and >=


class TransitionStop(IntEnum):
    """Values of FSM_TRANSITION_STOP beside 0 and 1, of transitions not declared in the file."""

    LEFT_RANGE = 2  # a coordinate leaves its range
    KINK = 3  # a held row passes a kink


class ContactFlag(IntEnum):
    """Bits of `fsm_tables.contact_flags`: properties of a contact and of its law (fsm_dyn/laws)."""

    FRICTION = 1  # has a tangent row
    STICKS_ALWAYS = 2  # infinite friction: never slides
    GATED = 4  # has a closes_if
    LIMITED = 8  # is on a bounded face
    TWO_SIDED = 16  # a slot: always closed, its normal force may have either sign
    POISSON = 32  # restitution of impulses, not of speeds
    IN_SPACE = 64  # slips in two directions: the row after its tangent row is the second
    RIGID = 128  # its normal force is a constraint force, which the contact problem determines
    COMPLIANT = 256  # its normal force is a function of the state, no constraint force
    SWITCHED = 512  # its constraint acts while it is held: transitions switch it
    FRICTION_ONLY = 1024  # a friction force with given bounds, and no normal force
    NO_GAP = 2048  # rigid, on the level of speeds: there is no distance to close
    FORCE_LIMIT = 4096  # its constraint opens at the force given by the term `static_friction`
    LOADED = 8192  # its bounds are coefficients of the resultant of the forces of its load rows
    WHOLE_CIRCLE = 16384  # of a circle touched from outside: its aspect is the far side's
    GROUP = 65536  # bits from here on: number of the first contact of the same entry of the model


TURNING: Final = 100.0  # times the speed tolerance: largest error of slip in space at rest


class RowRole(IntEnum):
    """Roles of rows (`fsm_tables.row_role`)."""

    KINEMATIC = 0  # eliminated by the choice of speeds
    ALWAYS = 1  # a constraint on speeds
    ALWAYS_POSITION = 2  # a constraint on coordinates
    CONTACT = 3  # belongs to a contact


class Reason(IntEnum):
    """Why an instant is resolved (`fsm_counters.reason`)."""

    START = 0
    EVENT = 1
    INPUT_JUMP = 2
    ZENO = 3
    INCONSISTENT_ROWS = 4  # redundant rows became inconsistent
    SAMPLE = 5  # a controller was sampled; the last


class ChosenBy(IntEnum):
    """How the contact states after an instant were found (`fsm_notes.chosen_by`)."""

    NO_CANDIDATES = 0
    UNIQUE = 1
    LEAST_CHANGE = 2
    FIRED_STATE_KEPT = 3  # only a state whose guard had fired was consistent
    POLICY = 4  # several motions were consistent; the model asks for the least change
    IMPACT_WITHOUT_COLLISION = 5  # none was, and the model asks for an impact without collision
    CONTINUITY = 6  # several motions were; only in this one all sticking contacts still stick
    PAST_LIMIT = 7  # several motions were; this one alone exists past the limit of friction


# -- tables.h --------------------------------------------------------------------------------------------------------


NEVER: Final = 9223372036854775807


class Sizes:
    """Lengths, and choices of the model."""

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
    ON_INCONSISTENT: Final = 13  # 1: an impact without collision if no combination agrees with the accelerations
    ON_SEVERAL: Final = 14  # 1: of several consistent motions, the one with the least change continues
    N_CONTROLLERS: Final = 15
    N_SHAPES: Final = 16  # round shapes with centres in `shape_centres`
    MAX_MOVING: Final = 17  # most arguments of an enclosure changing in a step
    MAX_VALUES: Final = 18  # values of an enclosure
    PROOF_WORDS: Final = 19  # numbers kept of all modes by guard_proof.c
    COUNT: Final = 20


class ToleranceTable:
    """Tolerances by kind of quantity (SI units), and the mechanism's own units; see fsm_dyn.Tolerances."""

    GAP: Final = 0
    SPEED: Final = 1
    ACCELERATION: Final = 2
    MULTIPLIER: Final = 3
    ENERGY: Final = 4
    PIVOT: Final = 5
    HYSTERESIS: Final = 6
    TIME: Final = 7
    COINCIDENCE: Final = 8
    GRAZE: Final = 9
    PROJECTION: Final = 10
    DRIFT: Final = 11
    IMPACT: Final = 12
    SLIP: Final = 13
    LEAST_ACCELERATION: Final = 14
    REDUNDANCY: Final = 15
    LENGTH_SCALE: Final = 16
    MASS_SCALE: Final = 17
    TIME_SCALE: Final = 18
    COUNT: Final = 19


class OnlineKernel(IntEnum):
    """Kernels of a mode embedded online."""

    RHS = 0
    FULL = 1
    PLAIN = 2  # FULL without slopes that take differences: they are infinite
    SLOPES = 3  # those, behind what PLAIN has written


# -- enclosure.h -----------------------------------------------------------------------------------------------------


JET_NUMBERS: Final = 6  # bounds of a value, of its rate and of its second rate
OPERAND_BITS: Final = 18  # of an operand in an instruction, after eight of the operation


class EnclosedOperation(IntEnum):
    """Operations; the first are those of fsm_dyn.programs.graph in their order."""

    NEG = 0
    ADD = 1
    SUB = 2
    MUL = 3
    DIV = 4
    POW = 5
    SQRT = 6
    EXP = 7
    LOG = 8
    SIN = 9
    COS = 10
    TAN = 11
    ASIN = 12
    ACOS = 13
    ATAN = 14
    ATAN2 = 15
    SINH = 16
    COSH = 17
    TANH = 18
    ABS = 19
    SIGN = 20
    FLOOR = 21
    MOD = 22
    MIN = 23
    MAX = 24
    LT = 25
    LE = 26
    EQ = 27
    NE = 28
    AND = 29
    OR = 30
    NOT = 31
    WHERE = 32
    NORM = 33  # root of the sum of the squares of two or three numbers


# -- run.h -----------------------------------------------------------------------------------------------------------


NEAR: Final = 0.2  # largest remainder of a vanishing row for stages to be put on the rows
NEAR_STEPS: Final = 3.0  # steps from a change point within which stages are put on the rows
FAR_STEPS: Final = 8.0  # steps from it within which they are if the remainder of a row is small
TINY: Final = 0.01  # remainder of a vanishing row, at any rate of change of rows
TURNED: Final = 2.0  # largest change of a row up to a foreseen change point, as a multiple of its size
WORK_OF_TRANSITION: Final = 1
WORK_OF_CANDIDATE: Final = 0.1  # a combination of contact states solved, in an impact or a decision
WORK_OF_MODE: Final = 20  # a mode reached for the first time
ROWS_PER_TURN: Final = 5  # a turn of the loop records at most this many rows


class Phase(IntEnum):
    """Next action of the loop (`fsm_counters.phase`)."""

    STEPPING = 0
    RESOLVING = 1


class GuardStatus(IntEnum):
    """Status of a guard (`fsm_state.armed`)."""

    WAITING = 0
    ARMED = 1


class ConditionColumn:
    """Columns of `fsm_state.conditions`, one row for each user-defined transition (conditions.c)."""

    DUE: Final = 0  # enum fsm_due
    FIRST: Final = 1  # knowledge of its condition before the instant
    SECOND: Final = 2  # the same for the other direction of an expression with crossings in both
    VALUE: Final = 3  # value and slope of the guard when it fired
    SLOPE: Final = 4
    WIDTH: Final = 5


class Due(IntEnum):
    """Whether a user-defined transition is due in this instant, and its cause."""

    NOT_DUE = 0
    DUE_BY_CONDITION = 1
    DUE_BY_CONTACT = 2


class RingColumn:
    """Columns of `fsm_state.history`, a ring of the last transitions, and the number of its entries."""

    TIME: Final = 0
    MODE: Final = 1  # ended mode
    SIGN: Final = 2  # event, as one number
    SPEED: Final = 3  # how fast the gap closed
    CONTACT: Final = 4  # closed contact, -1 if none
    WIDTH: Final = 5


RING_LENGTH: Final = 16


class RecordColumn:
    """Columns of the record of a transition.

    Then up to FSM_MAX_FIRED guards, the impulses, the speeds before and after, the candidates.
    """

    TIME: Final = 0
    SOURCE: Final = 1
    TARGET: Final = 2
    ROW: Final = 3  # row of the state after; the row before it holds the state before
    REASON: Final = 4
    FIRED: Final = 5
    CANDIDATES: Final = 6
    WRITTEN: Final = 7
    ENERGY_BEFORE: Final = 8
    ENERGY_AFTER: Final = 9
    BETA: Final = 10
    CONSISTENT: Final = 11
    CHOSEN_BY: Final = 12
    GUARDS: Final = 13


MAX_FIRED: Final = 8
GUARD_WIDTH: Final = 5  # event, contact, direction, value, slope


class PassageColumn:
    """Columns of the record of a passage through a change point; then the weights of the rows."""

    TIME: Final = 0
    MODE: Final = 1
    RANK: Final = 2  # number of independent rows beside the change point
    LOST: Final = 3  # how many of them are lost in it
    ERROR: Final = 4  # estimated error of the step over it, in units of its tolerance
    ROWS: Final = 5


ROOT_ROOM: Final = 471  # floats in which roots are isolated (event_location.c)
FEW: Final = 6  # contacts of a transition with memory from the start


class DensePosition:
    """Positions in `fsm_method.dense`, the dense output of an implicit method."""

    END: Final = 0  # t_1 (s)
    LENGTH: Final = 1  # h (s)
    COEFFICIENTS: Final = 2  # of the powers 0, 1, ... of s = (t - t_1) / h, n of each


HIGHEST_DEGREE: Final = 5


class ImplicitService(IntEnum):
    """Services of fsm_implicit_step for an external solver (trial_step.c)."""

    DERIVATIVE = 0  # writes x_dot at t and `fsm_work.y` into `fsm_work.k`
    FOLLOW = 1  # accepts the dense output up to t, to the next event, or as far as guards are known
    CHART = 2  # changes to a better chart if there is one
    LOOK = 3  # looks for change points ahead; `fsm_work.y`[0] is then the length of a step clear of them


class Clock:
    """Times of a run (s), and numbers beside them."""

    TIME: Final = 0
    BEGIN: Final = 1  # start of the grid of fixed steps
    STEP: Final = 2  # length of the next step; 0: not chosen yet
    ERROR: Final = 3  # error norm of the last accepted step
    EVENT_TIME: Final = 4  # time of the last transition
    PIVOT_ALARM: Final = 5  # pivot below which another chart is wanted
    JUMP: Final = 6  # length of the advance to the end of a Zeno train, once its contacts are closed
    PIVOT: Final = 7  # smallest scaled pivot at the current state
    WINDOW: Final = 8  # start of the present window of transitions
    REMAINING: Final = 9  # remaining time of the Zeno sequence of impacts being completed
    # largest multiplier at the start of the mode; those of the modes before count half as much each time
    FORCE: Final = 10
    PUT_OFF: Final = 11  # length of the next trial of a postponed step, 0: none
    COUNT: Final = 12


class Counters:
    """Mode, phase and counts of a run."""

    MODE: Final = 0
    PHASE: Final = 1
    REASON: Final = 2  # cause of the pending resolution
    FIRED: Final = 3  # number of guards in ``State.fired``
    GRID: Final = 4  # number of the last grid point reached
    SEGMENT: Final = 5  # segment of the input tables
    ROWS: Final = 6  # rows recorded
    TRANSITIONS: Final = 7  # transitions recorded
    STEPS: Final = 8  # steps accepted
    REJECTED: Final = 9  # steps rejected
    RETAKES: Final = 10  # steps retaken to locate events
    INSTANT: Final = 11  # transitions made in this instant
    HISTORY: Final = 12  # transitions entered in ``State.history``
    STARTED: Final = 13  # 1 once the first row stands
    CYCLE: Final = 14  # impacts in a cycle of the Zeno sequence of impacts being completed
    WINDOW_COUNT: Final = 15  # transitions in the present window
    ASKED: Final = 16  # 1 once a chart for the target of the pending transition was requested
    PASSED: Final = 17  # change points recorded
    WORK_DONE: Final = 18  # since the caller set it to zero, see ``WORK_OF_TRANSITION``
    COUNT: Final = 19


class Rank:
    """Estimate of the rank of the active rows. Then the size of every row, and its weight in the loss."""

    SIZED: Final = 0  # 1 once the sizes are known
    LEFT_AT: Final = 1  # time up to which no rank can be lost (s)
    SIGMA: Final = 2  # remainder of the weakest row, taken free of the others
    RATE: Final = 3  # its largest rate of change (1/s)
    AHEAD: Final = 4  # time from the last evaluation of the rows to the next change point (s), inf: none
    BEHIND: Final = 5  # the same of the last one, negative
    LOST: Final = 6  # number of rows lost in it
    LANDS: Final = 7  # 1: stages of the present step are put on the rows
    SPEED_NORM: Final = 8  # norm of the scaled speeds
    TRIED_STEP: Final = 9  # length of a rejected step over the change point ahead, 0: none
    TRIED_ERROR: Final = 10
    PASSES_AT: Final = 11  # time of a change point in the present step (s), inf: none
    INDEPENDENT: Final = 12  # number of independent rows beside a change point
    UNSEEN: Final = 13  # steps since the last evaluation of the rows
    ACTIVE: Final = 14  # number of rows active
    WORST: Final = 15  # largest error above its tolerance of an accepted step near the change point
    CHANGE: Final = 16  # largest rate of change of a row, relative to its size (1/s)
    MOTION: Final = 17  # rate of change of the coordinates at the last evaluation of the rows (1/s)
    COUNT: Final = 18


class OptionNumbers:
    """Numbers among the options of a run."""

    UNTIL: Final = 0
    FIXED_STEP: Final = 1
    MAX_STEP: Final = 2
    RTOL: Final = 3
    COUNT: Final = 4


class OptionCounts:
    """Counts among the options of a run."""

    CHUNK: Final = 0  # steps after which the loop returns to report progress
    MAX_STEPS: Final = 1
    MAX_INSTANT: Final = 2  # transitions allowed in one instant
    MAX_WORK: Final = 3  # beyond it the loop returns before another trial step or resolution of an instant
    BEFORE_END: Final = 4  # 1: it returns before the first turn affected by the end of the run (end_of_run.c)
    COUNT: Final = 5


class MethodCounts:
    """Properties of a method."""

    STAGES: Final = 0
    ORDER: Final = 1
    ADAPTIVE: Final = 2
    DEGREE: Final = 3  # of the dense output followed instead of taking steps; 0: a tableau
    COUNT: Final = 4


class InputCounts:
    """Lengths of inputs."""

    N_INPUTS: Final = 0
    N_PARAMETERS: Final = 1  # start of the inputs in the context
    CONSTANT: Final = 2  # 1: nothing varies
    COUNT: Final = 3


class ImpactEnergy:
    """Energy of an impact."""

    BEFORE: Final = 0  # J
    AFTER: Final = 1  # J
    BETA: Final = 2  # fraction of the restitution impulse kept by the energy-consistent restitution, 1: all of it
    COUNT: Final = 3


class Notes:
    """Notes on the resolution of an instant."""

    CHANGED: Final = 0  # 1: something changed (mode, speeds, slip direction, memory), so the transition is recorded
    CANDIDATES: Final = 1  # combinations of contact states tried
    WRITTEN_TRANSITION: Final = 2  # index of the user-defined transition taken, -1: none
    INSTANT: Final = 3  # in: transitions made so far in this instant
    CONSISTENT: Final = 4  # number of consistent combinations among those tried
    CHOSEN_BY: Final = 5  # reason for the one taken: see next_state
    TARGET: Final = 6  # mode found, still without a chart
    PLAIN: Final = 7  # in: 1: guards are looked at without slopes that take differences
    COUNT: Final = 8


class Undecided(IntEnum):
    """First integers of `fsm_work.proof_numbers`: of guards that were not decided.

    How many steps were halved as a guard was neither proved nor found to fire; event and subject of the last one.
    """

    STEPS = 0
    EVENT = 1
    SUBJECT = 2


class InputMotion(IntEnum):
    """How an input may change."""

    JUMPS = 0
    RUNS = 1  # it drives a constraint on coordinates, so it must not jump
    SWITCHES = 2  # it is boolean, 0 or 1, so it must not run


class StartUse(IntEnum):
    """Whether the start of an exported model reads a parameter."""

    FREE = 0
    SHARED = 1
    ALONE = 2  # nothing else does


class Far:
    """Bound for the guards left out of steps."""

    ACTIVE: Final = 0  # 1: guards marked in `is_far` are not evaluated
    DISTANCE: Final = 1  # each of them was farther above zero than this when chosen (m)
    COUNT: Final = 2


class EndColumn:
    """Columns of `fsm_run_batch.ends`."""

    STATUS: Final = 0
    ROWS: Final = 1
    TRANSITIONS: Final = 2
    WIDTH: Final = 3


class RowsVerdict(IntEnum):
    """Whether the recorded states of a run follow from their rates."""

    EXPLAINED = 0
    CONTRADICTED = 1
    NOT_FINITE = 2


# -- contacts.h ------------------------------------------------------------------------------------------------------


class Choice(IntEnum):
    """What a contact can choose in a contact problem; a candidate is one choice for every contact."""

    OPEN = 0
    HOLD = 1  # closed, and sticks: normal and tangent rows held
    FORWARD = 2  # slides with direction +1
    BACKWARD = 3  # slides with direction -1
    PARTED_HOLD = 4  # opens under the normal impulse given (Poisson's expansion), and friction stops the slip
    PARTED_FORWARD = 5  # opens likewise, slides with direction +1
    PARTED_BACKWARD = 6  # opens likewise, slides with direction -1
    UNDER_FORWARD = 7  # slides, a slot pressed on its other face (normal force negative)
    UNDER_BACKWARD = 8
    COUNT = 9


class Violation(IntEnum):
    """The contact law most violated by a candidate."""

    KEPT = 0
    TENSION = 1
    PENETRATION_RATE = 2
    FRICTION_EXCEEDED = 3
    SLIP_AGAINST_FRICTION = 4
    NO_SOLUTION = 5  # redundant rows are inconsistent
    MOTION_INDETERMINATE = 6  # the forces are indeterminate, and the motion with them
    EXCLUDED = 7  # all contacts whose guards fired together keep their states
    SHARE_LEFT_OUT = 8  # an open contact would carry a share of the load, on which the motion depends


LOG_WIDTH: Final = 4
LOG_LENGTH: Final = 48  # numbers of the first 12 candidates


HOLDS_NOTHING: Final = 1e-13  # a row this much smaller than the largest holds nothing
HIDDEN: Final = 1e-12  # a row whose response is this part of its free response is held by the other rows


class Purpose(IntEnum):
    """Purpose of an impact."""

    REBOUND = 0
    PLASTIC = 1
    ARREST = 2  # without collision: slip inconsistent with any accelerations is stopped or reversed


SAME_ROW: Final = 1e-07  # normals with a smaller relative difference belong to flush faces
LEVEL: Final = 4.0  # times the gap tolerance: largest depth of a corner's flush neighbour in a guard
DEEPEST: Final = 4.0  # times the gap tolerance: largest depth of a gap after its guard has fired
NO_CANDIDATE: Final = 1e30  # violation without any candidate
LOAD_PASSES: Final = 1000  # until loads and forces agree; beyond, there is no such motion
LOAD_AGREES: Final = 1e-14  # change of a load, as a fraction of the largest


# -- time_stepping.h -------------------------------------------------------------------------------------------------


MOST_SWEEPS: Final = 2000  # of the projected Gauss-Seidel method


class TimeSteppingReport:
    """Contact problems of a run not solved by the sweeps, and the step limit."""

    UNSOLVED: Final = 0  # steps with sweeps that did not converge
    FIRST_UNSOLVED: Final = 1  # start of the first of them (s)
    WORST_UNSOLVED: Final = 2  # largest change of a speed in a last sweep, as a fraction of the fastest
    LONGEST: Final = 3  # longest suitable step, if one was too long (s)
    PASSED: Final = 4  # 1 + the contact passed through in this step; 0: it was too long for compliant ones
    COUNT: Final = 5


class EnergyColumn:
    """Columns of `fsm_time_stepping.energies`."""

    FREE: Final = 0  # kinetic plus potential energy after the step without the impulses of contacts (J)
    AFTER: Final = 1  # with them (J)
    REBOUND: Final = 2  # part of the restitution kept
    WIDTH: Final = 3


# -- online_mode.h ---------------------------------------------------------------------------------------------------


class OnlineProgram:
    """Positions in `fsm_online_mode.programs`."""

    ROWS: Final = 0
    MOTION: Final = 1
    WATCHED: Final = 2  # motion and the quantities of guards


class GuardQuantity(IntEnum):
    """Quantity of a guard (`fsm_online_mode.guard_quantity`)."""

    GAP = 0
    MEETING = 1  # The gap of a pad with loss: a body leaving faster than the surface follows may meet it again.
    FIRMNESS = 2  # factor of a pad's force, brought to zero by a loss
    NORMAL_FORCE = 3
    FRICTION_LIMIT = 4
    SLIP = 5
    REACH = 6
    CONDITION = 7  # of a user-defined transition
    LARGEST_GAP = 9  # of a corner from the faces of a convex polygon
    FRICTION_CIRCLE = 8  # of a contact in space: squares of the limit and of the force
    SPEED = 10  # of the normal row
    HOLDING_LIMIT = 11  # of the force of the normal row


class OnlinePlace:
    """Positions in a chart of the starts of arrays in the workspace."""

    AT_A: Final = 0  # rows of all contacts and constraints (n_rows, n_u); output of the program `rows` begins here
    AT_B: Final = 1
    AT_Q_DOT: Final = 2  # outputs of the program ``motion`` begin here
    AT_M: Final = 3
    AT_F: Final = 4
    AT_GAMMA: Final = 5
    AT_KINETIC: Final = 6
    AT_ELASTIC: Final = 7
    AT_STATIC: Final = 8  # outputs of the program ``watched`` beyond ``motion`` begin here
    AT_RESIDUAL: Final = 9
    AT_WHEN: Final = 10
    AT_REACH: Final = 11
    AT_REACH_RATE: Final = 12
    AT_FIRM: Final = 13
    AT_ASPECT: Final = 14
    # Rows of M and f and columns of A of the speeds eliminated by the choice of speeds (n_k, ...).
    AT_HIDDEN_M: Final = 15
    AT_HIDDEN_F: Final = 16
    AT_HIDDEN_A: Final = 17
    AT_X: Final = 18  # state with dependent speeds recomputed
    AT_P: Final = 19  # eliminated rows, b and gamma behind (n_rows, n_u + 2)
    AT_H: Final = 20  # eliminated rows of forces (n_rows, n_u)
    AT_Q: Final = 21  # scratch of the choice of a chart (n_rows, n_u)
    AT_MT: Final = 22  # M T
    AT_MASS: Final = 23  # reduced mass matrix
    AT_RIGHT: Final = 24  # reduced forces, then independent accelerations
    AT_FORCE: Final = 25  # forces of the mode
    AT_G: Final = 26  # forces less the share of dependent speeds
    AT_U_DOT: Final = 27
    AT_MULTIPLIERS: Final = 28
    AT_OPEN: Final = 29  # indeterminate multipliers of redundant rows, then shares of the load (2 n_rows, n_rows)
    AT_PROBE: Final = 30  # state to difference at
    AT_PROBE_C: Final = 31  # context there
    AT_GUARDS: Final = 32  # guard values there, twice
    AT_WAY: Final = 33  # components of slip directions (n_contacts, 2)
    AT_SCALES: Final = 34  # scales of columns and norms of rows of the reduced equations (2 n_u)
    PLACES: Final = 35


class OnlineChoice:
    """Positions in a chart of the choices.

    From FSM_ONLINE_LISTS on the lists: rows (n_rows), the contact sliding at each or -1 (n_rows), speeds, dependent
    ones first (n_u), contacts not open.
    """

    CHOSEN: Final = 35  # 1: there is a chart
    RANK: Final = 36  # independent rows
    ACTIVE: Final = 37  # rows held; those beyond the rank are redundant
    SLIDES: Final = 38  # whether a contact slides under a normal force: forces then act off the rows
    CHOICES: Final = 39  # charts chosen so far
    BUSY: Final = 40  # contacts not open
    PUSHES: Final = 41  # whether one of them pushes along inactive rows
    SPAN: Final = 42  # largest difference between the numbers of a contact and of the first of its outline
    SHARED: Final = 43  # first ones of the redundant rows, with load shares that affect the motion


ONLINE_LISTS: Final = 44
ONLINE_CHOICE_COUNT: Final = 9  # from FSM_ONLINE_CHOSEN on, of `kept` before rows and speeds
SET_BACK: Final = 1e-07  # reduction of the gap of a corner, as a part of a neighbour's distance behind the face


class OnlineLimits:
    """Limits of a mode embedded online."""

    FLOOR: Final = 0  # scaled pivot below which another chart is chosen in any case
    LEVEL: Final = 1  # and for the present chart: the share `kept` of its best one so far
    KEPT: Final = 2
    FOLLOWS: Final = 3  # slip speed from which on the direction of friction in space follows the slip (m/s)
    REDUNDANCY: Final = 4  # a row of which more than this part is left is not redundant (any more)
    LENGTH_SCALE: Final = 5  # the mechanism's own unit of length (m)
    TIME_SCALE: Final = 6  # and of time (s)
    COUNT: Final = 7


# -- saved_state.h ---------------------------------------------------------------------------------------------------


SAVED_MAGIC: Final = 4995689717091357510  # "FSMSTATE" if the lowest byte comes first
SAVED_BYTE_ORDER: Final = 72623859790382856
SAVED_VERSION: Final = 2  # to be raised when the meaning of a section or of a field in it changes
SAVED_HEADER: Final = 8  # words


class Restored(IntEnum):
    """Results of restoring a state."""

    RESTORED = 0
    LACKS_MODE = 1
    NOT_SAVED = 2
    OTHER_VERSION = 3
    OTHER_BYTE_ORDER = 4
    DAMAGED = 5
    OTHER_KIND = 6
    OTHER_MODEL = 7
    OTHER_LAYOUT = 8
    OTHER_METHOD = 9
    OUT_OF_RANGE = 10


RESTORED_TEXTS: Final[dict[int, str]] = {
    Restored.RESTORED: "the state is restored",
    Restored.LACKS_MODE: "a mode of the saved state is missing in the tables",
    Restored.NOT_SAVED: "these bytes are not a saved state",
    Restored.OTHER_VERSION: "the state was saved by a version of the runtime whose format differs",
    Restored.OTHER_BYTE_ORDER: "the state was saved on a machine with another byte order",
    Restored.DAMAGED: "the saved state is damaged: its length or its check sum is wrong",
    Restored.OTHER_KIND: "the saved state is of the other kind of integration: event-driven, or time stepping",
    Restored.OTHER_MODEL: "the state was saved of another model",
    Restored.OTHER_LAYOUT: "the tables have other sizes, contacts or tolerances than those of the saved state",
    Restored.OTHER_METHOD: "the state was saved with another method of integration",
    Restored.OUT_OF_RANGE: "a number of the saved state is out of range",
}


class SavedKind(IntEnum):
    """Kinds of integration."""

    RUN = 0
    STEPS = 1  # time stepping


class SavedSection(IntEnum):
    """Sections; of integers unless they say otherwise."""

    METHOD = 1  # struct fsm_method_counts
    CLOCK = 2  # doubles, struct fsm_clock
    COUNTERS = 3  # struct fsm_counters, the mode zero
    X = 4  # doubles
    X_DOT = 5  # doubles
    CONTEXT = 6  # doubles
    MODE = 7  # the current mode, FSM_MODE_WORDS
    GUARDS = 8  # doubles: values, slopes, tolerances of its guards, values and slopes of those fired
    ARMED = 9  # status of its guards, enum fsm_guard_status
    FIRED = 10  # fired guards, by their place in the mode
    LIMITS = 11  # struct fsm_state
    HISTORY = 12  # FSM_RING_LENGTH entries: the ended mode, then the columns as doubles
    DRIFT = 13  # doubles
    RANK = 14  # doubles: struct fsm_rank, sizes and weights of the rows
    DECISION = 15  # contacts implied by others, then the candidates tried last, as doubles
    ONLINE = 16  # modes embedded online whose chart is chosen, one after the other (saved_state.c)
    STEP = 17  # time stepping: number of the step, segment of the inputs
    CODES = 18  # time stepping: contact states, then the sides of contacts
    REPORT = 19  # doubles, struct fsm_time_stepping_report
    SPENT = 20  # modes with evaluations, each with their number
    CONDITIONS = 21  # doubles: enum fsm_condition_column of every user-defined transition


# -- tick.h ----------------------------------------------------------------------------------------------------------


class TickResult(IntEnum):
    """Results of a live tick."""

    OK = 0
    ATTENTION_NEEDED = 1  # an event for the caller to handle
    SUPPLY_NEEDED = 2  # the tick needs a mode, a chart or room to continue; the caller finishes it


class Passivity(IntEnum):
    """Passivity observer and controller (`fsm_tick_counts.passivity`)."""

    OFF = 0
    OBSERVE = 1
    CONTROL = 2


OCCASION: Final = 1.0  # s without saturation between two occasions
LATEST: Final = 8  # largest delay of a force in the energy balance, ticks
CAUGHT_UP_MOST: Final = 16  # most additional periods of a tick of a model behind the clock


class Fault(IntEnum):
    """Faults, latched until cleared (`fsm_tick_counts.fault`)."""

    NONE = 0
    NON_FINITE = 1
    VELOCITY_EXCEEDED = 2
    OUT_OF_WORKSPACE = 3
    DRIVER_EXCEPTION = 4
    STALLED = 5
    WATCHDOG_LOST = 6
    OVERRUN = 7
    JUMPED = 8
    LAGGED = 9
    HAND_FORCE_EXCEEDED = 10
    HAND_FORCE_JUMPED = 11
    OUTRUN = 12
    DISAGREED = 13


class ReleaseReason(IntEnum):
    """Why a device was released (`fsm_tick_counts.release_reason`)."""

    NO_SAMPLE = 1
    TICK_DELAYED = 2  # no tick for too long
    WATCHDOG_SILENT = 3
    LOOP_ABSENT = 4  # a long operation, or the return from one


class LivePhase(IntEnum):
    """Run states of a live session (`fsm_tick_counts.phase`)."""

    RUNNING = 0
    PAUSED = 1
    FAULT = 2  # until the fault is cleared
    FAILED = 3  # the model cannot go on: reset
    STOPPED = 4  # a transition marked stop: reset


class TickState(IntEnum):
    """States of the tick process (`fsm_live_header.tick_state`)."""

    STARTING = 0
    RUNNING = 1
    BUSY = 2  # the force is zero during a long operation
    ENDED = 3  # in order, with the force at zero


class WatchdogAction(IntEnum):
    """Actions of the watchdog process (`fsm_live_header.watchdog_action`)."""

    KILLED = 1  # it killed the tick process
    FOUND_TERMINATED = 2  # the tick process had ended with an error


BINS: Final = 1024  # of the histograms of durations and latenesses
CHECKPOINT_EVERY: Final = 10  # ticks
CHECKPOINTS_MOST: Final = 2000  # of which the oldest goes: 20 s at 1 kHz


class TickNumbers:
    """Numbers of a tick."""

    ENGAGEMENT: Final = 0  # engagement: gain of the virtual coupler, 0 to 1
    ENGAGEMENT_TARGET: Final = 1
    ENGAGEMENT_STEP: Final = 2  # ramp: change of the engagement in a tick
    SPEED: Final = 3  # model time over wall-clock time
    FORCE_SCALE: Final = 4
    FORCE_LIMIT: Final = 5  # norm of the force of each device, N
    SLEW_LIMIT: Final = 6  # its change in a tick, N
    VELOCITY_LIMIT: Final = 7  # norm of the velocity of each device, m/s
    TORQUE_LIMIT: Final = 8  # as the three above, of rotational axes: N m, N m, rad/s
    TORQUE_SLEW_LIMIT: Final = 9
    ANGULAR_VELOCITY_LIMIT: Final = 10
    PERIOD: Final = 11  # of the tick, s of the wall clock
    EXCESS_ENERGY: Final = 12  # largest excess energy of any tick while the device was engaged, J
    DISSIPATED: Final = 13  # by damping, J
    DELAY: Final = 14  # of the device, ticks, up to FSM_LATEST
    RELEASE_EXCESS_ENERGY: Final = 15  # additional excess energy during the ramp of a release, J
    ENGAGED_EXCESS: Final = 16  # excess energy when the device was last engaged, J
    FORCE_REQUESTED: Final = 17  # norm of the requested force at the beginning of the last occasion of saturation, N
    TORQUE_REQUESTED: Final = 18  # likewise, N m
    SAMPLE_TIME: Final = 19  # of the sample read, by the device's clock, s; not finite: unknown
    ACCEPTED_TIME: Final = 20  # of the last accepted sample, likewise
    HAND_FORCE_LIMIT: Final = 21  # norm of the force measured by each device, N
    HAND_FORCE_RATE: Final = 22  # its rate of change, N/s
    HAND_TORQUE_LIMIT: Final = 23  # as the two above, of rotational axes: N m, N m/s
    HAND_TORQUE_RATE: Final = 24
    SAMPLE_INTERVAL: Final = 25  # median time between accepted samples, s, at least a period
    CLOCK_LEAD: Final = 26  # of the device's clock over the loop's, most of the last seconds, s
    SAMPLE_AGE: Final = 27  # of the last accepted sample on arrival, compared with the youngest lately, s
    VELOCITY_LAG: Final = 28  # of the velocity in a sample behind the device, s
    GRAIN: Final = 29  # smallest change of position between samples, s at the largest velocity; 0: none yet
    DOUBT: Final = 30  # part of the force that is withheld, as positions and velocities contradict each other
    ELAPSED: Final = 31  # since the tick before, s of the wall clock; 0 for ticks without a clock
    RUNNING: Final = 32  # s of the wall clock in which the model had to advance
    PROGRESS: Final = 33  # s of the wall clock that its advance is worth
    COUNT: Final = 34


class TickCounts:
    """Counts of a tick."""

    STEPS: Final = 0  # steps of the grid since it began
    SUBSTEPS: Final = 1
    KERNEL: Final = 2  # address of the kernel of the ports
    ANCHOR: Final = 3  # 1: the device is to be put at the port
    FAULT: Final = 4
    ADVANCING: Final = 5  # 1: the model moves in this tick
    INCOMPLETE: Final = 6  # 1: the tick before did not reach its end
    SATURATED_TICKS: Final = 7  # ticks in which the force was limited
    INPUTS_SET: Final = 8  # 1: the inputs at the end of the tick stand in ``next`` already
    STATUS: Final = 9  # how the tick ended, a status of the outcomes
    ABSOLUTE_OFFSET: Final = 10  # 1: the device's zero is given by the mapping, not by the engagement
    SCHEDULED: Final = 11  # 1: inputs without a device follow the model's schedule
    SEGMENT: Final = 12  # of the schedule
    PHASE: Final = 13
    TICKS: Final = 14
    TRANSITIONS: Final = 15  # since the run began
    SEQUENCE: Final = 16  # of the sample that was read
    LAST_SEQUENCE: Final = 17  # of the last examined sample
    STALE_TICKS: Final = 18  # ticks without a new acceptable sample
    STALL_TICKS: Final = 19
    BUTTONS: Final = 20
    DEAD_MAN: Final = 21  # mask of the button to hold pressed, 0 for none
    CLUTCH: Final = 22
    ENGAGED: Final = 23
    PENDING_COMMANDS: Final = 24  # commands waiting until the engagement is zero
    STEPS_LEFT: Final = 25  # ticks to advance while paused
    UNTIL_TRANSITION: Final = 26  # 1: the caller requests a return at transitions
    ATTENTION: Final = 27  # 1: an event for the caller to handle
    WALL: Final = 28  # ns since the loop began
    WAKEUP_LATENCY: Final = 29  # ns
    EXECUTION_TIME: Final = 30  # ns of the tick before
    CPU_TIME: Final = 31  # ns of the thread's time, likewise
    WATCHDOG_BEATS: Final = 32  # heartbeats of the watchdog process when last looked at
    WATCHDOG_SEEN: Final = 33  # ns since the loop began, when they changed last
    WATCHDOG_TIMEOUT: Final = 34  # ns, 0: there is no watchdog process
    NEW_TRANSITIONS: Final = 35  # transitions in this tick
    PASSIVITY: Final = 36  # whether the energy at the port is watched
    OUTLIERS: Final = 37  # most successive rejected samples
    REJECTED: Final = 38  # samples rejected in succession
    REJECTED_TOTAL: Final = 39
    SAMPLE_ACCEPTED: Final = 40  # 1: a sample has been taken
    ACCEPTED_WALL: Final = 41  # ns since the loop began, when a sample was taken last
    ACCEPTED_TICK: Final = 42
    RELEASED: Final = 43  # 1: no force until the device is engaged anew
    RELEASES: Final = 44  # how often the device was released
    RELEASE_REASON: Final = 45  # of the last one
    SETTLING: Final = 46  # ticks in time until the device may be engaged again
    RELEASE_TIME: Final = 47
    RELEASE_TICKS: Final = 48  # ticks without a new sample likewise
    OWNER_BEATS: Final = 49  # heartbeats of the owner when last looked at
    OWNER_SEEN: Final = 50  # ns since the loop began, when they changed last
    OWNER_TIMEOUT: Final = 51  # ns, 0: no heartbeat required
    OWNER_SILENT: Final = 52
    ZERO_FORCE_PACKETS: Final = 53  # safe packets of the watchdog process when last looked at
    MAY_JUMP: Final = 54  # 1: positions may jump, as no force is shown
    FADED_TICKS: Final = 55  # ticks in which the force had faded without samples
    SATURATION_TICKS_LEFT: Final = 56  # ticks until the occasion of a force beyond the limit is over, 0: there is none
    SATURATIONS: Final = 57  # occasions since the run began
    LAGGING_TICKS: Final = 58  # ticks that ended before their model time was reached
    BEHIND: Final = 59  # ticks by which the model is behind the clock
    PERIODS: Final = 60  # periods of the model in this tick: 1 unless it catches up
    ADMITTANCE: Final = 61  # 1: the device measures forces and follows velocities
    PACED: Final = 62  # 1: ticks keep to the wall clock, and so do ramps and timeouts
    LAG_LIMIT: Final = 63  # largest lag of the model behind the clock, ns, 0: any
    SAMPLES: Final = 64  # taken since the run began
    CHANGED_TICK: Final = 65  # in which the numbers of a sample were not those of the one before
    SLOW_DEVICE: Final = 66  # 1: it samples more slowly than the loop ticks
    FOLLOWS: Final = 67  # 1: couplers and prescribed coordinates follow the device in this tick
    COUNT: Final = 68


class MovedBy(IntEnum):
    """Instead of a constraint in `fsm_tick.row`."""

    APPLIED = -2  # the force of the hand is an input
    COUPLED = -1  # a coupler


class LiveHeader:
    """Header of the shared block."""

    BEATS: Final = 0  # ticks begun
    WATCHDOG_BEATS: Final = 1
    STOP_REQUESTED: Final = 2  # 1: the run is to end
    TICK_STATE: Final = 3
    WATCHDOG_ACTION: Final = 4
    ROWS: Final = 5  # rows written
    TRANSITIONS: Final = 6
    EVENTS: Final = 7
    COMMANDS: Final = 8  # commands sent
    COMMANDS_READ: Final = 9
    PHASE: Final = 10
    FAULT: Final = 11
    TICK_PID: Final = 12  # 0: the tick process still loads, and has not touched the device
    OVERRUNS: Final = 13
    SATURATED_TICKS: Final = 14
    POINTER: Final = 15  # samples of the pointer sent
    RECORDED: Final = 16  # rows taken by a recorder
    EXCESS_ENERGY: Final = 17  # nJ, largest excess energy
    DISSIPATED: Final = 18  # nJ, by damping
    PASSIVITY_ON: Final = 19  # whether the energy at the port is
    RESERVED_20: Final = 20
    RELEASE_EXCESS_ENERGY: Final = 32  # nJ, additional excess energy during the ramp of a release
    OWNER_BEATS: Final = 33  # heartbeats of the owner
    ZERO_FORCE_PACKETS: Final = 34  # safe packets of the watchdog process, sent for lack of ticks
    REJECTED: Final = 35  # samples
    RELEASES: Final = 36  # how often the device was released
    FADED_TICKS: Final = 37  # ticks in which the force had faded
    SATURATIONS: Final = 38  # occasions on which the force was saturated
    LAGGING_TICKS: Final = 39  # ticks that ended before their model time was reached
    RUNNING_TIME: Final = 40  # ns of the wall clock in which the model had to advance
    PROGRESS: Final = 41  # ns of the wall clock that its advance is worth
    SAMPLE_INTERVAL: Final = 42  # ns, median time between the samples of the device
    NEXT_EVENT: Final = 43  # ns of the model's time, when the copy that runs ahead met a transition; -1: none
    COUNT: Final = 44


class CheckpointCounts:
    """Counts of checkpoints."""

    SAVED: Final = 0
    SINCE: Final = 1  # ticks since the last one
    COUNT: Final = 2


class TickPlaces:
    """Addresses of the data of a tick."""

    TABLES: Final = 0
    INPUTS: Final = 1
    METHOD: Final = 2
    OPTIONS: Final = 3
    STATE: Final = 4
    WORK: Final = 5
    BUFFERS: Final = 6
    SCHEDULE: Final = 7
    RING: Final = 8  # 0: no other process reads
    CHECKPOINTS: Final = 9
    COUNT: Final = 10


# -- pacing.h --------------------------------------------------------------------------------------------------------


class Back(IntEnum):
    """Why the loop returns to its caller."""

    CHECK_END = 1  # the caller decides whether the run is over
    COMMANDS_ARRIVED = 2
    COMMAND_PENDING = 3  # a command has waited until the engagement is zero
    SUPPLY_NEEDED = 4  # the tick cannot go on without a mode, a chart or room
    ATTENTION_NEEDED = 5  # something happened in the tick, or it ended late
    READ_FAILED = 6
    WRITE_FAILED = 7
    RECORDER_CHECK = 8  # not paced: a recorder may be behind


class PaceNumbers:
    """Numbers of the paced loop."""

    READ: Final = 0
    WRITE: Final = 1
    DATA: Final = 2  # handed to both
    PERIOD: Final = 3  # ns; 0: as fast as it goes
    START: Final = 4  # ns of the monotonic clock
    DEADLINE: Final = 5  # ns
    WAKEUP: Final = 6  # ns
    CPU_TIME_AT_START: Final = 7  # ns of the thread's time, when the tick began
    EXECUTION_TIME: Final = 8  # ns of the tick before
    CPU_TIME: Final = 9  # ns of the thread's time, likewise
    OVERRUN: Final = 10  # ns from the next deadline to the end of the tick, 0 if earlier
    COMMANDS_READ: Final = 11  # messages taken
    END_CHECK_FROM: Final = 12  # tick from which on the end of the run is checked
    MUST_RUN: Final = 13  # 1: the next tick is not the last, even if requested
    COUNT: Final = 14


class SampleFlag(IntEnum):
    """Flags of a sample by UDP."""

    HAS_VELOCITY = 1  # velocities follow the positions


class ForceFlag(IntEnum):
    """Flags of a force by UDP."""

    RUNNING = 1  # the model runs: the force is to be shown
    FAULT = 2  # the run has a fault, until it is cleared
    LET_GO = 4  # show no force, whatever the sequence number: the run or its process has ended


class DropReason(IntEnum):
    """Why a datagram was dropped, or not sent (`fsm_udp_link.dropped`)."""

    SIZE = 0
    MAGIC = 1
    VERSION = 2
    AXES = 3
    NUMBER = 4
    OLD = 5
    NOT_SENT = 6


MOST_DATAGRAMS: Final = 64  # taken in a tick


class UdpNumbers:
    """Numbers of a connection by UDP."""

    DESCRIPTOR: Final = 0  # of the socket
    LONGEST: Final = 1  # most bytes read of a datagram
    SAMPLE: Final = 2  # magic, version and number of axes of a sample, as the first 48 bits
    FORCE: Final = 3  # the same of a force
    SEQUENCE: Final = 4  # of the latest sample
    BUTTONS: Final = 5
    SENT: Final = 6  # forces
    HEARD: Final = 7  # ns of the monotonic clock, when the latest sample came
    BEFORE: Final = 8  # 1: a position is known from which a velocity can be estimated
    COUNT: Final = 9


class HandNumbers:
    """Numbers of a scripted hand."""

    MASS: Final = 0  # kg
    STIFFNESS: Final = 1  # N/m
    DAMPING: Final = 2  # N s/m
    PERIOD: Final = 3  # s between readings
    GENTLE: Final = 4  # s in which the motion grows to its size
    READINGS: Final = 5  # so far
    COUNT: Final = 6
