/* Evaluating a mode: one trial step with all it needs at its end, and the state at hand. */

#include "stepping.h"

#define FSM_MOVED 1 // what ``project`` returns when it changed the state

static bool take_otherwise(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                           const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work, double h,
                           double t_end);

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

/* Run the full kernel at the end of the trial step: derivative, dependent speeds, guards. */
FSM_LOCAL void fsm_evaluate_end(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                                double t_end)
{
    int64_t mode = state->counters->mode;
    int64_t n = state->x.n;
    fsm_update_inputs(drive, t_end, state->counters->segment, work->x_end, state->c);
    tables->mode_full.at[mode](t_end, work->x_end.at, state->c.at, work->full_end.at);
    double *rates = work->k.at + method->counts->stages * n;
    double *found = work->full_end.at;
    for (int64_t j = 0; j < n; j++) {
        rates[j] = found[j];
    }
    int64_t n_q = tables->sizes->n_q;
    double *speeds = work->x_end.at + n_q;
    found = found + n;
    for (int64_t j = 0; j < tables->sizes->n_u; j++) {
        speeds[j] = found[j];
    }
}

/* Take a trial step of length `h` from the state at hand; nothing of the state changes but its inputs. */
FSM_LOCAL void fsm_trial_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                              const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work, double h,
                              double t_end)
{
    int64_t mode = state->counters->mode;
    state->counters->work_done++;
    for (int64_t j = 0; j < state->x.n; j++) {
        work->k.at[j] = state->x_dot.at[j];
    }
    if (state->rank->lands != 0.0 || method->counts->degree > 0) {
        if (!take_otherwise(tables, drive, method, state, work, h, t_end)) {
            return;
        }
    } else {
        fsm_runge_kutta_step(tables->mode_rhs.at[mode], drive, method, state->clock->time, h, state->x, state->c,
                             work->k, work->y, work->x_end, state->counters->segment);
        fsm_normalise_quaternions(tables, work->x_end);
    }
    fsm_evaluate_end(tables, drive, method, state, work, t_end);
}

/* Take a trial step along a dense output, or on the rows of the mode; return whether its end was reached. */
static bool take_otherwise(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                           const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work, double h,
                           double t_end)
{
    if (method->counts->degree > 0) {
        fsm_dense_state(method, t_end, work->x_end);
        fsm_normalise_quaternions(tables, work->x_end);
        if (state->rank->lands != 0.0) {
            int64_t mode = state->counters->mode;
            fsm_update_inputs(drive, t_end, state->counters->segment, work->x_end, state->c);
            fsm_land(work, tables, t_end, work->x_end, state->c, mode, state->rank, FSM_INFINITY);
        }
        return true;
    }
    if (fsm_landed_step(tables, drive, method, state, work, h, t_end)) {
        return true;
    }
    for (int64_t j = 0; j < state->x.n; j++) {
        work->x_end.at[j] = FSM_NAN;
    }
    return false;
}

/* Take a step as runge_kutta_step does, every stage and its end put on the rows of the mode.

   Returns
   -------
   bool
       False where a stage is so far from the rows that it may come to lie on another branch. */
FSM_LOCAL bool fsm_landed_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                               const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                               double h, double t_end)
{
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
        fsm_update_inputs(drive, at, segment, out, state->c);
        double distance = fsm_smaller(fabs(t + state->rank->ahead - at), fabs(t + state->rank->behind - at));
        if (!fsm_land(work, tables, at, out, state->c, mode, state->rank, 0.5 * distance * state->rank->speed_norm)) {
            return false;
        }
        fsm_normalise_quaternions(tables, out);
        if (i < stages) {
            tables->mode_rhs.at[mode](at, out.at, state->c.at, work->k.at + i * n);
        }
    }
    return true;
}

/* Bring the end of the trial step back onto the rows of its mode; return 0, `MOVED` or a failure. */
FSM_LOCAL int64_t fsm_project_end(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                  const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                                  double t_end)
{
    int64_t mode = state->counters->mode;
    if ((tables->mode_flags.at[mode] & FSM_MODE_PROJECTS) == 0) {
        return 0;
    }
    int64_t status = fsm_project(work, tables, t_end, work->x_end, state->c, mode, state->drift);
    if (status == FSM_MOVED) {
        fsm_evaluate_end(tables, drive, method, state, work, t_end);
    }
    return status;
}

/* Write the state at the middle of the trial step and, if there are guards, run the full kernel there. */
FSM_LOCAL void fsm_evaluate_middle(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                   const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                                   double h)
{
    int64_t mode = state->counters->mode;
    if (method->counts->degree > 0) {
        fsm_dense_state(method, state->clock->time + 0.5 * h, work->x_mid);
    } else {
        fsm_middle_state(method, h, state->x, work->k, work->x_mid);
    }
    if (fsm_guard_count(tables, mode) > 0) {
        double t_mid = state->clock->time + 0.5 * h;
        fsm_update_inputs(drive, t_mid, state->counters->segment, work->x_mid, state->c);
        if (state->rank->lands != 0.0) {
            fsm_land(work, tables, t_mid, work->x_mid, state->c, mode, state->rank, FSM_INFINITY);
        }
        tables->mode_full.at[mode](t_mid, work->x_mid.at, state->c.at, work->full_mid.at);
    }
}

/* Run the full kernel at the state at hand; return whether all it gave is finite. */
FSM_LOCAL bool fsm_evaluate_here(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work)
{
    int64_t mode = state->counters->mode;
    int64_t n = state->x.n;
    tables->mode_full.at[mode](state->clock->time, state->x.at, state->c.at, work->full_end.at);
    return fsm_commit_step_end(tables, state, work, n);
}

/* Copy derivative, dependent speeds, pivot and guards from `work.full_end` into the state. */
FSM_LOCAL bool fsm_commit_step_end(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                   int64_t n)
{
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
    double kept = state->clock->pivot / tables->tolerances->hysteresis;
    if (kept > state->clock->pivot_alarm) {
        state->clock->pivot_alarm = kept;
    }
    int64_t n_g = fsm_guard_count(tables, mode);
    double *values = work->full_end.at + (n + n_u + 1);
    double *slopes = values + n_g;
    double *slopes_here = state->guards.at + tables->sizes->max_guards;
    for (int64_t j = 0; j < n_g; j++) {
        state->guards.at[j] = values[j];
        slopes_here[j] = slopes[j];
    }
    return finite;
}

/* Tell whether the end of the trial step and its derivative are finite. */
FSM_LOCAL bool fsm_end_is_finite(const struct fsm_method *method, struct fsm_work *work)
{
    int64_t n = work->x_end.n;
    double *rates = work->k.at + method->counts->stages * n;
    double total = 0.0;
    for (int64_t j = 0; j < n; j++) {
        total += work->x_end.at[j] * 0.0 + rates[j] * 0.0;
    }
    return total == 0.0;
}
