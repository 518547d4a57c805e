/* Loads of bearings: resultants of the forces of constraint rows, which depend on the friction that they bound
   (docs/theory.md, "Friction of joints"). */

#include "elementary.h"
#include "contacts.h"

#define FSM_ANY_LOAD          1e30 // a load under which everything holds: beyond all others
#define FSM_MOST_COMBINATIONS 64   // of bearings that hold, tried where the first loads lead nowhere

/* Return the resultant of the forces that load contact `k`; `held` (m,): numbers of the rows with the forces `force`. */
FSM_LOCAL double fsm_bearing_load(const struct fsm_tables *tables, int64_t k, fsm_indices held, fsm_vector force)
{
    double parts[2] = {0.0, 0.0};
    for (int64_t i = 0; i < held.n; i++) {
        for (int64_t part = 0; part < 2; part++) {
            if (AT(tables->contact_rows, k, 2 + part) == held.at[i]) {
                parts[part] = force.at[i];
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
            double now = fsm_bearing_load(bearings->tables, k, bearings->held, bearings->reaction);
            largest = fsm_larger(largest, now);
            change = fsm_larger(change, fabs(now - *load));
            *load = now;
        }
    }
    return change <= FSM_LOAD_AGREES * largest;
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
        bearings.moving.at[at] = fsm_bearing_load(tables, problem->contact.at[at], held, base);
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
            bearings->moving.at[at] =
                fsm_bearing_load(bearings->tables, bearings->problem->contact.at[at], bearings->held, bearings->base);
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
