/* Structures of a run: inputs over time, method, options, state, workspace, buffers of rows and transitions. */

#ifndef FSM_RUN_H
#define FSM_RUN_H

#include "arena.h"
#include "tables.h"

#define FSM_NEAR       0.2  // largest remainder of a vanishing row for stages to be put on the rows
#define FSM_NEAR_STEPS 3.0  // steps from a change point within which stages are put on the rows
#define FSM_FAR_STEPS  8.0  // steps from it within which they are if the remainder of a row is small
#define FSM_TINY       1e-2 // remainder of a vanishing row, at any rate of change of rows
#define FSM_TURNED     2.0  // largest change of a row up to a foreseen change point, as a multiple of its size

/* Units of work in `fsm_counters.work_done`, besides one for every evaluation of the guards, which takes most of the
   time: at the end of a trial step and in its middle, and in the state after a transition. */
#define FSM_WORK_OF_TRANSITION 1
#define FSM_WORK_OF_CANDIDATE  0.1 // a combination of contact states solved, in an impact or a decision
#define FSM_WORK_OF_MODE       20  // a mode reached for the first time
#define FSM_ROWS_PER_TURN      5   // a turn of the loop records at most this many rows

/* Next action of the loop (`fsm_counters.phase`). */
enum fsm_phase {
    FSM_PHASE_STEPPING = 0,
    FSM_PHASE_RESOLVING = 1,
};

/* Status of a guard (`fsm_state.armed`). */
enum fsm_guard_status {
    FSM_GUARD_WAITING = 0,
    FSM_GUARD_ARMED = 1,
};

/* Columns of `fsm_state.conditions`, one row for each user-defined transition (conditions.c). */
enum fsm_condition_column {
    FSM_CONDITION_DUE = 0,    // enum fsm_due
    FSM_CONDITION_FIRST = 1,  // knowledge of its condition before the instant
    FSM_CONDITION_SECOND = 2, // the same for the other direction of an expression with crossings in both
    FSM_CONDITION_VALUE = 3,  // value and slope of the guard when it fired
    FSM_CONDITION_SLOPE = 4,
    FSM_CONDITION_WIDTH = 5,
};

/* Whether a user-defined transition is due in this instant, and its cause. */
enum fsm_due {
    FSM_NOT_DUE = 0,
    FSM_DUE_BY_CONDITION = 1,
    FSM_DUE_BY_CONTACT = 2,
};

/* Columns of `fsm_state.history`, a ring of the last transitions, and the number of its entries. */
enum fsm_ring_column {
    FSM_RING_TIME = 0,
    FSM_RING_MODE = 1,    // ended mode
    FSM_RING_SIGN = 2,    // event, as one number
    FSM_RING_SPEED = 3,   // how fast the gap closed
    FSM_RING_CONTACT = 4, // closed contact, -1 if none
    FSM_RING_WIDTH = 5,
};
#define FSM_RING_LENGTH 16

/* Columns of the record of a transition.  Then up to FSM_MAX_FIRED guards, the impulses, the speeds before and after,
   the candidates. */
enum fsm_record_column {
    FSM_RECORD_TIME = 0,
    FSM_RECORD_SOURCE = 1,
    FSM_RECORD_TARGET = 2,
    FSM_RECORD_ROW = 3, // row of the state after; the row before it holds the state before
    FSM_RECORD_REASON = 4,
    FSM_RECORD_FIRED = 5,
    FSM_RECORD_CANDIDATES = 6,
    FSM_RECORD_WRITTEN = 7,
    FSM_RECORD_ENERGY_BEFORE = 8,
    FSM_RECORD_ENERGY_AFTER = 9,
    FSM_RECORD_BETA = 10,
    FSM_RECORD_CONSISTENT = 11,
    FSM_RECORD_CHOSEN_BY = 12,
    FSM_RECORD_GUARDS = 13,
};
#define FSM_MAX_FIRED   8
#define FSM_GUARD_WIDTH 5 // event, contact, direction, value, slope

/* Columns of the record of a passage through a change point; then the weights of the rows. */
enum fsm_passage_column {
    FSM_PASSAGE_TIME = 0,
    FSM_PASSAGE_MODE = 1,
    FSM_PASSAGE_RANK = 2,  // number of independent rows beside the change point
    FSM_PASSAGE_LOST = 3,  // how many of them are lost in it
    FSM_PASSAGE_ERROR = 4, // estimated error of the step over it, in units of its tolerance
    FSM_PASSAGE_ROWS = 5,
};

#define FSM_ROOT_ROOM 471 // floats in which roots are isolated (event_location.c)
#define FSM_FEW 6 // contacts of a transition with memory from the start

/* Positions in `fsm_method.dense`, the dense output of an implicit method. */
enum fsm_dense_position {
    FSM_DENSE_END = 0,          // t_1 (s)
    FSM_DENSE_LENGTH = 1,       // h (s)
    FSM_DENSE_COEFFICIENTS = 2, // of the powers 0, 1, ... of s = (t - t_1) / h, n of each
};
#define FSM_HIGHEST_DEGREE 5

/* Services of fsm_implicit_step for an external solver (trial_step.c). */
enum fsm_implicit_service {
    FSM_SERVE_DERIVATIVE = 0, // writes x_dot at t and `fsm_work.y` into `fsm_work.k`
    FSM_SERVE_FOLLOW = 1, // accepts the dense output up to t, to the next event, or as far as guards are known
    FSM_SERVE_CHART = 2,  // changes to a better chart if there is one
    FSM_SERVE_LOOK = 3,   // looks for change points ahead; `fsm_work.y`[0] is then the length of a step clear of them
};

/* Times of a run (s), and numbers beside them. */
struct fsm_clock {
    double time;
    double begin;       // start of the grid of fixed steps
    double step;        // length of the next step; 0: not chosen yet
    double error;       // error norm of the last accepted step
    double event_time;  // time of the last transition
    double pivot_alarm; // pivot below which another chart is wanted
    double jump;        // length of the advance to the end of a Zeno train, once its contacts are closed
    double pivot;       // smallest scaled pivot at the current state
    double window;      // start of the present window of transitions
    double remaining;   // remaining time of the Zeno sequence of impacts being completed
    double force; // largest multiplier at the start of the mode; those of the modes before count half as much each time
    double put_off; // length of the next trial of a postponed step, 0: none
};

/* Mode, phase and counts of a run. */
struct fsm_counters {
    int64_t mode;
    int64_t phase;
    int64_t reason;       // cause of the pending resolution
    int64_t fired;        // number of guards in ``State.fired``
    int64_t grid;         // number of the last grid point reached
    int64_t segment;      // segment of the input tables
    int64_t rows;         // rows recorded
    int64_t transitions;  // transitions recorded
    int64_t steps;        // steps accepted
    int64_t rejected;     // steps rejected
    int64_t retakes;      // steps retaken to locate events
    int64_t instant;      // transitions made in this instant
    int64_t history;      // transitions entered in ``State.history``
    int64_t started;      // 1 once the first row stands
    int64_t cycle;        // impacts in a cycle of the Zeno sequence of impacts being completed
    int64_t window_count; // transitions in the present window
    int64_t asked;        // 1 once a chart for the target of the pending transition was requested
    int64_t passed;       // change points recorded
    int64_t work_done;    // since the caller set it to zero, see ``WORK_OF_TRANSITION``
};

/* Estimate of the rank of the active rows. Then the size of every row, and its weight in the loss. */
struct fsm_rank {
    double sized;      // 1 once the sizes are known
    double left_at;    // time up to which no rank can be lost (s)
    double sigma;      // remainder of the weakest row, taken free of the others
    double rate;       // its largest rate of change (1/s)
    double ahead;      // time from the last evaluation of the rows to the next change point (s), inf: none
    double behind;     // the same of the last one, negative
    double lost;       // number of rows lost in it
    double lands;      // 1: stages of the present step are put on the rows
    double speed_norm; // norm of the scaled speeds
    double tried_step; // length of a rejected step over the change point ahead, 0: none
    double tried_error;
    double passes_at;   // time of a change point in the present step (s), inf: none
    double independent; // number of independent rows beside a change point
    double unseen;      // steps since the last evaluation of the rows
    double active;      // number of rows active
    double worst;       // largest error above its tolerance of an accepted step near the change point
    double change;      // largest rate of change of a row, relative to its size (1/s)
    double motion;      // rate of change of the coordinates at the last evaluation of the rows (1/s)
};

/* Numbers among the options of a run. */
struct fsm_option_numbers {
    double until;
    double fixed_step;
    double max_step;
    double rtol;
};

/* Counts among the options of a run. */
struct fsm_option_counts {
    int64_t chunk; // steps after which the loop returns to report progress
    int64_t max_steps;
    int64_t max_instant; // transitions allowed in one instant
    int64_t max_work;    // beyond it the loop returns before another trial step or resolution of an instant
    int64_t before_end;  // 1: it returns before the first turn affected by the end of the run (end_of_run.c)
};

/* Properties of a method. */
struct fsm_method_counts {
    int64_t stages;
    int64_t order;
    int64_t adaptive;
    int64_t degree; // of the dense output followed instead of taking steps; 0: a tableau
};

/* Lengths of inputs. */
struct fsm_input_counts {
    int64_t n_inputs;
    int64_t n_parameters; // start of the inputs in the context
    int64_t constant;     // 1: nothing varies
};

/* Energy of an impact. */
struct fsm_impact_energy {
    double before; // J
    double after;  // J
    double beta; // fraction of the restitution impulse kept by the energy-consistent restitution, 1: all of it
};

/* Notes on the resolution of an instant. */
struct fsm_notes {
    int64_t changed;    // 1: something changed (mode, speeds, slip direction, memory), so the transition is recorded
    int64_t candidates; // combinations of contact states tried
    int64_t written_transition; // index of the user-defined transition taken, -1: none
    int64_t instant;            // in: transitions made so far in this instant
    int64_t consistent;         // number of consistent combinations among those tried
    int64_t chosen_by;          // reason for the one taken: see next_state
    int64_t target;             // mode found, still without a chart
    int64_t plain;              // in: 1: guards are looked at without slopes that take differences
};

/* First integers of `fsm_work.proof_numbers`: of guards that were not decided.

   How many steps were halved as a guard was neither proved nor found to fire; event and subject of the last one. */
enum fsm_undecided {
    FSM_UNDECIDED_STEPS = 0,
    FSM_UNDECIDED_EVENT = 1,
    FSM_UNDECIDED_SUBJECT = 2,
};

/* How an input may change. */
enum fsm_input_motion {
    FSM_INPUT_JUMPS = 0,
    FSM_INPUT_RUNS = 1,     // it drives a constraint on coordinates, so it must not jump
    FSM_INPUT_SWITCHES = 2, // it is boolean, 0 or 1, so it must not run
};

/* Whether the start of an exported model reads a parameter. */
enum fsm_start_use {
    FSM_START_FREE = 0,
    FSM_START_SHARED = 1,
    FSM_START_ALONE = 2, // nothing else does
};

/* Inputs as the compiled loop reads them. */
struct fsm_input_tables {
    struct fsm_input_counts *counts;
    int64_t counts_count;
    // (n_segments,): time (s) at which each segment begins; the first is -inf in effect.
    fsm_vector start;
    // (n_segments,): time (s) from which the polynomials of the segment count.
    fsm_vector origin;
    // (n_segments, n_w, 4): coefficients of the cubics, constant first.
    fsm_cube pieces;
    // (n_segments,): first later segment with a possible jump of value or slope at its start, where a step must end;
    // n_segments if there is none.
    fsm_indices next_hard;
    // (n_segments,): 1 if the contact states are decided again at such a start; 0 if no force can jump, as every input
    // is continuous and none with a kink drives a constraint.
    fsm_codes decides;
    // Addresses of kernels for values and three rates of some inputs.
    fsm_kernels kernels;
    // (n_kernels + 1,): start of the inputs of each kernel in `kernel_inputs`.
    fsm_indices kernel_start;
    // Input numbers.
    fsm_indices kernel_inputs;
    // Enclosing programs of the kernels (enclosure.h), as in fsm_tables; (n_kernels,): start of each, -1: none; (4 n,):
    // of each kernel the values that enclose its outputs.
    fsm_indices enclosure_code;
    fsm_vector enclosure_numbers;
    fsm_indices kernel_enclosure, kernel_values;
    fsm_vector jets; // workspace
    // (4 n_w,): workspace.
    fsm_vector out;
};

/* A tableau as the compiled step reads it.

   `a` (s*s) row by row; `nodes` (s); `weights` (3*(s+1)): those of the result, of the error estimate and
   of the state at mid-step; `counts`: number of stages, order, whether there is an error estimate, and the degree
   of the dense output in `dense`, which is nonzero if an implicit method is followed along it, see
   dense_output. */
struct fsm_method {
    fsm_vector a;
    fsm_vector nodes;
    fsm_vector weights;
    struct fsm_method_counts *counts;
    int64_t counts_count;
    fsm_vector dense;
};

/* Options of a run: see the index constants; `atol` per state, `mask` per mode (or one row). */
struct fsm_options {
    struct fsm_option_numbers *numbers;
    int64_t numbers_count;
    struct fsm_option_counts *counts;
    int64_t counts_count;
    fsm_vector atol;
    fsm_code_table mask;
};

/* State of the loop between two steps. */
struct fsm_state {
    fsm_vector x;
    fsm_vector x_dot;
    fsm_vector c;
    struct fsm_clock *clock;
    int64_t clock_count;
    struct fsm_counters *counters;
    int64_t counters_count;
    fsm_vector guards; // values, slopes, tolerances of all guards; then values and slopes of the fired ones
    fsm_indices armed; // enum fsm_guard_status of all guards
    fsm_indices fired; // numbers of guards fired together
    fsm_indices limits; // of each contact the event at its limit in this instant (0: none), then the direction
    fsm_vector conditions; // (n_transitions * FSM_CONDITION_WIDTH,), row by row
    fsm_indices spent;     // (n_modes,): evaluations made for the steps taken in each mode
    fsm_vector history;    // (FSM_RING_LENGTH * FSM_RING_WIDTH,): a ring of the last transitions
    fsm_vector drift;      // energy put in by projections (J), largest residual reached
    struct fsm_rank *rank;
    int64_t rank_count;
};

/* Bound for the guards left out of steps. */
struct fsm_far {
    double active;   // 1: guards marked in `is_far` are not evaluated
    double distance; // each of them was farther above zero than this when chosen (m)
};

/* Workspace of the loop: stages, states at mid-step and end, kernel outputs, root isolation, resolution. */
struct fsm_work {
    fsm_vector k; // stages
    fsm_vector y;
    fsm_vector x_end;
    fsm_vector x_mid;
    fsm_vector full_end;
    fsm_vector full_mid;
    fsm_vector roots; // (FSM_ROOT_ROOM,)
    struct fsm_arena arena;
    fsm_indices addresses; // of the structure of terms
    fsm_codes wanted;      // contact states of the next mode
    fsm_vector impulse;
    struct fsm_impact_energy *energy;
    int64_t energy_count;
    struct fsm_notes *notes;
    int64_t notes_count;
    fsm_vector u_before;
    fsm_vector log;      // candidates of the current decision
    fsm_indices implied; // 1: the gap of this open contact is determined by two closed ones
    fsm_vector c_after;  // context after a pending transition; the state is in `x_mid`
    // Guards left out of steps (far_guards.c); empty if none may be.
    struct fsm_far *far;
    int64_t far_count;
    fsm_indices near;   // (1 + max_guards,): number of guards not left out, and their numbers in the mode
    fsm_codes is_far;   // (max_guards,)
    fsm_vector centres; // (4, n_shapes, 6): at their choice; at the start, the middle and the end of a step
    // Room of guard_proof.c.
    fsm_vector proof;
    fsm_indices proof_numbers;
    fsm_codes proof_needed;
};

/* Buffers for recorded rows and transitions.

   `rows`: t, x, x_dot, state at the middle of the step ending here, context from the inputs on.
   `modes`: mode of each row.  `transitions`, `passages` through change points: see the index constants. */
struct fsm_buffers {
    fsm_matrix rows;
    fsm_indices modes;
    fsm_matrix transitions;
    fsm_matrix passages;
};

/* One run: the automaton and its inputs over time, the integrator, options, state, workspace, and buffers for the
   recording.

   The caller packs the seven addresses once, and again where memory moved.  What a function changes it reaches through
   them; the handle itself it leaves as it is. */
struct fsm_run {
    const struct fsm_tables *tables;
    const struct fsm_input_tables *inputs;
    const struct fsm_method *method;
    const struct fsm_options *options;
    struct fsm_state *state;
    struct fsm_work *work;
    struct fsm_buffers *buffers;
};

/* Columns of `fsm_run_batch.ends`. */
enum fsm_end_column {
    FSM_END_STATUS = 0,
    FSM_END_ROWS = 1,
    FSM_END_TRANSITIONS = 2,
    FSM_END_WIDTH = 3,
};

/* Runs from different states, one after the other in the memory of `run` (end_of_run.c). */
struct fsm_run_batch {
    const struct fsm_run *run;
    // The blocks of memory of `run->state` and `run->work`, and their contents at the start of a run.
    fsm_indices state, state_at_start;
    fsm_indices work, work_at_start;
    // Of each run: states and contexts to begin with, (n, n_x) and (n, n_c), and modes, (n,).
    fsm_matrix x, c;
    fsm_indices modes;
    fsm_index_table ends;               // (n, 3): how each run ended
    int64_t next;                       // number of the present or next run
    int64_t under_way;                  // 1: it has begun
    int64_t rows, transitions, passages; // recorded of the ended runs
};

/* The rows of runs, one run behind another (end_of_run.c). */
struct fsm_recorded {
    const double *t;                 // (rows,): times (s)
    const double *x, *x_dot, *x_mid; // states, their rates, states in the middle of the step before; `stride` from row to row
    int64_t stride, n_q, n;          // coordinates, and states
};

/* Whether the recorded states of a run follow from their rates. */
enum fsm_rows_verdict {
    FSM_ROWS_EXPLAINED = 0,
    FSM_ROWS_CONTRADICTED = 1,
    FSM_ROWS_NOT_FINITE = 2,
};

/* The terms of a workspace. */
static inline const struct fsm_terms *fsm_terms_of(const struct fsm_work *work)
{
    return (const struct fsm_terms *)(intptr_t)work->addresses.at[0];
}

/* Clear the arena and evaluate the terms at a state: `t` (s), `x`, in the current context. */
static inline const struct fsm_terms *fsm_terms_at(const struct fsm_run *run, double t, fsm_vector x)
{
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    fsm_arena_clear(&run->work->arena);
    run->tables->terms.at[0](t, x.at, run->state->c.at, terms->whole.at);
    return terms;
}

/* The speeds at the current state, a view of `state->x`. */
static inline fsm_vector fsm_speeds_of(const struct fsm_run *run)
{
    int64_t n_q = run->tables->sizes->n_q;
    return fsm_vector_part(run->state->x, n_q, n_q + run->tables->sizes->n_u);
}

/* The sizes of rows, after the estimate of their rank, and then their weights. */
static inline fsm_vector fsm_rank_sizes(struct fsm_rank *rank, int64_t n_rows)
{
    return (fsm_vector){(double *)(rank + 1), n_rows};
}

static inline fsm_vector fsm_rank_weights(struct fsm_rank *rank, int64_t n_rows)
{
    return (fsm_vector){(double *)(rank + 1) + n_rows, n_rows};
}

#endif
