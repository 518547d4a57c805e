/* Starts in a change point, and selection of charts. */

#include "stepping.h"
#include "elementary.h"

/* -- Chart selection for an active set. */

#define FSM_BETTER 2.0  // how many times the pivot of the other chart must be larger
#define FSM_GOOD   0.01 // pivot with which a mode is entered without looking for another chart
#define FSM_POOR   0.02 // part of the remainder of the weakest row; a chart chosen here has a larger pivot
#define FSM_HELD   1e-5 // remainder of a row below which a chart chosen here may lack it

/* Return the chart of the active set with the largest pivot at the current state, -1 if none is enough better.

   `work->full_mid` is overwritten. */
FSM_LOCAL int64_t fsm_better_chart(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    double t = state->clock->time;
    fsm_vector x = state->x;
    double pivot = state->clock->pivot;
    int64_t mode = state->counters->mode;
    int64_t at = x.n + tables->sizes->n_u;
    double least = pivot > 0.0 ? FSM_BETTER * pivot : 0.0;
    int64_t best = -1;
    for (int64_t other = 0; other < tables->sizes->n_modes; other++) {
        if (other == mode || tables->mode_group.at[other] != tables->mode_group.at[mode]) {
            continue;
        }
        fsm_full_of(tables, other, t, x.at, state->c.at, work->full_mid.at);
        double found = work->full_mid.at[at];
        if (found > least) {
            least = found;
            best = other;
        }
    }
    return best;
}

/* Whether a chart chosen at the current state would be far better than the present one.

   The remainder of the weakest row, free of the others and relative to its size, bounds the pivots of all charts.  Near a
   change point it falls with them, except for those of a chart that degenerates in the same instant.  The arena is
   cleared. */
FSM_LOCAL bool fsm_is_poor_chart(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_arena *arena = &run->work->arena;
    fsm_vector known = fsm_known_row_sizes(run);
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    tables->terms.at[0](run->state->clock->time, run->state->x.at, run->state->c.at, terms->whole.at);
    fsm_indices rows = fsm_rows_held(arena, tables, run->state->counters->mode, false);
    int64_t m = rows.n, n_u = tables->sizes->n_u;
    bool redundant = run->state->rank->independent < run->state->rank->active; // pivots are relative to sizes nearby
    fsm_vector scale = fsm_arena_vector(arena, n_u), sizes = fsm_arena_vector(arena, known.n);
    fsm_column_scales(terms, scale);
    for (int64_t k = 0; k < m; k++) {
        double norm = fsm_row_norm(terms, rows.at[k], scale);
        sizes.at[rows.at[k]] = redundant ? fsm_larger(norm, known.at[rows.at[k]]) : norm;
    }
    fsm_matrix B = fsm_arena_matrix(arena, m, n_u), L = fsm_arena_matrix(arena, m, m);
    fsm_indices order = fsm_arena_indices(arena, m);
    fsm_fill_scaled(terms, rows, scale, sizes, B);
    int64_t taken = fsm_orthogonalise(arena, B, order, L, FSM_HELD);
    bool lost = taken == 0 || (double)taken < run->state->rank->independent;
    return !lost && run->state->clock->pivot < FSM_POOR * AT(L, taken - 1, taken - 1);
}

/* Whether two charts of a mode have the same guards: limits of shared forces depend on where a chart was derived. */
static bool same_guards(const struct fsm_tables *tables, int64_t one, int64_t other)
{
    int64_t a = tables->mode_guard_start.at[one], b = tables->mode_guard_start.at[other];
    int64_t count = fsm_guard_count(tables, one);
    bool same = count == fsm_guard_count(tables, other);
    for (int64_t j = 0; same && j < count; j++) {
        same = tables->guard_event.at[a + j] == tables->guard_event.at[b + j] &&
               tables->guard_contact.at[a + j] == tables->guard_contact.at[b + j] &&
               tables->guard_direction.at[a + j] == tables->guard_direction.at[b + j];
    }
    return same;
}

/* Continue in chart `other` of the mode; its guards are armed anew if they are others, and may fire at once.

   Returns FSM_CONTINUE or FSM_SINGULAR. */
FSM_LOCAL enum fsm_status fsm_change_chart(const struct fsm_run *run, int64_t other)
{
    struct fsm_state *state = run->state;
    int64_t before = state->counters->mode;
    state->counters->mode = other;
    state->clock->pivot_alarm = run->tables->tolerances->pivot;
    if (!fsm_evaluate_here(run)) {
        return FSM_SINGULAR;
    }
    if (!same_guards(run->tables, before, other)) {
        state->counters->fired = 0;
        if (fsm_arm(run, before) > 0) {
            state->counters->phase = FSM_PHASE_RESOLVING;
            state->counters->reason = FSM_REASON_EVENT;
        }
    }
    return FSM_CONTINUE;
}

/* Whether other limits than those of the chart limit shared forces at the end of the trial step, in the workspace. */
FSM_LOCAL bool fsm_limits_change(const struct fsm_run *run)
{
    int64_t mode = run->state->counters->mode;
    bool shared = fsm_rows_repeat(run->tables, mode) && run->state->clock->pivot > 0.0;
    return shared && run->work->full_end.at[run->work->x_end.n + run->tables->sizes->n_u] <= 0.0;
}

/* Whether `guard` is a limit of shared forces, at a state in which others than those of the chart limit them. */
FSM_LOCAL bool fsm_is_void_limit(const struct fsm_run *run, int64_t guard)
{
    const struct fsm_tables *tables = run->tables;
    int64_t mode = run->state->counters->mode;
    int64_t event = tables->guard_event.at[tables->mode_guard_start.at[mode] + guard];
    bool shared = fsm_rows_repeat(tables, mode);
    return shared && run->state->clock->pivot <= 0.0 && (event == FSM_EVENT_OPENS || event == FSM_EVENT_SLIDES);
}

/* Whether a mode embedded online has taken as many evaluations as kernels of its own would be worth. */
FSM_LOCAL bool fsm_has_earned_kernels(const struct fsm_run *run, int64_t mode)
{
    return run->state->spent.at[mode] > run->tables->mode_allowance.at[mode];
}

/* Return a chart of the mode `target` with kernels of its own that is good at the current state, -1 if there is none.

   `work->full_mid` is overwritten. */
FSM_LOCAL int64_t fsm_own_kernels(const struct fsm_run *run, int64_t target)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t at = state->x.n + tables->sizes->n_u;
    for (int64_t chart = 0; chart < tables->sizes->n_modes; chart++) {
        if (tables->mode_group.at[chart] != tables->mode_group.at[target] ||
            tables->mode_allowance.at[chart] != FSM_NEVER) {
            continue;
        }
        fsm_call_mode(tables, chart, FSM_ONLINE_PLAIN, state->clock->time, state->x.at, state->c.at, work->full_mid.at);
        if (work->full_mid.at[at] >= FSM_GOOD) {
            return chart;
        }
    }
    return -1;
}

/* Return a chart of the mode `target` that is good at the current state: one with kernels of its own if the mode has
   earned them, else `target` itself if it is good.

   Where none is, -1; or, once one was asked for, the best there is.  `work->full_mid` is overwritten. */
FSM_LOCAL int64_t fsm_entry_chart(const struct fsm_run *run, int64_t target)
{
    if (fsm_has_earned_kernels(run, target)) {
        int64_t own = fsm_own_kernels(run, target);
        if (own >= 0) {
            return own;
        }
    }
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t at = state->x.n + tables->sizes->n_u;
    int64_t best = target;
    double largest = -1.0;
    for (int64_t k = -1; k < tables->sizes->n_modes; k++) {
        int64_t chart = k < 0 ? target : k;
        if (tables->mode_group.at[chart] != tables->mode_group.at[target]) {
            continue;
        }
        fsm_call_mode(tables, chart, FSM_ONLINE_PLAIN, state->clock->time, state->x.at, state->c.at, work->full_mid.at);
        if (work->full_mid.at[at] >= FSM_GOOD) {
            return chart;
        }
        if (work->full_mid.at[at] > largest) {
            best = chart;
            largest = work->full_mid.at[at];
        }
    }
    return state->counters->asked == 1 ? best : -1;
}

/* -- Starts in a change point, with a speed (docs/theory.md, "Change points").

   Accelerations have a limit there, but no chart that holds all rows can be evaluated.  The limit is that of the
   polynomial through configurations on both sides of the change point, which are put on the rows; a quantity that grows
   as the inverse of what is left of the rows has the opposite sign on either side and no part in it. */

#define FSM_PAIRS      4    // of configurations, one on either side, at equal distances
#define FSM_NODE_TURN  0.05 // part of its size by which a coordinate moves from one configuration to the next
#define FSM_PROBE_TURN 1e-4 // the same up to where rows are seen that vanish at the start only
#define FSM_ATTEMPTS   3    // to put the configurations on the rows, at a quarter of the distance each time
#define FSM_SAME_SPEED 1e-6 // difference, relative, between the speeds given and those of the branch
#define FSM_CLOSE_START     0.08 // part of the first step within which a change point counts as its start
#define FSM_START_STEP 2.0  // first step, in fifth roots of the tolerance and the size of a coordinate

/* Weights of the mean of each pair at the middle: of the polynomial of degree seven through them. */
static const double pair_weights[FSM_PAIRS] = {8.0 / 5.0, -4.0 / 5.0, 8.0 / 35.0, -1.0 / 35.0};

/* Write the rates of the coordinates that the speeds make, and zeros for those of the speeds, (n,). */
static void coordinate_rates(const struct fsm_run *run, const struct fsm_terms *terms, fsm_vector rates)
{
    const struct fsm_sizes *sizes = run->tables->sizes;
    fsm_vector u = fsm_speeds_of(run);
    fsm_vector_fill(rates, 0.0);
    for (int64_t i = 0; i < sizes->n_q; i++) {
        for (int64_t j = 0; j < sizes->n_u; j++) {
            rates.at[i] += AT(terms->W, i, j) * u.at[j];
        }
    }
}

/* Raise `sizes` (n_rows,) to the norms of the rows in the terms evaluated last. */
static void raise_sizes(const struct fsm_terms *terms, fsm_indices rows, fsm_vector scale, fsm_vector sizes)
{
    fsm_column_scales(terms, scale);
    for (int64_t k = 0; k < rows.n; k++) {
        double *size = &sizes.at[rows.at[k]];
        *size = fsm_larger(*size, fsm_row_norm(terms, rows.at[k], scale));
    }
}

/* Return the rank of the rows in the terms evaluated last. */
static int64_t rank_of(const struct fsm_run *run, fsm_indices rows, fsm_vector scale, fsm_vector sizes)
{
    struct fsm_arena *arena = &run->work->arena;
    fsm_matrix B = fsm_arena_matrix(arena, rows.n, scale.n), L = fsm_arena_matrix(arena, rows.n, rows.n);
    fsm_fill_scaled(fsm_terms_of(run->work), rows, scale, sizes, B);
    return fsm_orthogonalise(arena, B, fsm_arena_indices(arena, rows.n), L, run->tables->tolerances->redundancy);
}

/* Whether rows of `mode` vanish at the current state and hold something where its speeds lead.

   `pace`: time in which a coordinate moves by its size (s), infinite at rest.  The rates of the coordinates are left in
   `work->y`, the arena is cleared. */
static bool rows_vanish(const struct fsm_run *run, int64_t mode, double *pace)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    const struct fsm_state *state = run->state;
    const struct fsm_terms *terms = fsm_terms_of(work);
    double t = state->clock->time;
    int64_t n_q = tables->sizes->n_q;
    fsm_vector known = fsm_known_row_sizes(run);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, mode, false);
    fsm_vector scale = fsm_arena_vector(&work->arena, tables->sizes->n_u),
               sizes = fsm_arena_vector(&work->arena, tables->sizes->n_rows);
    fsm_put(sizes, known);
    tables->terms.at[0](t, state->x.at, state->c.at, terms->whole.at);
    coordinate_rates(run, terms, work->y);
    double motion = fsm_motion_of(tables, state->x, work->y, n_q);
    *pace = motion > 0.0 ? 1.0 / motion : FSM_INFINITY;
    if (rows.n == 0 || !(motion > 0.0)) {
        return false;
    }
    raise_sizes(terms, rows, scale, sizes);
    double extent = FSM_PROBE_TURN * *pace;
    fsm_rows_along(run, work->y, rows, scale, sizes, extent, extent);
    raise_sizes(terms, rows, scale, sizes);
    int64_t nearby = rank_of(run, rows, scale, sizes);
    tables->terms.at[0](t, state->x.at, state->c.at, terms->whole.at);
    fsm_column_scales(terms, scale);
    return rank_of(run, rows, scale, sizes) < nearby;
}

/* Write the configuration on the rows of the mode `time` (s) after the start, or before it, with the same speeds.

   `x` (n,): state.  The inputs in the context are those at that time then.  Returns false where it cannot be had. */
static bool move_aside(const struct fsm_run *run, double time, fsm_vector x)
{
    struct fsm_state *state = run->state;
    double t = state->clock->time + time;
    for (int64_t i = 0; i < x.n; i++) {
        x.at[i] = state->x.at[i] + time * state->x_dot.at[i];
    }
    fsm_normalise_quaternions(run->tables, x);
    fsm_update_inputs(run->inputs, t, state->counters->segment, x, state->c);
    bool landed = fsm_land(run, t, x, 0.5 * fabs(time) * state->rank->speed_norm);
    fsm_normalise_quaternions(run->tables, x);
    return landed;
}

/* Restore the inputs in the context to those at the current state. */
static void restore_inputs(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    fsm_write_inputs(run->inputs, state->clock->time, state->counters->segment, state->x, state->c);
}

/* Whether all configurations, `time` (s) from one to the next, can be put on the rows. */
static bool all_land(const struct fsm_run *run, double time)
{
    bool landed = true;
    for (int64_t k = 1; k <= FSM_PAIRS && landed; k++) {
        landed = move_aside(run, time * (double)k, run->work->x_end) &&
                 move_aside(run, -time * (double)k, run->work->x_end);
    }
    restore_inputs(run);
    return landed;
}

/* Whether a start is so near a change point that rounding, divided by what is left of the rows, would show.

   The change point is nearer then than the first node of the first step.  Uses what fsm_assess found. */
static bool starts_close_by(const struct fsm_run *run)
{
    const struct fsm_rank *rank = run->state->rank;
    double rtol = run->options->numbers->rtol;
    double left = fsm_smaller(fsm_pow(FSM_EPS / rtol, 1.0 / 3.0), FSM_CLOSE_START * FSM_START_STEP * fsm_pow(rtol, 0.2));
    if (run->method->counts->adaptive == 0) {
        left = fsm_smaller(left, 0.25 * run->options->numbers->fixed_step * rank->rate);
    }
    return fsm_is_weak(rank, left);
}

/* Return the time (s) between the configurations on whose accelerations a start in a change point of `mode` rests.

   0 where the run does not start in one, nor close to one, or is at rest there.  What is known of the rank of the
   rows is that of the start then, and `state->x_dot` has the rates of the coordinates. */
FSM_LOCAL double fsm_time_aside(const struct fsm_run *run, int64_t mode)
{
    struct fsm_state *state = run->state;
    double pace, time = 0.0;
    if ((run->tables->mode_flags.at[mode] & FSM_MODE_RANKS) == 0) {
        return 0.0;
    }
    bool vanish = rows_vanish(run, mode, &pace);
    if (!(pace < FSM_INFINITY)) {
        return 0.0;
    }
    fsm_put(state->x_dot, run->work->y);
    int64_t before = state->counters->mode;
    state->counters->mode = mode;
    fsm_assess(run);
    if (vanish || starts_close_by(run)) {
        time = FSM_NODE_TURN * pace;
        for (int64_t attempt = 0; attempt < FSM_ATTEMPTS && !all_land(run, time); attempt++) {
            time = attempt + 1 < FSM_ATTEMPTS ? 0.25 * time : 0.0;
        }
    }
    state->counters->mode = before;
    return time;
}

/* Exchange the current state and time with those in `work->x_end`, `time` (s) later. */
static void exchange_states(const struct fsm_run *run, double time)
{
    fsm_vector x = run->state->x, other = run->work->x_end;
    for (int64_t i = 0; i < x.n; i++) {
        double entry = x.at[i];
        x.at[i] = other.at[i];
        other.at[i] = entry;
    }
    run->state->clock->time += time;
}

/* Return a chart of `target` that is good near a change point, as fsm_entry_chart does; `aside`: see fsm_time_aside.

   The state at which it is judged is left in `work->x_end`. */
FSM_LOCAL int64_t fsm_entry_chart_aside(const struct fsm_run *run, int64_t target, double aside)
{
    struct fsm_state *state = run->state;
    double t = state->clock->time;
    int64_t before = state->counters->mode;
    state->counters->mode = target;
    move_aside(run, 2.0 * aside, run->work->x_end);
    state->counters->mode = before;
    exchange_states(run, 2.0 * aside);
    int64_t chart = fsm_entry_chart(run, target);
    exchange_states(run, 0.0);
    state->clock->time = t;
    restore_inputs(run);
    return chart;
}

/* Write into `work->full_end` the limit of what the full kernel gives, from configurations `aside` (s) apart. */
static bool find_limit(const struct fsm_run *run, double aside)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t mode = state->counters->mode, n = state->x.n, n_u = tables->sizes->n_u;
    int64_t count = n + n_u + 1 + 2 * fsm_guard_count(tables, mode);
    double pivot = FSM_INFINITY;
    for (int64_t j = 0; j < count; j++) {
        work->full_end.at[j] = 0.0;
    }
    for (int64_t k = 0; k < 2 * FSM_PAIRS; k++) {
        double time = aside * (double)(k / 2 + 1) * (k % 2 == 0 ? 1.0 : -1.0);
        if (!move_aside(run, time, work->y)) {
            return false;
        }
        fsm_full_of(tables, mode, state->clock->time + time, work->y.at, state->c.at, work->full_mid.at);
        for (int64_t j = 0; j < count; j++) {
            work->full_end.at[j] += 0.5 * pair_weights[k / 2] * work->full_mid.at[j];
        }
        pivot = fsm_smaller(pivot, work->full_mid.at[n + n_u]);
    }
    work->full_end.at[n + n_u] = pivot;
    return true;
}

/* Whether the speeds in `work->full_end` are those of the current state.  `fastest`: the largest speed, in its unit. */
static bool are_same_speeds(const struct fsm_run *run, double fastest)
{
    fsm_vector u = fsm_speeds_of(run), unit = run->tables->state_unit;
    int64_t n = run->state->x.n, n_q = run->tables->sizes->n_q;
    for (int64_t i = 0; i < u.n; i++) {
        if (!(fabs(run->work->full_end.at[n + i] - u.at[i]) <= FSM_SAME_SPEED * fastest * unit.at[n_q + i])) {
            return false;
        }
    }
    return true;
}

/* Whether the speeds of the current state are those of the limit in `work->full_end`, which they then replace.

   Close to a change point, where rows are left that determine the speeds, the limit replaces them. */
static bool keep_speeds(const struct fsm_run *run)
{
    fsm_vector u = fsm_speeds_of(run), unit = run->tables->state_unit;
    int64_t n = run->state->x.n, n_q = run->tables->sizes->n_q;
    double fastest = 0.0, pace;
    for (int64_t i = 0; i < u.n; i++) {
        fastest = fsm_larger(fastest, fabs(u.at[i]) / unit.at[n_q + i]);
    }
    if (!are_same_speeds(run, fastest)) {
        return !rows_vanish(run, run->state->counters->mode, &pace);
    }
    for (int64_t i = 0; i < u.n; i++) {
        run->work->full_end.at[n + i] = u.at[i];
    }
    return true;
}

/* Learn the rank of the rows near the change point, and that the change point is here. */
static void assess_aside(const struct fsm_run *run, double aside)
{
    struct fsm_rank *rank = run->state->rank;
    double t = run->state->clock->time;
    move_aside(run, aside, run->work->x_end);
    exchange_states(run, aside);
    fsm_assess(run);
    exchange_states(run, 0.0);
    run->state->clock->time = t;
    rank->ahead += aside;
    rank->behind = 0.0;
    rank->tried_step = 0.0;
    rank->left_at = t;
}

/* Evaluate the current state, in a change point, by its limit; `aside`: see fsm_time_aside.

   The first step is made as long as a step over a change point is.  Returns false where no motion along one branch has
   these speeds. */
FSM_LOCAL bool fsm_evaluate_limit(const struct fsm_run *run, double aside)
{
    struct fsm_clock *clock = run->state->clock;
    bool found = find_limit(run, aside) && keep_speeds(run);
    restore_inputs(run);
    if (!found || !fsm_commit_step_end(run)) {
        return false;
    }
    assess_aside(run, aside);
    restore_inputs(run);
    if (run->method->counts->adaptive != 0 && clock->step <= 0.0) {
        double part = fsm_pow(run->options->numbers->rtol, 0.2);
        clock->step = FSM_START_STEP * part * aside / FSM_NODE_TURN;
        clock->error = 0.0001;
    }
    return true;
}
