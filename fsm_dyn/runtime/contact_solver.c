/* Solution of a contact problem, contact island by contact island: by enumeration, or by complementarity. */

#include "contacts.h"

#define FSM_ENUMERATED 6 // contacts of an island, up to which all candidates are tried

/* Solve the problem of one contact island; forces and motions come back unscaled.  Returns a status. */
static int64_t solve_island(struct fsm_arena *arena, const struct fsm_contact_problem *problem, double tolerance,
                            const struct fsm_contact_solution *solution, struct fsm_candidate_log *log,
                            struct fsm_enumeration_result *result)
{
    *result = fsm_enumerate_candidates(arena, problem, tolerance, solution, log);
    if (result->motions > 1 && result->shared > 0) { // with fewer contacts there are other motions
        struct fsm_contact_problem whole = *problem;
        whole.shares_count = true;
        int64_t tried = result->tried;
        *result = fsm_enumerate_candidates(arena, &whole, tolerance, solution, log);
        result->tried += tried;
    }
    if (result->consistent == 0 && result->tried > 0) {
        if (result->non_finite > 0) {
            return FSM_NON_FINITE;
        }
        return result->undetermined > 0 ? FSM_NON_UNIQUE : FSM_INCONSISTENT;
    }
    for (int64_t i = 0; i < solution->forces.n; i++) {
        solution->forces.at[i] *= problem->unit.at[i];
        solution->motions.at[i] /= problem->unit.at[i];
    }
    return result->motions > 1 ? FSM_NON_UNIQUE_STATE : FSM_CONTINUE;
}

/* Whether Coulomb's law is a linear complementarity problem for all contacts: not for slots, in space, or in Poisson's
   expansion. */
static bool is_complementary(const struct fsm_contact_problem *problem)
{
    for (int64_t k = 0; k < problem->normal.n; k++) {
        if (problem->bilateral.at[k] || problem->spatial.at[k]) {
            return false;
        }
        for (int64_t choice = FSM_CHOICE_PARTED_HOLD; choice <= FSM_CHOICE_PARTED_BACKWARD; choice++) {
            if (AT(problem->allowed, k, choice)) {
                return false;
            }
        }
    }
    return true;
}

/* Leave each contact only the choice that complementarity proposes, unless that is not allowed.

   One at rest whose slip would accelerate by no more than `tolerance` of the scale sticks.  `proposal` (n_contacts,) is
   workspace. */
static void narrow_choices(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices proposal,
                           double tolerance)
{
    if (!is_complementary(problem) || !fsm_propose(arena, problem, proposal, tolerance)) {
        return;
    }
    for (int64_t k = 0; k < problem->normal.n; k++) {
        if (AT(problem->allowed, k, proposal.at[k])) {
            for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
                AT(problem->allowed, k, choice) = choice == proposal.at[k];
            }
        }
    }
}

/* List the contacts of one island and their rows. */
static void list_island(const struct fsm_contact_problem *problem, fsm_indices island, int64_t number,
                        fsm_indices *members, fsm_indices *rows)
{
    members->n = 0;
    rows->n = 0;
    for (int64_t k = 0; k < island.n; k++) {
        if (island.at[k] != number) {
            continue;
        }
        members->at[members->n++] = k;
        if (problem->normal.at[k] >= 0) {
            rows->at[rows->n++] = problem->normal.at[k];
        }
        if (problem->tangent.at[k] >= 0) {
            rows->at[rows->n++] = problem->tangent.at[k];
        }
        if (problem->spatial.at[k]) {
            rows->at[rows->n++] = problem->tangent.at[k] + 1;
        }
    }
}

/* Solve for the contacts `members` with the rows `rows` alone, and enter their solution in that of all. */
static int64_t solve_part(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices members,
                          fsm_indices rows, double tolerance, const struct fsm_contact_solution *solution,
                          struct fsm_candidate_log *log, struct fsm_enumeration_result *result)
{
    bool large = members.n > FSM_ENUMERATED;
    struct fsm_contact_problem part = fsm_subproblem(arena, problem, members, rows);
    struct fsm_contact_solution found = fsm_allocate_solution(arena, members.n, rows.n);
    if (large) {
        narrow_choices(arena, &part, found.choices, tolerance);
    }
    int64_t status = solve_island(arena, &part, tolerance, &found, log, result);
    if (large && result->consistent == 0) { // once more: contacts that hardly slide are to slide
        int64_t tried = result->tried;
        part = fsm_subproblem(arena, problem, members, rows);
        narrow_choices(arena, &part, found.choices, 0.0);
        status = solve_island(arena, &part, tolerance, &found, log, result);
        result->tried += tried;
    }
    if (result->consistent == 0) {
        return status;
    }
    for (int64_t i = 0; i < members.n; i++) {
        solution->choices.at[members.at[i]] = found.choices.at[i];
        fsm_put(fsm_row(problem->slip_direction, members.at[i]), fsm_row(part.slip_direction, i));
    }
    for (int64_t i = 0; i < rows.n; i++) {
        solution->forces.at[rows.at[i]] = found.forces.at[i];
        solution->motions.at[rows.at[i]] = found.motions.at[i];
    }
    return status;
}

/* Solve a contact problem; contact islands are solved one by one.

   `solution`, `log`, and `result` are written: forces and motions come back unscaled; of all islands together the result
   has the candidates tried, the least number of consistent ones, the most motions.  Returns FSM_CONTINUE,
   FSM_INCONSISTENT, FSM_NON_FINITE, FSM_NON_UNIQUE_STATE (the solution is that which changes least) or FSM_NON_UNIQUE. */
FSM_LOCAL int64_t fsm_solve_contact_problem(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                            double tolerance, const struct fsm_contact_solution *solution,
                                            struct fsm_candidate_log *log, struct fsm_enumeration_result *result)
{
    int64_t count = problem->normal.n;
    fsm_indices island = fsm_contact_islands(arena, problem);
    bool single = 0 < count && count <= FSM_ENUMERATED;
    for (int64_t k = 0; k < count; k++) {
        single = single && island.at[k] == 0;
    }
    fsm_indices_fill(problem->jammed, 0);
    if (single) {
        int64_t status = solve_island(arena, problem, tolerance, solution, log, result);
        fsm_indices_fill(problem->jammed, status == FSM_INCONSISTENT);
        return status;
    }
    *result = (struct fsm_enumeration_result){.nearest = FSM_NO_CANDIDATE};
    int64_t status = FSM_CONTINUE;
    for (int64_t number = 0; number < count; number++) {
        fsm_mark top = fsm_arena_mark(arena);
        fsm_indices members = fsm_arena_indices(arena, count), rows = fsm_arena_indices(arena, 3 * count);
        list_island(problem, island, number, &members, &rows);
        if (members.n > 0) {
            struct fsm_enumeration_result part;
            int64_t part_status = solve_part(arena, problem, members, rows, tolerance, solution, log, &part);
            result->tried += part.tried;
            result->motions = fsm_most(result->motions, part.motions);
            result->continuity = fsm_most(result->continuity, part.continuity);
            result->braced = fsm_most(result->braced, part.braced);
            result->undetermined = fsm_most(result->undetermined, part.undetermined);
            if (part.consistent == 0) {
                result->nearest = fsm_smaller(result->nearest, part.nearest);
                result->consistent = 0;
                for (int64_t i = 0; i < members.n; i++) {
                    problem->jammed.at[members.at[i]] = part_status == FSM_INCONSISTENT;
                }
                return part_status;
            }
            result->consistent =
                result->consistent == 0 ? part.consistent : fsm_least(result->consistent, part.consistent);
            status = fsm_most(status, part_status);
        }
        fsm_arena_release(arena, top);
    }
    return status;
}
