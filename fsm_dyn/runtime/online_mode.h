/* Mode embedded online: its tables, its chart, its workspace.

   Every mode has one struct fsm_online_mode; the kernels that stand for the mode hand on its address and nothing else.

   A *chart* is an array of integers: first where things begin in the workspace, which follows from the sizes of the
   automaton and is worked out once; then which rows and speeds are taken.  Functions read places from the array
   because passing thirty numbers from function to function costs more than a small mechanism's evaluation. */

#ifndef FSM_ONLINE_MODE_H
#define FSM_ONLINE_MODE_H

#include "run.h"

/* Positions in `fsm_online_mode.programs`. */
enum fsm_online_program {
    FSM_ONLINE_ROWS = 0,
    FSM_ONLINE_MOTION = 1,
    FSM_ONLINE_WATCHED = 2, // motion and the quantities of guards
};

/* Quantity of a guard (`fsm_online_mode.guard_quantity`). */
enum fsm_guard_quantity {
    FSM_ONLINE_GAP = 0,
    // The gap of a pad with loss: a body leaving faster than the surface follows may meet it again.
    FSM_ONLINE_MEETING = 1,
    FSM_ONLINE_FIRMNESS = 2, // factor of a pad's force, brought to zero by a loss
    FSM_ONLINE_NORMAL_FORCE = 3,
    FSM_ONLINE_FRICTION_LIMIT = 4,
    FSM_ONLINE_SLIP = 5,
    FSM_ONLINE_REACH = 6,
    FSM_ONLINE_CONDITION = 7,       // of a user-defined transition
    FSM_ONLINE_LARGEST_GAP = 9,     // of a corner from the faces of a convex polygon
    FSM_ONLINE_FRICTION_CIRCLE = 8, // of a contact in space: squares of the limit and of the force
    FSM_ONLINE_SPEED = 10,          // of the normal row
    FSM_ONLINE_HOLDING_LIMIT = 11,  // of the force of the normal row
};

/* Positions in a chart of the starts of arrays in the workspace. */
enum fsm_online_place {
    FSM_ONLINE_AT_A = 0, // rows of all contacts and constraints (n_rows, n_u); output of the program `rows` begins here
    FSM_ONLINE_AT_B = 1,
    FSM_ONLINE_AT_Q_DOT = 2, // outputs of the program ``motion`` begin here
    FSM_ONLINE_AT_M = 3,
    FSM_ONLINE_AT_F = 4,
    FSM_ONLINE_AT_GAMMA = 5,
    FSM_ONLINE_AT_KINETIC = 6,
    FSM_ONLINE_AT_ELASTIC = 7,
    FSM_ONLINE_AT_STATIC = 8, // outputs of the program ``watched`` beyond ``motion`` begin here
    FSM_ONLINE_AT_RESIDUAL = 9,
    FSM_ONLINE_AT_WHEN = 10,
    FSM_ONLINE_AT_REACH = 11,
    FSM_ONLINE_AT_REACH_RATE = 12,
    FSM_ONLINE_AT_FIRM = 13,
    FSM_ONLINE_AT_ASPECT = 14,
    // Rows of M and f and columns of A of the speeds eliminated by the choice of speeds (n_k, ...).
    FSM_ONLINE_AT_HIDDEN_M = 15,
    FSM_ONLINE_AT_HIDDEN_F = 16,
    FSM_ONLINE_AT_HIDDEN_A = 17,
    FSM_ONLINE_AT_X = 18,     // state with dependent speeds recomputed
    FSM_ONLINE_AT_P = 19,     // eliminated rows, b and gamma behind (n_rows, n_u + 2)
    FSM_ONLINE_AT_H = 20,     // eliminated rows of forces (n_rows, n_u)
    FSM_ONLINE_AT_Q = 21,     // scratch of the choice of a chart (n_rows, n_u)
    FSM_ONLINE_AT_MT = 22,    // M T
    FSM_ONLINE_AT_MASS = 23,  // reduced mass matrix
    FSM_ONLINE_AT_RIGHT = 24, // reduced forces, then independent accelerations
    FSM_ONLINE_AT_FORCE = 25, // forces of the mode
    FSM_ONLINE_AT_G = 26,     // forces less the share of dependent speeds
    FSM_ONLINE_AT_U_DOT = 27,
    FSM_ONLINE_AT_MULTIPLIERS = 28,
    FSM_ONLINE_AT_OPEN = 29,    // indeterminate multipliers of redundant rows, then shares of the load (2 n_rows, n_rows)
    FSM_ONLINE_AT_PROBE = 30,   // state to difference at
    FSM_ONLINE_AT_PROBE_C = 31, // context there
    FSM_ONLINE_AT_GUARDS = 32,  // guard values there, twice
    FSM_ONLINE_AT_WAY = 33,     // components of slip directions (n_contacts, 2)
    FSM_ONLINE_AT_SCALES = 34,  // scales of columns and norms of rows of the reduced equations (2 n_u)
    FSM_ONLINE_PLACES = 35,
};

/* Positions in a chart of the choices. From FSM_ONLINE_LISTS on the lists: rows (n_rows), the contact sliding at each
   or -1 (n_rows), speeds, dependent ones first (n_u), contacts not open. */
enum fsm_online_choice {
    FSM_ONLINE_CHOSEN = 35,  // 1: there is a chart
    FSM_ONLINE_RANK = 36,    // independent rows
    FSM_ONLINE_ACTIVE = 37,  // rows held; those beyond the rank are redundant
    FSM_ONLINE_SLIDES = 38,  // whether a contact slides under a normal force: forces then act off the rows
    FSM_ONLINE_CHOICES = 39, // charts chosen so far
    FSM_ONLINE_BUSY = 40,    // contacts not open
    FSM_ONLINE_PUSHES = 41,  // whether one of them pushes along inactive rows
    FSM_ONLINE_SPAN = 42,    // largest difference between the numbers of a contact and of the first of its outline
    FSM_ONLINE_SHARED = 43,  // first ones of the redundant rows, with load shares that affect the motion
};

#define FSM_ONLINE_LISTS 44
#define FSM_ONLINE_CHOICE_COUNT 9 // from FSM_ONLINE_CHOSEN on, of `kept` before rows and speeds

#define FSM_SET_BACK 1e-7 // reduction of the gap of a corner, as a part of a neighbour's distance behind the face

/* Limits of a mode embedded online. */
struct fsm_online_limits {
    double floor; // scaled pivot below which another chart is chosen in any case
    double level; // and for the present chart: the share `kept` of its best one so far
    double kept;
    double follows;      // slip speed from which on the direction of friction in space follows the slip (m/s)
    double redundancy;   // a row of which more than this part is left is not redundant (any more)
    double length_scale; // the mechanism's own unit of length (m)
    double time_scale;   // and of time (s)
};

/* One mode embedded online. */
struct fsm_online_mode {
    // As in Tables.
    struct fsm_sizes *sizes;
    int64_t sizes_count;
    // (3,): addresses of the kernels `rows motion watched` (programs).
    fsm_kernels programs;
    // (n_contacts,): state of every contact.
    fsm_codes states;
    fsm_indices row_role;
    fsm_indices contact_flags;
    fsm_index_table contact_rows;
    fsm_indices contact_outline;
    // Columns of the rows and of the mass matrix whose entries can differ from zero, ascending: those of row r are
    // `row_columns[row_begin[r]]` up to (not including) `row_columns[row_begin[r + 1]]`.
    fsm_indices row_begin, row_columns;
    fsm_indices mass_begin, mass_columns;
    // (n_guards,): quantity of each guard, and its contact; for `CONDITION` the transition.
    fsm_indices guard_quantity;
    fsm_indices guard_subject;
    // (n_guards,): the guard is the quantity times this; of a friction limit the slip direction of a slide.
    fsm_vector guard_sign;
    // (n_q + n_u,) and (n_rows,): unit of each coordinate and speed, and of each row, as in Tables.
    fsm_vector state_unit;
    fsm_vector row_unit;
    struct fsm_online_limits *limits;
    int64_t limits_count;
    fsm_indices chart;
    // The same of the matrices in the present chart, columns in its order (online_pivoting.c), rank r, m = n_u - r:
    // rows held (r), eliminated and solved for the dependent speeds; of each also the starts of the entries behind the
    // diagonal and of those of independent speeds.
    fsm_indices held_begin, held_behind, held_rest, held_columns;
    // Columns below the diagonal of the rows held (r): rows.
    fsm_indices below_begin, below_rows;
    // Rows of the mass matrix (n_u): dependent speeds; rows of M T (n_u): independent speeds, counted from zero.
    fsm_indices tied_begin, tied_columns;
    fsm_indices moved_begin, moved_columns;
    // Rows of the reduced mass matrix (m), eliminated; of each also the start of the entries behind the diagonal.
    fsm_indices reduced_begin, reduced_behind, reduced_columns;
    // (n_u,): position of each speed in the order of the chart.
    fsm_indices place;
    // Workspace of the choice of a chart.
    fsm_indices extent;
    // Workspace.  Entries of A, M and of the matrices derived from them that can only be zero are zero there and never
    // written.
    fsm_vector room;
    struct fsm_arena arena;
    // Empty if `chart`, the lists and the workspace are this mode's alone.  (1,): of the modes that share them, the one
    // with its chart there (its address; 0: none).
    fsm_indices owner;
    // What the mode has chosen, while another one owns the arrays: the choices of the chart from FSM_ONLINE_CHOSEN on,
    // rows active, speeds.
    fsm_indices kept;
};

#endif
