/* Why a motion cannot go on, where constraint rows lose rank (docs/theory.md, "Change points").

   Told from the rows that are small or vanish, each taken free of those before it, `n (A u + b)`: what they ask of the
   speeds, `n b`, of the accelerations, `n gamma`, and whether they hold something beside the configuration at hand. */

#include "stepping.h"

#define FSM_AT_REST  1e-9 // scaled speed below which nothing moves
#define FSM_WEAK     1e-4 // what is left of a row that is stretched to its limit
#define FSM_DRIVEN   1e-3 // part of the largest speed imposed that such a row must go on asking for
#define FSM_TURNS_UP 1e-3 // change, per scaled length, of a row that vanishes here and holds something elsewhere
#define FSM_MISSED   1e-6 // acceleration that a row that vanishes may ask for, relative to its terms
#define FSM_EXTENT   1e-6

static double asked_for(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x, fsm_vector c,
                        int64_t mode, struct fsm_rank *rank, double *missed_found);
static void end_reasons_project_out(fsm_matrix Q, fsm_indices order, int64_t taken, fsm_vector vector_);

/* Name the end of a run that failed with `status`, if it is one of those that belong to a loss of rank.

   Parameters
   ----------
   work, tables, t, x, x_dot, c, mode, rank
       As for assess.

   Returns
   -------
   int
       `STRETCHED` (`rank[AHEAD]` is then how long the motion could have gone on, s), `UNDETERMINED`,
       `NO_BRANCH`, or `status`. */
FSM_LOCAL int64_t fsm_why_not(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                              fsm_vector x_dot, fsm_vector c, int64_t mode, struct fsm_rank *rank, int64_t status)
{
    if (status < FSM_STEP_TOO_SMALL || (tables->mode_flags.at[mode] & FSM_MODE_RANKS) == 0) {
        return status;
    }
    bool asked = status == FSM_STEP_TOO_SMALL || status == FSM_NON_FINITE || status == FSM_SINGULAR ||
                 status == FSM_PROJECTION_FAILED;
    if (!asked) {
        return status;
    }
    for (int64_t i = 0; i < x.n; i++) {
        if (!fsm_is_finite(x.at[i])) {
            return status;
        }
        if (!fsm_is_finite(x_dot.at[i])) {
            x_dot.at[i] = 0.0;
        }
    }
    fsm_assess(work, tables, t, x, x_dot, c, mode, rank);
    double speed = rank->speed_norm;
    double missed;
    double driven = asked_for(work, tables, t, x, c, mode, rank, &missed);
    if (speed <= FSM_AT_REST && fsm_vanishing(work, tables, t, x, c, mode, rank) > 0) {
        return FSM_UNDETERMINED;
    }
    if (driven > FSM_DRIVEN) {
        rank->ahead = 0.5 * rank->sigma / fsm_larger(rank->rate, 1e-300);
        return FSM_STRETCHED;
    }
    return missed > FSM_MISSED ? FSM_NO_BRANCH : status;
}

/* Return what the weak rows ask of the speeds, and the vanished ones of the accelerations, relative; mark them. */
static double asked_for(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x, fsm_vector c,
                        int64_t mode, struct fsm_rank *rank, double *missed_found)
{
    fsm_arena_clear(&work->arena);
    int64_t n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows), weights = fsm_rank_weights(rank, n_rows);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, mode, false);
    int64_t m = rows.n;
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u);
    fsm_column_scales(terms, scale);
    fsm_matrix B = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    fsm_fill_scaled(terms, rows, scale, sizes, B);
    int64_t taken = fsm_orthogonalise(B, order, L, FSM_WEAK);
    fsm_vector combination = fsm_arena_vector(&work->arena, m);
    double driven = 0.0, missed = 0.0, imposed = 1e-300;
    for (int64_t n1 = 0; n1 < rows.n; n1++) {
        int64_t r = rows.at[n1];
        imposed = fsm_larger(imposed, fabs(terms->b.at[r]) / fsm_larger(sizes.at[r], 1e-300));
    }
    for (int64_t k = taken; k < m; k++) {
        fsm_combination_of(L, taken, k, combination);
        int64_t row = rows.at[order.at[k]];
        double speed = terms->b.at[row] / fsm_larger(sizes.at[row], 1e-300),
               left = terms->gamma.at[row] / fsm_larger(sizes.at[row], 1e-300);
        double terms_of = fabs(left);
        for (int64_t j = 0; j < taken; j++) {
            int64_t other = rows.at[order.at[j]];
            speed -= combination.at[j] * terms->b.at[other] / fsm_larger(sizes.at[other], 1e-300);
            double part = combination.at[j] * terms->gamma.at[other] / fsm_larger(sizes.at[other], 1e-300);
            left = left - part;
            terms_of = terms_of + fabs(part);
        }
        driven = fsm_larger(driven, fabs(speed) / imposed);
        double weak = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            weak += fsm_square(AT(B, order.at[k], i));
        }
        if (sqrt(weak) < FSM_ROW_RANK_REDUNDANT) {
            missed = fsm_larger(missed, terms_of > 1e-09 ? fabs(left) / fsm_larger(terms_of, 1e-300) : 0.0);
        }
        if (fabs(speed) > FSM_DRIVEN * imposed || fabs(left) > FSM_MISSED * terms_of) {
            weights.at[row] = 1.0;
            for (int64_t j = 0; j < taken; j++) {
                weights.at[rows.at[order.at[j]]] =
                    fsm_larger(weights.at[rows.at[order.at[j]]], fabs(combination.at[j]));
            }
        }
    }
    *missed_found = missed;
    return driven;
}

/* Return how many rows others imply here but not beside it: rows that always repeat others are not counted.

   Beside it is where any motion leads that the rows allow, seen in one direction that has a part of each. */
FSM_LOCAL int64_t fsm_vanishing(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                fsm_vector c, int64_t mode, struct fsm_rank *rank)
{
    fsm_arena_clear(&work->arena);
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows), weights = fsm_rank_weights(rank, n_rows);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, mode, false);
    int64_t m = rows.n;
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u);
    fsm_column_scales(terms, scale);
    fsm_matrix before = fsm_arena_matrix(&work->arena, m, n_u), Q = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_fill_scaled(terms, rows, scale, sizes, before);
    fsm_fill_scaled(terms, rows, scale, sizes, Q);
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    int64_t taken = fsm_orthogonalise(Q, order, L, FSM_ROW_RANK_REDUNDANT);
    if (taken == m) {
        return 0;
    }
    fsm_vector way = fsm_arena_vector(&work->arena, n_u), x_dot = fsm_arena_vector(&work->arena, x.n);
    for (int64_t i = 0; i < n_u; i++) {
        way.at[i] = 1.0 + fmod(0.6180339887498949 * (double)(i + 1), 1.0);
    }
    end_reasons_project_out(Q, order, taken, way);
    double norm = 0.0;
    for (int64_t i = 0; i < n_u; i++) {
        norm += way.at[i] * way.at[i];
    }
    if (!(norm > 1e-12)) {
        return 0;
    }
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            x_dot.at[i] += AT(terms->W, i, j) * scale.at[j] * way.at[j] / sqrt(norm);
        }
    }
    fsm_matrix after = fsm_rows_along(work, tables, terms, t, x, x_dot, c, rows, scale, sizes, FSM_EXTENT, 0.0);
    int64_t count = 0;
    fsm_vector combination = fsm_arena_vector(&work->arena, m);
    fsm_vector change = fsm_arena_vector(&work->arena, n_u);
    for (int64_t k = taken; k < m; k++) {
        fsm_combination_of(L, taken, k, combination);
        for (int64_t i = 0; i < n_u; i++) {
            change.at[i] = (AT(after, order.at[k], i) - AT(before, order.at[k], i)) / FSM_EXTENT;
            for (int64_t j = 0; j < taken; j++) {
                change.at[i] -=
                    combination.at[j] * (AT(after, order.at[j], i) - AT(before, order.at[j], i)) / FSM_EXTENT;
            }
        }
        end_reasons_project_out(Q, order, taken, change);
        double square = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            square += change.at[i] * change.at[i];
        }
        if (square > FSM_TURNS_UP * FSM_TURNS_UP) {
            count++;
            weights.at[rows.at[order.at[k]]] = 1.0;
        }
    }
    return count;
}

/* Take the parts along the first rows taken out of a vector. */
static void end_reasons_project_out(fsm_matrix Q, fsm_indices order, int64_t taken, fsm_vector vector_)
{
    for (int64_t k = 0; k < taken; k++) {
        double product = 0.0;
        for (int64_t i = 0; i < vector_.n; i++) {
            product += vector_.at[i] * AT(Q, order.at[k], i);
        }
        for (int64_t i = 0; i < vector_.n; i++) {
            vector_.at[i] -= product * AT(Q, order.at[k], i);
        }
    }
}

/* Whether the mechanism is at rest where rows vanish that hold something beside it. */
FSM_LOCAL bool fsm_rests_in_change_point(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                         fsm_vector c, int64_t mode, struct fsm_rank *rank)
{
    if (rank->independent >= rank->active || fsm_speed_norm(rank) > FSM_AT_REST) {
        return false;
    }
    return fsm_vanishing(work, tables, t, x, c, mode, rank) > 0;
}
