/* The loop that runs an automaton: steps, event location, transitions (docs/theory.md, "Event-driven integration").

   fsm_advance runs until the end of the run or until something is wanted that only its caller can give: room to record, a
   mode or a chart not derived yet, a heartbeat.  It may then be called again and continues bit for bit. */

#include "stepping.h"

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

   Near a change point, where all charts are as bad, the present one continues.  Returns FSM_CONTINUE, FSM_NEED_CHART
   where no chart that is known is better, or FSM_SINGULAR. */
FSM_LOCAL enum fsm_status fsm_choose_chart(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    bool earned = fsm_has_earned_kernels(run, state->counters->mode);
    int64_t other = earned ? fsm_own_kernels(run, state->counters->mode) : fsm_better_chart(run);
    if (!earned && other < 0 && fsm_is_weak(state->rank, FSM_NEAR) && state->clock->pivot > 0.0) {
        state->clock->pivot_alarm = 0.1 * state->clock->pivot;
        return FSM_CONTINUE;
    }
    if (other < 0) {
        return FSM_NEED_CHART;
    }
    state->counters->mode = other;
    state->clock->pivot_alarm = run->tables->tolerances->pivot;
    return fsm_evaluate_here(run) ? FSM_CONTINUE : FSM_SINGULAR;
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
    if ((run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_REPEATS) == 0) {
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
    trial->part = fsm_first_event_of_all(run, trial->h, trial->t_end, &guard);
    if (guard >= 0) {
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
    while (true) {
        enum fsm_status status = try_length(run, &trial);
        if (status != FSM_CONTINUE) {
            return status;
        }
        if (!trial.accepted) {
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
        fsm_begin_event(run);
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
    bool repeats = (flags & FSM_MODE_REPEATS) != 0 && state->counters->phase == FSM_PHASE_STEPPING;
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
        if (status != FSM_CONTINUE) {
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
    return status == FSM_NEED_MODE && may_pause && spent ? FSM_PAUSED : status;
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
