/* End of a run, its reasons, and whether what was recorded explains itself. */

#include "stepping.h"

/* -- Reasons for the end of a run at a loss of rank of constraint rows (docs/theory.md, "Change points").

   Told from the rows that are small or vanish, each taken free of those before it, `n (A u + b)`: what they ask of the
   speeds, `n b`, of the accelerations, `n gamma`, and whether they hold something beside the current configuration. */

#define FSM_AT_REST      1e-9  // scaled speed, in the mechanism's own units, below which nothing moves
#define FSM_NO_DIRECTION 1e-12 // rounding of the square of what rows leave of a direction of about the size 1
#define FSM_WEAK         1e-4  // what is left of a row that is stretched to its limit
#define FSM_DRIVEN       1e-3  // part of the largest speed imposed that such a row must continue asking for
#define FSM_TURNS_UP                                                                                                   \
    1e-3 // change, per scaled length in the mechanism's own units, of a row that vanishes here and holds something elsewhere
#define FSM_MISSED 1e-6 // acceleration that a row that vanishes may ask for, relative to its terms
#define FSM_EXTENT 1e-6 // scaled length, in the mechanism's own units, over which rows are differenced

/* Return what the weak rows ask of the speeds, relative to what is imposed; `missed`: what the vanished ones ask of the
   accelerations, relative to their terms.  The weights of the rows that ask for something are set. */
static double asked_for(const struct fsm_run *run, double *missed)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    double t = run->state->clock->time;
    fsm_vector x = run->state->x;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    struct fsm_rank *rank = run->state->rank;
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
    int64_t taken = fsm_orthogonalise(&work->arena, B, order, L, FSM_WEAK);
    fsm_vector combination = fsm_arena_vector(&work->arena, m);
    *missed = 0.0;
    const struct fsm_tolerances *tolerances = tables->tolerances;
    double unit = fsm_scaled_length(tolerances) / tolerances->time_scale; // of scaled speeds
    double driven = 0.0, imposed = FSM_TINIEST;
    for (int64_t k = 0; k < rows.n; k++) {
        int64_t r = rows.at[k];
        imposed = fsm_larger(imposed, fabs(terms->b.at[r]) / fsm_larger(sizes.at[r], FSM_TINIEST));
    }
    for (int64_t k = taken; k < m; k++) {
        fsm_combination_of(L, taken, k, combination);
        int64_t row = rows.at[order.at[k]];
        double speed = terms->b.at[row] / fsm_larger(sizes.at[row], FSM_TINIEST),
               left = terms->gamma.at[row] / fsm_larger(sizes.at[row], FSM_TINIEST);
        double magnitude = fabs(left);
        for (int64_t j = 0; j < taken; j++) {
            int64_t other = rows.at[order.at[j]];
            speed -= combination.at[j] * terms->b.at[other] / fsm_larger(sizes.at[other], FSM_TINIEST);
            double part = combination.at[j] * terms->gamma.at[other] / fsm_larger(sizes.at[other], FSM_TINIEST);
            left -= part;
            magnitude += fabs(part);
        }
        driven = fsm_larger(driven, fabs(speed) / imposed);
        double weak = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            weak += fsm_square(AT(B, order.at[k], i));
        }
        if (sqrt(weak) < tables->tolerances->redundancy) {
            *missed = fsm_larger(*missed, magnitude > FSM_AT_REST * unit / tolerances->time_scale
                                              ? fabs(left) / fsm_larger(magnitude, FSM_TINIEST)
                                              : 0.0);
        }
        if (fabs(speed) > FSM_DRIVEN * imposed || fabs(left) > FSM_MISSED * magnitude) {
            weights.at[row] = 1.0;
            for (int64_t j = 0; j < taken; j++) {
                weights.at[rows.at[order.at[j]]] =
                    fsm_larger(weights.at[rows.at[order.at[j]]], fabs(combination.at[j]));
            }
        }
    }
    return driven;
}

/* Take the parts along the first rows taken out of a vector. */
static void remove_components(fsm_matrix Q, fsm_indices order, int64_t taken, fsm_vector direction)
{
    for (int64_t k = 0; k < taken; k++) {
        double product = 0.0;
        for (int64_t i = 0; i < direction.n; i++) {
            product += direction.at[i] * AT(Q, order.at[k], i);
        }
        for (int64_t i = 0; i < direction.n; i++) {
            direction.at[i] -= product * AT(Q, order.at[k], i);
        }
    }
}

/* Return how many rows others imply here but not beside it: rows that always are redundant are not counted.

   Beside it is where any motion leads that the rows allow, seen in one direction that has a part of each. */
static int64_t count_vanishing(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    double t = run->state->clock->time;
    fsm_vector x = run->state->x;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    struct fsm_rank *rank = run->state->rank;
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
    int64_t taken = fsm_orthogonalise(&work->arena, Q, order, L, tables->tolerances->redundancy);
    if (taken == m) {
        return 0;
    }
    fsm_vector direction = fsm_arena_vector(&work->arena, n_u), x_dot = fsm_arena_vector(&work->arena, x.n);
    for (int64_t i = 0; i < n_u; i++) {
        direction.at[i] = 1.0 + fmod(FSM_GOLDEN_RATIO * (double)(i + 1), 1.0);
    }
    remove_components(Q, order, taken, direction);
    double norm = 0.0;
    for (int64_t i = 0; i < n_u; i++) {
        norm += direction.at[i] * direction.at[i];
    }
    if (!(norm > FSM_NO_DIRECTION)) {
        return 0;
    }
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            x_dot.at[i] += AT(terms->W, i, j) * scale.at[j] * direction.at[j] / sqrt(norm);
        }
    }
    double unit = fsm_scaled_length(tables->tolerances);
    fsm_matrix after = fsm_rows_along(run, x_dot, rows, scale, sizes, FSM_EXTENT * unit, 0.0);
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
        remove_components(Q, order, taken, change);
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

/* Whether nothing moves. */
static bool is_at_rest(const struct fsm_run *run)
{
    const struct fsm_tolerances *tolerances = run->tables->tolerances;
    return run->state->rank->speed_norm <= FSM_AT_REST * fsm_scaled_length(tolerances) / tolerances->time_scale;
}

/* Return the outcome of a run that failed with `status`: one of those that belong to a loss of rank, if it is one.

   FSM_STRETCHED (`rank->ahead` is then how long the motion could have gone on, s), FSM_UNDETERMINED, FSM_NO_BRANCH, or
   `status` itself. */
FSM_LOCAL enum fsm_status fsm_why_not(const struct fsm_run *run, enum fsm_status status)
{
    fsm_vector x = run->state->x, x_dot = run->state->x_dot;
    struct fsm_rank *rank = run->state->rank;
    bool may_be = status == FSM_STEP_TOO_SMALL || status == FSM_NON_FINITE || status == FSM_SINGULAR ||
                  status == FSM_PROJECTION_FAILED;
    if (!may_be || (run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_RANKS) == 0) {
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
    fsm_assess(run);
    double missed;
    double driven = asked_for(run, &missed);
    if (is_at_rest(run) && count_vanishing(run) > 0) {
        return FSM_UNDETERMINED;
    }
    if (driven > FSM_DRIVEN) {
        rank->ahead = 0.5 * rank->sigma / fsm_larger(rank->rate, FSM_TINIEST);
        return FSM_STRETCHED;
    }
    return missed > FSM_MISSED ? FSM_NO_BRANCH : status;
}

/* Whether the mechanism is at rest where rows vanish that hold something beside it. */
FSM_LOCAL bool fsm_rests_in_change_point(const struct fsm_run *run)
{
    struct fsm_rank *rank = run->state->rank;
    if (rank->independent >= rank->active || !is_at_rest(run)) {
        return false;
    }
    return count_vanishing(run) > 0;
}

/* -- Influence of the end time of a run on its next step.

   The last step is shortened to end there, so a run that is to be continued is saved before it (saved_state.c): what goes
   on from there takes the step that a run with a later end takes. */

#define FSM_PASSAGES 32.0 // times a step's length up to which one over a change point may be made longer

/* Return the length of the first step (s) up to `target` (s), as fsm_advance would choose it. */
static double first_length_up_to(const struct fsm_run *run, double target)
{
    return fsm_first_step(run, fsm_smaller(target - run->state->clock->time, run->options->numbers->max_step));
}

/* Whether the next step, or the transition that is pending, may depend on where the run ends. */
FSM_API bool fsm_end_is_near(const struct fsm_run *run)
{
    const struct fsm_state *state = run->state;
    const struct fsm_clock *clock = state->clock;
    double until = run->options->numbers->until;
    double jump = fsm_next_jump(run);
    if (until > jump) {
        return false;
    }
    if (state->counters->phase == FSM_PHASE_RESOLVING) {
        return state->counters->reason == FSM_REASON_ZENO && clock->jump > 0.0 && clock->time + clock->jump > until;
    }
    if (run->method->counts->adaptive == 0) {
        return until <= fsm_grid_point(run);
    }
    double length = clock->step;
    if (length <= 0.0) {
        length = first_length_up_to(run, jump);
        if (length != first_length_up_to(run, until)) {
            return true;
        }
    }
    length = fsm_smaller(length, run->options->numbers->max_step);
    if ((run->tables->mode_flags.at[state->counters->mode] & FSM_MODE_RANKS) != 0) {
        length *= FSM_PASSAGES;
    }
    return until - clock->time <= length + 32.0 * FSM_EPS * fsm_larger(fabs(clock->time), fabs(until));
}

/* -- Whether the recorded states of runs follow from their recorded rates.

   The balance of energy takes longer than most runs.  Where the states of every step follow from its rates, as an integral,
   it closes as far as the rates are those of the mechanism: it need not be drawn up. */

#define FSM_UNEXPLAINED 0.01  // part of the largest value of a speed, summed over the steps of a run: of middles of steps
#define FSM_MISTIMED    1e-3  // part of the largest speed, or of how far a coordinate moves: of steps of fixed length
#define FSM_ALIKE       0.1   // length of a step over that of its neighbour, at least, whose rates tell how its own bend

/* Whether a row begins an interval of a run: no step leads there. */
static bool is_beginning(const struct fsm_recorded *rows, int64_t begin, int64_t i)
{
    return i <= begin || !(rows->t[i] > rows->t[i - 1]);
}

/* Return by how much a state in the middle of the step that leads to row `i` differs from the cubic of its ends and rates. */
static double missed_in_middle(const struct fsm_recorded *rows, int64_t i, int64_t j)
{
    const double *x = rows->x + j, *rate = rows->x_dot + j;
    int64_t end = i * rows->stride, start = end - rows->stride;
    double h = rows->t[i] - rows->t[i - 1];
    return fabs(rows->x_mid[end + j] - 0.5 * (x[start] + x[end]) - 0.125 * h * (rate[start] - rate[end]));
}

/* Return by how much a state changes otherwise in the step that leads to row `i` than by the integral of its rate: of the
   parabola through the rates at its ends and at that of a neighbouring step, if there is one of about its length. */
static double missed_at_end(const struct fsm_recorded *rows, int64_t begin, int64_t end, int64_t i, int64_t j)
{
    const double *t = rows->t, *x = rows->x + j, *rate = rows->x_dot + j;
    int64_t here = i * rows->stride, before = here - rows->stride;
    double h = t[i] - t[i - 1], change = x[here] - x[before], near = rate[before], far = rate[here], other = 0.0,
           ratio = 0.0;
    if (!is_beginning(rows, begin, i - 1)) {
        ratio = (t[i - 1] - t[i - 2]) / h;
        other = rate[before - rows->stride];
    }
    if (ratio < FSM_ALIKE && i + 1 < end && !is_beginning(rows, begin, i + 1)) {
        ratio = (t[i + 1] - t[i]) / h;
        near = rate[here];
        far = rate[before];
        other = rate[here + rows->stride];
    }
    if (ratio < FSM_ALIKE) {
        return fabs(change - 0.5 * h * (near + far));
    }
    double part = 1.0 / (6.0 * ratio * (1.0 + ratio));
    double mean = (2.0 + 3.0 * ratio) * ratio * far + (1.0 + 3.0 * ratio) * (1.0 + ratio) * near - other;
    return fabs(change - h * part * mean);
}

/* Whether all states and rates of the rows of a run are finite, middles of steps included. */
static bool is_recorded_finite(const struct fsm_recorded *rows, int64_t begin, int64_t end)
{
    double total = 0.0;
    for (int64_t i = begin; i < end; i++) {
        const double *x = rows->x + i * rows->stride, *rate = rows->x_dot + i * rows->stride;
        for (int64_t j = 0; j < rows->n; j++) {
            total += 0.0 * x[j] + 0.0 * rate[j];
        }
        const double *middle = rows->x_mid + i * rows->stride;
        for (int64_t j = 0; j < rows->n && !is_beginning(rows, begin, i); j++) {
            total += 0.0 * middle[j];
        }
    }
    return total == 0.0;
}

/* Whether state `j` of the rows of a run follows from its rate, to a part of its largest value, or motion. */
static bool is_explained(const struct fsm_recorded *rows, int64_t begin, int64_t end, int64_t j, bool fixed)
{
    const double *x = rows->x + j;
    double first = j < rows->n_q ? x[begin * rows->stride] : 0.0, largest = 0.0, missed = 0.0;
    for (int64_t i = begin; i < end; i++) {
        largest = fsm_larger(largest, fabs(x[i * rows->stride] - first));
        if (!is_beginning(rows, begin, i)) {
            missed += fixed ? missed_at_end(rows, begin, end, i, j) : missed_in_middle(rows, i, j);
        }
    }
    return missed <= (fixed ? FSM_MISTIMED : FSM_UNEXPLAINED) * largest;
}

/* Judge the rows of each run, `begin` (runs + 1,): the first of each, and the end; write into `found` (runs,) what they are.

   `fixed`: nothing controlled the error of its steps.  Then middles are cubics of ends and rates, and the ends are judged,
   coordinates too; else the speeds in the middles are, which are known otherwise. */
FSM_API void fsm_judge_rows(const struct fsm_recorded *rows, const int64_t *begin, int64_t runs, bool fixed, int8_t *found)
{
    for (int64_t k = 0; k < runs; k++) {
        bool explained = true;
        for (int64_t j = fixed ? 0 : rows->n_q; j < rows->n && explained; j++) {
            explained = is_explained(rows, begin[k], begin[k + 1], j, fixed);
        }
        bool finite = is_recorded_finite(rows, begin[k], begin[k + 1]);
        found[k] = !finite ? FSM_ROWS_NOT_FINITE : explained ? FSM_ROWS_EXPLAINED : FSM_ROWS_CONTRADICTED;
    }
}
