/* Change points: times at which constraint rows lose rank (docs/theory.md, "Change points").

   On the branch that velocity continues, everything but the multipliers is smooth through such a point; what is not is the
   arithmetic, whose rounding is divided by what is left of the rows.  So the stages of a step near one are put on the
   rows, and its nodes are kept clear of it. */

#include "stepping.h"

#define FSM_AHEAD_OFTEN     0.25  // part of the time in which rows could vanish after which they are looked at again
#define FSM_UNSEEN_STEPS    64.0  // steps after which they are looked at in any case
#define FSM_FASTER          2.0   // times as fast as when they were looked at, they are looked at again
#define FSM_COINCIDENT      1.3   // change points whose times are within this ratio are kept clear of as one
#define FSM_REAL            0.3   // an eigenvalue with a smaller imaginary part, relative, is a time
#define FSM_STILL_LOOKED_AT 1e-12 // part of a row left that is looked at where none was redundant before
#define FSM_DIFFERENCE      1e-6  // time, relative to that of the motion, over which rows are differenced
#define FSM_PROBES          4     // configurations beside the start at which the sizes of rows are seen

/* Return how fast the first `n` states change at most, over their size where that is above their unit (1/s). */
FSM_LOCAL double fsm_motion_of(const struct fsm_tables *tables, fsm_vector x, fsm_vector x_dot, int64_t n)
{
    double fastest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        fastest = fsm_larger(fastest, fabs(x_dot.at[i]) / (tables->state_unit.at[i] + fabs(x.at[i])));
    }
    return fastest;
}

/* Return over what time (s) rows are differenced, from how fast the state changes. */
static double difference_time(const struct fsm_tables *tables, fsm_vector x, fsm_vector x_dot)
{
    double fastest = fsm_motion_of(tables, x, x_dot, x.n);
    return fastest > 0.0 ? FSM_DIFFERENCE / fastest : FSM_DIFFERENCE * tables->tolerances->time_scale;
}

/* Return the time (s) in which rank could be lost, `rate tau + (change tau)^2 / 2 = sigma`. */
static double soonest_loss(double sigma, double rate, double change)
{
    return 2.0 * sigma / fsm_larger(rate + sqrt(rate * rate + 2.0 * sigma * change * change), FSM_TINIEST);
}

/* Return how fast a row changes at most (1/s). */
static double fastest_change(fsm_matrix before, fsm_matrix after, double extent)
{
    double fastest = 0.0;
    for (int64_t k = 0; k < before.n; k++) {
        double square = 0.0;
        for (int64_t i = 0; i < before.m; i++) {
            square += fsm_square(AT(after, k, i) - AT(before, k, i));
        }
        fastest = fsm_larger(fastest, square);
    }
    return sqrt(fastest) / extent;
}

/* Return the norm of the speeds in the scale of fsm_land, from terms just evaluated. */
static double scaled_speed(const struct fsm_tables *tables, fsm_vector x, const struct fsm_terms *terms)
{
    int64_t n_q = tables->sizes->n_q;
    double square = 0.0;
    for (int64_t i = 0; i < tables->sizes->n_u; i++) {
        if (AT(terms->M, i, i) > 0.0) {
            square += AT(terms->M, i, i) * fsm_square(x.at[n_q + i]);
        }
    }
    return sqrt(square);
}

/* Raise `sizes` (n_rows,) to the norms of the rows at `x` and at a few configurations beside it. */
static void find_row_sizes(const struct fsm_run *run, const struct fsm_terms *terms, fsm_vector sizes)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    double t = run->state->clock->time;
    fsm_vector x = run->state->x;
    fsm_vector c = run->state->c;
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u;
    fsm_vector probe = fsm_arena_vector(&work->arena, x.n), scale = fsm_arena_vector(&work->arena, n_u);
    for (int64_t k = 0; k < FSM_PROBES + 1; k++) {
        fsm_put(probe, x);
        for (int64_t i = 0; i < n_q; i++) { // the same ones every time; the golden ratio spreads them evenly
            double part = fmod((double)(k * (i + 1)) * FSM_GOLDEN_RATIO, 1.0);
            probe.at[i] += (0.6 * part - 0.3) * (double)fsm_least(k, 1) * tables->state_unit.at[i];
        }
        for (int64_t m = 0; m < tables->quaternions.n; m++) {
            int64_t first = tables->quaternions.at[m];
            double norm = 0.0;
            for (int64_t i = first; i < first + 4; i++) {
                norm += probe.at[i] * probe.at[i];
            }
            for (int64_t i = first; i < first + 4; i++) {
                probe.at[i] /= sqrt(norm);
            }
        }
        tables->terms.at[0](t, probe.at, c.at, terms->whole.at);
        fsm_column_scales(terms, scale);
        for (int64_t r = 0; r < sizes.n; r++) {
            double norm = fsm_row_norm(terms, r, scale);
            if (fsm_is_finite(norm)) {
                sizes.at[r] = fsm_larger(sizes.at[r], norm);
            }
        }
    }
}

/* Return the largest norms that the rows are known to have had, (n_rows,); the arena is cleared. */
FSM_LOCAL fsm_vector fsm_known_row_sizes(const struct fsm_run *run)
{
    struct fsm_rank *rank = run->state->rank;
    fsm_vector sizes = fsm_rank_sizes(rank, run->tables->sizes->n_rows);
    fsm_arena_clear(&run->work->arena);
    if (rank->sized == 0.0) {
        rank->sized = 1.0;
        find_row_sizes(run, fsm_terms_of(run->work), sizes);
        fsm_arena_clear(&run->work->arena);
    }
    return sizes;
}

/* Return the scaled rows, (m, n_u), at `x + extent x_dot` and the time `t + later`. */
FSM_LOCAL fsm_matrix fsm_rows_along(const struct fsm_run *run, fsm_vector x_dot, fsm_indices rows, fsm_vector scale,
                                    fsm_vector sizes, double extent, double later)
{
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    double t = run->state->clock->time;
    fsm_vector x = run->state->x;
    fsm_vector c = run->state->c;
    fsm_vector ahead = fsm_arena_vector(&work->arena, x.n);
    fsm_matrix after = fsm_arena_matrix(&work->arena, rows.n, scale.n);
    for (int64_t i = 0; i < x.n; i++) {
        ahead.at[i] = x.at[i] + extent * x_dot.at[i];
    }
    tables->terms.at[0](t + later, ahead.at, c.at, terms->whole.at);
    fsm_fill_scaled(terms, rows, scale, sizes, after);
    return after;
}

/* Write what of the first rows taken is to be subtracted from row `k` so that nothing is left along them. */
FSM_LOCAL void fsm_combination_of(fsm_matrix L, int64_t first, int64_t k, fsm_vector out)
{
    for (int64_t back = 0; back < first; back++) {
        int64_t j = first - 1 - back;
        double value = AT(L, k, j);
        for (int64_t i = j + 1; i < first; i++) {
            value -= out.at[i] * AT(L, i, j);
        }
        out.at[j] = value / AT(L, j, j);
    }
}

/* Write the nearest times ahead and behind, from their inverses; times close to each other count as one. */
static void nearest_times(fsm_vector real, fsm_vector imaginary, struct fsm_rank *rank)
{
    double soonest = 0.0, latest = 0.0;
    for (int64_t k = 0; k < real.n; k++) {
        if (fabs(imaginary.at[k]) <= FSM_REAL * fabs(real.at[k])) {
            soonest = fsm_larger(soonest, real.at[k]);
            latest = fsm_smaller(latest, real.at[k]);
        }
    }
    if (latest < 0.0) {
        rank->behind = 1.0 / latest;
    }
    if (soonest <= 0.0) {
        return;
    }
    double last = soonest;
    int64_t count = 0;
    for (int64_t k = 0; k < real.n; k++) {
        if (fabs(imaginary.at[k]) <= FSM_REAL * fabs(real.at[k]) && real.at[k] * FSM_COINCIDENT >= soonest) {
            last = fsm_smaller(last, real.at[k]);
            count++;
        }
    }
    rank->ahead = 0.5 / soonest + 0.5 / last;
    rank->lost = (double)count;
}

/* Fill S with -G Q2 and find `rank->sigma rate`: what is left of the last rows taken, and how fast it changes. */
static void differentiate_remainders(const struct fsm_run *run, fsm_matrix before, fsm_matrix after, fsm_matrix Q,
                                     fsm_indices order, fsm_matrix L, int64_t first, double extent, fsm_matrix S)
{
    int64_t n = Q.m;
    fsm_vector change = fsm_arena_vector(&run->work->arena, n);
    fsm_vector combination = fsm_arena_vector(&run->work->arena, first + 1);
    double sigma = FSM_INFINITY, rate = 0.0;
    for (int64_t k = 0; k < S.n; k++) {
        int64_t row = order.at[first + k];
        fsm_combination_of(L, first, first + k, combination);
        for (int64_t i = 0; i < n; i++) {
            change.at[i] = (AT(after, row, i) - AT(before, row, i)) / extent;
        }
        for (int64_t j = 0; j < first; j++) {
            int64_t other = order.at[j];
            for (int64_t i = 0; i < n; i++) {
                change.at[i] -= combination.at[j] * (AT(after, other, i) - AT(before, other, i)) / extent;
            }
        }
        double square = 0.0;
        for (int64_t i = 0; i < n; i++) {
            square += change.at[i] * change.at[i];
        }
        for (int64_t j = 0; j < first; j++) {
            double along = 0.0;
            for (int64_t i = 0; i < n; i++) {
                along += change.at[i] * AT(Q, order.at[j], i);
            }
            square -= along * along;
        }
        rate = fsm_larger(rate, sqrt(fsm_larger(square, 0.0)));
        sigma = fsm_smaller(sigma, AT(L, first + k, first + k));
        for (int64_t j = 0; j < S.m; j++) {
            for (int64_t i = 0; i < n; i++) {
                AT(S, k, j) -= change.at[i] * AT(Q, order.at[first + j], i);
            }
        }
    }
    run->state->rank->sigma = sigma;
    run->state->rank->rate = rate;
}

/* Find when the remainders of the last rows taken become dependent, and how fast they change.

   The remainders are `L22 Q2` and change by `G Q2` a second: rank is lost where `det(L22 + tau G) = 0`. */
static void find_times(const struct fsm_run *run, fsm_matrix before, fsm_matrix after, fsm_matrix Q, fsm_indices order,
                       fsm_matrix L, int64_t first, int64_t taken, double extent)
{
    int64_t count = taken - first;
    fsm_matrix S = fsm_arena_matrix(&run->work->arena, count, count);
    differentiate_remainders(run, before, after, Q, order, L, first, extent, S);
    for (int64_t k = 0; k < count; k++) { // -L22^-1 G: its eigenvalues are the inverse times
        for (int64_t j = 0; j < count; j++) {
            for (int64_t i = 0; i < k; i++) {
                AT(S, k, j) -= AT(L, first + k, first + i) * AT(S, i, j);
            }
            AT(S, k, j) /= AT(L, first + k, first + k);
        }
    }
    fsm_vector real = fsm_arena_vector(&run->work->arena, count),
               imaginary = fsm_arena_vector(&run->work->arena, count);
    if (!fsm_eigenvalues(S, real, imaginary)) {
        return;
    }
    nearest_times(real, imaginary, run->state->rank);
}

/* Forget what was known of the rank of the rows, before they are looked at again. */
static void forget_rank(const struct fsm_run *run)
{
    struct fsm_rank *rank = run->state->rank;
    rank->ahead = FSM_INFINITY;
    rank->behind = FSM_INFINITY;
    rank->lost = 0.0;
    rank->sigma = 1.0;
    rank->rate = 0.0;
    rank->left_at = FSM_INFINITY;
    rank->motion = fsm_motion_of(run->tables, run->state->x, run->state->x_dot, run->tables->sizes->n_q);
}

/* Write how much every row takes part in the loss of rank: those that become dependent, and what they depend on. */
static void weigh_rows(const struct fsm_run *run, fsm_indices rows, fsm_indices order, fsm_matrix L, int64_t first,
                       int64_t taken)
{
    const struct fsm_rank *rank = run->state->rank;
    fsm_vector weights = fsm_rank_weights(run->state->rank, run->tables->sizes->n_rows);
    fsm_vector combination = fsm_arena_vector(&run->work->arena, first + 1);
    fsm_vector_fill(weights, 0.0);
    for (int64_t k = first; k < taken; k++) {
        if (AT(L, k, k) > 3.0 * rank->sigma) {
            continue;
        }
        fsm_combination_of(L, first, k, combination);
        for (int64_t j = 0; j < first; j++) {
            double *weight = &weights.at[rows.at[order.at[j]]];
            *weight = fsm_larger(*weight, fabs(combination.at[j]));
        }
        weights.at[rows.at[order.at[k]]] = 1.0;
    }
}

/* Find how much is left of the rows active at the current state, and when rank is lost if they continue changing so.

   Written into `state->rank`: `sigma rate ahead behind lost left_at` and others, and the weights of the rows.  The arena
   is cleared. */
FSM_LOCAL void fsm_assess(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_state *state = run->state;
    struct fsm_arena *arena = &run->work->arena;
    struct fsm_rank *rank = state->rank;
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    int64_t n_u = tables->sizes->n_u;
    double t = state->clock->time;
    fsm_vector sizes = fsm_known_row_sizes(run);
    tables->terms.at[0](t, state->x.at, state->c.at, terms->whole.at);
    fsm_indices rows = fsm_rows_held(arena, tables, state->counters->mode, false);
    int64_t m = rows.n;
    forget_rank(run);
    if (m == 0) {
        return;
    }
    fsm_vector scale = fsm_arena_vector(arena, n_u);
    fsm_column_scales(terms, scale);
    for (int64_t k = 0; k < m; k++) {
        double *size = &sizes.at[rows.at[k]];
        *size = fsm_larger(*size, fsm_row_norm(terms, rows.at[k], scale));
    }
    fsm_matrix before = fsm_arena_matrix(arena, m, n_u), Q = fsm_arena_matrix(arena, m, n_u);
    fsm_fill_scaled(terms, rows, scale, sizes, before);
    fsm_put((fsm_vector){Q.at, m * n_u}, (fsm_vector){before.at, m * n_u});
    fsm_indices order = fsm_arena_indices(arena, m);
    fsm_matrix L = fsm_arena_matrix(arena, m, m);
    bool were_independent = rank->active == (double)m && rank->independent == (double)m;
    int64_t taken =
        fsm_orthogonalise(Q, order, L, were_independent ? FSM_STILL_LOOKED_AT : tables->tolerances->redundancy);
    if (taken == 0) {
        return;
    }
    rank->independent = (double)taken;
    rank->active = (double)m;
    rank->speed_norm = scaled_speed(tables, state->x, terms);
    int64_t first = taken - 1;
    while (first > 0 && AT(L, first - 1, first - 1) < FSM_SMALL * AT(L, 0, 0)) {
        first--;
    }
    double extent = difference_time(tables, state->x, state->x_dot);
    fsm_matrix after = fsm_rows_along(run, state->x_dot, rows, scale, sizes, extent, extent);
    find_times(run, before, after, Q, order, L, first, taken, extent);
    weigh_rows(run, rows, order, L, first, taken);
    rank->change = fastest_change(before, after, extent);
    double soonest = soonest_loss(rank->sigma, rank->rate, rank->change);
    rank->left_at = t + FSM_AHEAD_OFTEN * fsm_smaller(soonest, fsm_smaller(fabs(rank->ahead), fabs(rank->behind)));
}

/* Look at the rank of the rows again if it may be lost soon, see fsm_assess; return whether that was done.

   While stages are put on the rows they are looked at before every step: its nodes are to keep clear. */
FSM_LOCAL bool fsm_look_ahead(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    double t = run->state->clock->time;
    fsm_vector x = run->state->x;
    fsm_vector x_dot = run->state->x_dot;
    struct fsm_rank *rank = run->state->rank;
    if (fsm_is_in_change_point(rank)) { // where nothing can be seen
        return false;
    }
    rank->unseen += 1.0;
    // what is at rest may start moving
    bool faster = fsm_motion_of(tables, x, x_dot, tables->sizes->n_q) > FSM_FASTER * rank->motion;
    if (t >= rank->left_at || faster || rank->lands != 0.0 || rank->unseen > FSM_UNSEEN_STEPS) {
        rank->unseen = 0.0;
        fsm_assess(run);
        return true;
    }
    return false;
}
