/* What the evaluation of one mode embedded on line works with: its tables, its chart, its workspace.

   Every mode has a context of its own, as a closure has; the address of the context is all that the kernels standing for
   the mode hand on (kernels).

   A *chart* is an array of integers: first where things begin in the workspace, which follows from the sizes of the
   automaton and is worked out once; then which rows and speeds are taken.  Compiled code reads places from the array
   because passing thirty numbers from function to function costs more than a small mechanism's evaluation. */

#ifndef FSM_ONLINE_MODE_H
#define FSM_ONLINE_MODE_H

#include "run.h"

// positions in ``Online.programs``
#define FSM_ONLINE_ROWS   0
#define FSM_ONLINE_MOTION 1
#define FSM_ONLINE_WATCH  2

// what a guard looks at (``Online.guard_quantity``)
#define FSM_ONLINE_GAP 0
#define FSM_ONLINE_MEETING                                                                                             \
    1 // the gap of a pad with loss: what left faster than the surface follows may meet it again before
#define FSM_ONLINE_FIRMNESS        2 // factor of a pad's force that a loss may bring to zero
#define FSM_ONLINE_NORMAL_FORCE    3
#define FSM_ONLINE_FRICTION_LIMIT  4
#define FSM_ONLINE_SLIP            5
#define FSM_ONLINE_REACH           6
#define FSM_ONLINE_CONDITION       7 // of a written transition
#define FSM_ONLINE_LARGEST_GAP     9 // of a corner from the faces of a convex polygon
#define FSM_ONLINE_FRICTION_CIRCLE 8 // of a contact in space: squares of the limit and of the force

// places in the workspace
#define FSM_ONLINE_AT_A                                                                                                \
    0 // rows of all contacts and constraints (n_rows, n_u); what the program ``rows`` gives begins here
#define FSM_ONLINE_AT_B          1
#define FSM_ONLINE_AT_Q_DOT      2 // what the program ``motion`` gives begins here
#define FSM_ONLINE_AT_M          3
#define FSM_ONLINE_AT_F          4
#define FSM_ONLINE_AT_GAMMA      5
#define FSM_ONLINE_AT_KINETIC    6
#define FSM_ONLINE_AT_ELASTIC    7
#define FSM_ONLINE_AT_STATIC     8 // what the program ``watch`` gives begins here
#define FSM_ONLINE_AT_RESIDUAL   9
#define FSM_ONLINE_AT_WHEN       10
#define FSM_ONLINE_AT_REACH      11
#define FSM_ONLINE_AT_REACH_RATE 12
#define FSM_ONLINE_AT_FIRM       13
#define FSM_ONLINE_AT_ASPECT     14
#define FSM_ONLINE_AT_HIDDEN_M                                                                                         \
    15 // rows of M and f and columns of A of the speeds hidden in the choice of speeds (n_k, ...)
#define FSM_ONLINE_AT_HIDDEN_F    16
#define FSM_ONLINE_AT_HIDDEN_A    17
#define FSM_ONLINE_AT_X           18 // state with dependent speeds recomputed
#define FSM_ONLINE_AT_P           19 // eliminated rows, b and gamma behind (n_rows, n_u + 2)
#define FSM_ONLINE_AT_H           20 // eliminated rows of forces (n_rows, n_u)
#define FSM_ONLINE_AT_Q           21 // scratch of the choice of a chart (n_rows, n_u)
#define FSM_ONLINE_AT_MT          22 // M T, then scales
#define FSM_ONLINE_AT_MASS        23 // reduced mass matrix
#define FSM_ONLINE_AT_RIGHT       24 // reduced forces, then independent accelerations
#define FSM_ONLINE_AT_FORCE       25 // forces of the mode
#define FSM_ONLINE_AT_G           26 // forces less what dependent speeds take
#define FSM_ONLINE_AT_U_DOT       27
#define FSM_ONLINE_AT_MULTIPLIERS 28
#define FSM_ONLINE_AT_OPEN        29 // forces left open by rows that repeat each other (n_rows, n_rows)
#define FSM_ONLINE_AT_PROBE       30 // state to difference at
#define FSM_ONLINE_AT_PROBE_C     31 // context there
#define FSM_ONLINE_AT_GUARDS      32 // guard values there, twice
#define FSM_ONLINE_AT_WAY         33 // components of slip directions (n_contacts, 2)
#define FSM_ONLINE_PLACES         34

// the chart proper
#define FSM_ONLINE_CHOSEN  34 // 1: there is a chart
#define FSM_ONLINE_RANK    35 // rows that are independent
#define FSM_ONLINE_ACTIVE  36 // rows held; those beyond the rank are implied by the others
#define FSM_ONLINE_SLIDES  37 // whether a contact slides under a normal force, so that forces act off the rows
#define FSM_ONLINE_CHOICES 38 // charts chosen so far
#define FSM_ONLINE_BUSY    39 // contacts that are not open
#define FSM_ONLINE_PUSHES  40 // whether one of them pushes along rows that are not held

// then rows (n_rows), the contact sliding at each or -1 (n_rows), speeds, dependent ones first (n_u), the busy contacts
#define FSM_ONLINE_LISTS 41
#define FSM_FOLLOWS      1e-9 // m/s: from this slip speed on the direction of friction in space follows the slip
#define FSM_SET_BACK     1e-7 // part of what a neighbour of a corner lies behind a face by which its gap counts as less

struct fsm_pivot_alarm {
    double floor;
    double level;
    double kept;
};

/* One mode embedded on line.

   Attributes
   ----------
   sizes, row_role, contact_kind, contact_flags, contact_rows, contact_outline
       As in Tables.
   programs : int64 array, shape (3,)
       Addresses of the kernels `rows motion watch` (programs).
   states : int8 array, shape (n_contacts,)
       State of every contact.
   guard_quantity, guard_subject : int64 arrays, shape (n_guards,)
       What each guard looks at, and of which contact; for `CONDITION` the transition.
   guard_sign : float64 array, shape (n_guards,)
       The guard is the quantity times this; of a friction limit the slip direction that a slide would take.
   alarm : float64 array, shape (3,)
       Scaled pivots below which another chart is chosen: `FLOOR` in any case, `LEVEL` for the present chart, which
       is the share `KEPT` of the best that it has shown.
   chart : int64 array
       See the constants above.
   room : float64 array
       Workspace.
   floats, integers, top
       An arena. */
struct fsm_online_mode {
    struct fsm_sizes *sizes;
    int64_t sizes_count;
    fsm_kernels programs;
    fsm_codes states;
    fsm_indices row_role;
    fsm_indices contact_kind;
    fsm_indices contact_flags;
    fsm_index_table contact_rows;
    fsm_indices contact_outline;
    fsm_indices guard_quantity;
    fsm_indices guard_subject;
    fsm_vector guard_sign;
    struct fsm_pivot_alarm *alarm;
    int64_t alarm_count;
    fsm_indices chart;
    fsm_vector room;
    struct fsm_arena arena;
};

#endif
