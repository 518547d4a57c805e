/* The one compiled call of a tick: what is to happen in it, the step, the force, the row for whoever looks. */

#include "live.h"

static bool wants(int64_t status);
static int64_t find_end(struct fsm_tick *tick);

/* Set the stepper its next goal; return 1 if it is to be called, -1 if the state is not finite. */
static int64_t tick_step_begin(struct fsm_tick *tick)
{
    const struct fsm_input_tables *drive = tick->places->drive;
    struct fsm_state *state = tick->places->state;
    const struct fsm_options *options = tick->places->options;
    state->counters->rows = 0;
    state->counters->transitions = 0;
    state->counters->passed = 0;
    if (tick->counts->unfinished != 0) {
        return 1;
    }
    double begin = state->clock->time;
    tick->counts->steps += tick->counts->substeps;
    // as the grid of the stepper counts, so that both agree to the last bit
    double end = state->clock->begin + (double)tick->counts->steps * options->numbers->fixed_step;
    options->numbers->until = end;
    if (tick->counts->given == 0) {
        fsm_follow_schedule(tick, tick->places->schedule, state, end);
        fsm_next_inputs(tick, end - begin);
    }
    fsm_write_pieces(tick, drive, begin, end);
    if (state->counters->started == 0) {
        return 1;
    }
    fsm_write_inputs(drive, begin, 0, state->x, state->c);
    if (state->counters->phase == FSM_PHASE_STEPPING &&
        !fsm_evaluate_here(tick->places->tables, state, tick->places->work)) {
        return -1;
    }
    return 1;
}

/* Advance the model by one tick and work out the force; return a status of the outcomes. */
static int64_t tick_step_move(struct fsm_tick *tick, bool shown)
{
    int64_t status = FSM_DONE;
    if (tick->counts->advancing != 0) {
        status = FSM_NON_FINITE;
        if (tick_step_begin(tick) > 0) {
            status = fsm_advance(tick->places->tables, tick->places->drive, tick->places->method, tick->places->options,
                                 tick->places->state, tick->places->work, tick->places->buffers);
            tick->counts->unfinished = status != FSM_DONE;
        }
        if (tick->counts->unfinished == 0) {
            fsm_take_over(tick);
        }
    }
    fsm_report_ports(tick->places->tables, tick->places->state, tick);
    if (tick->counts->passivity != FSM_PASSIVITY_OFF) {
        fsm_watch_energy(tick, tick->places->state);
    }
    fsm_show(tick, shown);
    tick->counts->status = status;
    fsm_leave_checkpoint(tick->places->marks, tick, tick->places->state->clock->time);
    return status;
}

/* Advance the model by one tick; `tick_at` is the address of a Tick.  Returns a status. */
FSM_API int64_t fsm_move(struct fsm_tick *tick, bool shown)
{
    return tick_step_move(tick, shown);
}

/* See from phase, buttons and owner whether the model moves and the port is held; `reason`: to release it. */
static void decide(struct fsm_tick *tick, int64_t reason)
{
    struct fsm_tick_counts *counts = tick->counts;
    bool released = reason != 0 && counts->phase == FSM_LIVE_RUNNING;
    if (released) {
        fsm_release_grip(tick, reason);
    }
    bool held = counts->phase == FSM_LIVE_RUNNING && counts->waiting == 0 && !released;
    held = held && counts->taken != 0 && counts->owner_silent == 0;
    int64_t buttons = counts->buttons;
    if ((counts->dead_man != 0 && (buttons & counts->dead_man) == 0) || (buttons & counts->clutch) != 0) {
        held = false;
    }
    if (held && counts->held == 0) {
        // whoever takes hold while the grip still opens waits until it is open
        held = fsm_compiled_inputs_is_open(tick);
        counts->anchor = held;
        if (held) {
            counts->released = 0;
        }
    }
    counts->held = held;
    tick->numbers->grip_target = held ? 1.0 : 0.0;
    counts->advancing =
        counts->phase == FSM_LIVE_RUNNING && (counts->owner_silent == 0 || !fsm_compiled_inputs_is_open(tick));
    if (counts->phase == FSM_LIVE_PAUSED && counts->steps_left > 0) {
        counts->steps_left--;
        counts->advancing = 1;
    }
}

/* Show no force and have the grip open within the tick; it closes anew at its rate. */
FSM_LOCAL void fsm_release_grip(struct fsm_tick *tick, int64_t reason)
{
    struct fsm_tick_counts *counts = tick->counts;
    if (tick->numbers->grip > 0.0) {
        counts->releases++;
        counts->release_reason = reason;
        counts->look = 1;
    }
    counts->held = 0;
    counts->released = 1;
    tick->numbers->grip = 0.0;
    int64_t last1 = tick->force.n;
    for (int64_t i = 0; i < last1; i++) {
        tick->force.at[i] = 0.0;
    }
}

/* Return why the device is to be released, 0 where it is not: what a held force follows from is missing. */
static int64_t reason_to_release(struct fsm_tick *tick, int64_t since, int64_t silence, bool zeroed)
{
    int64_t longest = tick->counts->release_time;
    if (longest == 0) {
        return 0;
    }
    if (since > longest || zeroed) {
        return FSM_RELEASED_HELD_UP;
    }
    if (silence > longest) {
        return FSM_RELEASED_GUARD_SILENT;
    }
    return tick->counts->unchanged > tick->counts->release_ticks ? FSM_RELEASED_NO_SAMPLE : 0;
}

/* Count the transitions made since the stepper was called last. */
static void count(struct fsm_tick *tick)
{
    int64_t made = tick->places->state->counters->transitions;
    tick->counts->made += made;
    tick->counts->transitions += made;
}

/* Take in what became of the tick. */
static void conclude(struct fsm_tick *tick)
{
    struct fsm_tick_counts *counts = tick->counts;
    int64_t status = counts->status;
    if (counts->fault != FSM_FAULT_NONE && counts->phase != FSM_LIVE_FAULTY) {
        fsm_fail(tick, counts->fault);
    }
    if (counts->advancing == 0) {
        return;
    }
    count(tick);
    if (counts->unfinished != 0) {
        counts->behind++;
        counts->look = 1;
    }
    if (counts->made > 0 && counts->until_transition != 0) {
        counts->look = 1;
    }
    if (status > FSM_DONE) {
        counts->phase = status == FSM_STOPPED ? FSM_LIVE_STOPPED : FSM_LIVE_FAILED;
    }
    if (status > FSM_DONE || wants(status)) {
        counts->look = 1;
    }
}

static bool wants(int64_t status)
{
    return FSM_PAUSED < status && status <= FSM_LAST_INTERNAL;
}

/* Carry out one tick of a live run.

   Parameters
   ----------
   tick_at : int
       Address of a Tick; the device's position and velocity stand in it.
   sequence, buttons : int
       Of the sample.
   wall, lateness : int
       When the tick began and how late that was, ns.
   duration, spent : int
       Time by the clock and of the processor that the tick before took, ns; below 0 where there was none.

   Returns
   -------
   int
       `NOTHING`, `LOOK_AT`, or `WANTS`: then finish_tick is to follow. */
FSM_API int64_t fsm_live_tick(struct fsm_tick *tick, int64_t sequence, int64_t buttons, int64_t wall, int64_t lateness,
                              int64_t duration, int64_t spent)
{
    return fsm_go_through(tick, sequence, buttons, wall, lateness, duration, spent);
}

/* Carry out one tick, see live_tick. */
FSM_LOCAL int64_t fsm_go_through(struct fsm_tick *tick, int64_t sequence, int64_t buttons, int64_t wall,
                                 int64_t lateness, int64_t duration, int64_t spent)
{
    struct fsm_tick_counts *counts = tick->counts;
    counts->look = 0;
    counts->made = 0;
    tick->places->state->counters->work_done = 0;
    counts->sequence = sequence;
    counts->buttons = buttons;
    int64_t since = wall - counts->wall;
    counts->wall = wall;
    counts->lateness = lateness;
    counts->duration = duration;
    counts->processor = spent;
    counts->ticks++;
    int64_t silence = 0;
    bool zeroed = false;
    if (tick->places->ring != 0) {
        struct fsm_ring *ring = tick->places->ring;
        silence = fsm_beat(ring, counts, since);
        zeroed = fsm_was_zeroed(ring, counts);
        fsm_look_at_owner(ring, counts, since);
        if (silence > counts->guard_patience) {
            fsm_fail(tick, FSM_FAULT_GUARD_LOST);
        }
    }
    fsm_take_sample(tick);
    decide(tick, reason_to_release(tick, since, silence, zeroed));
    int64_t status = tick_step_move(tick, counts->phase == FSM_LIVE_RUNNING);
    if (counts->advancing != 0 && wants(status)) {
        return FSM_TICK_WANTS;
    }
    return find_end(tick);
}

/* Show no force and have the grip open within the tick to come; it closes anew at its rate. */
FSM_API void fsm_release_device(struct fsm_tick *tick, int64_t reason)
{
    fsm_release_grip(tick, reason);
}

/* End a tick that wanted something: `again` says that it was given, and the stepper is to go on in this tick. */
FSM_API int64_t fsm_finish_tick(struct fsm_tick *tick, bool again)
{
    if (again) {
        struct fsm_state *state = tick->places->state;
        count(tick);
        if (tick->places->ring != 0) {
            struct fsm_buffers *buffers = tick->places->buffers;
            fsm_put_records(tick->places->ring, buffers, tick->counts->ticks, state->counters->transitions);
        }
        int64_t status = tick_step_move(tick, tick->counts->phase == FSM_LIVE_RUNNING);
        if (wants(status)) {
            return FSM_TICK_WANTS;
        }
    }
    return find_end(tick);
}

/* Take in what became of the tick, and let others know. */
static int64_t find_end(struct fsm_tick *tick)
{
    conclude(tick);
    struct fsm_ring *ring_at = tick->places->ring;
    struct fsm_tick_counts *counts = tick->counts;
    // an owner who is silent records nothing: rows of a model at rest are not to be written over those not taken yet
    if (ring_at != 0 && (counts->owner_silent == 0 || counts->advancing != 0)) {
        fsm_publish(tick->places->state, tick, ring_at, tick->places->buffers);
    }
    return tick->counts->look;
}
