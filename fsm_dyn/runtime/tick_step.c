/* One tick of a live session: whether the model advances and the device is engaged, the step, the force, the row.

   fsm_live_tick does all of it in one call.  Where the model asks for a mode, a chart or room meanwhile, the tick is left
   unfinished, and fsm_finish_tick ends it once the caller has provided that (docs/theory.md, "Live sessions"). */

#include "live.h"

/* Whether the stepper asks the caller for something before it can go on. */
static bool asks_caller(int64_t status)
{
    return FSM_PAUSED < status && status <= FSM_LAST_INTERNAL;
}

/* Return by how many periods the model is to move: what it is behind the clock is caught up with. */
static int64_t periods_due(struct fsm_tick_counts *counts)
{
    int64_t extra = fsm_least(counts->behind, FSM_CAUGHT_UP_MOST);
    counts->behind -= extra;
    return 1 + extra;
}

/* Set the stepper its next goal; return whether the state is finite, so that it can be called. */
static bool begin_tick(struct fsm_tick *tick)
{
    const struct fsm_run *run = &tick->places->run;
    struct fsm_state *state = run->state;
    state->counters->rows = 0;
    state->counters->transitions = 0;
    state->counters->passed = 0;
    if (tick->counts->incomplete != 0) {
        // once a tick: a supply within it counts as work
        tick->counts->behind += state->counters->work_done == 0;
        return true;
    }
    double begin = state->clock->time;
    tick->counts->periods = periods_due(tick->counts);
    tick->counts->steps += tick->counts->substeps * tick->counts->periods;
    // as the grid of the stepper counts, so that both agree to the last bit
    double end = state->clock->begin + (double)tick->counts->steps * run->options->numbers->fixed_step;
    run->options->numbers->until = end;
    if (tick->counts->inputs_set == 0) {
        fsm_follow_schedule(tick, end);
        fsm_next_inputs(tick, end - begin);
    }
    fsm_write_pieces(tick, begin, end);
    if (state->counters->started == 0) {
        return true;
    }
    fsm_write_inputs(run->inputs, begin, 0, state->x, state->c);
    return state->counters->phase != FSM_PHASE_STEPPING || fsm_evaluate_here(run);
}

/* Advance the model by one period where it is to, and compute the force on the device, none unless `shown`.

   Returns a status: FSM_DONE where the tick is complete, FSM_PAUSED where it has used up its share of work and goes on in
   the next one, what the stepper asks for, or how the run ended. */
FSM_API int64_t fsm_move(struct fsm_tick *tick, bool shown)
{
    int64_t status = FSM_DONE;
    if (tick->counts->advancing == 0) {
        tick->counts->periods = 1;
    } else {
        status = FSM_NON_FINITE;
        const struct fsm_run *run = &tick->places->run;
        double before = run->state->clock->time;
        if (tick->counts->inputs_set == 0 && run->state->counters->work_done == 0) { // once a tick, see begin_tick
            fsm_ramp_engagement(tick);
        }
        if (begin_tick(tick)) {
            status = fsm_advance(run);
            tick->counts->incomplete = status != FSM_DONE;
        }
        tick->numbers->progress += (run->state->clock->time - before) / tick->numbers->speed;
        if (tick->counts->incomplete == 0) {
            fsm_take_over(tick);
        }
    }
    fsm_report_ports(tick);
    if (tick->counts->passivity != FSM_PASSIVITY_OFF) {
        fsm_watch_energy(tick);
    }
    fsm_show(tick, shown);
    tick->counts->status = status;
    fsm_leave_checkpoint(tick);
    return status;
}

/* Whether the device may be engaged: a sample was taken, the owner is there, and the buttons say so. */
static bool may_engage(const struct fsm_tick_counts *counts)
{
    bool held_back = counts->dead_man != 0 && (counts->buttons & counts->dead_man) == 0;
    bool clutched = (counts->buttons & counts->clutch) != 0;
    return counts->phase == FSM_LIVE_RUNNING && counts->pending_commands == 0 && counts->sample_accepted != 0 &&
           counts->owner_silent == 0 && !held_back && !clutched;
}

/* Decide whether the device is engaged and the model advances; a `reason` other than 0 is one to release the device. */
static void decide(struct fsm_tick *tick, int64_t reason)
{
    struct fsm_tick_counts *counts = tick->counts;
    bool released = reason != 0 && counts->phase == FSM_LIVE_RUNNING;
    if (released) {
        fsm_release_device(tick, reason);
    }
    bool held = !released && may_engage(counts);
    if (held && counts->engaged == 0) {
        // an engagement that begins while the last one is still ramped down waits until it is zero
        held = fsm_is_disengaged(tick);
        counts->anchor = held;
        if (held) {
            counts->released = 0;
        }
    }
    counts->engaged = held;
    tick->numbers->engagement_target = held ? 1.0 : 0.0;
    counts->advancing = counts->phase == FSM_LIVE_RUNNING && (counts->owner_silent == 0 || !fsm_is_disengaged(tick));
    if (counts->phase == FSM_LIVE_PAUSED && counts->steps_left > 0) {
        counts->steps_left--;
        counts->advancing = 1;
    }
}

/* Set the force to zero and disengage at once, for `reason` (FSM_RELEASED_...); engagement is ramped up anew. */
FSM_API void fsm_release_device(struct fsm_tick *tick, int64_t reason)
{
    struct fsm_tick_counts *counts = tick->counts;
    if (tick->numbers->engagement > 0.0) {
        counts->releases++;
        counts->release_reason = reason;
        counts->attention = 1;
    }
    counts->engaged = 0;
    counts->released = 1;
    tick->numbers->engagement = 0.0;
    fsm_vector_fill(tick->force, 0.0);
}

/* Return why the device is to be released (FSM_RELEASED_...), 0 where it is not.

   `since`: ns since the tick before; `silence`: ns since the last heartbeat of the watchdog process. */
static int64_t reason_to_release(const struct fsm_tick *tick, int64_t since, int64_t silence)
{
    int64_t longest = tick->counts->release_time;
    if (longest == 0) {
        return 0;
    }
    if (since > longest) {
        return FSM_RELEASED_TICK_DELAYED;
    }
    if (silence > longest) {
        return FSM_RELEASED_WATCHDOG_SILENT;
    }
    return fsm_ticks_without_sample(tick) > fsm_release_ticks(tick) ? FSM_RELEASED_NO_SAMPLE : 0;
}

/* Count the transitions made since the stepper was called last. */
static void count_transitions(struct fsm_tick *tick)
{
    int64_t made = tick->places->run.state->counters->transitions;
    tick->counts->new_transitions += made;
    tick->counts->transitions += made;
}

/* Whether the model is farther behind the clock than it may be. */
static bool lags(const struct fsm_tick *tick)
{
    double limit = FSM_NANOSECOND * (double)tick->counts->lag_limit;
    return limit > 0.0 && fsm_time_behind(tick) > limit * tick->numbers->speed;
}

/* Update run state and counts from a tick's status and fault, and whether attention is needed. */
static void conclude(struct fsm_tick *tick)
{
    struct fsm_tick_counts *counts = tick->counts;
    int64_t status = counts->status;
    if (counts->fault != FSM_FAULT_NONE && counts->phase != FSM_LIVE_FAULT) {
        fsm_fail(tick, counts->fault);
    }
    if (counts->advancing == 0) {
        return;
    }
    count_transitions(tick);
    if (counts->incomplete != 0) {
        counts->lagging_ticks++;
        counts->attention = 1;
        if (counts->phase == FSM_LIVE_RUNNING && lags(tick)) {
            fsm_fail(tick, FSM_FAULT_LAGGED);
            fsm_vector_fill(tick->force, 0.0);
        }
    }
    if (counts->new_transitions > 0 && counts->until_transition != 0) {
        counts->attention = 1;
    }
    if (status > FSM_DONE) {
        counts->phase = fsm_is_end((enum fsm_status)status) ? FSM_LIVE_STOPPED : FSM_LIVE_FAILED;
    }
    if (status > FSM_DONE || asks_caller(status)) {
        counts->attention = 1;
    }
}

/* End a tick: update the run state and publish its row; return FSM_TICK_OK or FSM_TICK_ATTENTION_NEEDED. */
static int64_t end_tick(struct fsm_tick *tick)
{
    conclude(tick);
    struct fsm_tick_counts *counts = tick->counts;
    // a silent owner records nothing: rows of a model at rest are not to be written over those not taken yet
    if (tick->places->ring != NULL && (counts->owner_silent == 0 || counts->advancing != 0)) {
        fsm_publish(tick);
    }
    return counts->attention != 0 ? FSM_TICK_ATTENTION_NEEDED : FSM_TICK_OK;
}

/* Carry out one tick of a live session; the device's position and velocity stand in `tick->device`.

   `sequence`, `buttons`: of the sample; `wall`, `lateness`: when the tick began, from the start of the loop, and how long
   after its deadline (ns); `duration`, `spent`: time by the clock and processor time of the tick before (ns), below 0
   where there was none.  The force is left in `tick->force`.

   Returns FSM_TICK_OK, FSM_TICK_ATTENTION_NEEDED, or FSM_TICK_SUPPLY_NEEDED: then fsm_finish_tick is to follow. */
FSM_API int64_t fsm_live_tick(struct fsm_tick *tick, int64_t sequence, int64_t buttons, int64_t wall, int64_t lateness,
                              int64_t duration, int64_t spent)
{
    struct fsm_tick_counts *counts = tick->counts;
    struct fsm_ring *ring = tick->places->ring;
    int64_t since = wall - counts->wall, silence = 0;
    counts->attention = 0;
    counts->new_transitions = 0;
    tick->places->run.state->counters->work_done = 0;
    counts->sequence = sequence;
    counts->buttons = buttons;
    counts->wall = wall;
    counts->wakeup_latency = lateness;
    counts->execution_time = duration;
    counts->cpu_time = spent;
    counts->ticks++;
    tick->numbers->elapsed = counts->paced != 0 ? FSM_NANOSECOND * (double)since : 0.0;
    if (ring != NULL) {
        silence = fsm_beat(ring, counts, since);
        if (fsm_was_zeroed(ring, counts)) { // ticks were missing: what the device shows is zero by now
            fsm_vector_fill(tick->force, 0.0);
        }
        fsm_look_at_owner(ring, counts, since);
        if (silence > counts->watchdog_timeout) {
            fsm_fail(tick, FSM_FAULT_WATCHDOG_LOST);
        }
    }
    fsm_take_sample(tick);
    decide(tick, reason_to_release(tick, since, silence));
    if (counts->advancing != 0) {
        tick->numbers->running += FSM_NANOSECOND * (double)since;
    }
    int64_t status = fsm_move(tick, counts->phase == FSM_LIVE_RUNNING);
    if (counts->advancing != 0 && asks_caller(status)) {
        return FSM_TICK_SUPPLY_NEEDED;
    }
    return end_tick(tick);
}

/* End a tick that returned FSM_TICK_SUPPLY_NEEDED; `again`: what it asked for was provided, and the stepper goes on in it. */
FSM_API int64_t fsm_finish_tick(struct fsm_tick *tick, bool again)
{
    if (again) {
        count_transitions(tick);
        if (tick->places->ring != NULL) {
            fsm_put_records(tick);
        }
        if (asks_caller(fsm_move(tick, tick->counts->phase == FSM_LIVE_RUNNING))) {
            return FSM_TICK_SUPPLY_NEEDED;
        }
    }
    return end_tick(tick);
}
