/* Contact problem, shared by impacts (velocity level) and mode selection (acceleration level).

   Contact rows respond to forces `y` with `v = base + K y` (K: the Delassus matrix, bilateral rows held).  Every contact
   makes one choice, and a candidate turns into as many linear equations as there are rows.  On the velocity level the
   solution is an impact (docs/theory.md, "Impacts"), on the acceleration level the next mode ("Resolution").

   Rows are scaled so that K has a unit diagonal: rank and tolerances then do not depend on units, and forces, impulses
   and motions of all rows compare with one scale. */

#include "elementary.h"
#include "contacts.h"

/* Return the slip direction of a choice, 0 where it does not slide. */
FSM_LOCAL double fsm_direction_of(int64_t choice)
{
    switch (choice) {
    case FSM_CHOICE_FORWARD:
    case FSM_CHOICE_PARTED_FORWARD:
    case FSM_CHOICE_UNDER_FORWARD:
        return 1.0;
    case FSM_CHOICE_BACKWARD:
    case FSM_CHOICE_PARTED_BACKWARD:
    case FSM_CHOICE_UNDER_BACKWARD:
        return -1.0;
    default:
        return 0.0;
    }
}

/* Whether the normal row is not held. */
FSM_LOCAL bool fsm_is_open(int64_t choice)
{
    return choice == FSM_CHOICE_OPEN || (choice >= FSM_CHOICE_PARTED_HOLD && choice <= FSM_CHOICE_PARTED_BACKWARD);
}

/* Return the sign of the normal force that a sliding choice assumes. */
FSM_LOCAL double fsm_side_of(int64_t choice)
{
    return choice >= FSM_CHOICE_UNDER_FORWARD ? -1.0 : 1.0;
}

/* Return an unscaled contact problem of `count` contacts, with room for three rows each, none of them given yet. */
FSM_LOCAL struct fsm_contact_problem fsm_allocate_problem(struct fsm_arena *arena, int64_t count)
{
    int64_t n = 3 * count;
    struct fsm_contact_problem problem = {
        .contact = fsm_arena_indices(arena, count),
        .row = fsm_indices_first(fsm_arena_indices(arena, n), 0),
        .normal = fsm_arena_indices(arena, count),
        .tangent = fsm_arena_indices(arena, count),
        .spatial = fsm_arena_indices(arena, count),
        .target = fsm_arena_vector(arena, n),
        .floor = fsm_arena_vector(arena, n),
        .static_friction = fsm_arena_vector(arena, count),
        .kinetic_friction = fsm_arena_vector(arena, count),
        .infinite = fsm_arena_indices(arena, count),
        .bilateral = fsm_arena_indices(arena, count),
        .slipping = fsm_arena_indices(arena, count),
        .slip_direction = fsm_arena_matrix(arena, count, 2),
        .slack = fsm_arena_matrix(arena, count, 2),
        .allowed = fsm_arena_index_table(arena, count, FSM_CHOICE_COUNT),
        .cost = fsm_arena_matrix(arena, count, FSM_CHOICE_COUNT),
        .excluded = fsm_arena_indices(arena, count),
        .lasting = fsm_arena_indices(arena, count),
        .jammed = fsm_arena_indices(arena, count),
    };
    fsm_indices_fill(problem.normal, -1);
    fsm_indices_fill(problem.tangent, -1);
    fsm_indices_fill(problem.excluded, -1);
    problem.contact.n = 0;
    return problem;
}

/* Append contact `k` of the model with its rows; `has_normal`: its normal row is part of the problem. */
FSM_LOCAL void fsm_add_contact(struct fsm_contact_problem *problem, const struct fsm_tables *tables, int64_t k,
                               bool has_normal)
{
    int64_t at = problem->contact.n++, flags = tables->contact_flags.at[k];
    int64_t normal = AT(tables->contact_rows, k, 0), tangent = AT(tables->contact_rows, k, 1);
    problem->contact.at[at] = k;
    problem->bilateral.at[at] = (flags & FSM_FLAG_TWO_SIDED) != 0;
    problem->infinite.at[at] = tangent >= 0 && (flags & FSM_FLAG_STICKS_ALWAYS) != 0;
    problem->spatial.at[at] = tangent >= 0 && (flags & FSM_FLAG_IN_SPACE) != 0;
    if (has_normal) {
        problem->normal.at[at] = problem->row.n;
        problem->row.at[problem->row.n++] = normal;
    }
    if (tangent >= 0) {
        problem->tangent.at[at] = problem->row.n;
        problem->row.at[problem->row.n++] = tangent;
        if (problem->spatial.at[at]) {
            problem->row.at[problem->row.n++] = tangent + 1;
        }
    }
}

/* Return the units of the rows: inverse roots of the diagonal of K, negative where that is rounding. */
static fsm_vector row_units(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_matrix K,
                            fsm_vector free_response)
{
    fsm_vector unit = fsm_arena_vector(arena, K.n);
    for (int64_t i = 0; i < K.n; i++) {
        unit.at[i] = 1.0;
        if (AT(K, i, i) > FSM_HIDDEN * free_response.at[i]) {
            unit.at[i] = 1.0 / sqrt(AT(K, i, i));
        } else if (free_response.at[i] > 0.0) {
            unit.at[i] = -1.0 / sqrt(free_response.at[i]);
        }
    }
    for (int64_t k = 0; k < problem->tangent.n; k++) {
        if (problem->spatial.at[k]) { // one unit for both, so that the friction cone remains circular
            double *first = &unit.at[problem->tangent.at[k]], *second = first + 1;
            double both =
                *first * *second < 0.0 ? fsm_larger(*first, *second) : fsm_smaller(fabs(*first), fabs(*second));
            *first = fsm_sign(*first) * both;
            *second = fsm_sign(*second) * both;
        }
    }
    return unit;
}

/* Bring coefficients of friction and slacks of an unscaled problem to the units of its rows. */
static void scale_laws(const struct fsm_contact_problem *problem, fsm_vector unit)
{
    for (int64_t k = 0; k < problem->normal.n; k++) {
        int64_t normal = problem->normal.at[k], tangent = problem->tangent.at[k];
        if (tangent >= 0) {
            double ratio = 1.0 / unit.at[tangent];
            if (normal >= 0) {
                ratio *= unit.at[normal];
            }
            problem->static_friction.at[k] *= ratio;
            problem->kinetic_friction.at[k] *= ratio;
            AT(problem->slack, k, 1) /= fsm_pow(unit.at[tangent], problem->spatial.at[k] ? 2.0 : 1.0);
        }
        if (normal >= 0) {
            AT(problem->slack, k, 0) /= unit.at[normal];
        }
    }
}

/* Return a problem with its Delassus matrix and base motion, scaled.

   `unscaled`: everything but `K base unit scale`.  What concerns contacts is shared with the result (its coefficients of
   friction and slacks are scaled in place), what concerns rows is not: see fsm_retarget.  `K` (n, n), `base` (n,) as
   computed; `free_response` (n,), see fsm_free_response; `scale`: magnitude of the motion in the metric of kinetic
   energy, square root of (J) or (J/s²). */
FSM_LOCAL struct fsm_contact_problem fsm_scale_problem(struct fsm_arena *arena,
                                                       const struct fsm_contact_problem *unscaled, fsm_matrix K,
                                                       fsm_vector base, fsm_vector free_response, double scale)
{
    int64_t n = base.n;
    fsm_vector unit = row_units(arena, unscaled, K, free_response);
    fsm_matrix scaled = fsm_arena_matrix(arena, n, n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (unit.at[i] > 0.0 && unit.at[j] > 0.0) {
                AT(scaled, i, j) = AT(K, i, j) * unit.at[i] * unit.at[j];
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        unit.at[i] = fabs(unit.at[i]);
    }
    scale_laws(unscaled, unit);
    struct fsm_contact_problem problem = *unscaled;
    problem.K = scaled;
    problem.base = fsm_arena_vector(arena, n);
    problem.target = fsm_arena_vector(arena, n);
    problem.floor = fsm_arena_vector(arena, n);
    problem.unit = unit;
    problem.scale = scale;
    fsm_retarget(&problem, unscaled, base);
    return problem;
}

/* Give a scaled problem another base motion (n,), and the targets and floors that the unscaled one has now. */
FSM_LOCAL void fsm_retarget(const struct fsm_contact_problem *problem, const struct fsm_contact_problem *unscaled,
                            fsm_vector base)
{
    for (int64_t i = 0; i < base.n; i++) {
        problem->base.at[i] = base.at[i] * problem->unit.at[i];
        problem->target.at[i] = unscaled->target.at[i] * problem->unit.at[i];
        problem->floor.at[i] = unscaled->floor.at[i] / problem->unit.at[i];
    }
}

/* Whether two contacts have rows with entries of the Delassus matrix in common. */
static bool are_coupled(const struct fsm_contact_problem *problem, fsm_index_table rows, int64_t j, int64_t k)
{
    for (int64_t a = 0; a < rows.m; a++) {
        for (int64_t b = 0; b < rows.m; b++) {
            int64_t one = AT(rows, j, a), other = AT(rows, k, b);
            if (one >= 0 && other >= 0 && fabs(AT(problem->K, one, other)) > FSM_HIDDEN) {
                return true;
            }
        }
    }
    return false;
}

/* Return the contact island of each contact, numbered by its first contact: coupled contacts share one. */
FSM_LOCAL fsm_indices fsm_contact_islands(struct fsm_arena *arena, const struct fsm_contact_problem *problem)
{
    int64_t count = problem->normal.n;
    fsm_indices island = fsm_arena_indices(arena, count);
    fsm_index_table rows = fsm_arena_index_table(arena, count, 3);
    for (int64_t k = 0; k < count; k++) {
        island.at[k] = k;
        AT(rows, k, 0) = problem->normal.at[k];
        AT(rows, k, 1) = problem->tangent.at[k];
        AT(rows, k, 2) = problem->spatial.at[k] ? problem->tangent.at[k] + 1 : -1;
    }
    for (int64_t k = 0; k < count; k++) {
        for (int64_t other = 0; other < k; other++) {
            if (island.at[k] == island.at[other] || !are_coupled(problem, rows, k, other)) {
                continue;
            }
            int64_t last = fsm_most(island.at[k], island.at[other]), first = fsm_least(island.at[k], island.at[other]);
            for (int64_t i = 0; i < count; i++) {
                if (island.at[i] == last) {
                    island.at[i] = first;
                }
            }
        }
    }
    return island;
}

/* Copy contact `k` of a problem to place `at` of a subproblem, except for its rows. */
static void copy_contact(const struct fsm_contact_problem *part, int64_t at, const struct fsm_contact_problem *problem,
                         int64_t k)
{
    part->contact.at[at] = problem->contact.at[k];
    part->spatial.at[at] = problem->spatial.at[k];
    part->static_friction.at[at] = problem->static_friction.at[k];
    part->kinetic_friction.at[at] = problem->kinetic_friction.at[k];
    part->infinite.at[at] = problem->infinite.at[k];
    part->bilateral.at[at] = problem->bilateral.at[k];
    part->slipping.at[at] = problem->slipping.at[k];
    part->excluded.at[at] = problem->excluded.at[k];
    part->lasting.at[at] = problem->lasting.at[k];
    fsm_put(fsm_row(part->slip_direction, at), fsm_row(problem->slip_direction, k));
    fsm_put(fsm_row(part->slack, at), fsm_row(problem->slack, k));
    fsm_put_indices(fsm_index_row(part->allowed, at), fsm_index_row(problem->allowed, k));
    fsm_put(fsm_row(part->cost, at), fsm_row(problem->cost, k));
}

/* Return the scaled problem of the contacts `members` only, with their rows `rows`, those of each in one piece. */
FSM_LOCAL struct fsm_contact_problem fsm_subproblem(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                                    fsm_indices members, fsm_indices rows)
{
    int64_t n = rows.n;
    struct fsm_contact_problem part = fsm_allocate_problem(arena, members.n);
    part.contact.n = members.n;
    part.K = fsm_arena_matrix(arena, n, n);
    part.base = fsm_arena_vector(arena, n);
    part.unit = fsm_arena_vector(arena, n);
    part.scale = problem->scale;
    for (int64_t i = 0; i < n; i++) {
        part.base.at[i] = problem->base.at[rows.at[i]];
        part.target.at[i] = problem->target.at[rows.at[i]];
        part.floor.at[i] = problem->floor.at[rows.at[i]];
        part.unit.at[i] = problem->unit.at[rows.at[i]];
        for (int64_t j = 0; j < n; j++) {
            AT(part.K, i, j) = AT(problem->K, rows.at[i], rows.at[j]);
        }
    }
    for (int64_t at = 0; at < members.n; at++) {
        int64_t k = members.at[at];
        copy_contact(&part, at, problem, k);
        for (int64_t i = 0; i < n; i++) {
            if (rows.at[i] == problem->normal.at[k]) {
                part.normal.at[at] = i;
            }
            if (rows.at[i] == problem->tangent.at[k]) {
                part.tangent.at[at] = i;
            }
        }
    }
    return part;
}

/* Return room for a solution of `count` contacts with n rows. */
FSM_LOCAL struct fsm_contact_solution fsm_allocate_solution(struct fsm_arena *arena, int64_t count, int64_t n)
{
    return (struct fsm_contact_solution){.choices = fsm_arena_indices(arena, count),
                                         .forces = fsm_arena_vector(arena, n),
                                         .motions = fsm_arena_vector(arena, n)};
}
