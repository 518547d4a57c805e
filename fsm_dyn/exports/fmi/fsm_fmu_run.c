/* The life of an instance: initialization, event mode, steps of either kind. */

#include "fsm_fmu.h"

/* Change to another phase if the present one is among `from`. */
FSM_LOCAL bool fmu_enter(struct fmu *fmu, int from, enum fmu_phase to, const char *function)
{
    if (!fmu_allows(fmu, from, function)) {
        return false;
    }
    fmu->phase = to;
    return true;
}

/* Say for how many steps a guard could not be decided, if these are ten times as many as reported last. */
static void tell_undecided(struct fmu *fmu)
{
    int64_t event, subject, steps = fsm_machine_undecided(fmu->machine, &event, &subject);
    if (!fmu->logs || steps == 0 || (steps < 10 * fmu->undecided && steps >= fmu->undecided)) {
        return;
    }
    fmu->undecided = steps;
    bool written = event == FSM_EVENT_TRANSITION;
    char text[256];
    snprintf(text, sizeof text, "%ld steps were halved as bounds of the guard of '%s %s' were too wide to decide it", (long)steps,
             written ? "transition" : fsm_fmu_model->contact_names[subject], fmu_event_name(event));
    fmu->report(fmu, false, "logStatusWarning", text);
}

/* Accept a status, or report why the run ended; false where it failed. */
static bool judge(struct fmu *fmu, enum fsm_status status)
{
    tell_undecided(fmu);
    if (status == FSM_STOPPED) {
        fmu->stopped = true;
    } else if (status != FSM_DONE && status != FSM_PAUSED) {
        fmu_error(fmu, "%s at %.12g s: %s", fsm_status_text((int64_t)status), fmu_time(fmu),
                  fsm_status_sentence((int64_t)status));
        fmu->phase = FMU_FAILED;
        return false;
    }
    return true;
}

/* Decide contact states at the present time, or resolve the event that was located. */
static bool resolve_here(struct fmu *fmu)
{
    fmu->stale = false;
    return judge(fmu, fsm_machine_advance(fmu->machine, fsm_machine_time(fmu->machine)));
}

/* Set the time at which the run starts (s). */
FSM_LOCAL bool fmu_set_begin(struct fmu *fmu, double start, const char *function)
{
    if (!fmu_allows(fmu, FMU_INSTANTIATED, function)) {
        return false;
    }
    if (!(fabs(start) <= DBL_MAX)) {
        fmu_error(fmu, "%s: a run cannot start at %g s", function, start);
        return false;
    }
    fmu->begin = start;
    return true;
}

FSM_LOCAL bool fmu_begin_initialization(struct fmu *fmu, const char *function)
{
    return fmu_enter(fmu, FMU_INSTANTIATED, FMU_INITIALIZATION, function);
}

FSM_LOCAL bool fmu_end_initialization(struct fmu *fmu, const char *function)
{
    enum fmu_phase next = fmu != NULL && (fmu->event_mode || fmu->exchange) ? FMU_EVENT : FMU_STEP;
    return fmu_allows(fmu, FMU_INITIALIZATION, function) && resolve_here(fmu) &&
           fmu_enter(fmu, FMU_INITIALIZATION, next, function);
}

FSM_LOCAL bool fmu_enter_event_mode(struct fmu *fmu, const char *function)
{
    bool has_it = fmu != NULL && (fmu->event_mode || fmu->exchange);
    return fmu_enter(fmu, has_it ? FMU_STEP | FMU_CONTINUOUS : 0, FMU_EVENT, function);
}

FSM_LOCAL bool fmu_enter_continuous_time(struct fmu *fmu, const char *function)
{
    bool has_it = fmu != NULL && fmu->exchange && !fmu->stopped;
    return fmu_enter(fmu, has_it ? FMU_EVENT : 0, FMU_CONTINUOUS, function);
}

FSM_LOCAL bool fmu_terminate(struct fmu *fmu, const char *function)
{
    return fmu_enter(fmu, FMU_RUNNING, FMU_TERMINATED, function);
}

FSM_LOCAL void fmu_reset(struct fmu *fmu)
{
    fsm_machine_restart(fmu->machine);
    memset(fmu->rates, 0, (size_t)fsm_fmu_model->tables->sizes->n_w * sizeof *fmu->rates);
    memset(fmu->given, 0, (size_t)fmu_state_count());
    fmu->starts_elsewhere = false;
    fmu->phase = FMU_INSTANTIATED;
    fmu->stopped = false;
    fmu->stale = true;
    fmu->begin = 0.0;
    fmu->watch = (struct fsm_watch){FSM_INFINITY, 0, fmu->watch.low};
    memset(fmu->watch.low, 0, (size_t)fsm_fmu_model->tables->sizes->max_guards);
}

/* Make the transitions that are due in model exchange; `jumped`: whether a state has another value after. */
static bool resolve_exchange(struct fmu *fmu, bool *jumped)
{
    size_t bytes = (size_t)fmu_state_count() * sizeof(double);
    const double *x = fsm_machine_state(fmu->machine);
    double *before = malloc(bytes);
    if (before == NULL) {
        fmu_error(fmu, "there is no memory");
        return false;
    }
    memcpy(before, x, bytes);
    fmu->stale = false;
    bool good = judge(fmu, fsm_machine_resolve(fmu->machine, &fmu->watch));
    *jumped = memcmp(before, x, bytes) != 0;
    free(before);
    return good;
}

/* Time of the next event that is known beforehand (s); FSM_INFINITY: none. */
static double next_time(const struct fmu *fmu)
{
    double breakpoint = fsm_machine_breakpoint(fmu->machine);
    return fmu->begin + (breakpoint < fmu->watch.due ? breakpoint : fmu->watch.due);
}

/* Resolve an instant: `again` where the next event is at the present time too, up to the resolution of time. */
FSM_LOCAL bool fmu_update_event(struct fmu *fmu, struct fmu_update *update, const char *function)
{
    *update = (struct fmu_update){.again = false, .ended = true}; // what an importer reads that ignores errors
    if (!fmu_allows(fmu, FMU_EVENT, function)) {
        return false;
    }
    bool good = fmu->stopped || (fmu->exchange ? resolve_exchange(fmu, &update->jumped) : resolve_here(fmu));
    double next = next_time(fmu);
    update->ended = fmu->stopped || !good;
    update->has_next = good && fmu->exchange && next < FSM_INFINITY;
    update->next = update->has_next ? next : 0.0;
    update->again = good && fmu->exchange && !fmu->stopped && fsm_machine_is_due(fmu->machine, &fmu->watch);
    return good;
}

/* Let the inputs run at their rates over a step of length `size` (s), and stay where they are then. */
static void begin_ramps(struct fmu *fmu, double size)
{
    for (int64_t i = 0; i < fsm_fmu_model->tables->sizes->n_w; i++) {
        if (fmu->rates[i] != 0.0) {
            fsm_machine_ramp_input(fmu->machine, i, fmu->rates[i] * size);
            fmu->rates[i] = 0.0;
        }
    }
}

/* Run to `end` (s), or to an event of which event mode is to know; the importer may look after every event, and at the
   end, and stop there. */
static enum fsm_status run_with_updates(struct fmu *fmu, double end)
{
    while (true) {
        enum fsm_status status = fsm_machine_advance_to_event(fmu->machine, end);
        bool event = status == FSM_PAUSED;
        if (event && fmu->event_mode) {
            return status;
        }
        if (event) {
            status = fsm_machine_advance(fmu->machine, fsm_machine_time(fmu->machine));
        }
        fmu->stale = false;
        if (status != FSM_DONE || fmu->update(fmu) || fsm_machine_time(fmu->machine) >= end) {
            return status;
        }
    }
}

FSM_LOCAL bool fmu_take_step(struct fmu *fmu, double point, double size, struct fmu_step *step, const char *function)
{
    if (!fmu_allows(fmu, FMU_STEP, function)) {
        return false;
    }
    double end = point + size - fmu->begin;
    double off = fabs(point - fmu_time(fmu)), rounding = 1e-6 * size + 1e-9 * fabs(point); // of an importer's clock
    bool possible = size > 0.0 && off <= rounding && end >= fsm_machine_time(fmu->machine) && end <= DBL_MAX;
    if (!possible || fmu->stopped) {
        fmu_error(fmu, "a step from %.12g s over %.12g s is not possible at %.12g s", point, size, fmu_time(fmu));
        return false;
    }
    begin_ramps(fmu, end - fsm_machine_time(fmu->machine));
    enum fsm_status status = fmu->update != NULL   ? run_with_updates(fmu, end)
                             : fmu->returns_early ? fsm_machine_advance_to_event(fmu->machine, end)
                                                  : fsm_machine_advance(fmu->machine, end);
    bool paused = status == FSM_PAUSED;
    if (paused && !fmu->event_mode) {
        status = fsm_machine_advance(fmu->machine, fsm_machine_time(fmu->machine));
    }
    fmu->stale = false;
    bool good = judge(fmu, status);
    step->event = paused && fmu->event_mode;
    step->ended = fmu->stopped;
    step->reached = fmu_time(fmu);
    step->early = fsm_machine_time(fmu->machine) < end;
    return good;
}

FSM_LOCAL bool fmu_set_time(struct fmu *fmu, double time)
{
    if (!(fabs(time) <= DBL_MAX)) {
        fmu_error(fmu, "the time cannot be %g", time);
        return false;
    }
    fsm_machine_place(fmu->machine, time - fmu->begin, fsm_machine_state(fmu->machine));
    fmu->stale = true;
    return true;
}

FSM_LOCAL bool fmu_set_states(struct fmu *fmu, const double *x, size_t n, const char *function)
{
    bool good = fmu_allows(fmu, FMU_CONTINUOUS, function) && fmu_has_length(fmu, n, fmu_state_count());
    if (!good || !fmu_has_room(fmu, x, function)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= DBL_MAX)) {
            fmu_error(fmu, "the state %s cannot be %g", fsm_fmu_model->state_names[i], x[i]);
            return false;
        }
    }
    fsm_machine_place(fmu->machine, fsm_machine_time(fmu->machine), x);
    fmu->stale = true;
    return true;
}

/* Whether `n` numbers may be read that an evaluation at the present time and state gives. */
static bool can_read(struct fmu *fmu, const void *place, size_t n, int64_t length, const char *function)
{
    return fmu_allows(fmu, FMU_COMPUTED, function) && fmu_has_length(fmu, n, length) &&
           (n == 0 || fmu_has_room(fmu, place, function)) && fmu_evaluate(fmu);
}

FSM_LOCAL bool fmu_get_states(struct fmu *fmu, double *x, size_t n, const char *function)
{
    bool good = can_read(fmu, x, n, fmu_state_count(), function);
    if (good) {
        memcpy(x, fsm_machine_state(fmu->machine), n * sizeof *x);
    }
    return good;
}

FSM_LOCAL bool fmu_get_rates(struct fmu *fmu, double *x_dot, size_t n, const char *function)
{
    bool good = can_read(fmu, x_dot, n, fmu_state_count(), function);
    if (good) {
        memcpy(x_dot, fsm_machine_rates(fmu->machine), n * sizeof *x_dot);
    }
    return good;
}

FSM_LOCAL bool fmu_get_indicators(struct fmu *fmu, double *values, size_t n, const char *function)
{
    bool good = can_read(fmu, values, n, fsm_fmu_indicators, function);
    if (good) {
        fmu_indicators(fmu, values);
    }
    return good;
}

FSM_LOCAL bool fmu_get_nominals(struct fmu *fmu, double *values, size_t n, const char *function)
{
    bool good = fmu_allows(fmu, FMU_COMPUTED, function) && fmu_has_length(fmu, n, fmu_state_count()) &&
                fmu_has_room(fmu, values, function);
    for (size_t i = 0; good && i < n; i++) {
        values[i] = fsm_fmu_model->atol[i] / fsm_fmu_model->rtol;
    }
    return good;
}

/* A step of the importer's integrator was kept; `due`: it passed an event. */
FSM_LOCAL bool fmu_end_step(struct fmu *fmu, bool *due, const char *function)
{
    if (!fmu_allows(fmu, FMU_CONTINUOUS, function)) {
        return false;
    }
    fmu->stale = false;
    enum fsm_status status = fsm_machine_end_step(fmu->machine, &fmu->watch);
    *due = status == FSM_PAUSED;
    return judge(fmu, status);
}
