/* Responses of the mechanism with its bilateral rows held: the linear algebra of an instant.

   With bilateral rows B held, `[M -Bᵀ; B 0] [a; Λ] = [force; target]` answers both questions of an instant: the
   accelerations under forces, and the speeds after impulses.  The system is scaled by `diag(M)^-1/2` and the rows'
   norms, so that rank does not depend on units; redundant rows that agree with the others do no harm. */

#include "algebra.h"

#define FSM_CONSTRAINED_RESPONSE_RANK     1e-12
#define FSM_AGREEMENT                     1e-7
#define FSM_CONSTRAINED_RESPONSE_ROUNDING 2.220446049250313e-13

/* Factor the system for the declared speeds (kinematic rows are met by the choice of speeds). */
FSM_LOCAL struct fsm_bilateral_system fsm_factor_bilateral(struct fsm_arena *arena, const struct fsm_terms *terms,
                                                           fsm_indices held, int64_t n_u)
{
    int64_t m = held.n;
    int64_t size = n_u + m;
    fsm_vector scale = fsm_arena_vector(arena, n_u), row_scale = fsm_arena_vector(arena, m);
    for (int64_t i = 0; i < n_u; i++) {
        scale.at[i] = 1.0;
        if (AT(terms->M, i, i) > 0.0) {
            scale.at[i] = 1.0 / sqrt(AT(terms->M, i, i));
        }
    }
    for (int64_t k = 0; k < m; k++) {
        row_scale.at[k] = 1.0;
        double norm = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            norm += fsm_square(AT(terms->A, held.at[k], i) * scale.at[i]);
        }
        if (norm > 0.0) {
            row_scale.at[k] = 1.0 / sqrt(norm);
        }
    }
    fsm_matrix system = fsm_arena_matrix(arena, size, size);
    for (int64_t i = 0; i < n_u; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            AT(system, i, j) = AT(terms->M, i, j) * scale.at[i] * scale.at[j];
        }
        for (int64_t k = 0; k < m; k++) {
            double entry = AT(terms->A, held.at[k], i) * scale.at[i] * row_scale.at[k];
            AT(system, i, n_u + k) = -entry;
            AT(system, n_u + k, i) = entry;
        }
    }
    fsm_indices rows = fsm_arena_indices(arena, size), columns = fsm_arena_indices(arena, size);
    fsm_indices rank = fsm_arena_indices(arena, 1);
    rank.at[0] = fsm_factor(system, rows, columns, FSM_CONSTRAINED_RESPONSE_RANK);
    struct fsm_bilateral_system made = (struct fsm_bilateral_system){.held = held,
                                                                     .matrix = system,
                                                                     .rows = rows,
                                                                     .columns = columns,
                                                                     .scale = scale,
                                                                     .row_scale = row_scale,
                                                                     .scratch = fsm_arena_vector(arena, 3 * size),
                                                                     .rank = rank};
    return made;
}

/* Return the last pivot of the scaled system, as a part of the first; 0 where it has not full rank. */
FSM_LOCAL double fsm_least_pivot(const struct fsm_bilateral_system *bilateral)
{
    int64_t n = bilateral->rows.n;
    if (bilateral->rank.at[0] < n) {
        return 0.0;
    }
    double last = AT(bilateral->matrix, bilateral->rows.at[n - 1], bilateral->columns.at[n - 1]);
    return fabs(last / AT(bilateral->matrix, bilateral->rows.at[0], bilateral->columns.at[0]));
}

/* Solve for the motion (n_u,) and the reactions (m,); False if the rows contradict each other.

   They do where redundant rows are missed by more than AGREEMENT of the largest right-hand side, and by more
   than `rounding`, the error of the right-hand sides themselves (rounding_of). */
FSM_LOCAL bool fsm_solve_bilateral(const struct fsm_bilateral_system *bilateral, fsm_vector force, fsm_vector target,
                                   fsm_vector motion, fsm_vector reaction, double rounding)
{
    int64_t n_u = force.n, m = target.n;
    int64_t n = n_u + m;
    fsm_vector right = fsm_vector_first(bilateral->scratch, n), scratch = fsm_vector_part(bilateral->scratch, n, 2 * n);
    fsm_vector solution = fsm_vector_from(bilateral->scratch, 2 * n);
    double size = 1e-300;
    for (int64_t i = 0; i < n_u; i++) {
        right.at[i] = force.at[i] * bilateral->scale.at[i];
        size = fsm_larger(size, fabs(right.at[i]));
    }
    for (int64_t k = 0; k < m; k++) {
        right.at[n_u + k] = target.at[k] * bilateral->row_scale.at[k];
        size = fsm_larger(size, fabs(right.at[n_u + k]));
    }
    double remainder = fsm_solve(bilateral->matrix, bilateral->rows, bilateral->columns, bilateral->rank.at[0], right,
                                 scratch, solution);
    for (int64_t i = 0; i < n_u; i++) {
        motion.at[i] = solution.at[i] * bilateral->scale.at[i];
    }
    for (int64_t k = 0; k < m; k++) {
        reaction.at[k] = solution.at[n_u + k] * bilateral->row_scale.at[k];
    }
    return remainder <= fsm_larger(FSM_AGREEMENT * size, rounding);
}

/* Return what rounding may leave of scaled rows `A u + b`, or of `A u_dot + gamma`, where terms cancel. */
FSM_LOCAL double fsm_rounding_of(const struct fsm_terms *terms, fsm_vector u, bool accelerations)
{
    double square = 0.0, fastest = 0.0;
    for (int64_t i = 0; i < u.n; i++) {
        if (AT(terms->M, i, i) > 0.0) {
            square += AT(terms->M, i, i) * u.at[i] * u.at[i];
        }
        fastest = fsm_larger(fastest, fabs(u.at[i]));
    }
    return FSM_CONSTRAINED_RESPONSE_ROUNDING * sqrt(square) * (accelerations ? fastest : 1.0);
}

/* Return `A u + b` of one row. */
FSM_LOCAL double fsm_row_speed(const struct fsm_terms *terms, int64_t row, fsm_vector u)
{
    double speed = terms->b.at[row];
    for (int64_t i = 0; i < u.n; i++) {
        speed += AT(terms->A, row, i) * u.at[i];
    }
    return speed;
}

/* Return how fast a contact with friction slips, without a sign. */
FSM_LOCAL double fsm_slip_speed(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, fsm_vector u)
{
    int64_t row = AT(tables->contact_rows, k, 1);
    double speed = fsm_row_speed(terms, row, u);
    if (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
        return hypot(speed, fsm_row_speed(terms, row + 1, u));
    }
    return fabs(speed);
}

/* Unit responses of contact rows.

   Returns
   -------
   motions : shape (n, n_u)
       Motion answering a unit force along each of the `n` rows `which`.
   reactions : shape (n, m)
       Reactions of the bilateral rows to it.
   K : shape (n, n)
       What each row feels of it. */
FSM_LOCAL fsm_matrix fsm_delassus_response(struct fsm_arena *arena, const struct fsm_terms *terms,
                                           const struct fsm_bilateral_system *bilateral, fsm_indices which, int64_t n_u,
                                           fsm_matrix *reactions_found, fsm_matrix *K_found)
{
    int64_t n = which.n, m = bilateral->held.n;
    fsm_matrix motions = fsm_arena_matrix(arena, n, n_u), reactions = fsm_arena_matrix(arena, n, m),
               K = fsm_arena_matrix(arena, n, n);
    fsm_vector none = fsm_arena_vector(arena, m);
    for (int64_t r = 0; r < n; r++) {
        fsm_solve_bilateral(bilateral, fsm_row_part(terms->A, which.at[r], n_u), none, fsm_row(motions, r),
                            fsm_row(reactions, r), 0.0);
        for (int64_t s = 0; s < n; s++) {
            for (int64_t i = 0; i < n_u; i++) {
                AT(K, s, r) += AT(terms->A, which.at[s], i) * AT(motions, r, i);
            }
        }
    }
    *reactions_found = reactions;
    *K_found = K;
    return motions;
}

/* How much each row would yield to a unit force if nothing else held: the measure of what is rounding, (n,). */
FSM_LOCAL fsm_vector fsm_free_response(struct fsm_arena *arena, const struct fsm_terms *terms, fsm_indices which,
                                       int64_t n_u)
{
    fsm_vector unheld = fsm_arena_vector(arena, which.n);
    for (int64_t r = 0; r < which.n; r++) {
        for (int64_t i = 0; i < n_u; i++) {
            if (AT(terms->M, i, i) > 0.0) {
                unheld.at[r] += fsm_square(AT(terms->A, which.at[r], i)) / AT(terms->M, i, i);
            }
        }
    }
    return unheld;
}
