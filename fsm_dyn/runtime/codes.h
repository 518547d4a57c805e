/* Numbers that the runtime and its callers name alike: outcomes, events, states, kinds. */

#ifndef FSM_CODES_H
#define FSM_CODES_H

/* Outcomes.  Up to FSM_LAST_INTERNAL they ask the caller for something, and the run goes on. */
#define FSM_CONTINUE          0
#define FSM_PAUSED            1
#define FSM_BUFFER_FULL       2
#define FSM_NEED_MODE         3
#define FSM_NEED_CHART        4
#define FSM_LAST_INTERNAL     4
#define FSM_DONE              5
#define FSM_STOPPED           6
#define FSM_INTERRUPTED       7
#define FSM_TOO_MANY_STEPS    8
#define FSM_STEP_TOO_SMALL    9
#define FSM_NON_FINITE        10
#define FSM_CHATTERING        11
#define FSM_INCONSISTENT      12
#define FSM_NON_UNIQUE_STATE  13
#define FSM_NON_UNIQUE        14
#define FSM_SINGULAR          15
#define FSM_PENETRATION       16
#define FSM_PROJECTION_FAILED 17
#define FSM_MODE_NOT_LISTED   18
#define FSM_IMPACTS_DIVERGE   19
#define FSM_CONTRADICTORY     20
#define FSM_STRETCHED         21
#define FSM_UNDETERMINED      22
#define FSM_NO_BRANCH         23
#define FSM_PENETRATION_LATER 24
#define FSM_STEP_TOO_LONG     25

/* Of automata. */

// what a guard announces (``Tables.guard_event``)
#define FSM_EVENT_CLOSES  1
#define FSM_EVENT_OPENS   2
#define FSM_EVENT_SLIDES  3
#define FSM_EVENT_STICKS  4
#define FSM_EVENT_WRITTEN 5
#define FSM_EVENT_LEAVES  6

// states of a contact (``Tables.mode_states``)
#define FSM_CONTACT_FREE          0
#define FSM_CONTACT_HELD          1
#define FSM_CONTACT_SLIDING       2
#define FSM_CONTACT_SLIDING_UNDER 3 // a slot pressed on its other face

// bits of ``Tables.mode_flags``
#define FSM_MODE_PROJECTS 1  // the mode has configuration rows or closed gaps: project after each accepted step
#define FSM_MODE_REPEATS  8  // rows of the mode repeat each other: whether they still agree is asked after each step
#define FSM_MODE_TURNS    4  // a contact slides in space: its slip direction is kept up with after each accepted step
#define FSM_MODE_RANKS    16 // constraints on coordinates hold: their rows may lose rank
#define FSM_MODE_WATCHES_GATES 2 // a contact with a closes_if is open in the mode

// columns of ``Tables.transitions``
#define FSM_TRANSITION_STOP    0 // 1: the run ends here
#define FSM_TRANSITION_RESET   1 // address of the reset kernel, 0: none
#define FSM_TRANSITION_EVENT   2 // 0: has a guard of its own, else fires with this event of TRANSITION_CONTACT
#define FSM_TRANSITION_CONTACT 3
#define FSM_TRANSITION_WIDTH   4

// kinds of contact (``Tables.contact_kind``)
#define FSM_KIND_GAP          0
#define FSM_KIND_DRY_FRICTION 1
#define FSM_KIND_LOCK         2
#define FSM_KIND_COMPLIANT    3 // a gap whose force is a law of its depth

// bits of ``Tables.contact_flags``
#define FSM_FLAG_FRICTION      1    // has a tangent row
#define FSM_FLAG_STICKS_ALWAYS 2    // infinite friction: never slides
#define FSM_FLAG_GATED         4    // has a closes_if
#define FSM_FLAG_LIMITED       8    // is on a face that ends
#define FSM_FLAG_TWO_SIDED     16   // a slot: always closed, its normal force may have either sign
#define FSM_FLAG_POISSON       32   // restitution of impulses, not of speeds
#define FSM_FLAG_IN_SPACE      64   // slips in two directions: the row after its tangent row is the second
#define FSM_FLAG_GROUP         1024 // bits from here on: number of the first contact of the same entry of the model
#define FSM_TURNING 100.0 // times the speed that counts as zero: slip in space that came to rest may be so much off it

// roles of rows (``Tables.row_role``)
#define FSM_ROLE_KINEMATIC       0 // hidden in the choice of speeds
#define FSM_ROLE_ALWAYS          1 // a constraint on speeds
#define FSM_ROLE_ALWAYS_POSITION 2 // a constraint on coordinates
#define FSM_ROLE_CONTACT         3 // belongs to a contact

/* Why an instant is resolved. */

// why ``resolve`` is called
#define FSM_REASON_START             0
#define FSM_REASON_EVENT             1
#define FSM_REASON_INPUT_JUMP        2
#define FSM_REASON_ZENO              3
#define FSM_REASON_INCONSISTENT_ROWS 4 // rows that repeated each other agree no longer

/* How the state after it was found. */

// how the answer was found (``notes[CHOSEN_BY]``)
#define FSM_CHOSEN_NO_CANDIDATES    0
#define FSM_CHOSEN_UNIQUE           1
#define FSM_CHOSEN_LEAST_CHANGE     2
#define FSM_CHOSEN_FIRED_STATE_KEPT 3 // nothing else agreed than a state whose guard had fired
#define FSM_CHOSEN_POLICY           4 // several motions agreed, and the model says that what changes least goes on
#define FSM_CHOSEN_IMPACT_WITHOUT_COLLISION                                                                            \
    5 // nothing agreed, and the model says that an impact without collision follows

#endif
