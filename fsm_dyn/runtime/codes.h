/* Numbers that the runtime and its callers share: statuses, events, contact states, kinds, flags, reasons. */

#ifndef FSM_CODES_H
#define FSM_CODES_H

#include "types.h"

/* Every status of a run: name, number, short text, what happened, and what its user can do about it ("" where nothing is
   wrong).  Up to FSM_LAST_INTERNAL the run asks its caller for something and continues. */
#define FSM_STATUSES(X)                                                                                                \
    X(CONTINUE, 0, "running", "The run is under way.", "")                                                             \
    X(PAUSED, 1, "paused", "The run paused to report progress.", "")                                                   \
    X(BUFFER_FULL, 2, "buffer full", "The run paused for more room to record.", "")                                    \
    X(NEED_MODE, 3, "mode needed", "The next mode has not been derived yet.", "")                                      \
    X(NEED_CHART, 4, "chart needed", "The current chart degenerates (small pivot).", "")                               \
    X(DONE, 5, "done", "The run reached its final time.", "")                                                          \
    X(STOPPED, 6, "stopped", "A transition marked 'stop' ended the run.", "")                                          \
    X(INTERRUPTED, 7, "interrupted", "The run was interrupted from outside; what was recorded is kept.", "")           \
    X(TOO_MANY_STEPS, 8, "too many steps", "The run reached its limit on the number of steps.",                        \
      "raise max_steps, loosen rtol and atol, or use method='radau' if the model is stiff")                            \
    X(STEP_TOO_SMALL, 9, "step size too small", "The tolerances require a step shorter than the resolution of time.",  \
      "loosen rtol and atol, use method='radau' if the model is stiff, and look for a law that jumps or grows "        \
      "without bound at this time")                                                                                    \
    X(NON_FINITE, 10, "non-finite state", "The state or its derivative became infinite or not a number.",              \
      "look for a division by zero or a root of a negative number in the loads and transitions, or shorten the step")  \
    X(CHATTERING, 11, "chattering", "Transitions follow each other at one event time without limit.",                  \
      "check the transitions recorded last: give user-defined transitions a hysteresis, or contacts friction or "      \
      "less restitution")                                                                                              \
    X(INCONSISTENT, 12, "inconsistent contact state",                                                                  \
      "No candidate satisfies the contact laws (Painlevé paradox, jamming).",                                          \
      "check the candidates and residuals reported; lower the friction, model the contact as compliant, or let an "    \
      "impact without collision resolve it: on_inconsistent: impact")                                                  \
    X(NON_UNIQUE_STATE, 13, "non-unique contact state",                                                                \
      "Several candidates with different motions satisfy the contact laws.",                                           \
      "select the motion of the fewest state changes: on_nonunique: prefer_previous; lower the friction, "            \
      "or model the contact as compliant")                                                                             \
    X(NON_UNIQUE, 14, "non-unique motion",                                                                             \
      "Redundant contacts with indeterminate friction forces leave the motion undetermined.",                          \
      "give redundant contacts the same friction, remove one, or model them as compliant")                             \
    X(SINGULAR, 15, "singular configuration",                                                                          \
      "The active constraints lose rank, or the reduced mass matrix is singular, in every chart.",                     \
      "start from another configuration, give every moving body inertia, or remove a redundant constraint")            \
    X(PENETRATION, 16, "initial penetration",                                                                          \
      "A contact that should be open or touching penetrates deeper than the tolerance.",                               \
      "move the start so that every gap is at least zero, or let closes_if admit the contact only above zero")         \
    X(PROJECTION_FAILED, 17, "projection failed", "The drift projection onto the constraints did not converge.",       \
      "shorten the step or tighten rtol and atol; check that the constraints are consistent")                          \
    X(MODE_NOT_LISTED, 18, "mode not listed", "The motion leads into a mode that the model does not list.",            \
      "name this combination of contact states under modes, or drop only_listed")                                      \
    X(IMPACTS_DIVERGE, 19, "impact sequence does not terminate",                                                       \
      "Sequential impacts at one event time do not terminate.",                                                        \
      "give the contacts restitutions below 1, or use impacts: simultaneous")                                          \
    X(CONTRADICTORY, 20, "inconsistent constraints", "Redundant constraints have become inconsistent.",                \
      "check the lengths and axes of the redundant constraints, or remove one of them")                                \
    X(STRETCHED, 21, "stretched to its limit",                                                                         \
      "A loop is stretched to its limit and driven beyond it: no motion satisfies its constraints.",                   \
      "end the run earlier, change the motion that drives the loop, or make a link compliant")                         \
    X(UNDETERMINED, 22, "undetermined at a change point",                                                              \
      "The mechanism is at rest in a change point, where its constraints lose rank: several motions are possible.",    \
      "give it a speed, or start near the change point")                                                               \
    X(NO_BRANCH, 23, "speeds belong to no branch",                                                                     \
      "No motion through this change point has these speeds: it would violate the constraints that are lost here.",    \
      "give all speeds of one of the motions through the change point, or start near it")                              \
    X(PENETRATION_LATER, 24, "penetration during the run",                                                             \
      "A contact penetrates deeper than the tolerance when its contact state is selected.",                            \
      "tighten rtol and atol, shorten max_step or step, let closes_if admit the contact only above zero, or correct "  \
      "a transition at this instant whose reset or set moves a gap below zero")                                        \
    X(STEP_TOO_LONG, 25, "step too long", "The fixed step does not resolve the oscillation of a compliant contact.",   \
      "shorten step, or use method='dopri5' or 'radau'")                                                               \
    X(LEFT_RANGE, 26, "left its range", "A coordinate left the range that the model states for it.",                   \
      "widen the range, add a stop, or start elsewhere")                                                               \
    X(EVENT_IN_CHANGE_POINT, 27, "event in a change point",                                                            \
      "A contact or condition becomes active in a change point, where the constraints lose rank.",                     \
      "move the contact or the condition away from the configuration in which the links are in one line")              \
    X(UNSOLVED, 28, "contact solve did not converge",                                                                  \
      "The sweeps over the contacts of a step of Moreau–Jean time stepping did not converge.",                         \
      "use method='dopri5'; or avoid very different masses of bodies in contact, or model a contact as compliant")

#define FSM_STATUS_ENTRY(name, number, text, sentence, remedy) FSM_##name = number,
/* Statuses of a run, in the order of FSM_STATUSES. */
enum fsm_status { FSM_STATUSES(FSM_STATUS_ENTRY) FSM_LAST_INTERNAL = FSM_NEED_CHART };
#undef FSM_STATUS_ENTRY

/* Whether a transition has ended the run as the model asks. */
static inline bool fsm_is_end(enum fsm_status status)
{
    return status == FSM_STOPPED || status == FSM_LEFT_RANGE;
}

/* Which event a guard detects (`fsm_tables.guard_event`). */
enum fsm_event {
    FSM_EVENT_CLOSES = 1,
    FSM_EVENT_OPENS = 2,
    FSM_EVENT_SLIDES = 3,
    FSM_EVENT_STICKS = 4,
    FSM_EVENT_TRANSITION = 5, // the condition of a user-defined transition is met
    FSM_EVENT_LEAVES = 6,  // leaves a bounded face
};

/* States of a contact (`fsm_tables.mode_states`). */
enum fsm_contact_state {
    FSM_CONTACT_FREE = 0,
    FSM_CONTACT_HELD = 1,
    FSM_CONTACT_SLIDING = 2,
    FSM_CONTACT_SLIDING_UNDER = 3, // a slot pressed on its other face
};

/* Bits of `fsm_tables.mode_flags`. */
enum fsm_mode_flag {
    FSM_MODE_PROJECTS = 1,      // configuration rows or closed gaps: drift is projected out after each accepted step
    FSM_MODE_WATCHES_GATES = 2, // a contact with a closes_if is open
    FSM_MODE_TURNS = 4,         // a contact slides in space: its slip direction is updated after each accepted step
    FSM_MODE_REPEATS = 8,       // rows are redundant: whether they are still consistent is asked after each step
    FSM_MODE_RANKS = 16,        // constraints on coordinates are active: their rows may lose rank
};

/* Columns of `fsm_tables.transitions`. */
enum fsm_transition_column {
    FSM_TRANSITION_STOP = 0,  // 1: the run ends here; or FSM_TRANSITION_LEFT_RANGE, FSM_TRANSITION_KINK
    FSM_TRANSITION_RESET = 1, // address of the reset kernel, 0: none
    FSM_TRANSITION_EVENT = 2, // 0: has a guard of its own, else fires with this event of FSM_TRANSITION_CONTACT
    FSM_TRANSITION_CONTACT = 3,
    FSM_TRANSITION_WHEN = 4, // enum fsm_condition_kind, if it has a guard
    FSM_TRANSITION_IMPULSE = 5, // 1: its reset kernel adds impulses, which closed contacts answer without rebound
    FSM_TRANSITION_FALLS = 6,   // 1: its first guard, or its only one, fires at falling crossings
    FSM_TRANSITION_WIDTH = 7,
};

/* Kind of the condition of a user-defined transition. */
enum fsm_condition_kind {
    FSM_WHEN_CROSSES = 0, // an expression crossing zero
    FSM_WHEN_STRICT = 1,  // comparisons, false if the guard is zero: < and >
    FSM_WHEN_WIDE = 2,    // comparisons, true if the guard is zero: <= and >=
};

/* Values of FSM_TRANSITION_STOP beside 0 and 1, of transitions not declared in the file. */
enum fsm_transition_stop {
    FSM_TRANSITION_LEFT_RANGE = 2, // a coordinate leaves its range
    FSM_TRANSITION_KINK = 3,       // a held row passes a kink
};

/* Bits of `fsm_tables.contact_flags`: properties of a contact and of its law (fsm_dyn/laws). */
enum fsm_contact_flag {
    FSM_FLAG_FRICTION = 1,         // has a tangent row
    FSM_FLAG_STICKS_ALWAYS = 2,    // infinite friction: never slides
    FSM_FLAG_GATED = 4,            // has a closes_if
    FSM_FLAG_LIMITED = 8,          // is on a bounded face
    FSM_FLAG_TWO_SIDED = 16,       // a slot: always closed, its normal force may have either sign
    FSM_FLAG_POISSON = 32,         // restitution of impulses, not of speeds
    FSM_FLAG_IN_SPACE = 64,        // slips in two directions: the row after its tangent row is the second
    FSM_FLAG_RIGID = 128,          // its normal force is a constraint force, which the contact problem determines
    FSM_FLAG_COMPLIANT = 256,      // its normal force is a function of the state, no constraint force
    FSM_FLAG_SWITCHED = 512,       // its constraint acts while it is held: transitions switch it
    FSM_FLAG_FRICTION_ONLY = 1024, // a friction force with given bounds, and no normal force
    FSM_FLAG_NO_GAP = 2048,        // rigid, on the level of speeds: there is no distance to close
    FSM_FLAG_FORCE_LIMIT = 4096,   // its constraint opens at the force given by the term `static_friction`
    FSM_FLAG_LOADED = 8192,        // its bounds are coefficients of the resultant of the forces of its load rows
    FSM_FLAG_WHOLE_CIRCLE = 16384, // of a circle touched from outside: its aspect is the far side's
    FSM_FLAG_GROUP = 65536,        // bits from here on: number of the first contact of the same entry of the model
};

#define FSM_TURNING 100.0 // times the speed tolerance: largest error of slip in space at rest

/* Roles of rows (`fsm_tables.row_role`). */
enum fsm_row_role {
    FSM_ROLE_KINEMATIC = 0,       // eliminated by the choice of speeds
    FSM_ROLE_ALWAYS = 1,          // a constraint on speeds
    FSM_ROLE_ALWAYS_POSITION = 2, // a constraint on coordinates
    FSM_ROLE_CONTACT = 3,         // belongs to a contact
};

/* Why an instant is resolved (`fsm_counters.reason`). */
enum fsm_reason {
    FSM_REASON_START = 0,
    FSM_REASON_EVENT = 1,
    FSM_REASON_INPUT_JUMP = 2,
    FSM_REASON_ZENO = 3,
    FSM_REASON_INCONSISTENT_ROWS = 4, // redundant rows became inconsistent
    FSM_REASON_SAMPLE = 5,            // a controller was sampled; the last
};

/* Whether a state without a located event is resolved. */
static inline bool fsm_is_from_outside(int64_t reason)
{
    return reason == FSM_REASON_START || reason == FSM_REASON_INPUT_JUMP || reason == FSM_REASON_SAMPLE;
}

/* How the contact states after an instant were found (`fsm_notes.chosen_by`). */
enum fsm_chosen_by {
    FSM_CHOSEN_NO_CANDIDATES = 0,
    FSM_CHOSEN_UNIQUE = 1,
    FSM_CHOSEN_LEAST_CHANGE = 2,
    FSM_CHOSEN_FIRED_STATE_KEPT = 3,         // only a state whose guard had fired was consistent
    FSM_CHOSEN_POLICY = 4,                   // several motions were consistent; the model asks for the least change
    FSM_CHOSEN_IMPACT_WITHOUT_COLLISION = 5, // none was, and the model asks for an impact without collision
    FSM_CHOSEN_CONTINUITY = 6,               // several motions were; only in this one all sticking contacts still stick
    FSM_CHOSEN_PAST_LIMIT = 7,               // several motions were; this one alone exists past the limit of friction
};

/* Texts of statuses, in English; NULL for other numbers. */
FSM_API const char *fsm_status_text(int64_t status);
FSM_API const char *fsm_status_sentence(int64_t status);
FSM_API const char *fsm_status_remedy(int64_t status);

#endif
