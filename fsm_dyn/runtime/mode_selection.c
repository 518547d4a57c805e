/* Mode selection: contact states consistent with forces and accelerations (docs/theory.md, "Resolution"). */

#include "contacts.h"

#define FSM_PAST_LIMIT 1e-5 // part of a coefficient of friction by which a contact at its limit is taken past it

/* Whether the gap of contact `k` grows. */
static bool parts(const struct fsm_resolution *r, int64_t k)
{
    int64_t row = AT(r->tables->contact_rows, k, 0);
    double slow = fsm_larger(fsm_speed_tolerance(r->tables, row), fsm_speed_of_succession(r, k));
    return fsm_row_speed(r->terms, row, r->u) > slow;
}

/* Open the closed contacts that part: whatever the accelerations, they do not remain closed. */
static void open_parting(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (r->closed.at[k] == 1 && (r->tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0 &&
            parts(r, k)) {
            r->closed.at[k] = 0;
        }
    }
}

/* Whether the constraints leave nothing of a contact's normal row, as at a dead point: it transmits no force.

   An engaged lock that holds the same row is no such constraint: what rests on it stays closed. */
static bool vanishes(const struct fsm_resolution *r, fsm_matrix K, fsm_vector free_response, int64_t row)
{
    for (int64_t k = 0; k < r->outcome->wanted.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_SWITCHED) != 0 && r->outcome->wanted.at[k] != FSM_CONTACT_FREE) {
            return false;
        }
    }
    return AT(K, row, row) <= FSM_HIDDEN * free_response.at[row];
}

/* Return the magnitude of the accelerations (n_u,) in the metric of kinetic energy, square root of (J/s²). */
static double acceleration_scale(const struct fsm_resolution *r, fsm_vector motion)
{
    const struct fsm_terms *terms = r->terms;
    const struct fsm_tables *tables = r->tables;
    double twice = 0.0, least = 0.0;
    for (int64_t i = 0; i < motion.n; i++) {
        for (int64_t e = terms->mass_begin.at[i]; e < terms->mass_begin.at[i + 1]; e++) {
            int64_t j = terms->mass_columns.at[e];
            twice += motion.at[i] * AT(terms->M, i, j) * motion.at[j];
        }
        least = fsm_larger(least, AT(terms->M, i, i) * fsm_square(fsm_least_acceleration(tables, i)));
    }
    return sqrt(fsm_larger(twice, least));
}

/* Restrict what contacts may choose; returns what was admissible before guards that fired excluded choices. */
static fsm_index_table restrict_choices(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                                        fsm_matrix K, fsm_vector free_response)
{
    fsm_index_table admissible = fsm_arena_index_table(r->arena, problem->contact.n, FSM_CHOICE_COUNT);
    for (int64_t at = 0; at < problem->contact.n; at++) {
        fsm_indices allowed = fsm_index_row(problem->allowed, at);
        int64_t normal = problem->normal.at[at];
        if (normal >= 0 && !problem->bilateral.at[at] && vanishes(r, K, free_response, normal)) {
            fsm_indices_fill(fsm_indices_from(allowed, FSM_CHOICE_HOLD), 0);
        }
        fsm_put_indices(fsm_index_row(admissible, at), allowed);
        fsm_exclude_fired_choices(r, problem, at);
    }
    return admissible;
}

/* Of several motions at a limit of friction find the one that exists just past it; false where that decides nothing.

   At the limit itself a contact that begins to slide has no slip acceleration yet, and its sign decides whether the motion
   continues: with less friction it follows the slip where the motion exists after the instant, and opposes it where the
   motion existed before.  The choices of `solution` become those of the motion found. */
static bool decide_past_limits(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                               const struct fsm_contact_solution *solution)
{
    bool any = false;
    struct fsm_contact_problem past = *problem;
    past.kinetic_friction = fsm_arena_copy(r->arena, problem->kinetic_friction);
    for (int64_t at = 0; at < problem->contact.n; at++) {
        if (r->event.at[problem->contact.at[at]] == FSM_EVENT_SLIDES) {
            past.kinetic_friction.at[at] *= 1.0 - FSM_PAST_LIMIT;
            any = true;
        }
    }
    if (!any) {
        return false;
    }
    struct fsm_contact_solution found = fsm_allocate_solution(r->arena, problem->contact.n, solution->forces.n);
    struct fsm_enumeration_result trial;
    struct fsm_candidate_log none = {0};
    double tolerance = r->tables->tolerances->acceleration;
    int64_t status = fsm_solve_contact_problem(r->arena, &past, tolerance, &found, &none, &trial);
    if (status != FSM_CONTINUE || trial.continuity) {
        return false;
    }
    fsm_put_indices(solution->choices, found.choices);
    return true;
}

/* Solve the contact problem as it is now; `bearings` may be none. */
static int64_t solve_once(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                          const struct fsm_bearing_problem *bearings, const struct fsm_contact_solution *solution,
                          struct fsm_enumeration_result *result)
{
    double tolerance = r->tables->tolerances->acceleration;
    struct fsm_candidate_log *log = &r->outcome->log;
    return bearings->still.n > 0 ? fsm_solve_with_bearings(r->arena, bearings, tolerance, solution, log, result)
                                 : fsm_solve_contact_problem(r->arena, problem, tolerance, solution, log, result);
}

/* Whether a contact has come to its limit of friction, and contacts that brace each other would still hold. */
static bool braced_at_limit(const struct fsm_resolution *r, const struct fsm_enumeration_result *result)
{
    bool slides = false;
    for (int64_t k = 0; k < r->event.n; k++) {
        slides = slides || r->event.at[k] == FSM_EVENT_SLIDES;
    }
    return slides && result->braced > 0;
}

/* Solve the contact problem, with the choices that fired only if nothing else is consistent; returns a status. */
static int64_t solve_selection(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                               const struct fsm_bearing_problem *bearings, fsm_index_table admissible,
                               const struct fsm_contact_solution *solution)
{
    struct fsm_notes *notes = r->outcome->notes;
    struct fsm_enumeration_result result;
    r->outcome->log.count = 0;
    int64_t status = solve_once(r, problem, bearings, solution, &result);
    notes->candidates = result.tried;
    notes->chosen_by = FSM_CHOSEN_NO_CANDIDATES;
    if (problem->contact.n > 0) {
        notes->chosen_by = result.consistent == 1 ? FSM_CHOSEN_UNIQUE : FSM_CHOSEN_LEAST_CHANGE;
    }
    if (status == FSM_CONTINUE && result.continuity) {
        notes->chosen_by = FSM_CHOSEN_CONTINUITY;
    }
    bool braced = braced_at_limit(r, &result);
    if (status == FSM_CONTINUE && braced) { // at the limit itself both motions are the same
        status = FSM_NON_UNIQUE_STATE;
    }
    bool several = status == FSM_NON_UNIQUE_STATE || (status == FSM_CONTINUE && result.continuity);
    if (several && !braced && bearings->still.n == 0 && decide_past_limits(r, problem, solution)) {
        status = FSM_CONTINUE;
        notes->chosen_by = FSM_CHOSEN_PAST_LIMIT;
    }
    if (status == FSM_INCONSISTENT && fsm_readmit_fired_choices(r, problem, admissible)) {
        status = solve_once(r, problem, bearings, solution, &result);
        notes->candidates += result.tried;
        notes->chosen_by = FSM_CHOSEN_LEAST_CHANGE;
        if (status == FSM_INCONSISTENT) { // not even if some of the contacts keep their states: all of them may
            fsm_indices_fill(problem->excluded, -1);
            status = solve_once(r, problem, bearings, solution, &result);
            notes->candidates += result.tried;
            notes->chosen_by = FSM_CHOSEN_FIRED_STATE_KEPT;
        }
    }
    notes->consistent = result.consistent;
    if (status == FSM_NON_UNIQUE_STATE && r->tables->sizes->on_several == 1) {
        notes->chosen_by = FSM_CHOSEN_POLICY;
        return FSM_CONTINUE;
    }
    return status;
}

/* Set the contact states and slip directions that the solution of the contact problem means. */
static void adopt_states(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, fsm_indices choices)
{
    fsm_codes wanted = r->outcome->wanted;
    fsm_vector old_sigma = fsm_arena_copy(r->arena, r->sigma);
    for (int64_t k = 0; k < wanted.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0) {
            wanted.at[k] = FSM_CONTACT_FREE;
        }
        r->sigma.at[k] = 0.0;
    }
    for (int64_t at = 0; at < problem->contact.n; at++) {
        int64_t k = problem->contact.at[at], choice = choices.at[at];
        wanted.at[k] = (int8_t)(choice < FSM_CHOICE_UNDER_FORWARD ? fsm_least(choice, FSM_CONTACT_SLIDING)
                                                                  : FSM_CONTACT_SLIDING_UNDER);
        r->sigma.at[k] = fsm_direction_of(choice);
        if (problem->spatial.at[at] && r->sigma.at[k] != 0.0) {
            const double *direction = &AT(problem->slip_direction, at, 0);
            double present = r->before.at[k] == FSM_CONTACT_SLIDING ? old_sigma.at[k] : 0.0;
            r->sigma.at[k] = fsm_angle_of(direction[0], direction[1], present);
        }
    }
}

/* Find the contact states after the instant, and their slip directions.

   Writes `outcome->wanted`, the slip directions in the context, the log and what the notes say of candidates; opens
   contacts that part.  Returns FSM_CONTINUE, FSM_INCONSISTENT, FSM_NON_UNIQUE_STATE, FSM_NON_UNIQUE or FSM_SINGULAR. */
FSM_LOCAL int64_t fsm_select_contact_states(const struct fsm_resolution *r)
{
    const struct fsm_terms *terms = r->terms;
    struct fsm_arena *arena = r->arena;
    int64_t n_u = r->u.n;
    open_parting(r);
    fsm_vector force = fsm_arena_copy(arena, fsm_vector_first(terms->f, n_u)), motion = fsm_arena_vector(arena, n_u);
    fsm_add_compliant_forces(r, force);
    struct fsm_contact_problem unscaled = fsm_build_selection_problem(r);
    fsm_indices rows = unscaled.row;
    struct fsm_bilateral_system bilateral =
        fsm_factor_bilateral(arena, terms, fsm_bilateral_rows(arena, r->tables, r->outcome->wanted), n_u);
    fsm_vector reaction = fsm_arena_vector(arena, bilateral.held.n);
    if (!fsm_base_accelerations(arena, r->tables, terms, &bilateral, force, r->u, motion, reaction)) {
        r->outcome->notes->candidates = 0;
        r->outcome->notes->consistent = 0;
        r->outcome->notes->chosen_by = FSM_CHOSEN_NO_CANDIDATES;
        return FSM_SINGULAR;
    }
    struct fsm_response response = fsm_unit_responses(arena, terms, &bilateral, rows, n_u);
    fsm_vector free_response = fsm_free_response(arena, terms, rows), base = fsm_arena_vector(arena, rows.n);
    for (int64_t k = 0; k < rows.n; k++) {
        base.at[k] = fsm_row_product(terms, rows.at[k], motion, terms->gamma.at[rows.at[k]]);
    }
    fsm_index_table admissible = restrict_choices(r, &unscaled, response.K, free_response);
    struct fsm_contact_problem problem =
        fsm_scale_problem(arena, &unscaled, response.K, base, free_response, acceleration_scale(r, motion));
    struct fsm_contact_solution solution = fsm_allocate_solution(arena, unscaled.contact.n, rows.n);
    struct fsm_bearing_problem bearings = {.still = {NULL, 0}};
    if (fsm_any_bearing(r->tables, problem.contact)) {
        bearings = fsm_bearings_of(arena, r->tables, &problem, &response, bilateral.held, reaction);
    }
    int64_t status = solve_selection(r, &problem, &bearings, admissible, &solution);
    if (status == FSM_CONTINUE) {
        adopt_states(r, &problem, solution.choices);
    }
    fsm_indices_fill(r->jammed, 0);
    for (int64_t at = 0; status == FSM_INCONSISTENT && at < problem.contact.n; at++) {
        int64_t k = problem.contact.at[at];
        r->jammed.at[k] = problem.jammed.at[at] == 1 && r->closed.at[k] == 1;
    }
    return status;
}
