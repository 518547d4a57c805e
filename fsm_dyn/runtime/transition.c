/* Carrying out a transition: the resolution, the mode after, and what is recorded of it. */

#include "stepping.h"

#define FSM_STANDSTILL 8 // times in one instant that a state may be kept though its guard fired, as nothing else agrees
#define FSM_TRANSITION_WINDOW                                                                                          \
    1e8 // length of the window in which transitions are counted, in units of the time tolerance

static void keep_limits(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work);

/* Call the resolution and choose a chart; a train of impacts that cannot end closed goes on stroke by stroke. */
static int64_t resolve(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                       int64_t *target_found)
{
    int64_t n_q = tables->sizes->n_q;
    for (int64_t j = 0; j < tables->sizes->n_u; j++) {
        work->u_before.at[j] = state->x.at[n_q + j];
    }
    for (int64_t j = 0; j < state->x.n; j++) {
        work->x_mid.at[j] = state->x.at[j];
    }
    for (int64_t j = 0; j < state->c.n; j++) {
        work->c_after.at[j] = state->c.at[j];
    }
    struct fsm_instant instant = {.t = state->clock->time,
                                  .mode = state->counters->mode,
                                  .reason = state->counters->reason,
                                  .remaining = state->clock->remaining,
                                  .fired = fsm_indices_first(state->fired, state->counters->fired),
                                  .guards = state->guards,
                                  .resolution = fsm_clock_resolution(tables, state->clock->time),
                                  .limits = state->limits,
                                  .transitions = state->counters->instant};
    struct fsm_outcome outcome = {.wanted = work->wanted,
                                  .impulse = work->impulse,
                                  .energy = work->energy,
                                  .notes = work->notes,
                                  .log = {.entries = work->log},
                                  .implied = work->implied};
    int64_t status = fsm_resolve_event(work, tables, &instant, state->x, state->c, &outcome);
    if (status > FSM_STOPPED && instant.reason == FSM_REASON_ZENO) {
        instant.reason = FSM_REASON_EVENT;
        state->counters->reason = FSM_REASON_EVENT;
        status = fsm_resolve_event(work, tables, &instant, state->x, state->c, &outcome);
    }
    int64_t target = outcome.mode;
    if (status != FSM_CONTINUE && status != FSM_STOPPED) {
        *target_found = target;
        return status;
    }
    int64_t chart = fsm_entry_chart(tables, state, work, target);
    if (chart >= 0) {
        state->counters->asked = 0;
        *target_found = chart;
        return status;
    }
    // the transition is made again once there is a chart that is good where it leads
    state->counters->asked = 1;
    work->notes->target = target;
    int64_t last1 = state->x.n;
    for (int64_t j = 0; j < last1; j++) {
        double kept2 = work->x_mid.at[j];
        work->x_mid.at[j] = state->x.at[j];
        state->x.at[j] = kept2;
    }
    int64_t last3 = state->c.n;
    for (int64_t j = 0; j < last3; j++) {
        double kept4 = work->c_after.at[j];
        work->c_after.at[j] = state->c.at[j];
        state->c.at[j] = kept4;
    }
    *target_found = target;
    return FSM_NEED_CHART;
}

/* Record the state as given, before anything is resolved. */
FSM_LOCAL void fsm_begin(const struct fsm_tables *tables, const struct fsm_input_tables *drive, struct fsm_state *state,
                         struct fsm_work *work, struct fsm_buffers *buffers)
{
    int64_t segment = state->counters->segment;
    fsm_write_inputs(drive, state->clock->time, segment, state->x, state->c);
    int64_t n_q = tables->sizes->n_q;
    for (int64_t j = 0; j < tables->sizes->n_u; j++) {
        work->u_before.at[j] = state->x.at[n_q + j];
    }
    fsm_evaluate_here(tables, state, work);
    for (int64_t j = 0; j < tables->sizes->n_u; j++) {
        state->x.at[n_q + j] = work->u_before.at[j];
    }
    fsm_write_row(tables, state, buffers, state->x);
    state->counters->started = 1;
}

/* Advance, contacts closed, to the end of a train of impacts; return a status.

   Where something else happens on the way, or it is longer than the steps whose error is known to be small, the closed
   mode begins at once, and what happens is met in steps. */
static int64_t end_train(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                         const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                         struct fsm_work *work, struct fsm_buffers *buffers)
{
    if (!fsm_evaluate_here(tables, state, work)) {
        return FSM_NON_FINITE;
    }
    double h = state->clock->jump, t = state->clock->time;
    double longest = method->counts->adaptive == 0 ? options->numbers->fixed_step : state->clock->step;
    if (t + h > fsm_smaller(options->numbers->until, fsm_next_breakpoint(drive, state->counters->segment)) ||
        (h > longest && longest > 0.0)) {
        return FSM_CONTINUE;
    }
    fsm_trial_step(tables, drive, method, state, work, h, t + h);
    int64_t status = fsm_project_end(tables, drive, method, state, work, t + h);
    if (status > 1) {
        return status;
    }
    fsm_evaluate_middle(tables, drive, method, state, work, h);
    fsm_arm_positive(tables, state);
    int64_t event;
    fsm_first_event(tables, state, work, h, &event);
    fsm_write_inputs(drive, t, state->counters->segment, state->x, state->c);
    if (event != FSM_NO_EVENT) {
        return FSM_CONTINUE;
    }
    fsm_write_row(tables, state, buffers, state->x);
    return fsm_arrive(tables, drive, state, work, buffers, t + h);
}

/* Make the end of the trial step the state at hand and record it; return a status. */
FSM_LOCAL int64_t fsm_arrive(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                             struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers, double t_end)
{
    bool moved = t_end > state->clock->time;
    state->clock->time = t_end;
    int64_t n = state->x.n;
    for (int64_t j = 0; j < n; j++) {
        state->x.at[j] = work->x_end.at[j];
    }
    fsm_write_inputs(drive, t_end, state->counters->segment, state->x, state->c);
    if (!fsm_commit_step_end(tables, state, work, n)) {
        return FSM_NON_FINITE;
    }
    int64_t mode = state->counters->mode;
    if ((tables->mode_flags.at[mode] & FSM_MODE_TURNS) &&
        fsm_update_slip_directions(work, tables, t_end, state->x, state->c, mode)) {
        fsm_evaluate_here(tables, state, work);
    }
    if (moved) {
        fsm_write_row(tables, state, buffers, work->x_mid);
    }
    return FSM_CONTINUE;
}

/* Count the transition that was made; tell whether there are too many in an instant or in a very short time. */
static bool is_chattering(const struct fsm_tables *tables, const struct fsm_options *options, struct fsm_state *state,
                          struct fsm_work *work)
{
    double t = state->clock->time;
    if (t - state->clock->event_time > 4.0 * fsm_clock_resolution(tables, t)) {
        state->counters->instant = 0;
        fsm_indices_fill(state->limits, 0);
    }
    keep_limits(tables, state, work);
    state->counters->instant++;
    state->clock->event_time = t;
    if (t - state->clock->window > FSM_TRANSITION_WINDOW * tables->tolerances->time) {
        state->clock->window = t;
        state->counters->window_count = 0;
    }
    state->counters->window_count++;
    int64_t most = options->counts->max_instant;
    return state->counters->instant > most || state->counters->window_count > 10 * most;
}

/* Keep which friction and which release reached their limits in this instant; an impact makes all that void. */
static void keep_limits(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work)
{
    int64_t n_q = tables->sizes->n_q, n_contacts = tables->sizes->n_contacts;
    for (int64_t j = 0; j < tables->sizes->n_u; j++) {
        if (state->x.at[n_q + j] != work->u_before.at[j]) {
            fsm_indices_fill(state->limits, 0);
            return;
        }
    }
    for (int64_t i = 0; i < state->counters->fired; i++) {
        int64_t guard = state->fired.at[i];
        int64_t k = tables->guard_contact.at[guard], event = tables->guard_event.at[guard];
        if (event == FSM_EVENT_SLIDES || (event == FSM_EVENT_OPENS && tables->contact_kind.at[k] == FSM_KIND_GAP)) {
            state->limits.at[k] = event;
            state->limits.at[n_contacts + k] = (int64_t)tables->guard_direction.at[guard];
        }
    }
}

/* Carry out the pending transition and arm the guards of the mode after; return a status. */
FSM_LOCAL int64_t fsm_make_transition(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                      const struct fsm_method *method, const struct fsm_options *options,
                                      struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers)
{
    if (state->counters->started == 0) {
        fsm_begin(tables, drive, state, work, buffers);
    }
    int64_t source = state->counters->mode;
    state->clock->put_off = 0.0;
    int64_t target;
    int64_t status = resolve(tables, state, work, &target);
    if (status != FSM_CONTINUE && status != FSM_STOPPED) {
        return status;
    }
    int64_t reason = state->counters->reason;
    bool changed = work->notes->changed != 0;
    if (!changed && state->counters->instant >= FSM_STANDSTILL &&
        work->notes->chosen_by == FSM_CHOSEN_FIRED_STATE_KEPT) {
        return FSM_INCONSISTENT;
    }
    if (!changed && reason == FSM_REASON_INCONSISTENT_ROWS) {
        return FSM_INCONSISTENT;
    }
    state->counters->mode = target;
    state->rank->left_at = -FSM_INFINITY;
    state->rank->lands = 0.0;
    state->rank->active = 0.0;
    state->clock->pivot_alarm = tables->tolerances->pivot;
    int64_t problem;
    if (changed && (tables->mode_flags.at[target] & FSM_MODE_PROJECTS) != 0) {
        // what closed within the tolerance is brought to zero now, so that no step begins off its rows
        double t = state->clock->time;
        problem = fsm_project(work, tables, t, state->x, state->c, target, state->drift);
        if (problem > 1) {
            return problem;
        }
    }
    if (reason == FSM_REASON_ZENO && state->clock->jump > 0.0 && fsm_cycle_is_closed(tables, state, target)) {
        problem = end_train(tables, drive, method, options, state, work, buffers);
        if (problem != FSM_CONTINUE) {
            return problem;
        }
    }
    bool finite = fsm_evaluate_here(tables, state, work);
    if (reason == FSM_REASON_START && !changed) {
        state->counters->rows--;
    }
    if (changed || reason == FSM_REASON_START || reason == FSM_REASON_INPUT_JUMP) {
        fsm_write_row(tables, state, buffers, state->x);
    }
    if (changed) {
        fsm_write_transition(tables, state, work, buffers, source);
    }
    if (!finite) {
        return FSM_NON_FINITE;
    }
    bool chatters = false;
    if (reason == FSM_REASON_EVENT || reason == FSM_REASON_ZENO || reason == FSM_REASON_INCONSISTENT_ROWS) {
        chatters = is_chattering(tables, options, state, work);
    } else {
        state->counters->fired = 0;
        state->counters->history = 0;
    }
    state->counters->phase = FSM_PHASE_STEPPING;
    if (fsm_arm(tables, state, work) > 0) {
        state->counters->phase = FSM_PHASE_RESOLVING;
        state->counters->reason = FSM_REASON_EVENT;
    }
    if (status == FSM_STOPPED) {
        return FSM_STOPPED;
    }
    return chatters ? FSM_CHATTERING : FSM_CONTINUE;
}
