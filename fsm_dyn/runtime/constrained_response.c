/* Response of the mechanism with its bilateral constraint rows imposed (docs/theory.md, "Resolution").

   With bilateral rows B, `[M -Bᵀ; B 0] [a; Λ] = [force; target]` gives the accelerations under forces as well as the
   speeds after impulses.  The system is scaled by `diag(M)^-1/2` and the norms of the rows, so that its rank does not
   depend on units; redundant rows that are consistent with the others do no harm. */

#include "elementary.h"
#include "algebra.h"

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
    for (int64_t k = 0; k < m; k++) {
        double square = 0.0;
        for (int64_t e = terms->row_begin.at[held.at[k]]; e < terms->row_begin.at[held.at[k] + 1]; e++) {
            int64_t i = terms->row_columns.at[e];
            square += fsm_square(AT(terms->A, held.at[k], i) * scale.at[i]);
        }
        row_scale.at[k] = square > 0.0 ? 1.0 / sqrt(square) : 1.0;
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
