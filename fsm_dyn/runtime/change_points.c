/* Change points: their distance, passage, and steps next to them. */

#include "elementary.h"
#include "stepping.h"

/* -- Distance of a step from a change point, and effect of rounding on its error there (docs/theory.md, "Change points").

   All of it follows from what fsm_assess has found of the rows: what is left of them and when rank is lost. */

#define CLOSEST  1e-5            // what is left of the rows at the ends of steps over a change point, at least
#define ROUNDING (2.0 * FSM_EPS) // rounding of a step, over the square of what is left of the rows a step away

/* Whether the run starts in a change point from here, see fsm_evaluate_limit. */
FSM_LOCAL bool fsm_is_in_change_point(const struct fsm_rank *rank)
{
    return rank->active > 0.0 && rank->behind == 0.0;
}

/* Return what must be left of a row for the speeds after an event: rounding enters them divided by its square. */
static double least_left_at_event(double rtol)
{
    return fsm_smaller(sqrt(FSM_EPS / rtol), FSM_TINY);
}

/* Whether an event that was not located in a step of length `h` (s) is in the change point ahead of it. */
FSM_LOCAL bool fsm_is_event_in_change_point(const struct fsm_rank *rank, double h, double rtol)
{
    return rank->ahead * rank->rate < least_left_at_event(rtol) && h < 4.0 * rank->ahead;
}

/* Whether the current state, that of an event, is in a change point; what is known of the rank is renewed close to one. */
FSM_LOCAL bool fsm_has_event_in_change_point(const struct fsm_run *run)
{
    const struct fsm_rank *rank = run->state->rank;
    bool ranks = (run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_RANKS) != 0;
    if (!ranks || !(fsm_smaller(fabs(rank->ahead), fabs(rank->behind)) * rank->rate < FSM_NEAR)) {
        return false;
    }
    double independent = rank->independent;
    fsm_assess(run);
    double left = fsm_smaller(fabs(rank->ahead), fabs(rank->behind)) * rank->rate;
    return rank->independent < independent || left < least_left_at_event(run->options->numbers->rtol);
}

/* Whether no more than `left` is left of a row that is about to vanish, or has just done so.

   A row of which little is left all the time is not: the time in which it would vanish is long beside that in which
   rows change. */
FSM_LOCAL bool fsm_is_weak(const struct fsm_rank *rank, double left)
{
    double distance = fsm_smaller(rank->ahead, fabs(rank->behind));
    bool vanishes = distance * rank->change < FSM_TURNED || rank->sigma < FSM_TINY;
    return distance * rank->rate < left && vanishes;
}

/* Whether a change point is so near that the stages of a step of length `h` are put on the rows.

   Where little is left of a row, a stage that is off the rows by its own error has that error divided by what is left;
   that is made up for by the step being short, except near the change point.

   `left`: what is left of a row below which it is divided by too little whatever the step, see fsm_least_left. */
FSM_LOCAL bool fsm_is_near(const struct fsm_rank *rank, double h, double left)
{
    double distance = fsm_smaller(rank->ahead, fabs(rank->behind));
    bool steps = distance < FSM_NEAR_STEPS * h || (distance < FSM_FAR_STEPS * h && fsm_is_weak(rank, FSM_NEAR));
    return steps || fsm_is_weak(rank, left);
}

/* Return what must be left of a row so that the residual of its projection, over the square of it, does not show.

   `rtol`: relative tolerance of the run. */
FSM_LOCAL double fsm_least_left(const struct fsm_tables *tables, double rtol)
{
    return fsm_smaller(FSM_NEAR, sqrt(10.0 * tables->tolerances->projection / tables->tolerances->length_scale / rtol));
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
    if (fraction < 0.5) {
        return fsm_larger(ahead - fraction * h, 0.5 * ahead);
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

/* Return by how much longer than its error asks for a step over a change point should be, 1 or more.

   Rounding enters accelerations divided by the cube of what is left of the rows, so that of a step whose nodes keep
   clear by a quarter of its length grows as its inverse square; its own error grows as its sixth power.  Where both
   are equal, no other length has less.

   `turn`: how much of the rows is left a step from the change point; `rtol`: relative tolerance of the run. */
FSM_LOCAL double fsm_least_passage(double turn, double rtol)
{
    double rounding = ROUNDING / (rtol * fsm_larger(turn * turn, FSM_TINIEST));
    return fsm_pow(fsm_larger(1.0, fsm_smaller(rounding, 1000000.0)), 0.125);
}

/* Return what rounding may do to the estimated error of a step of length `h`, 1 where it does nothing.

   As in fsm_least_passage, for the end of the step that is nearest to a change point. */
FSM_LOCAL double fsm_allowance(const struct fsm_rank *rank, double h, double rtol)
{
    double distance = fsm_smaller(fsm_smaller(fabs(rank->ahead), fabs(rank->behind)), fabs(rank->ahead - h));
    double left = distance * rank->rate;
    if (left < CLOSEST) {
        return 1.0;
    }
    return fsm_larger(1.0, 0.1 * ROUNDING * h * rank->rate / (rtol * fsm_third_power(left)));
}

/* Whether a shorter step (`h`) than one rejected before (`tried`) has an error that does not shrink as its own.

   That of a method falls with the fifth power at least; rounding near a change point does not. */
FSM_LOCAL bool fsm_is_rounding(double error, double h, double tried_error, double tried)
{
    return 0.0 < h && h < tried && error > tried_error * fsm_pow(h / tried, 2.5);
}

/* Remember whether the step from `t` to `t_end` passes the change point ahead, and how long it is to the next.

   `error`: estimated error of the step in units of its tolerance. */
FSM_LOCAL void fsm_note_passage(struct fsm_rank *rank, double t, double t_end, double error)
{
    rank->passes_at = FSM_INFINITY;
    if (t + rank->ahead < t_end) {
        rank->passes_at = t + rank->ahead;
        rank->tried_step = 0.0;
        rank->tried_error = fsm_larger(error, rank->worst);
        rank->worst = 0.0;
    }
    rank->ahead -= t_end - t;
    rank->behind -= t_end - t;
}

/* -- Change points: times at which constraint rows lose rank (docs/theory.md, "Change points").

   On the branch that velocity continues, everything but the multipliers is smooth through such a point; what is not is the
   arithmetic, whose rounding is divided by what is left of the rows.  So the stages of a step near one are put on the
   rows, and its nodes are kept clear of it. */

#define FSM_AHEAD_OFTEN     0.25  // part of the time in which rows could vanish after which they are looked at again
#define FSM_UNSEEN_STEPS    64.0  // steps after which they are looked at in any case
#define FSM_UNSEEN_SHARE    0.25  // the same of many rows, times the square of their number: a look costs its cube
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
    fsm_indices columns = fsm_arena_indices(&run->work->arena, n + 1);
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
            for (int64_t i = 0; i < n && combination.at[j] != 0.0; i++) {
                change.at[i] -= combination.at[j] * (AT(after, other, i) - AT(before, other, i)) / extent;
            }
        }
        double square = 0.0;
        int64_t moving = 0; // columns that change: few, of the loops that the row is in
        for (int64_t i = 0; i < n; i++) {
            square += change.at[i] * change.at[i];
            columns.at[moving] = i;
            moving += change.at[i] != 0.0 ? 1 : 0;
        }
        for (int64_t j = 0; j < first; j++) {
            double along = 0.0;
            for (int64_t i = 0; i < moving; i++) {
                along += change.at[columns.at[i]] * AT(Q, order.at[j], columns.at[i]);
            }
            square -= along * along;
        }
        rate = fsm_larger(rate, sqrt(fsm_larger(square, 0.0)));
        sigma = fsm_smaller(sigma, AT(L, first + k, first + k));
        for (int64_t j = 0; j < S.m; j++) {
            for (int64_t i = 0; i < moving; i++) {
                AT(S, k, j) -= change.at[columns.at[i]] * AT(Q, order.at[first + j], columns.at[i]);
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
        fsm_orthogonalise(arena, Q, order, L, were_independent ? FSM_STILL_LOOKED_AT : tables->tolerances->redundancy);
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
    double unseen = fsm_larger(FSM_UNSEEN_STEPS, FSM_UNSEEN_SHARE * fsm_square(rank->active));
    if (t >= rank->left_at || faster || rank->lands != 0.0 || rank->unseen > unseen) {
        rank->unseen = 0.0;
        fsm_assess(run);
        return true;
    }
    return false;
}

/* -- Steps near change points: length and acceptance (docs/theory.md, "Change points"). */

/* Look for change points ahead of an implicit step of length `h` (s).

   `length`: of the step that keeps clear of them, `h` at most (s).  Returns FSM_CONTINUE, or FSM_UNDETERMINED where the
   mechanism rests in a change point. */
FSM_LOCAL enum fsm_status fsm_look(const struct fsm_run *run, double h, double *length)
{
    struct fsm_rank *rank = run->state->rank;
    *length = h;
    if ((run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_RANKS) == 0) {
        return FSM_CONTINUE;
    }
    if (fsm_look_ahead(run) && fsm_rests_in_change_point(run)) {
        return FSM_UNDETERMINED;
    }
    rank->lands = fsm_is_near(rank, h, FSM_NEAR) ? 1.0 : 0.0;
    *length = fsm_clear_length(rank->ahead, h, fsm_passing_fraction(0, false));
    return FSM_CONTINUE;
}

/* Return the length of a step that keeps clear of change points (s); `passes`: whether it passes one.

   It is `h` at most, but where rounding asks for a longer step over a change point (fsm_least_passage). */
FSM_LOCAL double fsm_keep_clear(const struct fsm_run *run, double h, bool *passes)
{
    const struct fsm_method_counts *method = run->method->counts;
    struct fsm_rank *rank = run->state->rank;
    double passage = h, left = 0.0;
    if (method->adaptive != 0) {
        double rtol = run->options->numbers->rtol;
        passage = h * fsm_least_passage(h * rank->rate, rtol);
        left = fsm_least_left(run->tables, rtol);
    }
    rank->lands = fsm_is_near(rank, h, left) ? 1.0 : 0.0;
    *passes = fsm_is_in_change_point(rank);
    if (*passes) { // it starts in one
        return passage;
    }
    if (!(rank->ahead < 1.5 * passage)) {
        return h;
    }
    bool guards = fsm_guard_count(run->tables, run->state->counters->mode) > 0;
    double length = fsm_clear_length(rank->ahead, passage, fsm_passing_fraction(method->stages, guards));
    *passes = length > rank->ahead;
    return *passes ? length : fsm_smaller(length, h);
}

/* Whether a step near a change point is accepted as it is: rounding would make a shorter one no better. */
static bool at_floor(const struct fsm_run *run, const struct fsm_trial *trial)
{
    const struct fsm_rank *rank = run->state->rank;
    double rtol = run->options->numbers->rtol;
    if (!trial->passes) {
        return trial->error <= fsm_allowance(rank, trial->h, rtol);
    }
    double longer = fsm_least_passage(trial->h * rank->rate, rtol);
    return (trial->error < 4.0 * fsm_pow(longer, 6.0) && longer > 1.0) ||
           fsm_is_rounding(trial->error, trial->h, rank->tried_error, rank->tried_step);
}

/* Estimate the error of a trial step (`trial->error`); return whether it is accepted, made shorter, or retaken at the
   length tried before, whatever its error. */
FSM_LOCAL enum fsm_verdict fsm_judge(const struct fsm_run *run, struct fsm_trial *trial, bool finite)
{
    struct fsm_rank *rank = run->state->rank;
    trial->error = finite ? fsm_error_norm(run, trial->h) : 10000.0;
    if (trial->error <= 1.0) {
        return FSM_ACCEPT;
    }
    if (!finite || !(trial->error > 1.0) || rank->lands == 0.0) {
        return FSM_SHORTEN;
    }
    if (trial->forced || at_floor(run, trial)) {
        rank->worst = fsm_larger(rank->worst, trial->error);
        return FSM_ACCEPT;
    }
    bool rounding = fsm_is_rounding(trial->error, trial->h, trial->rejected_error, trial->rejected);
    return !trial->passes && rounding ? FSM_RETAKE : FSM_SHORTEN;
}

/* Return by how much to shorten a rejected step: one over a change point by a little, as rounding grows then. */
FSM_LOCAL double fsm_shorter(const struct fsm_run *run, const struct fsm_trial *trial)
{
    double factor = fsm_rejection_factor(trial->error, run->method->counts->order);
    if (!trial->passes) {
        return factor;
    }
    run->state->rank->tried_step = trial->h;
    run->state->rank->tried_error = trial->error;
    return fsm_larger(factor, 0.7);
}
