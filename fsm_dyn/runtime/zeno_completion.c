/* Zeno completion: state at the accumulation point, solved for all contacts simultaneously (docs/theory.md, "Zeno
   sequences").

   Over the time `h` that the sequence still takes, its impulses add up: `M (u_end - u) = f h + AᵀΛ` with
   `0 ≤ Λ_n ⊥ v_n ≥ 0` and Coulomb's law between the sums, which is a step of Moreau's time stepping.  It tells which
   contacts the sequence leaves closed, and which of them stick; the impulses of single impacts would not, as each may
   open another contact that the load has closed again by the Zeno time.

   The forces' part belongs to the flow that follows.  What is left for the instant itself, `M (u⁺ - u) = AᵀΛ` with the
   rows of the contacts left closed brought to rest, takes impulses of either sign; with the forces' part none pulls. */

#include "contacts.h"

/* Fill in the generalized forces (n_u,), those of compressed compliant contacts included. */
static void fill_forces(const struct fsm_resolution *r, fsm_vector force)
{
    for (int64_t i = 0; i < force.n; i++) {
        force.at[i] = r->terms->f.at[i];
    }
    for (int64_t k = 0; k < r->tables->sizes->n_contacts; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0 &&
            r->outcome->wanted.at[k] != FSM_CONTACT_FREE) {
            for (int64_t i = 0; i < force.n; i++) {
                force.at[i] += r->terms->elastic.at[k] * AT(r->terms->A, AT(r->tables->contact_rows, k, 0), i);
            }
        }
    }
}

/* Whether an open contact approaches, though the forces would have turned it back by the Zeno time. */
static bool any_approaches(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                           const struct fsm_contact_solution *solution)
{
    for (int64_t at = 0; at < problem->contact.n; at++) {
        int64_t normal = problem->normal.at[at];
        double speed = solution->motions.at[normal] / problem->unit.at[normal];
        if (solution->choices.at[at] == FSM_CHOICE_OPEN &&
            speed < -fsm_speed_tolerance(r->tables, problem->row.at[normal])) {
            return true;
        }
    }
    return false;
}

/* Bring the closed contacts to the end of their Zeno sequence; changes the speeds, adds to the impulses.

   The terms are those at the last impact, the speeds those before it, on return those with which the flow begins.
   `remaining`: how long the sequence continues (s).  Returns FSM_CONTINUE, or a failure: then the sequence does not end
   with these contacts closed, and the speeds are as they were. */
FSM_LOCAL int64_t fsm_complete_zeno_sequence(const struct fsm_resolution *r, double remaining)
{
    int64_t n_u = r->u.n;
    fsm_indices held = fsm_bilateral_rows(r->arena, r->tables, r->outcome->wanted);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(r->arena, r->terms, held, n_u);
    struct fsm_base_motion base;
    fsm_vector force = fsm_arena_vector(r->arena, n_u), acceleration = fsm_arena_vector(r->arena, n_u);
    fsm_vector reaction = fsm_arena_vector(r->arena, held.n);
    fill_forces(r, force);
    if (!fsm_base_impact(r, &bilateral, &base) ||
        !fsm_base_accelerations(r->arena, r->tables, r->terms, &bilateral, force, r->u, acceleration,
                                reaction)) {
        return FSM_SINGULAR;
    }
    struct fsm_contact_problem unscaled = fsm_build_impact_problem(r, r->closed, FSM_IMPACT_PLASTIC);
    fsm_indices rows = unscaled.row;
    struct fsm_response response = fsm_unit_responses(r->arena, r->terms, &bilateral, rows, n_u);
    fsm_vector free_response = fsm_free_response(r->arena, r->terms, rows);
    fsm_vector now = fsm_arena_vector(r->arena, rows.n), then = fsm_arena_vector(r->arena, rows.n);
    for (int64_t k = 0; k < rows.n; k++) {
        now.at[k] = fsm_row_speed(r->terms, rows.at[k], base.u);
        then.at[k] = now.at[k];
        then.at[k] += remaining * r->terms->gamma.at[rows.at[k]];
        for (int64_t i = 0; i < n_u; i++) {
            then.at[k] += remaining * AT(r->terms->A, rows.at[k], i) * acceleration.at[i];
        }
    }
    struct fsm_contact_solution solution = fsm_allocate_solution(r->arena, unscaled.contact.n, rows.n);
    struct fsm_contact_problem problem =
        fsm_scale_problem(r->arena, &unscaled, response.K, then, free_response, base.scale);
    struct fsm_enumeration_result result;
    r->outcome->log.count = 0;
    double tolerance = r->tables->tolerances->impact;
    int64_t status = fsm_solve_contact_problem(r->arena, &problem, tolerance, &solution, &r->outcome->log, &result);
    if (status != FSM_CONTINUE && status != FSM_NON_UNIQUE_STATE) {
        return status;
    }
    fsm_retarget(&problem, &unscaled, now);
    fsm_matrix basis;
    bool shared;
    double remainder =
        fsm_solve_candidate(r->arena, &problem, solution.choices, solution.forces, solution.motions, &basis, &shared);
    if (remainder > tolerance * fsm_reference_scale(&problem, solution.forces) ||
        any_approaches(r, &problem, &solution)) {
        return FSM_INCONSISTENT;
    }
    for (int64_t k = 0; k < rows.n; k++) {
        solution.forces.at[k] *= problem.unit.at[k];
    }
    fsm_apply_impulses(r, rows, held, &base, &response, solution.forces);
    return FSM_CONTINUE;
}
