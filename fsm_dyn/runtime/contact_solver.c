/* Solution of a contact problem, with loads of bearings, slip directions, locks with a limit. */

#include "elementary.h"
#include "contacts.h"

/* -- Loads of bearings: resultants of the forces of constraint rows, or the normal force of a contact, which depend on the
   friction that they bound (docs/theory.md, "Friction of joints"). */

#define FSM_ANY_LOAD          1e30 // a load under which everything holds: beyond all others
#define FSM_MOST_COMBINATIONS 64   // of bearings that hold, tried where the first loads lead nowhere

/* Return the resultant of the forces that load contact `k`: those of `bilateral` and of `contacts`. */
FSM_LOCAL double fsm_bearing_load(const struct fsm_tables *tables, int64_t k, struct fsm_row_forces bilateral,
                                  struct fsm_row_forces contacts)
{
    const struct fsm_row_forces both[2] = {bilateral, contacts};
    double parts[2] = {0.0, 0.0};
    for (int64_t of = 0; of < 2; of++) {
        for (int64_t i = 0; i < both[of].force.n; i++) {
            for (int64_t part = 0; part < 2; part++) {
                if (AT(tables->contact_rows, k, 2 + part) == both[of].row.at[i]) {
                    parts[part] = both[of].force.at[i];
                }
            }
        }
    }
    return fsm_hypot(parts[0], parts[1]);
}

/* Write the forces (m,) of the bilateral rows under contact forces (n,) in the response to them: `base` without. */
FSM_LOCAL void fsm_reactions_under(const struct fsm_response *response, fsm_vector base, fsm_vector forces,
                                   fsm_vector reaction)
{
    fsm_put(reaction, base);
    for (int64_t r = 0; r < forces.n; r++) {
        for (int64_t i = 0; i < base.n; i++) {
            reaction.at[i] += AT(response->reactions, r, i) * forces.at[r];
        }
    }
}

/* Whether any contact of a problem is a bearing. */
FSM_LOCAL bool fsm_any_bearing(const struct fsm_tables *tables, fsm_indices contact)
{
    for (int64_t at = 0; at < contact.n; at++) {
        if (tables->contact_flags.at[contact.at[at]] & FSM_FLAG_LOADED) {
            return true;
        }
    }
    return false;
}

/* Whether entry `at` of the problem is a bearing. */
static bool is_bearing(const struct fsm_bearing_problem *bearings, int64_t at)
{
    return (bearings->tables->contact_flags.at[bearings->problem->contact.at[at]] & FSM_FLAG_LOADED) != 0;
}

/* Bring the loads to those of the forces of the rows; returns whether they agreed.

   The load that bounds static friction is that with which a bearing holds: one that slides keeps it. */
static bool update_loads(const struct fsm_bearing_problem *bearings, const struct fsm_contact_solution *solution)
{
    double largest = 0.0, change = 0.0;
    fsm_reactions_under(bearings->response, bearings->base, solution->forces, bearings->reaction);
    for (int64_t at = 0; at < bearings->still.n; at++) {
        if (is_bearing(bearings, at)) {
            int64_t k = bearings->problem->contact.at[at];
            bool holds = solution->choices.at[at] == FSM_CHOICE_HOLD;
            double *load = holds ? &bearings->still.at[at] : &bearings->moving.at[at];
            double now =
                fsm_bearing_load(bearings->tables, k, (struct fsm_row_forces){bearings->held, bearings->reaction},
                                 (struct fsm_row_forces){bearings->problem->row, solution->forces});
            largest = fsm_larger(largest, now);
            change = fsm_larger(change, fabs(now - *load));
            *load = now;
        }
    }
    return change <= FSM_LOAD_AGREES * largest;
}

/* Return the load of entry `at` of the problem without the forces of contacts. */
static double load_without_contacts(const struct fsm_bearing_problem *bearings, int64_t at)
{
    return fsm_bearing_load(bearings->tables, bearings->problem->contact.at[at],
                            (struct fsm_row_forces){bearings->held, bearings->base},
                            (struct fsm_row_forces){{NULL, 0}, {NULL, 0}});
}

/* Return the bearings of a scaled problem, coefficients as `problem` has them now.

   At first a bearing at rest may hold under any load, and the load of one that slides is that without contact forces. */
FSM_LOCAL struct fsm_bearing_problem fsm_bearings_of(struct fsm_arena *arena, const struct fsm_tables *tables,
                                                     const struct fsm_contact_problem *problem,
                                                     const struct fsm_response *response, fsm_indices held,
                                                     fsm_vector base)
{
    int64_t count = problem->contact.n;
    struct fsm_bearing_problem bearings = {.tables = tables,
                                           .problem = problem,
                                           .response = response,
                                           .held = held,
                                           .base = base,
                                           .reaction = fsm_arena_vector(arena, held.n),
                                           .still = fsm_arena_vector(arena, count),
                                           .moving = fsm_arena_vector(arena, count),
                                           .static_friction = fsm_arena_copy(arena, problem->static_friction),
                                           .kinetic_friction = fsm_arena_copy(arena, problem->kinetic_friction)};
    for (int64_t at = 0; at < count; at++) {
        bearings.still.at[at] = FSM_ANY_LOAD;
        bearings.moving.at[at] = load_without_contacts(&bearings, at);
    }
    return bearings;
}

/* Give the problem the bounds of the present loads. */
static void load_problem(const struct fsm_bearing_problem *bearings)
{
    for (int64_t at = 0; at < bearings->still.n; at++) {
        if (is_bearing(bearings, at)) {
            bearings->problem->static_friction.at[at] = bearings->static_friction.at[at] * bearings->still.at[at];
            bearings->problem->kinetic_friction.at[at] = bearings->kinetic_friction.at[at] * bearings->moving.at[at];
        }
    }
}

/* Solve with the loads, again until they agree with the forces; a status as fsm_solve_contact_problem, FSM_INCONSISTENT
   where they never do. */
static int64_t iterate_loads(struct fsm_arena *arena, const struct fsm_bearing_problem *bearings, double tolerance,
                             const struct fsm_contact_solution *solution, struct fsm_candidate_log *log,
                             struct fsm_enumeration_result *result)
{
    for (int64_t pass = 0; pass < FSM_LOAD_PASSES; pass++) {
        fsm_mark top = fsm_arena_mark(arena);
        load_problem(bearings);
        log->count = 0;
        int64_t status = fsm_solve_contact_problem(arena, bearings->problem, tolerance, solution, log, result);
        fsm_arena_release(arena, top);
        if ((status != FSM_CONTINUE && status != FSM_NON_UNIQUE_STATE) || update_loads(bearings, solution)) {
            return status;
        }
    }
    result->consistent = 0;
    return FSM_INCONSISTENT;
}

/* Let the bearings of `holding`, a bit each, hold under any load, and the others under none. */
static void assume(const struct fsm_bearing_problem *bearings, int64_t holding)
{
    for (int64_t at = 0, bit = 1; at < bearings->still.n; at++) {
        if (is_bearing(bearings, at)) {
            bearings->still.at[at] = (holding & bit) != 0 ? FSM_ANY_LOAD : 0.0;
            bearings->moving.at[at] = load_without_contacts(bearings, at);
            bit *= 2;
        }
    }
}

/* Solve a contact problem with bearings: friction and loads that agree.

   From loads under which all hold, as a rule.  The load of one bearing may depend on whether another holds: where that leads
   nowhere, all combinations are tried of bearings that hold.  A status as fsm_solve_contact_problem. */
FSM_LOCAL int64_t fsm_solve_with_bearings(struct fsm_arena *arena, const struct fsm_bearing_problem *bearings,
                                          double tolerance, const struct fsm_contact_solution *solution,
                                          struct fsm_candidate_log *log, struct fsm_enumeration_result *result)
{
    int64_t status = iterate_loads(arena, bearings, tolerance, solution, log, result), combinations = 1;
    for (int64_t at = 0; at < bearings->still.n; at++) {
        combinations *= is_bearing(bearings, at) && combinations < FSM_MOST_COMBINATIONS ? 2 : 1;
    }
    for (int64_t holding = combinations - 1; status == FSM_INCONSISTENT && holding >= 0; holding--) {
        assume(bearings, holding);
        status = iterate_loads(arena, bearings, tolerance, solution, log, result);
    }
    return status;
}

/* -- Slip directions in space, kept as an angle in the tangent plane (docs/theory.md, "Friction in space"). */

#define FSM_ANGLE_SAME 1e-9 // rad

/* Return the angle of a vector in (0, 2π]; `present`, if it is one, where the two differ by rounding. */
FSM_LOCAL double fsm_angle_of(double first, double second, double present)
{
    double angle = fsm_atan2(second, first);
    if (angle <= 0.0) {
        angle += 2.0 * FSM_PI;
    }
    return (present > 0.0 && fabs(angle - present) <= FSM_ANGLE_SAME) ? present : angle;
}

/* Update the slip directions in `c` (n_c,) in a mode with the flag FSM_MODE_TURNS; return whether any changed.

   `t` (s), `x` (n_q + n_u,): the state.  The arena and the unconstrained terms of `work` are overwritten. */
FSM_LOCAL bool fsm_update_slip_directions(struct fsm_work *work, const struct fsm_tables *tables, double t,
                                          fsm_vector x, fsm_vector c, int64_t mode)
{
    const struct fsm_sizes *sizes = tables->sizes;
    const struct fsm_terms *terms = fsm_terms_of(work);
    fsm_arena_clear(&work->arena);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_vector u = fsm_vector_part(x, sizes->n_q, sizes->n_q + sizes->n_u);
    fsm_vector sigma = fsm_vector_from(c, fsm_sigma_at(sizes));
    bool changed = false;
    for (int64_t k = 0; k < sizes->n_contacts; k++) {
        if ((tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) == 0 ||
            AT(tables->mode_states, mode, k) != FSM_CONTACT_SLIDING) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 1);
        double first = fsm_row_speed(terms, row, u), second = fsm_row_speed(terms, row + 1, u);
        if (fsm_hypot(first, second) > tables->tolerances->slip) {
            double angle = fsm_angle_of(first, second, sigma.at[k]);
            changed = changed || angle != sigma.at[k];
            sigma.at[k] = angle;
        }
    }
    return changed;
}

/* -- Locks with a force limit (docs/theory.md, "Locks with a limit").

   Within its limit such a lock is a bilateral row; at the limit its guard fires and it is released, until a transition
   engages it again.  Impulses come of forces beyond any limit: an impact is resolved without the locks that were engaged
   before it, and those whose rows it moved are released. */

/* Whether a user-defined transition asks for this state of contact `k` now. */
static bool is_asked(const struct fsm_resolution *r, int64_t k, int8_t state)
{
    return r->transition >= 0 && AT(r->tables->transition_states, r->transition, k) == state;
}

/* Whether contact `k` is such a lock, engaged before this instant, that nothing but an impact changes now. */
static bool holds_on(const struct fsm_resolution *r, int64_t k)
{
    return (r->tables->contact_flags.at[k] & FSM_FLAG_FORCE_LIMIT) != 0 && r->before.at[k] == FSM_CONTACT_HELD &&
           r->event.at[k] != FSM_EVENT_OPENS && !is_asked(r, k, FSM_CONTACT_FREE) && !is_asked(r, k, FSM_CONTACT_HELD);
}

/* Release the locks whose force has reached its limit, unless a transition engages them again. */
FSM_LOCAL void fsm_release_overloaded_locks(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_FORCE_LIMIT) != 0 && r->event.at[k] == FSM_EVENT_OPENS &&
            !is_asked(r, k, FSM_CONTACT_HELD)) {
            r->outcome->wanted.at[k] = FSM_CONTACT_FREE;
        }
    }
}

/* Leave the locks with a limit that were engaged before out of an impact. */
FSM_LOCAL void fsm_suspend_limited_locks(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        if (holds_on(r, k)) {
            r->outcome->wanted.at[k] = FSM_CONTACT_FREE;
        }
    }
}

/* Engage those again after it whose rows it did not move. */
FSM_LOCAL void fsm_resume_limited_locks(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        int64_t row = AT(r->tables->contact_rows, k, 0);
        if (holds_on(r, k) && fabs(fsm_row_speed(r->terms, row, r->u)) <= r->tables->tolerances->speed) {
            r->outcome->wanted.at[k] = FSM_CONTACT_HELD;
        }
    }
}

/* -- Solution of a contact problem, contact island by contact island: by enumeration, or by complementarity. */

#define FSM_ENUMERATED 6 // contacts of an island, up to which all candidates are tried

static void solve_again(struct fsm_arena *arena, const struct fsm_contact_problem *problem, double tolerance,
                        const struct fsm_contact_solution *solution, struct fsm_candidate_log *log,
                        struct fsm_enumeration_result *result)
{
    int64_t tried = result->tried;
    *result = fsm_enumerate_candidates(arena, problem, tolerance, solution, log);
    result->tried += tried;
}

/* Solve the problem of one contact island; forces and motions come back unscaled.  Returns a status. */
static int64_t solve_island(struct fsm_arena *arena, const struct fsm_contact_problem *problem, double tolerance,
                            const struct fsm_contact_solution *solution, struct fsm_candidate_log *log,
                            struct fsm_enumeration_result *result)
{
    *result = fsm_enumerate_candidates(arena, problem, tolerance, solution, log);
    bool shared = result->shared > 0;
    if (result->motions > 1 && shared) { // with fewer contacts there are other motions
        struct fsm_contact_problem whole = *problem;
        whole.shares_count = true;
        solve_again(arena, &whole, tolerance, solution, log, result);
    }
    if (result->consistent == 0 && shared) { // springs that share the load break a law: without them
        struct fsm_contact_problem open = *problem;
        open.shares_open = true;
        solve_again(arena, &open, tolerance, solution, log, result);
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

/* Leave each contact only the choice to stick; false if some contact may not, or if complementarity proposes choices. */
static bool narrow_to_rest(const struct fsm_contact_problem *problem)
{
    bool rests = !is_complementary(problem);
    for (int64_t k = 0; k < problem->normal.n; k++) {
        rests = rests && AT(problem->allowed, k, FSM_CHOICE_HOLD);
    }
    for (int64_t k = 0; rests && k < problem->normal.n; k++) {
        for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
            AT(problem->allowed, k, choice) = choice == FSM_CHOICE_HOLD;
        }
    }
    return rests;
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
    int64_t status = FSM_INCONSISTENT, rested = 0;
    bool done = false;
    if (large && narrow_to_rest(&part)) { // of what rests, motions with fewer contacts are not looked for
        status = solve_island(arena, &part, tolerance, &found, log, result);
        done = status == FSM_CONTINUE && !result->all_braced;
        rested = done ? 0 : result->tried;
        part = done ? part : fsm_subproblem(arena, problem, members, rows);
    }
    if (large && !done) {
        narrow_choices(arena, &part, found.choices, tolerance);
    }
    if (!done) {
        status = solve_island(arena, &part, tolerance, &found, log, result);
        result->tried += rested;
    }
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
