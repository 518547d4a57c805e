/* A compiled automaton as the runtime reads it. */

#ifndef FSM_TABLES_H
#define FSM_TABLES_H

#include "codes.h"
#include "types.h"

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
    int64_t on_inconsistent; // 1: where no combination agrees with the accelerations, an impact without collision
    int64_t on_several;      // 1: where several motions agree, the one that changes least goes on
};

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
};

/* What the compiled loop knows of an automaton.

   Attributes
   ----------
   sizes : int64 array, shape (SIZE_COUNT,)
       Lengths, indexed by `N_Q` ... `N_TERMS`, and the model's choices `SEQUENTIAL ON_INCONSISTENT ON_SEVERAL`.
   terms : int64 array, shape (1,)
       Address of the terms kernel (0 where there is none).
   mode_rhs, mode_full : int64 arrays, shape (n_modes,)
       Addresses of the kernels of each mode.  `rhs` writes `x_dot` (n_q + n_u); `full` writes `x_dot`,
       `u` (n_u), pivot (1), guards (n_g), slopes (n_g), multipliers (n_rows), in this order.
   mode_states : int8 array, shape (n_modes, n_contacts)
       State of every contact in each mode.
   mode_flags : int64 array, shape (n_modes,)
       Bits, see `PROJECTS`.
   mode_group : int64 array, shape (n_modes,)
       Modes with the same number are charts of the same active set: same states, other independent speeds.
   mode_guard_start : int64 array, shape (n_modes + 1,)
       Guards of mode `m` are numbers `mode_guard_start[m]` up to (not including) `mode_guard_start[m + 1]`.
   guard_event : int64 array, shape (n_guards,)
       What the guard announces.  Every guard fires when it falls through zero.
   guard_contact : int64 array, shape (n_guards,)
       The contact concerned; for `WRITTEN` the transition.
   guard_direction : float64 array, shape (n_guards,)
       Slip direction that a slide beginning here would take.
   row_role : int64 array, shape (n_rows,)
       `KINEMATIC` ... `CONTACT_ROW`.
   row_positional : int8 array, shape (n_rows,)
       1 where the row has a residual on the level of coordinates.
   contact_kind, contact_flags : int64 arrays, shape (n_contacts,)
   contact_rows : int64 array, shape (n_contacts, 2)
       Normal and tangent row of each contact, -1 where there is none (a lock has a normal row only, dry friction
       a tangent row only).
   contact_ends : int64 array, shape (n_contacts, 3)
       Of a corner on a straight face its number, and those of the corners in which the face ends, see
       ends; -1 where there is none.
   contact_outline : int64 array, shape (n_contacts,)
       Of the contacts of one corner with all faces of one convex polygon, which share a guard for closing, the first;
       -1 for other contacts.  Compliant ones have guards of their own: -2 less the first.
   transitions : int64 array, shape (n_transitions, TRANSITION_WIDTH)
       Written transitions.
   transition_states : int8 array, shape (n_transitions, n_contacts)
       Contact states that a transition's target asks for, -1 where it leaves them open.
   transition_leaves : int8 array, shape (n_transitions, n_modes)
       1 where the transition leaves the mode.
   quaternions : int64 array, shape (n_quaternions,)
       Index in `q` of the first of four consecutive Euler parameters, renormalised after each step.
   tolerances : float64 array, shape (TOLERANCE_COUNT,)
       The table of tolerances. */
struct fsm_tables {
    struct fsm_sizes *sizes;
    int64_t sizes_count;
    fsm_kernels terms;
    fsm_kernels mode_rhs;
    fsm_kernels mode_full;
    fsm_code_table mode_states;
    fsm_indices mode_flags;
    fsm_indices mode_group;
    fsm_indices mode_guard_start;
    fsm_indices guard_event;
    fsm_indices guard_contact;
    fsm_vector guard_direction;
    fsm_indices row_role;
    fsm_codes row_positional;
    fsm_indices contact_kind;
    fsm_indices contact_flags;
    fsm_index_table contact_rows;
    fsm_index_table contact_ends;
    fsm_indices contact_outline;
    fsm_index_table transitions;
    fsm_code_table transition_states;
    fsm_code_table transition_leaves;
    fsm_indices quaternions;
    struct fsm_tolerances *tolerances;
    int64_t tolerances_count;
};

/* Kane's unconstrained terms at one state, as views of the kernel's output `whole`; n = n_u + n_k.

   `q_dot` (n_q,), `W` (n_q, n), `M` (n, n), `f` (n,), `A` (n_rows, n), `b gamma residual` (n_rows,),
   `static kinetic restitution closes_if elastic` (n_contacts,), the last being the force of compliant contacts (N);
   `energies`: kinetic and potential (J); `reach reach_rate` (n_contacts,): how far inside the ends of a face a
   contact is, of contacts with the flag `LIMITED`; `margin_slope aspect` (n_contacts,): of corners on faces, see
   Meeting. */
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
    fsm_vector closes_if;
    fsm_vector elastic;
    fsm_vector energies;
    fsm_vector reach;
    fsm_vector reach_rate;
    fsm_vector margin_slope;
    fsm_vector aspect;
};

/* Where the slip directions begin in a context. */
static inline int64_t fsm_sigma_at(const struct fsm_sizes *sizes)
{
    return sizes->n_p + 3 * sizes->n_w;
}

/* Where the memory of written transitions begins in a context. */
static inline int64_t fsm_memory_at(const struct fsm_sizes *sizes)
{
    return sizes->n_p + 3 * sizes->n_w + sizes->n_contacts;
}

#endif
