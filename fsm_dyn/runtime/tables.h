/* A compiled automaton as the runtime reads it. */

#ifndef FSM_TABLES_H
#define FSM_TABLES_H

#include "codes.h"
#include "types.h"

#define FSM_NEVER INT64_MAX

/* Lengths, and choices of the model. */
struct fsm_sizes {
    int64_t n_q;
    int64_t n_u;
    int64_t n_k;
    int64_t n_p;
    int64_t n_w;
    int64_t n_contacts;
    int64_t n_memory;
    int64_t n_rows;
    int64_t n_modes;
    int64_t max_guards;
    int64_t n_transitions;
    int64_t n_terms;         // length of the output of the terms kernel
    int64_t sequential;      // 1: impacts of several contacts one after the other
    int64_t on_inconsistent; // 1: an impact without collision if no combination agrees with the accelerations
    int64_t on_several;      // 1: of several consistent motions, the one with the least change continues
    int64_t n_controllers;
    int64_t n_shapes;    // round shapes with centres in `shape_centres`
    int64_t max_moving;  // most arguments of an enclosure changing in a step
    int64_t max_values;  // values of an enclosure
    int64_t proof_words; // numbers kept of all modes by guard_proof.c
};

/* Tolerances by kind of quantity (SI units), and the mechanism's own units; see fsm_dyn.Tolerances. */
struct fsm_tolerances {
    double gap;
    double speed;
    double acceleration;
    double multiplier;
    double energy;
    double pivot;
    double hysteresis;
    double time;
    double coincidence;
    double graze;
    double projection;
    double drift;
    double impact;
    double slip;
    double least_acceleration;
    double redundancy;
    double length_scale;
    double mass_scale;
    double time_scale;
};

/* Kernels of a mode embedded online. */
enum fsm_online_kernel {
    FSM_ONLINE_RHS = 0,
    FSM_ONLINE_FULL = 1,
    FSM_ONLINE_PLAIN = 2,  // FULL without slopes that take differences: they are infinite
    FSM_ONLINE_SLOPES = 3, // those, behind what PLAIN has written
};

/* An automaton.  Modes, guards and rows keep their numbers when modes are appended. */
struct fsm_tables {
    struct fsm_sizes *sizes;
    int64_t sizes_count;
    // (1,): the terms kernel (NULL: none).
    fsm_kernels terms;
    // (1,): the kernel for all memory (n_memory) after a sample; NULL without controllers.
    fsm_kernels sample;
    // (n_modes,): the kernels of each mode.  `rhs` writes `x_dot` (n_q + n_u); `full` writes `x_dot`, `u`
    // (n_u), pivot (1), guards (n_g), slopes (n_g), multipliers (n_rows), in this order.
    fsm_kernels mode_rhs;
    fsm_kernels mode_full;
    // (n_modes,) or empty: address of what embeds a mode online (struct fsm_online_mode), 0 where kernels stand for it.
    fsm_indices mode_online;
    // (1,) or empty: address of fsm_online_evaluate.
    fsm_indices online_routine;
    // Empty if no guard may be left out of a step (far_guards.c). (n_modes,): `full` without the guards with a kernel in
    // `guard_kernels`, zeros for these; NULL if the mode has none.
    fsm_kernels mode_core;
    // (n_guards,): writes value and slope of one guard; NULL for guards in the core.
    fsm_kernels guard_kernels;
    // (1,): writes positions and velocities (n_shapes, 6) of centres of round shapes.
    fsm_kernels shape_centres;
    // Enclosures of guards (enclosure.h): programs one after the other, and the constants of all.
    fsm_indices enclosure_code;
    fsm_vector enclosure_numbers;
    // (n_modes,): start of the program of each mode in `enclosure_code`, -1: its guards have none.
    fsm_indices mode_enclosure;
    // (n_guards,): the enclosing value of a guard in its mode's program, -1: none.
    fsm_indices guard_enclosure;
    // (n_modes,): start of the data of a mode among the words of guard_proof.c.
    fsm_indices enclosure_room;
    // (n_modes, n_contacts): state of every contact in each mode.
    fsm_code_table mode_states;
    // (n_modes,): bits, enum fsm_mode_flag.
    fsm_indices mode_flags;
    // (n_modes,): modes with the same number are charts of the same active set: same states, other independent speeds.
    fsm_indices mode_group;
    // (n_modes,): evaluations in a run after which a mode embedded online gets derived kernels; FSM_NEVER for modes
    // with them, or never to have them.
    fsm_indices mode_allowance;
    // (n_modes + 1,): guards of mode `m` are numbers `mode_guard_start[m]` up to (not including) `mode_guard_start[m +
    // 1]`.
    fsm_indices mode_guard_start;
    // (n_guards,): enum fsm_event; every guard fires when it falls through zero.
    fsm_indices guard_event;
    // (n_guards,): the contact concerned; for FSM_EVENT_TRANSITION the transition.
    fsm_indices guard_contact;
    // (n_guards,): slip direction of a slide beginning here.
    fsm_vector guard_direction;
    // (n_rows,): enum fsm_row_role.
    fsm_indices row_role;
    // (n_rows,): 1 if the row has a residual on the level of coordinates.
    fsm_codes row_positional;
    // (n_contacts,): bits, enum fsm_contact_flag.
    fsm_indices contact_flags;
    // (n_contacts, 4): normal and tangent row of each contact, -1: none (a lock has a normal row only, dry friction a
    // tangent row only); then the load rows of a bearing.
    fsm_index_table contact_rows;
    // (n_contacts, 3): of a corner on a straight face its number, and those of the corners at the ends of the face, -1:
    // none.
    fsm_index_table contact_ends;
    // (n_contacts,): of the contacts of one corner with all faces of one convex polygon, which share a guard for
    // closing, the first; -1 for other contacts.  Compliant ones have guards of their own: -2 less the first.
    fsm_indices contact_outline;
    // Columns of the rows and of the mass matrix, among the declared speeds, whose entries can differ from zero,
    // ascending: those of row r are `row_columns[row_begin[r]]` up to (not including) `row_columns[row_begin[r + 1]]`.
    fsm_indices row_begin, row_columns;
    fsm_indices mass_begin, mass_columns;
    // (n_transitions, FSM_TRANSITION_WIDTH): user-defined transitions, columns enum fsm_transition_column.
    fsm_index_table transitions;
    // (n_transitions, n_contacts): contact states required by a transition's target, -1: any.
    fsm_code_table transition_states;
    // (n_transitions, n_modes): 1 if the transition leaves the mode.
    fsm_code_table transition_leaves;
    // (n_quaternions,): index in `q` of the first of four consecutive Euler parameters, renormalised after each step.
    fsm_indices quaternions;
    // (n_q + n_u,): unit of each coordinate and speed in the mechanism's own units: its length (m) for a length, 1 for an
    // angle.
    fsm_vector state_unit;
    // (n_rows,): unit of each row's residual over the mechanism's length: 1 for a length, 1 over that length for an angle.
    fsm_vector row_unit;
    // (n_guards,): unit of each guard in the mechanism's own units.
    fsm_vector guard_unit;
    struct fsm_tolerances *tolerances;
    int64_t tolerances_count;
};

/* Kane's unconstrained terms at one state, as views of the kernel's output `whole`; n = n_u + n_k.

   `q_dot` (n_q,), `W` (n_q, n), `M` (n, n), `f` (n,), `A` (n_rows, n), `b gamma residual` (n_rows,),
   `static kinetic restitution tangential_restitution closes_if elastic` (n_contacts,), the last being the force of
   compliant contacts (N);
   `energies`: kinetic and potential (J); `reach reach_rate` (n_contacts,): how far inside the ends of a face a
   contact is, of contacts with FSM_FLAG_LIMITED; `margin_slope` (n_contacts,): of corners on faces; `aspect`
   (n_contacts,): how high above its face the rest of a shape stands (contact_features.c, compliant_contacts.c); `firm`
   (n_contacts,); `when` (n_transitions,): the scalars whose zero crossings are conditions. */
struct fsm_terms {
    fsm_vector whole;
    fsm_vector q_dot;
    fsm_matrix W;
    fsm_matrix M;
    fsm_vector f;
    fsm_matrix A;
    fsm_vector b;
    fsm_vector gamma;
    fsm_vector residual;
    fsm_vector static_friction;
    fsm_vector kinetic_friction;
    fsm_vector restitution;
    fsm_vector tangential_restitution;
    fsm_vector closes_if;
    fsm_vector elastic;
    fsm_vector energies;
    fsm_vector reach;
    fsm_vector reach_rate;
    fsm_vector margin_slope;
    fsm_vector aspect;
    fsm_vector firm;
    fsm_vector when;
    // As in the tables.
    fsm_indices row_begin, row_columns;
    fsm_indices mass_begin, mass_columns;
};

/* The routine behind modes embedded online: mode, enum fsm_online_kernel, arguments of a kernel. */
typedef int64_t (*fsm_online_routine)(void *mode, int64_t what, double t, const double *x, const double *c,
                                      double *out);

static inline bool fsm_is_online(const struct fsm_tables *tables, int64_t mode)
{
    return mode < tables->mode_online.n && tables->mode_online.at[mode] != 0;
}

/* Write what a mode gives at `t` (s), state and context: `x_dot`, or all that its `full` kernel would write; one with kernels
   of its own knows nothing less. */
static inline void fsm_call_mode(const struct fsm_tables *tables, int64_t mode, enum fsm_online_kernel what, double t,
                                 const double *x, const double *c, double *out)
{
    if (fsm_is_online(tables, mode)) {
        void *o = (void *)(intptr_t)tables->mode_online.at[mode]; // struct fsm_online_mode
        ((fsm_online_routine)(intptr_t)tables->online_routine.at[0])(o, (int64_t)what, t, x, c, out);
    } else if (what != FSM_ONLINE_SLOPES) {
        (what == FSM_ONLINE_RHS ? tables->mode_rhs : tables->mode_full).at[mode](t, x, c, out);
    }
}

/* online_evaluation.c: whether rows of a mode are redundant; of one embedded online, those of its chart. */
FSM_LOCAL bool fsm_rows_repeat(const struct fsm_tables *tables, int64_t mode);

/* online_evaluation.c: whether the slope of guard `j` of a mode embedded online takes no differences. */
FSM_LOCAL bool fsm_knows_slope(const struct fsm_tables *tables, int64_t mode, int64_t j);

/* Whether the guards of a mode can be enclosed. */
static inline bool fsm_has_enclosures(const struct fsm_tables *tables, int64_t mode)
{
    return mode < tables->mode_enclosure.n && tables->mode_enclosure.at[mode] >= 0;
}

static inline void fsm_rates_of(const struct fsm_tables *tables, int64_t mode, double t, const double *x,
                                const double *c, double *out)
{
    fsm_call_mode(tables, mode, FSM_ONLINE_RHS, t, x, c, out);
}

static inline void fsm_full_of(const struct fsm_tables *tables, int64_t mode, double t, const double *x, const double *c,
                               double *out)
{
    fsm_call_mode(tables, mode, FSM_ONLINE_FULL, t, x, c, out);
}

/* Return the tolerance of the residual of a row, in its unit. */
static inline double fsm_gap_tolerance(const struct fsm_tables *tables, int64_t row)
{
    return tables->tolerances->gap * tables->row_unit.at[row];
}

/* Return the tolerance of a speed along a row, in its unit. */
static inline double fsm_speed_tolerance(const struct fsm_tables *tables, int64_t row)
{
    return tables->tolerances->speed * tables->row_unit.at[row];
}

/* Return the tolerance of a slip speed of contact `k`, in its unit. */
static inline double fsm_slip_tolerance(const struct fsm_tables *tables, int64_t k)
{
    return fsm_speed_tolerance(tables, AT(tables->contact_rows, k, 1));
}

/* Return the tolerance of a guard, in its unit, if no forces cancel in it. */
static inline double fsm_graze_tolerance(const struct fsm_tables *tables, int64_t guard)
{
    return tables->tolerances->graze * tables->guard_unit.at[guard];
}

/* Return the tolerance of a gap for a guard, in its unit: of an angle it is that over the mechanism's length. */
static inline double fsm_guard_gap_tolerance(const struct fsm_tables *tables, int64_t guard)
{
    return tables->tolerances->gap / tables->tolerances->length_scale * tables->guard_unit.at[guard];
}

/* Return the least acceleration of generalized speed `i`, in its unit, above rounding. */
static inline double fsm_least_acceleration(const struct fsm_tables *tables, int64_t i)
{
    const struct fsm_tolerances *tolerances = tables->tolerances;
    double unit = tables->state_unit.at[tables->sizes->n_q + i] * tolerances->time_scale / tolerances->length_scale;
    return tolerances->least_acceleration * unit;
}

/* Return the unit of lengths scaled by the roots of masses (m kg^1/2), in the mechanism's own units. */
static inline double fsm_scaled_length(const struct fsm_tolerances *tolerances)
{
    return tolerances->length_scale * sqrt(tolerances->mass_scale);
}

/* Where the slip directions begin in a context. */
static inline int64_t fsm_sigma_at(const struct fsm_sizes *sizes)
{
    return sizes->n_p + 3 * sizes->n_w;
}

/* Where the memory of user-defined transitions and controllers begins in a context. */
static inline int64_t fsm_memory_at(const struct fsm_sizes *sizes)
{
    return sizes->n_p + 3 * sizes->n_w + sizes->n_contacts;
}

#endif
