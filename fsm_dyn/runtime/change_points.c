/* Change points: instants at which constraint rows lose rank and gain it again (docs/theory.md, "Change points").

   On the branch that velocity continues, everything but the multipliers is smooth through such a point; what is not is the
   arithmetic, whose rounding is divided by what is left of the rows.  So the stages of a step near one are put on the
   rows, and its nodes are kept clear of it. */

#include "stepping.h"

#define FSM_AHEAD_OFTEN  0.25 // part of the time in which rows could vanish after which they are looked at again
#define FSM_UNSEEN_STEPS 64   // steps after which they are looked at in any case
#define FSM_FASTER       2.0  // times as fast as when they were looked at, they are looked at again
#define FSM_CHANGE_POINTS_TOGETHER 1.3  // change points whose times are within this ratio are kept clear of as one
#define FSM_REAL                   0.3  // an eigenvalue with a smaller imaginary part, relative, is a time
#define FSM_CLOSEST                1e-5 // what is left of the rows at the ends of steps over a change point, at least
#define FSM_CHANGE_POINTS_ROUNDING                                                                                     \
    2.0 // rounding of a step, over that of a number and the square of what is left a step away
#define FSM_CHANGE_POINTS_EPS 2.220446049250313e-16
#define FSM_CHANGE_POINTS_VANISHED                                                                                     \
    1e-12            // part of a row left that is still looked at where none was implied by the others before
#define FSM_PROBES 4 // configurations beside the start at which the sizes of rows are seen

static double change_points_probe_time(fsm_vector x, fsm_vector x_dot);
static void times(struct fsm_work *work, fsm_matrix before, fsm_matrix after, fsm_matrix Q, fsm_indices order,
                  fsm_matrix L, int64_t first, int64_t taken, double extent, struct fsm_rank *rank);
static double find_fastest(fsm_matrix before, fsm_matrix after, double extent);
static double find_soonest(double sigma, double rate, double change);
static void nearest(fsm_vector real, fsm_vector imaginary, struct fsm_rank *rank);

/* Raise `sizes` (n_rows,) to the norms of the rows at `x` and at a few configurations beside it. */
FSM_LOCAL void fsm_known_sizes(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                               fsm_vector c, const struct fsm_terms *terms, fsm_vector sizes)
{
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u;
    fsm_vector probe = fsm_arena_vector(&work->arena, x.n), scale = fsm_arena_vector(&work->arena, n_u);
    double norm;
    for (int64_t k = 0; k < FSM_PROBES + 1; k++) {
        for (int64_t i = 0; i < x.n; i++) {
            probe.at[i] = x.at[i];
        }
        for (int64_t i = 0; i < n_q; i++) { // the same ones every time; the golden ratio spreads them evenly
            double part = fmod((double)(k * (i + 1)) * 0.6180339887498949, 1.0);
            probe.at[i] += (0.6 * part - 0.3) * (double)fsm_least(k, 1);
        }
        for (int64_t k4 = 0; k4 < tables->quaternions.n; k4++) {
            int64_t first = tables->quaternions.at[k4];
            norm = 0.0;
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
            norm = fsm_row_norm(terms, r, scale);
            if (fsm_is_finite(norm)) {
                sizes.at[r] = fsm_larger(sizes.at[r], norm);
            }
        }
    }
}

/* Find how much is left of the rows held in `mode` and when rank is lost if they go on changing so.

   Parameters
   ----------
   rank : float64 array
       `State.rank`; in: the sizes of rows; out: `SIGMA RATE AHEAD BEHIND LOST LEFT_AT` and the weights of rows. */
FSM_LOCAL void fsm_assess(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                          fsm_vector x_dot, fsm_vector c, int64_t mode, struct fsm_rank *rank)
{
    fsm_arena_clear(&work->arena);
    int64_t n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows), weights = fsm_rank_weights(rank, n_rows);
    const struct fsm_terms *terms = fsm_terms_of(work);
    if (rank->sized == 0.0) {
        rank->sized = 1.0;
        fsm_known_sizes(work, tables, t, x, c, terms, sizes);
        fsm_arena_clear(&work->arena);
    }
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, mode, false);
    int64_t m = rows.n;
    rank->ahead = FSM_INFINITY;
    rank->behind = FSM_INFINITY;
    rank->lost = 0.0;
    rank->sigma = 1.0;
    rank->rate = 0.0;
    rank->left_at = FSM_INFINITY;
    rank->motion = fsm_motion(x, x_dot, tables->sizes->n_q);
    if (m == 0) {
        return;
    }
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u);
    fsm_column_scales(terms, scale);
    for (int64_t n1 = 0; n1 < rows.n; n1++) {
        int64_t r = rows.at[n1];
        sizes.at[r] = fsm_larger(sizes.at[r], fsm_row_norm(terms, r, scale));
    }
    fsm_matrix before = fsm_arena_matrix(&work->arena, m, n_u), Q = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_fill_scaled(terms, rows, scale, sizes, before);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t i = 0; i < n_u; i++) {
            AT(Q, k, i) = AT(before, k, i);
        }
    }
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    bool were_independent = rank->active == (double)m && rank->independent == (double)m;
    int64_t taken =
        fsm_orthogonalise(Q, order, L, were_independent ? FSM_CHANGE_POINTS_VANISHED : FSM_ROW_RANK_REDUNDANT);
    if (taken == 0) {
        return;
    }
    rank->independent = (double)taken;
    rank->active = (double)m;
    rank->speed_norm = fsm_scaled_speed(tables, x, terms);
    int64_t first = taken - 1;
    while (first > 0 && AT(L, first - 1, first - 1) < FSM_SMALL * AT(L, 0, 0)) {
        first--;
    }
    double extent = change_points_probe_time(x, x_dot);
    fsm_matrix after = fsm_rows_along(work, tables, terms, t, x, x_dot, c, rows, scale, sizes, extent, extent);
    times(work, before, after, Q, order, L, first, taken, extent, rank);
    for (int64_t k = 0; k < n_rows; k++) {
        weights.at[k] = 0.0;
    }
    fsm_vector combination = fsm_arena_vector(&work->arena, first + 1);
    for (int64_t k = first; k < taken; k++) {
        if (AT(L, k, k) <= 3.0 * rank->sigma) {
            fsm_combination_of(L, first, k, combination);
            for (int64_t j = 0; j < first; j++) {
                weights.at[rows.at[order.at[j]]] =
                    fsm_larger(weights.at[rows.at[order.at[j]]], fabs(combination.at[j]));
            }
            weights.at[rows.at[order.at[k]]] = 1.0;
        }
    }
    rank->change = find_fastest(before, after, extent);
    double soonest = find_soonest(rank->sigma, rank->rate, rank->change);
    rank->left_at = t + FSM_AHEAD_OFTEN * fsm_smaller(soonest, fsm_smaller(fabs(rank->ahead), fabs(rank->behind)));
}

/* Return the time (s) in which rank could be lost, `rate tau + (change tau)^2 / 2 = sigma`. */
static double find_soonest(double sigma, double rate, double change)
{
    return 2.0 * sigma / fsm_larger(rate + sqrt(rate * rate + 2.0 * sigma * change * change), 1e-300);
}

/* Return how fast a row changes at most (1/s). */
static double find_fastest(fsm_matrix before, fsm_matrix after, double extent)
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

/* Return how fast the coordinates change at most, over their size where that is above 1 (1/s). */
FSM_LOCAL double fsm_motion(fsm_vector x, fsm_vector x_dot, int64_t n_q)
{
    double fastest = 0.0;
    for (int64_t i = 0; i < n_q; i++) {
        fastest = fsm_larger(fastest, fabs(x_dot.at[i]) / (1.0 + fabs(x.at[i])));
    }
    return fastest;
}

/* Return over what time (s) rows are differenced, from how fast the state changes. */
static double change_points_probe_time(fsm_vector x, fsm_vector x_dot)
{
    double fastest = fsm_motion(x, x_dot, x.n);
    return fastest > 0.0 ? 1e-06 / fsm_larger(fastest, 1e-300) : 1e-06;
}

/* Return the scaled rows, (m, n_u), at `x + extent x_dot` and the time `t + later`. */
FSM_LOCAL fsm_matrix fsm_rows_along(struct fsm_work *work, const struct fsm_tables *tables,
                                    const struct fsm_terms *terms, double t, fsm_vector x, fsm_vector x_dot,
                                    fsm_vector c, fsm_indices rows, fsm_vector scale, fsm_vector sizes, double extent,
                                    double later)
{
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

/* Write the times at which the remainders of the last rows taken become dependent, and how fast they change.

   The remainders are `L22 Q2` and change by `G Q2` a second: rank is lost where `det(L22 + tau G) = 0`. */
static void times(struct fsm_work *work, fsm_matrix before, fsm_matrix after, fsm_matrix Q, fsm_indices order,
                  fsm_matrix L, int64_t first, int64_t taken, double extent, struct fsm_rank *rank)
{
    int64_t count = taken - first, n = Q.m;
    fsm_matrix S = fsm_arena_matrix(&work->arena, count, count);
    fsm_vector change = fsm_arena_vector(&work->arena, n);
    fsm_vector combination = fsm_arena_vector(&work->arena, first + 1);
    double sigma = FSM_INFINITY, rate = 0.0;
    for (int64_t k = 0; k < count; k++) {
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
        for (int64_t j = 0; j < count; j++) {
            for (int64_t i = 0; i < n; i++) {
                AT(S, k, j) -= change.at[i] * AT(Q, order.at[first + j], i);
            }
        }
    }
    rank->sigma = sigma;
    rank->rate = rate;
    for (int64_t k = 0; k < count; k++) { // -L22^-1 G: its eigenvalues are the inverse times
        for (int64_t j = 0; j < count; j++) {
            for (int64_t i = 0; i < k; i++) {
                AT(S, k, j) -= AT(L, first + k, first + i) * AT(S, i, j);
            }
            AT(S, k, j) /= AT(L, first + k, first + k);
        }
    }
    fsm_vector real = fsm_arena_vector(&work->arena, count), imaginary = fsm_arena_vector(&work->arena, count);
    if (!fsm_eigenvalues(S, real, imaginary)) {
        return;
    }
    nearest(real, imaginary, rank);
}

/* Write the nearest times ahead and behind, from their inverses; times close to each other count as one. */
static void nearest(fsm_vector real, fsm_vector imaginary, struct fsm_rank *rank)
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
        if (fabs(imaginary.at[k]) <= FSM_REAL * fabs(real.at[k]) &&
            real.at[k] * FSM_CHANGE_POINTS_TOGETHER >= soonest) {
            last = fsm_smaller(last, real.at[k]);
            count++;
        }
    }
    rank->ahead = 0.5 / soonest + 0.5 / last;
    rank->lost = (double)count;
}

/* Return the norm of the speeds in the scale of land, from terms just evaluated. */
FSM_LOCAL double fsm_scaled_speed(const struct fsm_tables *tables, fsm_vector x, const struct fsm_terms *terms)
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

/* Return the norm of the scaled speeds where the rows were looked at last. */
FSM_LOCAL double fsm_speed_norm(struct fsm_rank *rank)
{
    return rank->speed_norm;
}

/* Whether no more than `left` is left of a row that is about to vanish, or has just done so.

   A row of which little is left all the time is not: the time in which it would vanish is long beside that in which
   rows change. */
FSM_LOCAL bool fsm_is_weak(struct fsm_rank *rank, double left)
{
    double distance = fsm_smaller(rank->ahead, fabs(rank->behind));
    bool vanishes = distance * rank->change < FSM_STATE_TURNED || rank->sigma < FSM_TINY;
    return distance * rank->rate < left && vanishes;
}

/* Whether a change point is so near that the stages of a step of length `h` are put on the rows.

   Where little is left of a row, a stage that is off the rows by its own error has that error divided by what is left;
   that is made up for by the step being short, except near the change point.

   Parameters
   ----------
   left : float
       What is left of a row below which it is divided by too little whatever the step, see least_left. */
FSM_LOCAL bool fsm_is_near(struct fsm_rank *rank, double h, double left)
{
    double distance = fsm_smaller(rank->ahead, fabs(rank->behind));
    bool steps = distance < FSM_NEAR_STEPS * h || (distance < FSM_FAR_STEPS * h && fsm_is_weak(rank, FSM_NEAR));
    return steps || fsm_is_weak(rank, left);
}

/* Return what must be left of a row so that the residual of its projection, over the square of it, does not show.

   Parameters
   ----------
   rtol : float
       Relative tolerance of the run. */
FSM_LOCAL double fsm_least_left(const struct fsm_tables *tables, double rtol)
{
    return fsm_smaller(FSM_NEAR, sqrt(10.0 * tables->tolerances->projection / rtol));
}

/* Return the length of a step, `h` at most, whose nodes keep clear of a change point `ahead` (s) from here.

   The step that passes it has it at `fraction` of its length, between nodes; the one before ends in time. */
FSM_LOCAL double fsm_clear_length(double ahead, double h, double fraction)
{
    if (ahead >= 1.5 * h || ahead < 0.1 * h) {
        return h;
    }
    if (ahead <= fraction * h) {
        return ahead / fraction;
    }
    return fsm_larger(ahead - 0.5 * h, 0.02 * h);
}

/* Return where in a step a change point is farthest from the method's nodes, and from its middle if watched. */
FSM_LOCAL double fsm_passing_fraction(int64_t stages, bool guards)
{
    if (stages == 6) { // Dormand and Prince: nodes at 0.3 and 0.8
        return guards ? 0.65 : 0.55;
    }
    return stages == 4 ? 0.75 : 0.4;
}

/* Look at the rank of the rows again if it may be lost soon, see assess; return whether that was done.

   While stages are put on the rows they are looked at before every step: its nodes are to keep clear. */
FSM_LOCAL bool fsm_look_ahead(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                              fsm_vector x_dot, fsm_vector c, int64_t mode, struct fsm_rank *rank)
{
    rank->unseen += 1.0;
    // what is at rest may start moving
    bool faster = fsm_motion(x, x_dot, tables->sizes->n_q) > FSM_FASTER * rank->motion;
    if (t >= rank->left_at || faster || rank->lands != 0.0 || rank->unseen > (double)FSM_UNSEEN_STEPS) {
        rank->unseen = 0.0;
        fsm_assess(work, tables, t, x, x_dot, c, mode, rank);
        return true;
    }
    return false;
}

/* Return by how much longer than its error asks for a step over a change point should be, 1 or more.

   Rounding enters accelerations divided by the cube of what is left of the rows, so that of a step whose nodes keep
   clear by a quarter of its length grows as its inverse square; its own error grows as its sixth power.  Where both
   are equal, no other length has less.

   Parameters
   ----------
   turn : float
       How much of the rows is left a step from the change point.
   rtol : float
       Relative tolerance of the run. */
FSM_LOCAL double fsm_least_passage(double turn, double rtol)
{
    double rounding = FSM_CHANGE_POINTS_ROUNDING * FSM_CHANGE_POINTS_EPS / (rtol * fsm_larger(turn * turn, 1e-30));
    return pow(fsm_larger(1.0, fsm_smaller(rounding, 1000000.0)), 0.125);
}

/* Return what rounding may do to the estimated error of a step of length `h`, 1 where it does nothing.

   As in least_passage, for the end of the step that is nearest to a change point. */
FSM_LOCAL double fsm_allowance(struct fsm_rank *rank, double h, double rtol)
{
    double distance = fsm_smaller(fsm_smaller(fabs(rank->ahead), fabs(rank->behind)), fabs(rank->ahead - h));
    double left = distance * rank->rate;
    if (left < FSM_CLOSEST) {
        return 1.0;
    }
    return fsm_larger(1.0, 0.1 * FSM_CHANGE_POINTS_ROUNDING * FSM_CHANGE_POINTS_EPS * h * rank->rate /
                               (rtol * fsm_third_power(left)));
}

/* Whether a shorter step (`h`) than one rejected before (`tried`) has an error that does not shrink as its own.

   That of a method falls with the fifth power at least; rounding near a change point does not. */
FSM_LOCAL bool fsm_is_rounding(double error, double h, double tried_error, double tried)
{
    return 0.0 < h && h < tried && error > tried_error * pow(h / tried, 2.5);
}

/* Remember whether the step from `t` to `t_end` passes the change point ahead, and how long it is to the next.

   Parameters
   ----------
   error : float
       Estimated error of the step in units of its tolerance. */
FSM_LOCAL void fsm_note_passage(struct fsm_rank *rank, double t, double t_end, double error)
{
    rank->passes_at = FSM_INFINITY;
    if (t + rank->ahead < t_end) {
        rank->passes_at = t + rank->ahead;
        double next1 = 0.0;
        double next2 = fsm_larger(error, rank->worst);
        rank->tried_step = next1;
        rank->tried_error = next2;
        rank->worst = 0.0;
    }
    rank->ahead -= t_end - t;
    rank->behind -= t_end - t;
}
