/* The contact problem of an impact, and the speeds that its solution leads to (docs/theory.md, "Impacts"). */

#include "contacts.h"

/* Return the rows of constraints, and of engaged locks without the flag `except`. */
static fsm_indices rows_except(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states,
                               int64_t except)
{
    fsm_indices rows = fsm_arena_indices(arena, tables->sizes->n_rows);
    int64_t count = 0;
    for (int64_t r = 0; r < rows.n; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS || tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            rows.at[count++] = r;
        }
    }
    for (int64_t k = 0; k < states.n; k++) {
        int64_t flags = tables->contact_flags.at[k];
        if ((flags & FSM_FLAG_SWITCHED) != 0 && (flags & except) == 0 && states.at[k] == FSM_CONTACT_HELD) {
            rows.at[count++] = AT(tables->contact_rows, k, 0);
        }
    }
    return fsm_indices_first(rows, count);
}

/* Return the bilateral constraint rows: constraints, and the locks that are engaged in `states` (n_contacts,). */
FSM_LOCAL fsm_indices fsm_bilateral_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states)
{
    return rows_except(arena, tables, states, 0);
}

/* Return the bilateral constraint rows without those of locks that let go at a force. */
FSM_LOCAL fsm_indices fsm_unlimited_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states)
{
    return rows_except(arena, tables, states, FSM_FLAG_FORCE_LIMIT);
}

/* Allow choice `choice` of contact `at`, at this cost. */
static void allow(const struct fsm_contact_problem *problem, int64_t at, enum fsm_choice choice, double cost)
{
    AT(problem->allowed, at, choice) = 1;
    AT(problem->cost, at, choice) = cost;
}

/* Allow what a contact with infinite friction can do: it is caught. */
static void allow_caught(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, int64_t at,
                         bool single)
{
    int64_t row = AT(r->tables->contact_rows, problem->contact.at[at], 0);
    double speed = fsm_row_speed(r->terms, row, r->u);
    // without a normal impulse it could also slide on; an open one is admitted only if others act on it, or it parts
    AT(problem->allowed, at, FSM_CHOICE_OPEN) = speed > fsm_speed_tolerance(r->tables, row) || !single;
    // where the normal impulse would have to pull, friction alone stops the slip, and the contact opens
    allow(problem, at, FSM_CHOICE_PARTED_HOLD, 3.0);
}

/* Allow a contact with friction to slide; in an impact without collision it does not keep sliding, and of the contacts that
   do not at least one stays closed. */
static void allow_sliding(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, int64_t at,
                          enum fsm_purpose purpose)
{
    int64_t k = problem->contact.at[at];
    double slow = fsm_slip_tolerance(r->tables, k);
    bool arrest = purpose == FSM_IMPACT_ARREST && fsm_slip_speed(r->tables, r->terms, k, r->u) > slow;
    allow(problem, at, FSM_CHOICE_FORWARD, 1.0);
    if (!problem->spatial.at[at]) {
        allow(problem, at, FSM_CHOICE_BACKWARD, 1.0);
        if (problem->bilateral.at[at]) {
            allow(problem, at, FSM_CHOICE_UNDER_FORWARD, 1.0);
            allow(problem, at, FSM_CHOICE_UNDER_BACKWARD, 1.0);
        }
    }
    if (arrest) {
        double slip = fsm_row_speed(r->terms, AT(r->tables->contact_rows, k, 1), r->u);
        bool forward = problem->spatial.at[at] || slip > 0.0;
        problem->excluded.at[at] = FSM_CHOICE_OPEN;
        AT(problem->allowed, at, forward ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD) = 0;
    }
}

/* Return the unscaled contact problem of the contacts marked in `closed` (n_contacts,) on the velocity level.

   Of several consistent candidates the costs prefer that which stops the slip. */
FSM_LOCAL struct fsm_contact_problem fsm_build_impact_problem(const struct fsm_resolution *r, fsm_indices closed,
                                                              enum fsm_purpose purpose)
{
    int64_t count = 0;
    for (int64_t k = 0; k < closed.n; k++) {
        count += closed.at[k];
    }
    struct fsm_contact_problem problem = fsm_allocate_problem(r->arena, count);
    for (int64_t k = 0; k < closed.n; k++) {
        if (closed.at[k] == 0) {
            continue;
        }
        int64_t at = problem.contact.n;
        fsm_add_contact(&problem, r->tables, k, true);
        AT(problem.allowed, at, FSM_CHOICE_OPEN) = !problem.bilateral.at[at];
        AT(problem.allowed, at, FSM_CHOICE_HOLD) = 1;
        AT(problem.cost, at, FSM_CHOICE_OPEN) = 2.0;
        if (problem.tangent.at[at] < 0) {
            continue;
        }
        problem.kinetic_friction.at[at] = r->terms->kinetic_friction.at[k];
        problem.static_friction.at[at] = r->terms->kinetic_friction.at[k];
        if (problem.infinite.at[at]) {
            allow_caught(r, &problem, at, count == 1);
        } else {
            allow_sliding(r, &problem, at, purpose);
        }
    }
    return problem;
}

/* Write the impact of the bilateral rows alone, from the current speeds; false if they are inconsistent. */
FSM_LOCAL bool fsm_base_impact(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                               struct fsm_base_motion *base)
{
    const struct fsm_terms *terms = r->terms;
    fsm_vector u = r->u;
    fsm_indices held = bilateral->held;
    fsm_vector momentum = fsm_arena_vector(r->arena, u.n), target = fsm_arena_vector(r->arena, held.n);
    double twice = 0.0;
    fsm_momentum(terms, u, momentum);
    for (int64_t i = 0; i < u.n; i++) {
        twice += momentum.at[i] * u.at[i];
    }
    for (int64_t k = 0; k < held.n; k++) {
        target.at[k] = -terms->b.at[held.at[k]];
    }
    *base = (struct fsm_base_motion){.u = fsm_arena_vector(r->arena, u.n),
                                     .reaction = fsm_arena_vector(r->arena, held.n),
                                     .scale = sqrt(fsm_larger(twice, 0.0))};
    return fsm_solve_bilateral(bilateral, momentum, target, base->u, base->reaction,
                               fsm_rounding_of(r->tables, terms, u, false));
}

/* Set the speeds to those after contact impulses `forces` (n,) along `rows` (n,); add these and the reactions.

   `held` (m,): the bilateral rows; `response`: the unit responses of the contact rows. */
FSM_LOCAL void fsm_apply_impulses(const struct fsm_resolution *r, fsm_indices rows, fsm_indices held,
                                  const struct fsm_base_motion *base, const struct fsm_response *response,
                                  fsm_vector forces)
{
    fsm_vector u = r->u, impulse = r->outcome->impulse;
    for (int64_t i = 0; i < u.n; i++) {
        u.at[i] = base->u.at[i];
        for (int64_t k = 0; k < rows.n; k++) {
            u.at[i] += AT(response->motions, k, i) * forces.at[k];
        }
    }
    for (int64_t k = 0; k < rows.n; k++) {
        impulse.at[rows.at[k]] += forces.at[k];
    }
    for (int64_t m = 0; m < held.n; m++) {
        impulse.at[held.at[m]] += base->reaction.at[m];
        for (int64_t k = 0; k < rows.n; k++) {
            impulse.at[held.at[m]] += AT(response->reactions, k, m) * forces.at[k];
        }
    }
}
