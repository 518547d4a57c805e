/* How long a step of time stepping may be where compliant contacts press (docs/theory.md, "Time stepping"). */

#include "time_stepping.h"

#define FSM_RADIANS  1.0
#define FSM_RELATIVE 1e-6 // of the depth, or of the speed, by which forces are differenced

/* Return the longest step (s) that resolves what the compressed contacts do at a state; inf where none is.

   With `S_ij = -dF_i / dp_j` for the force F_i of contact i and a displacement along the response of the system to a
   unit force of contact j, and `D` likewise for speeds, the largest row sums bound the square of the frequency,
   `w^2 <= max_i sum_j |S_ij|`, and the damping, `d <= max_i sum_j |D_ij|`.  The step may last `RADIANS` of the
   faster of the two motions, `h (d/2 + sqrt(d^2/4 + w^2)) <= RADIANS`.

   The terms hold the state given, before and after. */
FSM_LOCAL double fsm_longest_step(struct fsm_work *work, const struct fsm_tables *tables, const struct fsm_terms *terms,
                                  const struct fsm_bilateral_system *bilateral, double t, fsm_vector x, fsm_vector c,
                                  fsm_codes free_side)
{
    fsm_mark at = fsm_arena_mark(&work->arena);
    int64_t count = free_side.n, n_q = tables->sizes->n_q, n_u = tables->sizes->n_u;
    fsm_indices rows = fsm_arena_indices(&work->arena, count);
    fsm_indices contact = fsm_arena_indices(&work->arena, count);
    int64_t n = 0;
    for (int64_t k = 0; k < count; k++) {
        if (fsm_presses(tables, terms, k, free_side)) {
            rows.at[n] = AT(tables->contact_rows, k, 0);
            contact.at[n] = k;
            n++;
        }
    }
    if (n == 0) {
        fsm_arena_release(&work->arena, at);
        return FSM_INFINITY;
    }
    fsm_matrix unused;
    fsm_matrix K;
    fsm_matrix motions =
        fsm_delassus_response(&work->arena, terms, bilateral, fsm_indices_first(rows, n), n_u, &unused, &K);
    fsm_vector force = fsm_arena_vector(&work->arena, n), depth = fsm_arena_vector(&work->arena, n),
               stiff = fsm_arena_vector(&work->arena, n), damped = fsm_arena_vector(&work->arena, n);
    fsm_matrix W = fsm_arena_matrix(&work->arena, n_q, n_u);
    fsm_vector moved = fsm_arena_copy(&work->arena, x);
    for (int64_t i = 0; i < n; i++) {
        force.at[i] = terms->elastic.at[contact.at[i]];
        depth.at[i] = -terms->residual.at[rows.at[i]];
    }
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            AT(W, i, j) = AT(terms->W, i, j);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        if (AT(K, j, j) <= 0.0) {
            continue;
        }
        double by = -FSM_RELATIVE * depth.at[j] / AT(K, j, j); // deeper, so that the contact stays compressed
        for (int64_t i = 0; i < n_q; i++) {
            for (int64_t m = 0; m < n_u; m++) {
                moved.at[i] += by * AT(W, i, m) * AT(motions, j, m);
            }
        }
        tables->terms.at[0](t, moved.at, c.at, terms->whole.at);
        for (int64_t i = 0; i < n; i++) {
            stiff.at[i] += fabs((terms->elastic.at[contact.at[i]] - force.at[i]) / by);
        }
        for (int64_t i = 0; i < n_q; i++) {
            moved.at[i] = x.at[i];
        }
        by = -FSM_RELATIVE / AT(K, j, j);
        for (int64_t m = 0; m < n_u; m++) {
            moved.at[n_q + m] += by * AT(motions, j, m);
        }
        tables->terms.at[0](t, moved.at, c.at, terms->whole.at);
        for (int64_t i = 0; i < n; i++) {
            damped.at[i] += fabs((terms->elastic.at[contact.at[i]] - force.at[i]) / by);
        }
        for (int64_t m = 0; m < n_u; m++) {
            moved.at[n_q + m] = x.at[n_q + m];
        }
    }
    double square = 0.0, damping = 0.0;
    for (int64_t i = 0; i < n; i++) {
        square = fsm_larger(square, stiff.at[i]);
        damping = fsm_larger(damping, damped.at[i]);
    }
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_arena_release(&work->arena, at);
    double rate = 0.5 * damping + sqrt(0.25 * damping * damping + square);
    return rate > 0.0 ? FSM_RADIANS / rate : FSM_INFINITY;
}
