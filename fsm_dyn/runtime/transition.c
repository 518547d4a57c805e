/* Transitions: resolution of the event, entry of the next mode, and the record. */

#include "contacts.h"
#include "stepping.h"

#define FSM_STANDSTILL        8   // times in one instant that a state may be kept though its guard fired
#define FSM_TRANSITION_WINDOW 1e8 // length of the window in which transitions are counted, in time tolerances

static void keep_limits(const struct fsm_run *run);

/* Exchange the entries of two arrays of one length. */
static void exchange_entries(fsm_vector a, fsm_vector b)
{
    for (int64_t j = 0; j < a.n; j++) {
        double entry = a.at[j];
        a.at[j] = b.at[j];
        b.at[j] = entry;
    }
}

/* Resolve the current instant; a Zeno sequence of impacts that cannot end closed continues impact by impact.

   `target`: the mode after.  Returns FSM_CONTINUE, FSM_STOPPED, FSM_LEFT_RANGE, what is asked of the caller, or a failure. */
static enum fsm_status resolve(const struct fsm_run *run, int64_t *target)
{
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    struct fsm_counters *counters = state->counters;
    struct fsm_instant instant = {.t = state->clock->time,
                                  .mode = counters->mode,
                                  .reason = counters->reason,
                                  .remaining = state->clock->remaining,
                                  .fired = fsm_indices_first(state->fired, counters->fired),
                                  .guards = state->guards,
                                  .resolution = fsm_clock_resolution(run->tables, state->clock->time),
                                  .limits = state->limits,
                                  .conditions = state->conditions,
                                  .transitions = counters->instant};
    struct fsm_outcome outcome = {.wanted = work->wanted,
                                  .impulse = work->impulse,
                                  .energy = work->energy,
                                  .notes = work->notes,
                                  .log = {.entries = work->log},
                                  .implied = work->implied};
    while (true) {
        enum fsm_status status =
            (enum fsm_status)fsm_resolve_event(work, run->tables, &instant, state->x, state->c, &outcome);
        if (status <= FSM_LAST_INTERNAL || fsm_is_end(status) || instant.reason != FSM_REASON_ZENO) {
            *target = outcome.mode;
            return status;
        }
        instant.reason = counters->reason = FSM_REASON_EVENT;
    }
}

/* Resolve the current instant and choose a chart of the mode after, `target`; `aside`: see fsm_time_aside.

   Where no chart is good there, the state before is restored and FSM_NEED_CHART returned: the transition is made again
   once there is one; where it led is left in `work->x_mid` and `work->c_after`, the mode in `notes->target`. */
static enum fsm_status resolve_and_enter(const struct fsm_run *run, int64_t *target, double *aside)
{
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    fsm_put(work->u_before, fsm_speeds_of(run));
    work->notes->instant = state->counters->instant;
    fsm_put(work->x_mid, state->x);
    fsm_put(work->c_after, state->c);
    enum fsm_status status = resolve(run, target);
    if (status != FSM_CONTINUE && !fsm_is_end(status)) {
        return status;
    }
    *aside = state->counters->reason == FSM_REASON_START ? fsm_time_aside(run, *target) : 0.0;
    int64_t chart = *aside > 0.0 ? fsm_entry_chart_aside(run, *target, *aside) : fsm_entry_chart(run, *target);
    if (chart >= 0) {
        state->counters->asked = 0;
        *target = chart;
        return status;
    }
    state->counters->asked = 1;
    work->notes->target = *target;
    exchange_entries(work->x_mid, state->x);
    exchange_entries(work->c_after, state->c);
    if (*aside > 0.0) {
        fsm_put(work->x_mid, work->x_end);
    }
    return FSM_NEED_CHART;
}

/* Record the state as given, before anything is resolved. */
static void begin_run(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    fsm_vector given = run->work->u_before;
    fsm_write_inputs(run->inputs, state->clock->time, state->counters->segment, state->x, state->c);
    fsm_sample_here(run);
    fsm_put(given, fsm_speeds_of(run));
    fsm_evaluate_here(run);
    fsm_put(fsm_speeds_of(run), given);
    fsm_write_row(run, state->x);
    state->counters->started = 1;
}

/* Advance, contacts closed, to the end of a Zeno sequence of impacts; return a status.

   Where something else happens on the way, or it is longer than the steps whose error is known to be small, the closed
   mode begins at once, and what happens is met in steps. */
static enum fsm_status end_train(const struct fsm_run *run)
{
    const struct fsm_method *method = run->method;
    const struct fsm_options *options = run->options;
    struct fsm_state *state = run->state;
    if (!fsm_evaluate_here(run)) {
        return FSM_NON_FINITE;
    }
    double h = state->clock->jump, t = state->clock->time;
    double longest = method->counts->adaptive == 0 ? options->numbers->fixed_step : state->clock->step;
    if (t + h > fsm_smaller(options->numbers->until, fsm_next_jump(run)) || (h > longest && longest > 0.0)) {
        return FSM_CONTINUE;
    }
    fsm_trial_step(run, h, t + h);
    enum fsm_status status = fsm_project_end(run, t + h);
    if (status != FSM_CONTINUE) {
        return status;
    }
    fsm_evaluate_middle(run, h);
    fsm_arm_positive(run);
    int64_t event;
    fsm_first_event(run, h, &event);
    fsm_write_inputs(run->inputs, t, state->counters->segment, state->x, state->c);
    if (event != FSM_NO_EVENT) {
        return FSM_CONTINUE;
    }
    fsm_write_row(run, state->x);
    return fsm_arrive(run, t + h);
}

/* Make the end of the trial step the current state and record it; return a status.

   A step below the resolution of the clock is recorded too where it changes the state: the last row is the state. */
FSM_LOCAL enum fsm_status fsm_arrive(const struct fsm_run *run, double t_end)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_input_tables *inputs = run->inputs;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    bool moved = t_end > state->clock->time;
    state->clock->time = t_end;
    int64_t n = state->x.n;
    for (int64_t j = 0; j < n; j++) {
        moved = moved || state->x.at[j] != work->x_end.at[j];
        state->x.at[j] = work->x_end.at[j];
    }
    fsm_update_inputs(inputs, t_end, state->counters->segment, state->x, state->c);
    if (!fsm_commit_step_end(run)) {
        return FSM_NON_FINITE;
    }
    int64_t mode = state->counters->mode;
    if ((tables->mode_flags.at[mode] & FSM_MODE_TURNS) &&
        fsm_update_slip_directions(work, tables, t_end, state->x, state->c, mode)) {
        fsm_evaluate_here(run);
    }
    if (moved) {
        fsm_write_row(run, work->x_mid);
    }
    return FSM_CONTINUE;
}

/* Whether a transition has been made in the present instant. */
FSM_LOCAL bool fsm_is_same_instant(const struct fsm_run *run)
{
    const struct fsm_clock *clock = run->state->clock;
    return !(clock->time - clock->event_time > 4.0 * fsm_clock_resolution(run->tables, clock->time));
}

/* Count the transition that was made; tell whether there are too many in an instant or in a very short time.

   A guard that fired and changed nothing, as a gap beyond the end of its face, is no transition: it counts in its instant
   alone, and is no impact of a Zeno sequence. */
static bool is_chattering(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_options *options = run->options;
    struct fsm_state *state = run->state;
    double t = state->clock->time;
    if (!fsm_is_same_instant(run)) {
        state->counters->instant = 0;
        fsm_indices_fill(state->limits, 0);
    }
    keep_limits(run);
    int64_t made = tables->sizes->n_transitions > 0 ? run->work->notes->written_transition : -1;
    // a transition that follows another in its instant is no further decision on the contacts
    bool follows = state->counters->fired == 0 && made >= 0;
    state->counters->instant += follows ? 0 : 1;
    state->clock->event_time = t;
    if (t - state->clock->window > FSM_TRANSITION_WINDOW * tables->tolerances->time) {
        state->clock->window = t;
        state->counters->window_count = 0;
    }
    if (run->work->notes->changed != 0) {
        state->counters->window_count++;
    } else if (state->counters->instant == 1) {
        fsm_forget_event(state);
    }
    int64_t most = options->counts->max_instant;
    bool at_rest = made >= 0 && AT(tables->transitions, made, FSM_TRANSITION_STOP) == FSM_TRANSITION_KINK; // in a kink
    return state->counters->instant > most || state->counters->window_count > (at_rest ? most : 10 * most);
}

/* Keep which friction and which release reached their limits in this instant; an impact makes all that void. */
static void keep_limits(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
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
        if (event == FSM_EVENT_SLIDES ||
            (event == FSM_EVENT_OPENS && (tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0)) {
            state->limits.at[k] = event;
            state->limits.at[n_contacts + k] = (int64_t)tables->guard_direction.at[guard];
        }
    }
}

/* Enter the mode after a transition: forget what was known of the rows of the mode before, and remove drift.

   What closed within the tolerance is brought to zero, so that no step begins off its rows. */
static enum fsm_status enter_mode(const struct fsm_run *run, int64_t target)
{
    struct fsm_state *state = run->state;
    state->counters->mode = target;
    state->rank->left_at = -FSM_INFINITY;
    state->rank->lands = 0.0;
    state->rank->active = 0.0;
    state->clock->pivot_alarm = run->tables->tolerances->pivot;
    if (run->work->notes->changed == 0 || (run->tables->mode_flags.at[target] & FSM_MODE_PROJECTS) == 0) {
        return FSM_CONTINUE;
    }
    bool moved;
    return fsm_project(run, state->clock->time, state->x, &moved);
}

/* Record the state after a transition, and the transition itself where anything changed. */
static void record_transition(const struct fsm_run *run, int64_t source, int64_t reason)
{
    bool changed = run->work->notes->changed != 0;
    // the row of the state as given stands for both; in a live run a tick before may have written it
    if (reason == FSM_REASON_START && !changed && run->state->counters->rows > 0) {
        run->state->counters->rows--;
    }
    if (changed || fsm_is_from_outside(reason)) {
        fsm_write_row(run, run->state->x);
    }
    if (changed) {
        fsm_write_transition(run, source);
        fsm_is_made(run->state, run->work->notes->written_transition);
    }
}

/* Carry out the pending transition, record it and arm the guards of the mode after.

   Returns FSM_CONTINUE, FSM_STOPPED, FSM_LEFT_RANGE, what is asked of the caller (nothing has changed then), or a failure. */
FSM_LOCAL enum fsm_status fsm_make_transition(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    struct fsm_counters *counters = state->counters;
    const struct fsm_notes *notes = run->work->notes;
    if (counters->started == 0) {
        begin_run(run);
    }
    fsm_note_conditions(run);
    int64_t source = counters->mode, target;
    double aside = 0.0;
    state->clock->put_off = 0.0;
    enum fsm_status status = resolve_and_enter(run, &target, &aside);
    if (status != FSM_CONTINUE && !fsm_is_end(status)) {
        return status;
    }
    int64_t reason = counters->reason;
    bool stands_still = counters->instant >= FSM_STANDSTILL && notes->chosen_by == FSM_CHOSEN_FIRED_STATE_KEPT;
    if (notes->changed == 0 && (stands_still || reason == FSM_REASON_INCONSISTENT_ROWS)) {
        return FSM_INCONSISTENT;
    }
    enum fsm_status problem = enter_mode(run, target);
    if (problem != FSM_CONTINUE) {
        return problem;
    }
    if (reason == FSM_REASON_ZENO && state->clock->jump > 0.0 && fsm_cycle_is_closed(run, target)) {
        problem = end_train(run);
        if (problem != FSM_CONTINUE) {
            return problem;
        }
    }
    bool finite = aside > 0.0 ? fsm_evaluate_limit(run, aside) : fsm_evaluate_here(run);
    record_transition(run, source, reason);
    if (!finite) {
        return FSM_NON_FINITE;
    }
    bool chatters = false;
    if (fsm_is_from_outside(reason)) {
        counters->fired = 0;
        counters->history = 0;
    } else {
        chatters = is_chattering(run);
    }
    counters->phase = FSM_PHASE_STEPPING;
    if (fsm_arm(run, source) > 0 || fsm_first_due(state->conditions) >= 0) {
        counters->phase = FSM_PHASE_RESOLVING;
        counters->reason = FSM_REASON_EVENT;
    } else if (run->method->counts->adaptive != 0 && run->method->counts->degree == 0) {
        state->clock->step = fsm_longest_flight(run, state->clock->step);
    }
    if (fsm_is_end(status)) {
        return status;
    }
    return chatters ? FSM_CHATTERING : FSM_CONTINUE;
}
