/* The loop that runs an automaton: trial steps, event location, transitions, rows. */

#include "stepping.h"

/* -- Writing rows and transitions into the buffers of a run. */

/* Record the current state; `x_mid` is the state at the middle of the step that led here. */
FSM_LOCAL void fsm_write_row(const struct fsm_run *run, fsm_vector x_mid)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_buffers *buffers = run->buffers;
    int64_t i = state->counters->rows;
    int64_t n = state->x.n;
    int64_t n_p = tables->sizes->n_p;
    double *row = buffers->rows.at + i * buffers->rows.m;
    row[0] = state->clock->time;
    double *at = row + 1;
    double *rates = row + (1 + n);
    double *middle = row + (1 + 2 * n);
    for (int64_t j = 0; j < n; j++) {
        at[j] = state->x.at[j];
        rates[j] = state->x_dot.at[j];
        middle[j] = x_mid.at[j];
    }
    double *held = row + (1 + 3 * n - n_p);
    for (int64_t j = n_p; j < state->c.n; j++) {
        held[j] = state->c.at[j];
    }
    buffers->modes.at[i] = state->counters->mode;
    state->counters->rows = i + 1;
}

/* Return whose guard fired: of the faces of an outline that share one, the face that was met. */
static int64_t subject(const struct fsm_run *run, int64_t guard)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    int64_t contact = tables->guard_contact.at[guard];
    if (tables->guard_event.at[guard] != FSM_EVENT_CLOSES || tables->contact_outline.at[contact] < 0) {
        return contact;
    }
    const struct fsm_terms *terms = fsm_terms_of(work);
    int64_t best = contact;
    double largest = -FSM_INFINITY;
    for (int64_t k = contact; k < tables->sizes->n_contacts; k++) {
        double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
        bool same = tables->contact_outline.at[k] == tables->contact_outline.at[contact];
        if (same && gap > largest && fsm_within_face(tables, terms, k)) {
            best = k;
            largest = gap;
        }
    }
    return best;
}

/* Write the guard of the condition that made a user-defined transition due; return how many that are. */
static int64_t write_condition(const struct fsm_state *state, int64_t transition, double *guard)
{
    const double *entry = state->conditions.at + FSM_CONDITION_WIDTH * transition;
    if (entry[FSM_CONDITION_DUE] != FSM_DUE_BY_CONDITION) {
        return 0;
    }
    guard[0] = FSM_EVENT_TRANSITION;
    guard[1] = (double)transition;
    guard[2] = 0.0;
    guard[3] = entry[FSM_CONDITION_VALUE];
    guard[4] = entry[FSM_CONDITION_SLOPE];
    return 1;
}

/* Record the transition that led to the row written last. */
FSM_LOCAL void fsm_write_transition(const struct fsm_run *run, int64_t source)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    struct fsm_buffers *buffers = run->buffers;
    int64_t i = state->counters->transitions;
    fsm_vector record = fsm_row(buffers->transitions, i);
    int64_t n_fired = fsm_least(state->counters->fired, FSM_MAX_FIRED);
    int64_t most = tables->sizes->max_guards;
    record.at[FSM_RECORD_TIME] = state->clock->time;
    record.at[FSM_RECORD_SOURCE] = (double)source;
    record.at[FSM_RECORD_TARGET] = (double)state->counters->mode;
    record.at[FSM_RECORD_ROW] = (double)(state->counters->rows - 1);
    record.at[FSM_RECORD_REASON] = (double)state->counters->reason;
    record.at[FSM_RECORD_FIRED] = (double)n_fired;
    record.at[FSM_RECORD_CANDIDATES] = (double)work->notes->candidates;
    record.at[FSM_RECORD_CONSISTENT] = (double)work->notes->consistent;
    record.at[FSM_RECORD_CHOSEN_BY] = (double)work->notes->chosen_by;
    record.at[FSM_RECORD_WRITTEN] = (double)work->notes->written_transition;
    record.at[FSM_RECORD_ENERGY_BEFORE] = work->energy->before;
    record.at[FSM_RECORD_ENERGY_AFTER] = work->energy->after;
    record.at[FSM_RECORD_BETA] = work->energy->beta;
    int64_t at = FSM_RECORD_GUARDS;
    for (int64_t k = 0; k < n_fired; k++) {
        int64_t guard = state->fired.at[k];
        record.at[at] = (double)tables->guard_event.at[guard];
        record.at[at + 1] = (double)subject(run, guard);
        record.at[at + 2] = tables->guard_direction.at[guard];
        record.at[at + 3] = state->guards.at[3 * most + k];
        record.at[at + 4] = state->guards.at[4 * most + k];
        at += FSM_GUARD_WIDTH;
    }
    if (state->counters->reason == FSM_REASON_START) {
        n_fired = fsm_write_struck(run, record, n_fired);
        record.at[FSM_RECORD_FIRED] = (double)n_fired;
    }
    if (work->notes->written_transition >= 0 && n_fired < FSM_MAX_FIRED) {
        n_fired += write_condition(state, work->notes->written_transition, record.at + at);
        record.at[FSM_RECORD_FIRED] = (double)n_fired;
    }
    at = FSM_RECORD_GUARDS + FSM_MAX_FIRED * FSM_GUARD_WIDTH;
    fsm_put(fsm_vector_from(record, at), work->impulse);
    at += tables->sizes->n_rows;
    fsm_put(fsm_vector_from(record, at), work->u_before);
    at += tables->sizes->n_u;
    fsm_put(fsm_vector_from(record, at), fsm_speeds_of(run));
    at += tables->sizes->n_u;
    fsm_put(fsm_vector_from(record, at), work->log);
    state->counters->transitions = i + 1;
}

/* Record that the step just made passed a change point. */
FSM_LOCAL void fsm_write_passage(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_buffers *buffers = run->buffers;
    int64_t i = state->counters->passed;
    struct fsm_rank *rank = state->rank;
    fsm_vector record = fsm_row(buffers->passages, i);
    int64_t n_rows = tables->sizes->n_rows;
    record.at[FSM_PASSAGE_TIME] = rank->passes_at;
    record.at[FSM_PASSAGE_MODE] = (double)state->counters->mode;
    record.at[FSM_PASSAGE_RANK] = rank->independent;
    record.at[FSM_PASSAGE_LOST] = rank->lost;
    record.at[FSM_PASSAGE_ERROR] = rank->tried_error;
    fsm_put(fsm_vector_from(record, FSM_PASSAGE_ROWS), fsm_rank_weights(rank, n_rows));
    rank->passes_at = FSM_INFINITY;
    rank->tried_error = 0.0;
    state->counters->passed = i + 1;
}

/* -- Trial step, with guards and derivative at its end, and evaluation of the current state. */

/* Return the number of guards of a mode. */
FSM_LOCAL int64_t fsm_guard_count(const struct fsm_tables *tables, int64_t mode)
{
    return tables->mode_guard_start.at[mode + 1] - tables->mode_guard_start.at[mode];
}

/* Scale every set of four Euler parameters to unit norm. */
FSM_LOCAL void fsm_normalise_quaternions(const struct fsm_tables *tables, fsm_vector x)
{
    for (int64_t k = 0; k < tables->quaternions.n; k++) {
        int64_t i = tables->quaternions.at[k];
        double norm =
            sqrt(x.at[i] * x.at[i] + x.at[i + 1] * x.at[i + 1] + x.at[i + 2] * x.at[i + 2] + x.at[i + 3] * x.at[i + 3]);
        for (int64_t j = i; j < i + 4; j++) {
            x.at[j] /= norm;
        }
    }
}

/* Run the full kernel at the end of the trial step: its derivative goes behind the stages, dependent speeds into it. */
static void evaluate_end(const struct fsm_run *run, double t_end)
{
    const struct fsm_sizes *sizes = run->tables->sizes;
    const struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t n = state->x.n;
    fsm_update_inputs(run->inputs, t_end, state->counters->segment, work->x_end, state->c);
    fsm_evaluate_guards(run, t_end, work->x_end, work->full_end.at);
    double *rates = work->k.at + run->method->counts->stages * n, *speeds = work->x_end.at + sizes->n_q;
    const double *full = work->full_end.at;
    for (int64_t j = 0; j < n; j++) {
        rates[j] = full[j];
    }
    for (int64_t j = 0; j < sizes->n_u; j++) {
        speeds[j] = full[n + j];
    }
}

/* Take a step as fsm_runge_kutta_step does, every stage and its end put on the rows of the mode.

   Returns false where a stage is so far from the rows that it may come to lie on another branch. */
static bool landed_step(const struct fsm_run *run, double h, double t_end)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_input_tables *inputs = run->inputs;
    const struct fsm_method *method = run->method;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t mode = state->counters->mode;
    int64_t segment = state->counters->segment;
    double t = state->clock->time;
    int64_t n = state->x.n, stages = method->counts->stages;
    for (int64_t i = 1; i < stages + 1; i++) {
        fsm_vector out = i < stages ? work->y : work->x_end;
        const double *weights = i < stages ? method->a.at + i * stages : method->weights.at;
        fsm_add_rates(weights, i, work->k.at, h, state->x, out.at);
        double at = i < stages ? t + method->nodes.at[i] * h : t_end;
        fsm_normalise_quaternions(tables, out);
        fsm_update_inputs(inputs, at, segment, out, state->c);
        double distance = fsm_smaller(fabs(t + state->rank->ahead - at), fabs(t + state->rank->behind - at));
        if (!fsm_land(run, at, out, 0.5 * distance * state->rank->speed_norm)) {
            return false;
        }
        fsm_normalise_quaternions(tables, out);
        if (i < stages) {
            fsm_rates_of(tables, mode, at, out.at, state->c.at, work->k.at + i * n);
        }
    }
    return true;
}

/* Read the end of a trial step off the dense output of an implicit one. */
static void follow_dense_output(const struct fsm_run *run, double t_end)
{
    const struct fsm_state *state = run->state;
    fsm_vector x_end = run->work->x_end;
    fsm_dense_state(run->method, t_end, x_end);
    fsm_normalise_quaternions(run->tables, x_end);
    if (state->rank->lands != 0.0) {
        fsm_update_inputs(run->inputs, t_end, state->counters->segment, x_end, state->c);
        fsm_land(run, t_end, x_end, FSM_INFINITY);
    }
}

/* Take a trial step of length `h` (s) to `t_end` from the current state; nothing of the state changes but its inputs.

   Its end is left in `work->x_end`, not a number where it could not be reached; the stages in `work->k`, behind them the
   derivative at the end; all that the full kernel gives there in `work->full_end`. */
FSM_LOCAL void fsm_trial_step(const struct fsm_run *run, double h, double t_end)
{
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    state->spent.at[state->counters->mode] += run->method->counts->stages + 1;
    for (int64_t j = 0; j < state->x.n; j++) {
        work->k.at[j] = state->x_dot.at[j];
    }
    if (run->method->counts->degree > 0) {
        follow_dense_output(run, t_end);
    } else if (state->rank->lands == 0.0) {
        fsm_runge_kutta_step(run, h);
        fsm_normalise_quaternions(run->tables, work->x_end);
    } else if (!landed_step(run, h, t_end)) {
        fsm_vector_fill(work->x_end, FSM_NAN);
        return;
    }
    evaluate_end(run, t_end);
}

/* Project the end of the trial step onto the rows of its mode; return FSM_CONTINUE or a failure. */
FSM_LOCAL enum fsm_status fsm_project_end(const struct fsm_run *run, double t_end)
{
    if ((run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_PROJECTS) == 0) {
        return FSM_CONTINUE;
    }
    bool moved;
    enum fsm_status status = fsm_project(run, t_end, run->work->x_end, &moved);
    if (moved) {
        evaluate_end(run, t_end);
    }
    return status;
}

/* Write the state at the middle of the trial step of length `h` (s) into `work->x_mid` and, if there are guards, what the
   full kernel gives there into `work->full_mid`. */
FSM_LOCAL void fsm_evaluate_middle(const struct fsm_run *run, double h)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_input_tables *inputs = run->inputs;
    const struct fsm_method *method = run->method;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t mode = state->counters->mode;
    double t_mid = state->clock->time + 0.5 * h;
    if (method->counts->degree > 0) {
        fsm_dense_state(method, t_mid, work->x_mid);
    } else {
        fsm_middle_state(run, h);
    }
    if (fsm_guard_count(tables, mode) > 0) {
        fsm_update_inputs(inputs, t_mid, state->counters->segment, work->x_mid, state->c);
        if (state->rank->lands != 0.0) {
            fsm_land(run, t_mid, work->x_mid, FSM_INFINITY);
        }
        fsm_evaluate_guards(run, t_mid, work->x_mid, work->full_mid.at);
    }
}

/* Run the full kernel at the current state; return whether all it gave is finite. */
FSM_LOCAL bool fsm_evaluate_here(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t mode = state->counters->mode;
    if (work->far_count > 0) {
        work->far->active = 0.0;
    }
    state->counters->work_done++;
    fsm_full_of(tables, mode, state->clock->time, state->x.at, state->c.at, work->full_end.at);
    return fsm_commit_step_end(run);
}

/* Copy derivative, dependent speeds, pivot and guards from `work->full_end` into the state. */
FSM_LOCAL bool fsm_commit_step_end(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t n = state->x.n;
    int64_t mode = state->counters->mode;
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u;
    bool finite = true;
    for (int64_t j = 0; j < n; j++) {
        state->x_dot.at[j] = work->full_end.at[j];
        finite = finite && fsm_is_finite(work->full_end.at[j]);
    }
    for (int64_t j = 0; j < n_u; j++) {
        state->x.at[n_q + j] = work->full_end.at[n + j];
    }
    for (int64_t j = 0; j < n; j++) {
        finite = finite && fsm_is_finite(state->x.at[j]);
    }
    state->clock->pivot = work->full_end.at[n + n_u];
    // errors of integration in independent speeds are divided by the pivot in the dependent ones
    double alarm = state->clock->pivot / tables->tolerances->hysteresis;
    if (alarm > state->clock->pivot_alarm) {
        state->clock->pivot_alarm = alarm;
    }
    int64_t n_g = fsm_guard_count(tables, mode);
    double *values = work->full_end.at + (n + n_u + 1);
    double *slopes = values + n_g;
    double *slopes_here = state->guards.at + tables->sizes->max_guards;
    const int64_t *numbers;
    int64_t count = fsm_guards_looked_at(run, &numbers);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = numbers == NULL ? i : numbers[i];
        state->guards.at[j] = values[j];
        slopes_here[j] = slopes[j];
    }
    return finite;
}

/* Whether the end of the trial step and its derivative are finite. */
FSM_LOCAL bool fsm_end_is_finite(const struct fsm_run *run)
{
    const struct fsm_method *method = run->method;
    struct fsm_work *work = run->work;
    int64_t n = work->x_end.n;
    double *rates = work->k.at + method->counts->stages * n;
    double total = 0.0;
    for (int64_t j = 0; j < n; j++) {
        total += work->x_end.at[j] * 0.0 + rates[j] * 0.0;
    }
    return total == 0.0;
}

/* -- The loop that runs an automaton: steps, event location, transitions (docs/theory.md, "Event-driven integration").

   fsm_advance runs until the end of the run or until something is wanted that only its caller can give: room to record, a
   mode or a chart not derived yet, a heartbeat.  It may then be called again and continues bit for bit. */

/* Return the next point of the grid of fixed steps (s). */
FSM_LOCAL double fsm_grid_point(const struct fsm_run *run)
{
    const struct fsm_state *state = run->state;
    return state->clock->begin + (double)(state->counters->grid + 1) * run->options->numbers->fixed_step;
}

/* Return the next instant at which a step must end exactly (s). */
static double step_target(const struct fsm_run *run)
{
    double target = fsm_smaller(run->options->numbers->until, fsm_next_jump(run));
    return run->method->counts->adaptive != 0 ? target : fsm_smaller(target, fsm_grid_point(run));
}

/* Do what is due where a target was reached; return FSM_DONE at the end of the run, or a failure. */
static enum fsm_status reach_target(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    double t = state->clock->time;
    if (run->method->counts->adaptive == 0 && t >= fsm_grid_point(run)) {
        state->counters->grid++;
    }
    if (t >= run->options->numbers->until) {
        return FSM_DONE;
    }
    return t >= fsm_next_jump(run) ? fsm_jump(run) : FSM_CONTINUE;
}

/* Change to a better chart of the mode at the current state, or to one with kernels of its own if it has earned them.

   Near a change point, where all charts are as bad, the present one continues, unless it degenerates there as well.
   Returns FSM_CONTINUE, FSM_NEED_CHART where no chart that is known is better, or FSM_SINGULAR. */
FSM_LOCAL enum fsm_status fsm_choose_chart(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    bool earned = fsm_has_earned_kernels(run, state->counters->mode);
    int64_t other = earned ? fsm_own_kernels(run, state->counters->mode) : fsm_better_chart(run);
    bool weak = state->clock->pivot > 0.0 && fsm_is_weak(state->rank, FSM_NEAR);
    if (!earned && other < 0 && weak && !fsm_is_poor_chart(run)) {
        state->clock->pivot_alarm = 0.1 * state->clock->pivot;
        return FSM_CONTINUE;
    }
    if (other < 0) {
        return FSM_NEED_CHART;
    }
    return fsm_change_chart(run, other);
}

/* Return the length of step to try first, up to `target` at most (s). */
static double first_length(const struct fsm_run *run, double target)
{
    struct fsm_clock *clock = run->state->clock;
    double longest = fsm_smaller(target - clock->time, run->options->numbers->max_step);
    if (run->method->counts->adaptive == 0) {
        return longest;
    }
    if (clock->step <= 0.0) {
        clock->step = fsm_first_step(run, longest);
        clock->error = 0.0001;
    }
    return fsm_smaller(longest, clock->step);
}

/* Count a trial step as rejected and continue with `factor` times its length. */
static void reject(const struct fsm_run *run, struct fsm_trial *trial, double factor)
{
    run->state->counters->rejected++;
    trial->h *= factor;
    trial->shortened = true;
}

/* Whether redundant rows have been inconsistent for long by the end of the trial step. */
static bool constraints_violated(const struct fsm_run *run, double t_end)
{
    if (!fsm_rows_repeat(run->tables, run->state->counters->mode)) {
        return false;
    }
    return fsm_constraint_violation_speed(run, t_end, run->work->x_end) > FSM_ROWS_FAR_OFF;
}

/* Take one trial step of length `trial->h`, or a little more or less where the target or a change point is near.

   Sets `trial->accepted` where its error is within the tolerance and its end lies on the rows of the mode, and else the
   length to try next.  Returns FSM_CONTINUE; a failure; or FSM_PAUSED where the caller's `max_work` is done: a step of
   fixed length that was shortened continues later with the length it had come to. */
static enum fsm_status try_length(const struct fsm_run *run, struct fsm_trial *trial)
{
    struct fsm_state *state = run->state;
    const struct fsm_option_counts *limits = run->options->counts;
    bool adaptive = run->method->counts->adaptive != 0;
    double t = state->clock->time;
    trial->accepted = false;
    trial->passes = false;
    if (trial->keeps_clear && !trial->forced) {
        trial->wanted = trial->h;
        trial->h = fsm_keep_clear(run, trial->wanted, &trial->passes);
    }
    if (state->counters->steps + state->counters->rejected > limits->max_steps) {
        return FSM_TOO_MANY_STEPS;
    }
    if (trial->shortened && !adaptive && state->counters->work_done > limits->max_work) {
        state->clock->put_off = trial->keeps_clear ? trial->wanted : trial->h;
        fsm_write_inputs(run->inputs, t, state->counters->segment, state->x, state->c);
        return FSM_PAUSED;
    }
    trial->t_end = t + trial->h;
    if (trial->h >= trial->target - t || trial->target - trial->t_end < trial->least) {
        trial->t_end = trial->target;
        trial->h = trial->target - t;
    }
    fsm_trial_step(run, trial->h, trial->t_end);
    bool finite = fsm_end_is_finite(run);
    if (!finite && (trial->h <= trial->least || !adaptive)) {
        return FSM_NON_FINITE;
    }
    switch (adaptive ? fsm_judge(run, trial, finite) : FSM_ACCEPT) {
    case FSM_RETAKE:
        trial->h = trial->rejected;
        trial->forced = true;
        return FSM_CONTINUE;
    case FSM_SHORTEN:
        if (trial->h <= trial->least) {
            return FSM_STEP_TOO_SMALL;
        }
        trial->rejected = trial->h;
        trial->rejected_error = trial->error;
        reject(run, trial, fsm_shorter(run, trial));
        return FSM_CONTINUE;
    case FSM_ACCEPT:
        break;
    }
    if (!adaptive && trial->h > trial->least && fsm_step_is_too_long(run, trial->h)) {
        reject(run, trial, 0.5);
        return FSM_CONTINUE;
    }
    enum fsm_status status = fsm_project_end(run, trial->t_end);
    if (status != FSM_CONTINUE) {
        return status;
    }
    if (trial->h > trial->least && constraints_violated(run, trial->t_end)) {
        reject(run, trial, 0.5);
        return FSM_CONTINUE;
    }
    trial->accepted = true;
    return FSM_CONTINUE;
}

/* Shorten an accepted trial step to the first event in it; return the guard that fires there, or FSM_NO_EVENT.

   FSM_INTERPOLANT_UNRELIABLE where the step is too long to tell. */
static int64_t locate_event(const struct fsm_run *run, struct fsm_trial *trial)
{
    int64_t guard = FSM_NO_EVENT;
    fsm_evaluate_middle(run, trial->h);
    if (fsm_guard_count(run->tables, run->state->counters->mode) == 0) {
        return guard;
    }
    if (run->work->notes->plain != 0 && fsm_differences_matter(run)) {
        fsm_take_differences(run, trial->h, trial->t_end);
    }
    trial->part = fsm_first_event_of_all(run, trial->h, trial->t_end, &guard);
    if (guard >= 0) {
        run->work->notes->plain = 0;
        fsm_take_differences_here(run);
        trial->h = fsm_locate(run, trial->h, &trial->part, guard, &guard);
        trial->t_end = fsm_smaller(run->state->clock->time + trial->h, trial->target);
    }
    return guard;
}

/* Return whether the step to an event has an error above the tolerance, and note it: the longer step before it was within,
   but its stages may have lain beyond all that acts on the way, as of a stiff contact that is passed through. */
static bool event_step_errs(const struct fsm_run *run, struct fsm_trial *trial)
{
    const struct fsm_method_counts *counts = run->method->counts;
    if (counts->adaptive == 0 || counts->degree > 0 || trial->keeps_clear || trial->h <= trial->least) {
        return false;
    }
    double error = fsm_error_norm(run, trial->h);
    if (error <= 1.0) {
        return false;
    }
    trial->error = error;
    return true;
}

/* Choose the length of the next step after one of length `h` (s) whose error was accepted. */
static void choose_next_length(const struct fsm_run *run, const struct fsm_trial *trial, double h)
{
    struct fsm_clock *clock = run->state->clock;
    if (trial->keeps_clear && (trial->forced || h < trial->wanted)) { // a change point alone made it what it is
        clock->step = trial->forced ? trial->asked : trial->wanted;
        return;
    }
    double error = fsm_smaller(trial->error, 1.0);
    double factor = fsm_step_factor(error, clock->error, run->method->counts->order);
    if (trial->shortened) {
        factor = fsm_smaller(factor, 1.0);
    }
    if (trial->shortened || h * factor > clock->step || h >= clock->step) {
        clock->step = h * factor;
    }
    clock->error = error;
}

/* Find a step up to `target` (s) at most that can be accepted, shortening it as often as needed.

   `t_end`: where it ends (s), with its end and middle in the workspace; `lead`: the guard that fires there, FSM_NO_EVENT
   if none.  Returns FSM_CONTINUE, a failure, or FSM_PAUSED (see try_length); then `t_end` is the current time. */
static enum fsm_status find_step(const struct fsm_run *run, double target, double *t_end, int64_t *lead)
{
    struct fsm_state *state = run->state;
    double t = state->clock->time;
    bool loses_rank = (run->tables->mode_flags.at[state->counters->mode] & FSM_MODE_RANKS) != 0;
    struct fsm_trial trial = {.target = target, .error = 1.0, .rejected_error = FSM_INFINITY};
    trial.h = first_length(run, target);
    if (run->method->counts->degree > 0) {
        trial.h = fsm_longest_flight(run, trial.h);
    }
    trial.least = fsm_larger(run->tables->tolerances->time, 16.0 * FSM_EPS * fsm_larger(fabs(t), fabs(t + trial.h)));
    // an implicit step was looked at before it was taken
    trial.keeps_clear = loses_rank && run->method->counts->degree == 0;
    *t_end = t;
    *lead = FSM_NO_EVENT;
    if (state->clock->put_off > 0.0) {
        trial.h = fsm_smaller(trial.h, state->clock->put_off);
        state->clock->put_off = 0.0;
    } else if (trial.keeps_clear && fsm_look_ahead(run) && fsm_rests_in_change_point(run)) {
        return FSM_UNDETERMINED;
    }
    trial.wanted = trial.asked = trial.h;
    for (bool plain = fsm_proves_without_differences(run);;) {
        run->work->notes->plain = plain;
        enum fsm_status status = try_length(run, &trial);
        if (status != FSM_CONTINUE) {
            return status;
        }
        if (!trial.accepted) {
            continue;
        }
        if (trial.h > run->tables->tolerances->coincidence && fsm_limits_change(run)) {
            reject(run, &trial, 0.5);
            continue;
        }
        double h = trial.h;
        int64_t guard = locate_event(run, &trial);
        if (guard == FSM_INTERPOLANT_UNRELIABLE && trial.h > trial.least) {
            if (loses_rank && fsm_is_event_in_change_point(state->rank, trial.h, run->options->numbers->rtol)) {
                return FSM_EVENT_IN_CHANGE_POINT;
            }
            reject(run, &trial, trial.part);
            continue;
        }
        if (guard >= 0 && event_step_errs(run, &trial)) {
            reject(run, &trial, fsm_shorter(run, &trial));
            continue;
        }
        if (run->method->counts->adaptive != 0) {
            choose_next_length(run, &trial, h);
        }
        if (loses_rank) {
            fsm_note_passage(state->rank, t, trial.t_end, trial.keeps_clear ? trial.error : 0.0);
        }
        *t_end = trial.t_end;
        *lead = fsm_most(guard, FSM_NO_EVENT);
        return FSM_CONTINUE;
    }
}

/* Make the resolution of the event that was located the next thing to do. */
FSM_LOCAL void fsm_begin_event(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    state->counters->phase = FSM_PHASE_RESOLVING;
    state->counters->reason = FSM_REASON_EVENT;
    state->clock->jump = 0.0;
    if (!fsm_remember_event(run)) {
        return;
    }
    int64_t strokes;
    double remaining = fsm_zeno_duration(state, run->tables->tolerances->gap, &strokes);
    if (remaining >= 0.0) {
        state->counters->reason = FSM_REASON_ZENO;
        state->clock->remaining = remaining;
        state->clock->jump = strokes <= FSM_LONGEST_CYCLE ? remaining : 0.0;
        state->counters->cycle = strokes;
        fsm_add_cycle_guards(run, strokes);
    }
}

/* Make the end of the trial step, at `t_end` (s), the current state, with the event there if `lead` is a guard.

   `target`: where a step must end (s).  Returns FSM_CONTINUE, FSM_DONE or a failure. */
static enum fsm_status accept_step(const struct fsm_run *run, double t_end, double target, int64_t lead)
{
    struct fsm_state *state = run->state;
    if (lead >= 0) {
        fsm_collect_fired(run, lead);
    }
    enum fsm_status status = fsm_arrive(run, t_end);
    if (status != FSM_CONTINUE) {
        return status;
    }
    state->counters->steps++;
    if (lead >= 0) {
        fsm_rearm_conditions(run);
        if (!fsm_is_void_limit(run, lead)) {
            fsm_begin_event(run);
        }
        return FSM_CONTINUE;
    }
    int64_t flags = run->tables->mode_flags.at[state->counters->mode];
    if ((flags & FSM_MODE_WATCHES_GATES) != 0 && fsm_gate_opened_late(run)) {
        return FSM_PENETRATION_LATER;
    }
    if (fsm_rearm(run)) {
        return FSM_PENETRATION_LATER;
    }
    if (t_end >= target) {
        status = reach_target(run);
    }
    bool repeats = fsm_rows_repeat(run->tables, state->counters->mode) && state->counters->phase == FSM_PHASE_STEPPING;
    if (status == FSM_CONTINUE && repeats &&
        fsm_constraint_violation_speed(run, t_end, state->x) > FSM_ROWS_INCONSISTENT) {
        state->counters->phase = FSM_PHASE_RESOLVING;
        state->counters->reason = FSM_REASON_INCONSISTENT_ROWS;
        state->counters->fired = 0;
    }
    return status;
}

/* Find a step up to `target` (s) at most and accept it as far as `end` (s) is not passed; record a passage in it. */
FSM_LOCAL enum fsm_status fsm_find_and_accept(const struct fsm_run *run, double target, double end)
{
    double t_end;
    int64_t lead;
    enum fsm_status status = find_step(run, target, &t_end, &lead);
    run->work->notes->plain = 0;
    if (status != FSM_CONTINUE) {
        return status;
    }
    status = accept_step(run, t_end, end, lead);
    if (run->state->rank->passes_at < FSM_INFINITY) {
        fsm_write_passage(run);
    }
    return status;
}

/* Take one step, up to the next event at most. */
static enum fsm_status take_step(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    double t = state->clock->time;
    double target = step_target(run);
    if (target - t <= 4.0 * FSM_EPS * fsm_larger(fabs(t), fabs(target))) {
        if (target > t) {
            state->clock->time = target;
            fsm_write_row(run, state->x);
        }
        return reach_target(run);
    }
    if (!(state->clock->pivot >= state->clock->pivot_alarm) || fsm_has_earned_kernels(run, state->counters->mode)) {
        enum fsm_status status = fsm_choose_chart(run);
        if (status != FSM_CONTINUE || state->counters->phase == FSM_PHASE_RESOLVING) {
            return status;
        }
    }
    return fsm_find_and_accept(run, target, target);
}

/* Carry out the pending transition and count the work that it was.

   Where it needs a mode that is expensive to derive and little of the caller's share of work is left, FSM_PAUSED. */
static enum fsm_status take_transition(const struct fsm_run *run, bool may_pause)
{
    struct fsm_counters *counters = run->state->counters;
    int64_t solved = run->work->arena.top->solved;
    fsm_look_at_far_here(run);
    if (counters->reason == FSM_REASON_EVENT && fsm_has_event_in_change_point(run)) {
        return FSM_EVENT_IN_CHANGE_POINT;
    }
    enum fsm_status status = fsm_make_transition(run);
    solved = run->work->arena.top->solved - solved;
    counters->work_done += FSM_WORK_OF_TRANSITION + (int64_t)(FSM_WORK_OF_CANDIDATE * (double)solved);
    bool spent = run->options->counts->max_work - counters->work_done < FSM_WORK_OF_MODE;
    bool made = status == FSM_NEED_MODE && fsm_find_mode(run->tables, run->work->wanted, counters->mode) < 0;
    return made && may_pause && spent ? FSM_PAUSED : status;
}

/* Take steps and transitions until the end, a failure, or until something is wanted from outside; return the status. */
static enum fsm_status advance(const struct fsm_run *run)
{
    const struct fsm_counters *counters = run->state->counters;
    const struct fsm_option_counts *limits = run->options->counts;
    const struct fsm_buffers *buffers = run->buffers;
    for (int64_t turn = 0; turn < limits->chunk; turn++) {
        if (counters->work_done > limits->max_work) {
            return FSM_PAUSED;
        }
        if (counters->rows + FSM_ROWS_PER_TURN > buffers->rows.n || counters->transitions >= buffers->transitions.n ||
            counters->passed >= buffers->passages.n) {
            return FSM_BUFFER_FULL;
        }
        if (limits->before_end != 0 && fsm_end_is_near(run)) {
            return FSM_PAUSED;
        }
        bool resolving = counters->phase == FSM_PHASE_RESOLVING;
        enum fsm_status status = resolving ? take_transition(run, turn > 0) : take_step(run);
        if (status != FSM_CONTINUE) {
            return fsm_why_not(run, status);
        }
    }
    return FSM_PAUSED;
}

/* Run until the end, a failure, or until something is wanted from outside; return the status.

   What the run knows is in `run->state`: entering again continues bit for bit as if never left.  Rows, transitions and
   passages are recorded in `run->buffers`, counted by `state->counters`. */
FSM_API enum fsm_status fsm_advance(const struct fsm_run *run)
{
    fsm_doubt_parameters(run);
    enum fsm_status status = advance(run);
    fsm_look_at_far_here(run);
    return status;
}
