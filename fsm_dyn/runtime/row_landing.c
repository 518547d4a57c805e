/* Landing: putting a configuration on its constraint rows to rounding (docs/theory.md, "Change points").

   A stage of a step is off the rows by the error of the stage.  Where rows have nearly lost rank, that error is divided by
   what is left of them; on the rows nothing is. */

#include "stepping.h"

#define FSM_LANDED     1e-13 // a move shorter than this part of the coordinates ends it
#define FSM_MET        10.0 // times the tolerance of the projection that rows may be missed by, redundant ones included
#define FSM_MOST_MOVES 8

/* Return the largest residual of the rows, as a length (m), those left out as redundant included. */
static double residual_of(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices rows)
{
    double largest = 0.0;
    for (int64_t k = 0; k < rows.n; k++) {
        int64_t r = rows.at[k];
        if (tables->row_positional.at[r] == 1) {
            largest = fsm_larger(largest, fabs(terms->residual.at[r]) / tables->row_unit.at[r]);
        }
    }
    return largest;
}

/* Put a configuration on the rows of its mode to rounding, by the smallest moves of the scaled speeds.

   `x`: state, its coordinates in and out, at `t` (s); `farthest`: a move beyond this (in scaled speeds times time) may lead
   to another branch.  Returns false where the rows could not be met, or only by too long a move. */
FSM_LOCAL bool fsm_land(const struct fsm_run *run, double t, fsm_vector x, double farthest)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    struct fsm_rank *rank = run->state->rank;
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows);
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, mode, false);
    int64_t m = rows.n;
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u), right = fsm_arena_vector(&work->arena, m),
               move = fsm_arena_vector(&work->arena, n_u);
    fsm_matrix B = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    double moved = 0.0, last = FSM_INFINITY;
    for (int64_t pass = 0; pass < FSM_MOST_MOVES; pass++) {
        tables->terms.at[0](t, x.at, c.at, terms->whole.at);
        fsm_column_scales(terms, scale);
        fsm_fill_scaled(terms, rows, scale, sizes, B);
        int64_t taken = fsm_orthogonalise(B, order, L, tables->tolerances->redundancy);
        for (int64_t k = 0; k < m; k++) {
            right.at[k] = 0.0;
            if (tables->row_positional.at[rows.at[k]] == 1) {
                right.at[k] =
                    -terms->residual.at[rows.at[k]] / (sizes.at[rows.at[k]] > 0.0 ? sizes.at[rows.at[k]] : 1.0);
            }
        }
        fsm_least_move(B, order, L, taken, right, move);
        double square = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            square += move.at[i] * move.at[i];
            move.at[i] *= scale.at[i];
        }
        double length = sqrt(square);
        moved += length;
        if (!(moved <= farthest)) {
            return false;
        }
        double largest = 0.0;
        for (int64_t i = 0; i < n_q; i++) {
            double step = 0.0;
            for (int64_t j = 0; j < n_u; j++) {
                step += AT(terms->W, i, j) * move.at[j];
            }
            x.at[i] += step;
            largest = fsm_larger(largest, fabs(step) / (tables->state_unit.at[i] + fabs(x.at[i])));
        }
        if (largest <= FSM_LANDED || length >= 0.5 * last) { // shorter moves are rounding
            return residual_of(tables, terms, rows) <= FSM_MET * tables->tolerances->projection;
        }
        last = length;
    }
    return false;
}
