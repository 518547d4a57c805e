/* Trial step, with guards and derivative at its end, and evaluation of the current state. */

#include "stepping.h"

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
        for (int64_t j = 0; j < n; j++) {
            double total = 0.0;
            for (int64_t m = 0; m < i; m++) {
                double weight = i < stages ? method->a.at[i * stages + m] : method->weights.at[m];
                total += weight * work->k.at[m * n + j];
            }
            out.at[j] = state->x.at[j] + h * total;
        }
        double at = i < stages ? t + method->nodes.at[i] * h : t_end;
        fsm_normalise_quaternions(tables, out);
        fsm_update_inputs(inputs, at, segment, out, state->c);
        double distance = fsm_smaller(fabs(t + state->rank->ahead - at), fabs(t + state->rank->behind - at));
        if (!fsm_land(run, at, out, 0.5 * distance * state->rank->speed_norm)) {
            return false;
        }
        fsm_normalise_quaternions(tables, out);
        if (i < stages) {
            tables->mode_rhs.at[mode](at, out.at, state->c.at, work->k.at + i * n);
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
    tables->mode_full.at[mode](state->clock->time, state->x.at, state->c.at, work->full_end.at);
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
