/* The loop that runs an automaton: steps, guards, events, transitions.

   One call of advance runs until the end of the run or until something is wanted that only Python can
   give: room to record, a mode or a chart not derived yet, a sign of life.  It may then be called again. */

#include "stepping.h"

#define FSM_STEPPER_EPS 2.220446049250313e-16

static bool constraints_violated(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                 double t_end);
static void next_length(struct fsm_state *state, double h, double error, int64_t order, bool shortened);

/* Return the next point of the grid of fixed steps (s). */
static double grid_point(const struct fsm_options *options, struct fsm_state *state)
{
    return state->clock->begin + (double)(state->counters->grid + 1) * options->numbers->fixed_step;
}

/* Return the next instant at which a step must end exactly (s). */
static double step_target(const struct fsm_input_tables *drive, const struct fsm_method *method,
                          const struct fsm_options *options, struct fsm_state *state)
{
    double target = fsm_smaller(options->numbers->until, fsm_next_breakpoint(drive, state->counters->segment));
    if (method->counts->adaptive == 0) {
        target = fsm_smaller(target, grid_point(options, state));
    }
    return target;
}

/* Do what is due where a target was reached; return `DONE` at the end of the run. */
static int64_t reach(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                     const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                     struct fsm_work *work)
{
    double t = state->clock->time;
    if (method->counts->adaptive == 0 && t >= grid_point(options, state)) {
        state->counters->grid++;
    }
    if (t >= options->numbers->until) {
        return FSM_DONE;
    }
    if (t >= fsm_next_breakpoint(drive, state->counters->segment)) {
        int64_t segment = drive->next_hard.at[state->counters->segment];
        state->counters->segment = segment;
        fsm_write_inputs(drive, t, segment, state->x, state->c);
        if (drive->decides.at[segment] != 0) {
            state->counters->phase = FSM_PHASE_RESOLVING;
            state->counters->reason = FSM_REASON_INPUT_JUMP;
            state->counters->fired = 0;
        } else if (!fsm_evaluate_here(tables, state, work)) {
            return FSM_NON_FINITE;
        }
    }
    return FSM_CONTINUE;
}

/* Change the chart where the pivot at the state at hand is too small; return a status. */
FSM_LOCAL int64_t fsm_choose_chart(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work)
{
    int64_t other = fsm_better_chart(tables, state, work, state->clock->time, state->x, state->clock->pivot);
    if (other < 0 && fsm_is_weak(state->rank, FSM_NEAR) && state->clock->pivot > 0.0) { // there all charts are as bad
        state->clock->pivot_alarm = 0.1 * state->clock->pivot;
        return FSM_CONTINUE;
    }
    if (other < 0) {
        return FSM_NEED_CHART;
    }
    state->counters->mode = other;
    state->clock->pivot_alarm = tables->tolerances->pivot;
    if (!fsm_evaluate_here(tables, state, work)) {
        return FSM_SINGULAR;
    }
    return FSM_CONTINUE;
}

/* Return the length of step to try first (s). */
static double first_length(const struct fsm_tables *tables, const struct fsm_method *method,
                           const struct fsm_options *options, struct fsm_state *state, struct fsm_work *work,
                           double room)
{
    double longest = fsm_smaller(room, options->numbers->max_step);
    if (method->counts->adaptive == 0) {
        return longest;
    }
    if (state->clock->step <= 0.0) {
        state->clock->step =
            fsm_first_step(tables->mode_rhs.at[state->counters->mode], method, state->clock->time, state->x,
                           state->x_dot, state->c, work->k, work->y, options->numbers->rtol, options->atol, longest);
        state->clock->error = 0.0001;
    }
    return fsm_smaller(longest, state->clock->step);
}

/* Find a step that can be accepted, shortening it as often as needed.

   Returns
   -------
   status : int
       `GOING`, a failure, or `PAUSED` where the caller's `MAX_WORK` is done: a step of a fixed length that was
       shortened goes on with the length it had come to.
   t_end : float
       Where the step ends (s); its end and middle are in the workspace.
   lead : int
       Guard that fires there, -1 if none. */
FSM_LOCAL int64_t fsm_find_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                const struct fsm_method *method, const struct fsm_options *options,
                                struct fsm_state *state, struct fsm_work *work, double target, double *t_end_found,
                                int64_t *lead_found)
{
    double t = state->clock->time;
    bool adaptive = method->counts->adaptive != 0;
    int64_t order = method->counts->order;
    double h = first_length(tables, method, options, state, work, target - t);
    bool resumed = state->clock->put_off > 0.0;
    if (resumed) {
        h = fsm_smaller(h, state->clock->put_off);
        state->clock->put_off = 0.0;
    }
    double least = 16.0 * FSM_STEPPER_EPS * fsm_larger(fabs(t), fabs(target));
    int64_t row = options->mask.n > 1 ? state->counters->mode : 0;
    double error = 1.0;
    bool shortened = false;
    bool on_rows = (tables->mode_flags.at[state->counters->mode] & FSM_MODE_RANKS) != 0;
    bool ranks = on_rows && method->counts->degree == 0; // an implicit step was looked at before it was taken
    if (ranks && !resumed) {
        bool seen =
            fsm_look_ahead(work, tables, t, state->x, state->x_dot, state->c, state->counters->mode, state->rank);
        if (seen &&
            fsm_rests_in_change_point(work, tables, t, state->x, state->c, state->counters->mode, state->rank)) {
            *t_end_found = t;
            *lead_found = -1;
            return FSM_UNDETERMINED;
        }
    }
    double wanted = h;
    double asked = h;
    double tried = 0.0;
    double tried_error = FSM_INFINITY;
    bool forced = false;
    while (true) {
        bool passes = false;
        if (ranks && !forced) {
            wanted = h;
            h = fsm_keep_clear(tables, method, options, state, wanted, &passes);
        }
        if (state->counters->steps + state->counters->rejected > options->counts->max_steps) {
            *t_end_found = t;
            *lead_found = -1;
            return FSM_TOO_MANY_STEPS;
        }
        if (shortened && !adaptive && state->counters->work_done > options->counts->max_work) {
            state->clock->put_off = ranks ? wanted : h;
            fsm_write_inputs(drive, t, state->counters->segment, state->x, state->c);
            *t_end_found = t;
            *lead_found = -1;
            return FSM_PAUSED;
        }
        double t_end = t + h;
        if (h >= target - t || target - t_end < least) {
            t_end = target;
            h = target - t;
        }
        fsm_trial_step(tables, drive, method, state, work, h, t_end);
        bool finite = fsm_end_is_finite(method, work);
        if (!finite && (h <= least || !adaptive)) {
            *t_end_found = t;
            *lead_found = -1;
            return FSM_NON_FINITE;
        }
        if (adaptive) {
            int64_t verdict =
                fsm_judge(method, options, state, work, h, row, passes, forced, tried, tried_error, finite, &error);
            if (verdict == FSM_RETAKE) {
                h = tried;
                forced = true;
                continue;
            }
            if (verdict == FSM_SHORTEN) {
                if (h <= least) {
                    *t_end_found = t;
                    *lead_found = -1;
                    return FSM_STEP_TOO_SMALL;
                }
                tried = h;
                tried_error = error;
                state->counters->rejected++;
                h *= fsm_shorter(state, h, error, order, passes);
                shortened = true;
                continue;
            }
        }
        int64_t problem = fsm_project_end(tables, drive, method, state, work, t_end);
        if (problem > 1) {
            *t_end_found = t;
            *lead_found = -1;
            return problem;
        }
        if (h > least && constraints_violated(tables, state, work, t_end)) {
            state->counters->rejected++;
            h *= 0.5;
            shortened = true;
            continue;
        }
        fsm_evaluate_middle(tables, drive, method, state, work, h);
        double fraction = 1.0;
        int64_t lead = -1;
        if (fsm_guard_count(tables, state->counters->mode) > 0) {
            fraction = fsm_first_event(tables, state, work, h, &lead);
        }
        double full_h = h;
        if (lead >= 0) {
            h = fsm_locate(tables, drive, method, state, work, h, fraction, lead, &lead);
            t_end = fsm_smaller(t + h, target);
        }
        if (lead == FSM_INTERPOLANT_UNRELIABLE && h > least) {
            state->counters->rejected++;
            h *= 0.5;
            shortened = true;
            continue;
        }
        if (adaptive && ranks && (forced || full_h < wanted)) { // a change point alone made it what it is
            state->clock->step = forced ? asked : wanted;
        } else if (adaptive) {
            next_length(state, full_h, fsm_smaller(error, 1.0), order, shortened);
        }
        if (on_rows) {
            fsm_note_passage(state->rank, t, t_end, ranks ? error : 0.0);
        }
        *t_end_found = t_end;
        *lead_found = fsm_most(lead, -1);
        return FSM_CONTINUE;
    }
}

/* Whether rows that repeated each other have contradicted each other for long by the end of the trial step. */
static bool constraints_violated(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                 double t_end)
{
    int64_t mode = state->counters->mode;
    if ((tables->mode_flags.at[mode] & FSM_MODE_REPEATS) == 0) {
        return false;
    }
    return fsm_constraint_violation_speed(work, tables, t_end, work->x_end, state->c, mode) > FSM_LATE;
}

/* Choose the length of the next step after one of length `h` whose error is accepted. */
static void next_length(struct fsm_state *state, double h, double error, int64_t order, bool shortened)
{
    double factor = fsm_step_factor(error, state->clock->error, order);
    if (shortened) {
        factor = fsm_smaller(factor, 1.0);
    }
    if (shortened || h * factor > state->clock->step || h >= state->clock->step) {
        state->clock->step = h * factor;
    }
    state->clock->error = error;
}

/* Make the resolution of the event that was located the next thing to do. */
static void begin_event(const struct fsm_tables *tables, const struct fsm_options *options, struct fsm_state *state)
{
    state->counters->phase = FSM_PHASE_RESOLVING;
    state->counters->reason = FSM_REASON_EVENT;
    state->clock->jump = 0.0;
    if (!fsm_remember_event(tables, state)) {
        return;
    }
    int64_t strokes;
    double remaining = fsm_zeno_duration(state, tables->tolerances->gap, &strokes);
    if (remaining >= 0.0) {
        state->counters->reason = FSM_REASON_ZENO;
        state->clock->remaining = remaining;
        state->clock->jump = strokes <= FSM_LONGEST_CYCLE ? remaining : 0.0;
        state->counters->cycle = strokes;
        fsm_add_cycle_guards(tables, state, strokes);
    }
}

/* Take one step, up to the next event at most; return a status. */
static int64_t step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                    const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                    struct fsm_work *work, struct fsm_buffers *buffers)
{
    double t = state->clock->time;
    double target = step_target(drive, method, options, state);
    if (target - t <= 4.0 * FSM_STEPPER_EPS * fsm_larger(fabs(t), fabs(target))) {
        if (target > t) {
            state->clock->time = target;
            fsm_write_row(tables, state, buffers, state->x);
        }
        return reach(tables, drive, method, options, state, work);
    }
    int64_t status;
    if (!(state->clock->pivot >= state->clock->pivot_alarm)) {
        status = fsm_choose_chart(tables, state, work);
        if (status != FSM_CONTINUE) {
            return status;
        }
    }
    double t_end;
    int64_t lead;
    status = fsm_find_step(tables, drive, method, options, state, work, target, &t_end, &lead);
    if (status != FSM_CONTINUE) {
        return status;
    }
    status = fsm_accept_step(tables, drive, method, options, state, work, buffers, t_end, target, lead);
    if (state->rank->passes_at < FSM_INFINITY) {
        fsm_write_passage(tables, state, buffers);
    }
    return status;
}

/* Make the end of the trial step the state at hand, with the event there if `lead` is a guard. */
FSM_LOCAL int64_t fsm_accept_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                  const struct fsm_method *method, const struct fsm_options *options,
                                  struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers,
                                  double t_end, double target, int64_t lead)
{
    if (lead >= 0) {
        fsm_collect_fired(tables, state, work, lead);
    }
    int64_t status = fsm_arrive(tables, drive, state, work, buffers, t_end);
    if (status != FSM_CONTINUE) {
        return status;
    }
    state->counters->steps++;
    if (lead >= 0) {
        begin_event(tables, options, state);
        return FSM_CONTINUE;
    }
    int64_t mode = state->counters->mode;
    bool watched = (tables->mode_flags.at[mode] & FSM_MODE_WATCHES_GATES) != 0;
    if (watched && fsm_gate_opened_late(work, tables, t_end, state->x, state->c, mode)) {
        return FSM_PENETRATION_LATER;
    }
    if (fsm_rearm(tables, state)) {
        return FSM_PENETRATION_LATER;
    }
    status = FSM_CONTINUE;
    if (t_end >= target) {
        status = reach(tables, drive, method, options, state, work);
    }
    bool repeats =
        (tables->mode_flags.at[mode] & FSM_MODE_REPEATS) != 0 && state->counters->phase == FSM_PHASE_STEPPING;
    if (status == FSM_CONTINUE && repeats &&
        fsm_constraint_violation_speed(work, tables, t_end, state->x, state->c, mode) >
            FSM_CONSTRAINT_CONSISTENCY_CLEAR) {
        state->counters->phase = FSM_PHASE_RESOLVING;
        state->counters->reason = FSM_REASON_INCONSISTENT_ROWS;
        state->counters->fired = 0;
    }
    return status;
}

/* Run until the end, a failure, or until something is wanted from outside.

   Parameters
   ----------
   tables_at, drive_at, method_at, options_at, state_at, work_at, buffers_at : int
       Addresses of the bundles: the automaton, its inputs over time, the integrator, what the caller asks, where
       the run stands (in and out: entering again continues bit for bit as if never left), workspace, and room
       for what is recorded, counted by `state.counters`.

   Returns
   -------
   int
       A status of outcomes. */
FSM_API int64_t fsm_advance(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                            const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                            struct fsm_work *work, struct fsm_buffers *buffers)
{
    int64_t status;
    for (int64_t turn = 0; turn < options->counts->chunk; turn++) {
        if (state->counters->work_done > options->counts->max_work) {
            return FSM_PAUSED;
        }
        if (state->counters->rows + FSM_ROWS_PER_TURN > buffers->rows.n ||
            state->counters->transitions >= buffers->transitions.n || state->counters->passed >= buffers->passages.n) {
            return FSM_BUFFER_FULL;
        }
        if (state->counters->phase == FSM_PHASE_RESOLVING) {
            int64_t solved = work->arena.top->solved;
            status = fsm_make_transition(tables, drive, method, options, state, work, buffers);
            solved = work->arena.top->solved - solved;
            state->counters->work_done += FSM_WORK_OF_TRANSITION + (int64_t)(FSM_WORK_OF_CANDIDATE * (double)solved);
            int64_t left = options->counts->max_work - state->counters->work_done;
            if (status == FSM_NEED_MODE && turn > 0 && left < FSM_WORK_OF_MODE) {
                return FSM_PAUSED;
            }
        } else {
            status = step(tables, drive, method, options, state, work, buffers);
        }
        if (status != FSM_CONTINUE) {
            int64_t mode = state->counters->mode;
            double t = state->clock->time;
            return fsm_why_not(work, tables, t, state->x, state->x_dot, state->c, mode, state->rank, status);
        }
    }
    return FSM_PAUSED;
}
