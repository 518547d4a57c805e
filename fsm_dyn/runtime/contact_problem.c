/* The contact problem of an instant: its data, the response of the rows, feasibility. */

#include "elementary.h"
#include "contacts.h"
#include "algebra.h"

/* -- Contact problem, shared by impacts (velocity level) and mode selection (acceleration level).

   Contact rows respond to forces `y` with `v = base + K y` (K: the Delassus matrix, bilateral rows held).  Every contact
   makes one choice, and a candidate turns into as many linear equations as there are rows.  On the velocity level the
   solution is an impact (docs/theory.md, "Impacts"), on the acceleration level the next mode ("Resolution").

   Rows are scaled so that K has a unit diagonal: rank and tolerances then do not depend on units, and forces, impulses
   and motions of all rows compare with one scale. */

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

/* -- Response of the mechanism with its bilateral constraint rows imposed (docs/theory.md, "Resolution").

   With bilateral rows B, `[M -Bᵀ; B 0] [a; Λ] = [force; target]` gives the accelerations under forces as well as the
   speeds after impulses.  The system is scaled by `diag(M)^-1/2` and the norms of the rows, so that its rank does not
   depend on units; redundant rows that are consistent with the others do no harm. */

#define FSM_BILATERAL_RANK     1e-12 // a pivot below this fraction of the first is zero
#define FSM_AGREEMENT          1e-7  // fraction of the right-hand side by which consistent redundant rows may be missed
#define FSM_BILATERAL_ROUNDING (1e3 * FSM_EPS) // of rows in which terms cancel

/* Factor the system of the declared speeds and the bilateral rows `held` (m,); kinematic rows are no part of it. */
FSM_LOCAL struct fsm_bilateral_system fsm_factor_bilateral(struct fsm_arena *arena, const struct fsm_terms *terms,
                                                           fsm_indices held, int64_t n_u)
{
    int64_t m = held.n, size = n_u + m;
    struct fsm_bilateral_system bilateral = {.held = held,
                                             .scale = fsm_arena_vector(arena, n_u),
                                             .row_scale = fsm_arena_vector(arena, m),
                                             .right = fsm_arena_vector(arena, size),
                                             .solution = fsm_arena_vector(arena, size)};
    fsm_vector scale = bilateral.scale, row_scale = bilateral.row_scale;
    fsm_column_scales(terms, scale);
    double largest = 0.0;
    for (int64_t k = 0; k < m; k++) {
        double square = 0.0;
        for (int64_t e = terms->row_begin.at[held.at[k]]; e < terms->row_begin.at[held.at[k] + 1]; e++) {
            int64_t i = terms->row_columns.at[e];
            square += fsm_square(AT(terms->A, held.at[k], i) * scale.at[i]);
        }
        row_scale.at[k] = square;
        largest = fsm_larger(largest, square);
    }
    for (int64_t k = 0; k < m; k++) { // a row of rounding is none
        double square = row_scale.at[k];
        row_scale.at[k] = square > fsm_square(FSM_HOLDS_NOTHING) * largest ? 1.0 / sqrt(square) : 1.0;
    }
    fsm_matrix system = fsm_arena_matrix(arena, size, size);
    for (int64_t i = 0; i < n_u; i++) {
        for (int64_t e = terms->mass_begin.at[i]; e < terms->mass_begin.at[i + 1]; e++) {
            int64_t j = terms->mass_columns.at[e];
            AT(system, i, j) = AT(terms->M, i, j) * scale.at[i] * scale.at[j];
        }
    }
    for (int64_t k = 0; k < m; k++) {
        for (int64_t e = terms->row_begin.at[held.at[k]]; e < terms->row_begin.at[held.at[k] + 1]; e++) {
            int64_t i = terms->row_columns.at[e];
            double entry = AT(terms->A, held.at[k], i) * scale.at[i] * row_scale.at[k];
            AT(system, i, n_u + k) = -entry;
            AT(system, n_u + k, i) = entry;
        }
    }
    bilateral.lu = fsm_factor(arena, system, FSM_BILATERAL_RANK);
    if (size > FSM_FEW_ROWS) {
        bilateral.lists = fsm_list_factors(arena, &bilateral.lu);
    }
    return bilateral;
}

/* Return the last pivot of the scaled system, as a part of the first; 0 where it has not full rank. */
FSM_LOCAL double fsm_least_pivot(const struct fsm_bilateral_system *bilateral)
{
    const struct fsm_lu *lu = &bilateral->lu;
    int64_t last = lu->rows.n - 1;
    if (lu->rank <= last) {
        return 0.0;
    }
    double least = AT(lu->matrix, lu->rows.at[last], lu->columns.at[last]);
    return fabs(least / AT(lu->matrix, lu->rows.at[0], lu->columns.at[0]));
}

/* Solve for the motion (n_u,) and the reactions (m,); false if the bilateral rows are inconsistent.

   `force` (n_u,) and `target` (m,) are generalized forces and accelerations of the rows, or momenta and speeds.  The
   rows are inconsistent where redundant ones are missed by more than FSM_AGREEMENT of the largest right-hand side, and
   by more than `rounding`, the error of the right-hand sides themselves (fsm_rounding_of). */
FSM_LOCAL bool fsm_solve_bilateral(const struct fsm_bilateral_system *bilateral, fsm_vector force, fsm_vector target,
                                   fsm_vector motion, fsm_vector reaction, double rounding)
{
    int64_t n_u = force.n, m = target.n;
    fsm_vector right = bilateral->right, solution = bilateral->solution;
    double size = FSM_TINIEST;
    for (int64_t i = 0; i < n_u; i++) {
        right.at[i] = force.at[i] * bilateral->scale.at[i];
        size = fsm_larger(size, fabs(right.at[i]));
    }
    for (int64_t k = 0; k < m; k++) {
        right.at[n_u + k] = target.at[k] * bilateral->row_scale.at[k];
        size = fsm_larger(size, fabs(right.at[n_u + k]));
    }
    double remainder = bilateral->lists.begin.n > 0
                           ? fsm_solve_listed(&bilateral->lu, &bilateral->lists, right, solution)
                           : fsm_solve(&bilateral->lu, right, solution);
    for (int64_t i = 0; i < n_u; i++) {
        motion.at[i] = solution.at[i] * bilateral->scale.at[i];
    }
    for (int64_t k = 0; k < m; k++) {
        reaction.at[k] = solution.at[n_u + k] * bilateral->row_scale.at[k];
    }
    return remainder <= fsm_larger(FSM_AGREEMENT * size, rounding);
}

/* Return the rounding error of scaled rows `A u + b`, or of `A u_dot + gamma` for accelerations, where terms cancel. */
FSM_LOCAL double fsm_rounding_of(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                 bool accelerations)
{
    double square = 0.0, fastest = 0.0;
    for (int64_t i = 0; i < u.n; i++) {
        if (AT(terms->M, i, i) > 0.0) {
            square += AT(terms->M, i, i) * u.at[i] * u.at[i];
        }
        fastest = fsm_larger(fastest, fabs(u.at[i]) / tables->state_unit.at[tables->sizes->n_q + i]);
    }
    return FSM_BILATERAL_ROUNDING * sqrt(square) * (accelerations ? fastest / tables->tolerances->time_scale : 1.0);
}

/* Write the accelerations `motion` (n_u,) under the generalized forces `force` (n_u,) with the bilateral rows held, and
   their forces `reaction` (m,).

   `u` (n_u,): the speeds.  False if the bilateral rows are inconsistent. */
FSM_LOCAL bool fsm_base_accelerations(struct fsm_arena *arena, const struct fsm_tables *tables,
                                      const struct fsm_terms *terms, const struct fsm_bilateral_system *bilateral,
                                      fsm_vector force, fsm_vector u, fsm_vector motion, fsm_vector reaction)
{
    fsm_indices held = bilateral->held;
    fsm_vector target = fsm_arena_vector(arena, held.n);
    for (int64_t k = 0; k < held.n; k++) {
        target.at[k] = -terms->gamma.at[held.at[k]];
    }
    return fsm_solve_bilateral(bilateral, force, target, motion, reaction, fsm_rounding_of(tables, terms, u, true));
}

/* Return `start` plus a constraint row times speeds or accelerations (n_u,). */
FSM_LOCAL double fsm_row_product(const struct fsm_terms *terms, int64_t row, fsm_vector v, double start)
{
    double total = start;
    for (int64_t e = terms->row_begin.at[row]; e < terms->row_begin.at[row + 1]; e++) {
        int64_t i = terms->row_columns.at[e];
        total += AT(terms->A, row, i) * v.at[i];
    }
    return total;
}

/* Write `M v` (n_u,). */
FSM_LOCAL void fsm_momentum(const struct fsm_terms *terms, fsm_vector v, fsm_vector momentum)
{
    for (int64_t i = 0; i < v.n; i++) {
        momentum.at[i] = 0.0;
        for (int64_t e = terms->mass_begin.at[i]; e < terms->mass_begin.at[i + 1]; e++) {
            int64_t j = terms->mass_columns.at[e];
            momentum.at[i] += AT(terms->M, i, j) * v.at[j];
        }
    }
}

/* Return `A u + b` of one constraint row. */
FSM_LOCAL double fsm_row_speed(const struct fsm_terms *terms, int64_t row, fsm_vector u)
{
    return fsm_row_product(terms, row, u, terms->b.at[row]);
}

/* Return the magnitude of the slip velocity of contact `k`, which has friction (m/s or rad/s). */
FSM_LOCAL double fsm_slip_speed(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, fsm_vector u)
{
    int64_t row = AT(tables->contact_rows, k, 1);
    double speed = fsm_row_speed(terms, row, u);
    if (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
        return fsm_hypot(speed, fsm_row_speed(terms, row + 1, u));
    }
    return fabs(speed);
}

/* Return the responses of the mechanism to a unit force along each of the contact rows `rows` (n,). */
FSM_LOCAL struct fsm_response fsm_unit_responses(struct fsm_arena *arena, const struct fsm_terms *terms,
                                                 const struct fsm_bilateral_system *bilateral, fsm_indices rows,
                                                 int64_t n_u)
{
    int64_t n = rows.n, m = bilateral->held.n;
    struct fsm_response response = {.motions = fsm_arena_matrix(arena, n, n_u),
                                    .reactions = fsm_arena_matrix(arena, n, m),
                                    .K = fsm_arena_matrix(arena, n, n)};
    fsm_vector no_target = fsm_arena_vector(arena, m);
    for (int64_t r = 0; r < n; r++) {
        fsm_vector motion = fsm_row(response.motions, r);
        fsm_solve_bilateral(bilateral, fsm_row_part(terms->A, rows.at[r], n_u), no_target, motion,
                            fsm_row(response.reactions, r), 0.0);
        for (int64_t s = 0; s < n; s++) {
            AT(response.K, s, r) = fsm_row_product(terms, rows.at[s], motion, 0.0);
        }
    }
    return response;
}

/* Return how far each of `rows` (n,) yields to a unit force along it if nothing is held: `A diag(M)^-1 Aᵀ`, (n,).

   A diagonal entry of the Delassus matrix that is far below it is rounding. */
FSM_LOCAL fsm_vector fsm_free_response(struct fsm_arena *arena, const struct fsm_terms *terms, fsm_indices rows)
{
    fsm_vector response = fsm_arena_vector(arena, rows.n);
    for (int64_t r = 0; r < rows.n; r++) {
        for (int64_t e = terms->row_begin.at[rows.at[r]]; e < terms->row_begin.at[rows.at[r] + 1]; e++) {
            int64_t i = terms->row_columns.at[e];
            if (AT(terms->M, i, i) > 0.0) {
                response.at[r] += fsm_square(AT(terms->A, rows.at[r], i)) / AT(terms->M, i, i);
            }
        }
    }
    return response;
}

/* -- Indeterminate contact forces, and whether some of them satisfy every contact law.

   Where contacts are redundant (a block on two corners that both stick) the rows have a null space: the forces `y + N
   s` give the same motion for every `s`.  They are indeterminate, but it can be decided whether some satisfy all
   inequalities `g·y >= h`.  That is a linear program in the few unknowns `s`: the largest margin `tau` with `g·(y + N
   s) - h >= tau`. */

#define FSM_LEAST_PIVOT       1e-9  // an entry below this is rounding of the pivots before, and none to divide by
#define FSM_FEASIBILITY_PIVOT 1e-12 // rounding: a pivot below this fraction of the first is zero
#define FSM_NEGLIGIBLE        1e-9  // part of the largest entry of a null vector below which an entry is rounding
#define FSM_MOST_PIVOTS       500

/* Return a basis (n, n - rank) of the null space of a factored matrix.

   What is but rounding beside the rest of a basis vector is zero: a law that it concerns cannot be satisfied by it. */
FSM_LOCAL fsm_matrix fsm_null_space(struct fsm_arena *arena, const struct fsm_lu *lu)
{
    int64_t n = lu->matrix.n, rank = lu->rank;
    fsm_matrix basis = fsm_arena_matrix(arena, n, n - rank);
    for (int64_t k = 0; k < n - rank; k++) {
        AT(basis, lu->columns.at[rank + k], k) = 1.0;
        for (int64_t i = rank - 1; i >= 0; i--) {
            double value = -AT(lu->matrix, lu->rows.at[i], lu->columns.at[rank + k]);
            for (int64_t j = i + 1; j < rank; j++) {
                value -= AT(lu->matrix, lu->rows.at[i], lu->columns.at[j]) * AT(basis, lu->columns.at[j], k);
            }
            AT(basis, lu->columns.at[i], k) = value / AT(lu->matrix, lu->rows.at[i], lu->columns.at[i]);
        }
        double largest = 0.0;
        for (int64_t i = 0; i < n; i++) {
            largest = fsm_larger(largest, fabs(AT(basis, i, k)));
        }
        for (int64_t i = 0; i < n; i++) {
            if (fabs(AT(basis, i, k)) <= FSM_NEGLIGIBLE * largest) {
                AT(basis, i, k) = 0.0;
            }
        }
    }
    return basis;
}

/* Subtract from `y` (n,) its part in the null space `basis` (n, k): the forces `unit * y` become those of least norm. */
FSM_LOCAL void fsm_minimum_norm(struct fsm_arena *arena, fsm_vector y, fsm_matrix basis, fsm_vector unit)
{
    int64_t n = basis.n, k = basis.m;
    fsm_matrix gram = fsm_arena_matrix(arena, k, k);
    fsm_vector right = fsm_arena_vector(arena, k), shift = fsm_arena_vector(arena, k);
    for (int64_t a = 0; a < k; a++) {
        for (int64_t i = 0; i < n; i++) {
            right.at[a] += unit.at[i] * unit.at[i] * AT(basis, i, a) * y.at[i];
        }
        for (int64_t b = 0; b < k; b++) {
            for (int64_t i = 0; i < n; i++) {
                AT(gram, a, b) += unit.at[i] * unit.at[i] * AT(basis, i, a) * AT(basis, i, b);
            }
        }
    }
    struct fsm_lu lu = fsm_factor(arena, gram, FSM_FEASIBILITY_PIVOT);
    fsm_solve(&lu, right, shift);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t a = 0; a < k; a++) {
            y.at[i] -= AT(basis, i, a) * shift.at[a];
        }
    }
}

/* Maximise the margin for one unknown: two inequalities of opposite sign bound it.  Writes the `s` of least magnitude. */
static double maximise_along(fsm_vector g, fsm_vector slack, double cap, double *s)
{
    double tau = cap, fixed = cap;
    for (int64_t i = 0; i < g.n; i++) {
        if (fabs(g.at[i]) <= FSM_FEASIBILITY_PIVOT) {
            fixed = fsm_smaller(fixed, slack.at[i]);
        } else if (g.at[i] > 0.0) {
            for (int64_t j = 0; j < g.n; j++) {
                if (g.at[j] < -FSM_FEASIBILITY_PIVOT) {
                    tau = fsm_smaller(tau, (slack.at[j] * g.at[i] - slack.at[i] * g.at[j]) / (g.at[i] - g.at[j]));
                }
            }
        }
    }
    double low = -FSM_INFINITY, high = FSM_INFINITY;
    for (int64_t i = 0; i < g.n; i++) {
        if (g.at[i] > FSM_FEASIBILITY_PIVOT) {
            low = fsm_larger(low, (tau - slack.at[i]) / g.at[i]);
        } else if (g.at[i] < -FSM_FEASIBILITY_PIVOT) {
            high = fsm_smaller(high, (tau - slack.at[i]) / g.at[i]);
        }
    }
    *s = fsm_smaller(fsm_larger(0.0, low), fsm_larger(low, high));
    return fsm_smaller(tau, fixed);
}

/* Whether an inequality depends on the unknowns. */
static bool depends(fsm_matrix g, int64_t i)
{
    double largest = 0.0;
    for (int64_t a = 0; a < g.m; a++) {
        largest = fsm_larger(largest, fabs(AT(g, i, a)));
    }
    return largest > FSM_FEASIBILITY_PIVOT;
}

/* Return the simplex tableau (m + 2, width + 1) of the margin above `lowest`, its objective in the last row.

   Columns: s+, s-, tau - lowest, one slack variable for each inequality and one for the cap, right-hand side. */
static fsm_matrix tableau(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap, double lowest,
                          fsm_indices basic)
{
    int64_t m = g.n, k = g.m, width = 2 * k + 1 + m + 1;
    fsm_matrix table = fsm_arena_matrix(arena, m + 2, width + 1);
    for (int64_t i = 0; i < m + 1; i++) {
        bool takes_part = i == m || depends(g, i);
        if (i < m && takes_part) {
            for (int64_t a = 0; a < k; a++) {
                AT(table, i, a) = -AT(g, i, a);
                AT(table, i, k + a) = AT(g, i, a);
            }
        }
        AT(table, i, 2 * k) = takes_part ? 1.0 : 0.0;
        AT(table, i, 2 * k + 1 + i) = 1.0;
        AT(table, i, width) = takes_part ? (i < m ? slack.at[i] : cap) - lowest : 0.0;
        basic.at[i] = 2 * k + 1 + i;
    }
    AT(table, m + 1, 2 * k) = -1.0;
    return table;
}

/* Return the row that leaves the basis for the column `entering`, -1 where the objective is unbounded. */
static int64_t leaving_row(fsm_matrix table, fsm_indices basic, int64_t entering)
{
    int64_t leaving = -1, last = table.m - 1;
    double least = 0.0;
    for (int64_t i = 0; i < basic.n; i++) {
        if (AT(table, i, entering) > FSM_LEAST_PIVOT) {
            double ratio = AT(table, i, last) / AT(table, i, entering);
            if (leaving < 0 || ratio < least || (ratio == least && basic.at[i] < basic.at[leaving])) {
                leaving = i;
                least = ratio;
            }
        }
    }
    return leaving;
}

/* Exchange a basic variable: eliminate the column `entering` from all rows but `leaving`. */
static void exchange_basic(fsm_matrix table, int64_t leaving, int64_t entering)
{
    double inverse = 1.0 / AT(table, leaving, entering);
    for (int64_t j = 0; j < table.m; j++) {
        AT(table, leaving, j) *= inverse;
    }
    for (int64_t i = 0; i < table.n; i++) {
        double factor = AT(table, i, entering);
        if (i != leaving && factor != 0.0) {
            for (int64_t j = 0; j < table.m; j++) {
                AT(table, i, j) -= factor * AT(table, leaving, j);
            }
        }
    }
}

/* Maximise `tau <= cap` with `slack + g s >= tau`, by the simplex method with Bland's rule; return `tau`.

   `g` is (m, k), `slack` (m,) the value of the inequalities at `s = 0`; `shares` becomes `s` (k,).  Inequalities that do
   not depend on `s` bound `tau` but take no part in the choice of `s`: where such a one is the tightest, the others
   would be left to chance.

   R. G. Bland (1977), *New finite pivoting rules for the simplex method*, Math. Oper. Res. 2. */
FSM_LOCAL double fsm_maximise_margin(struct fsm_arena *arena, fsm_matrix g, fsm_vector slack, double cap,
                                     fsm_vector *shares)
{
    int64_t m = g.n, k = g.m;
    fsm_vector s = fsm_arena_vector(arena, k);
    *shares = s;
    if (k == 1) {
        return maximise_along(fsm_only_column(g), slack, cap, s.at);
    }
    double lowest = cap, fixed = cap;
    for (int64_t i = 0; i < m; i++) {
        if (depends(g, i)) {
            lowest = fsm_smaller(lowest, slack.at[i]);
        } else {
            fixed = fsm_smaller(fixed, slack.at[i]);
        }
    }
    fsm_indices basic = fsm_arena_indices(arena, m + 1);
    fsm_matrix table = tableau(arena, g, slack, cap, lowest, basic);
    int64_t width = table.m - 1;
    for (int64_t pass = 0; pass < FSM_MOST_PIVOTS; pass++) {
        int64_t entering = 0;
        while (entering < width && !(AT(table, m + 1, entering) < -FSM_FEASIBILITY_PIVOT)) {
            entering++;
        }
        int64_t leaving = entering < width ? leaving_row(table, basic, entering) : -1;
        if (leaving < 0) {
            break;
        }
        exchange_basic(table, leaving, entering);
        basic.at[leaving] = entering;
    }
    for (int64_t i = 0; i < m + 1; i++) {
        if (basic.at[i] < k) {
            s.at[basic.at[i]] += AT(table, i, width);
        } else if (basic.at[i] < 2 * k) {
            s.at[basic.at[i] - k] -= AT(table, i, width);
        }
    }
    return fsm_smaller(lowest + AT(table, m + 1, width), fixed);
}
