/* Samples of the device are untrusted: they are examined before anything follows from them.

   A sample is rejected where a number in it is none, its position lies outside the workspace or its velocity beyond the
   limit, or where the position is farther from that of the sample taken last than the velocity limit allows in the time
   between them, whatever velocity comes with it; a device that shows no force may jump.  The time is that between their
   arrivals, or by the device's clock where a line held the earlier one up.  A rejected sample counts as none:
   the one taken last stands, and the ticks of a stall go on being counted (`stall_ticks`).  More than `outliers` in
   succession are a fault, which the last of them names. */

#include "live.h"

static int64_t examine(const struct fsm_tick *tick);
static bool too_fast(const struct fsm_tick *tick, bool jump, double time);
static double change_of(const struct fsm_tick *tick, bool jump, int64_t axis);
static bool beyond(const struct fsm_tick *tick, bool jump, int64_t part, int64_t turns, double limit);
static double time_since(const struct fsm_tick *tick);

/* Latch a fault: the device is disengaged until the fault is cleared. */
FSM_LOCAL void fsm_fail(struct fsm_tick *tick, int64_t fault)
{
    tick->counts->fault = fault;
    tick->counts->phase = FSM_LIVE_FAULTY;
    tick->counts->attention = 1;
}

/* Take the sample that was read, or leave the one before where it is none that can be taken. */
FSM_LOCAL void fsm_take_sample(struct fsm_tick *tick)
{
    struct fsm_tick_counts *counts = tick->counts;
    bool fresh = counts->sequence != counts->last_sequence;
    counts->last_sequence = counts->sequence;
    int64_t wrong = fresh ? examine(tick) : FSM_FAULT_NONE;
    if (fresh && wrong == FSM_FAULT_NONE) {
        counts->stale_ticks = 0;
        counts->rejected = 0;
        counts->sample_accepted = 1;
        counts->accepted_wall = counts->wall;
        counts->accepted_tick = counts->ticks;
        tick->numbers->accepted_time = tick->numbers->sample_time;
        fsm_put(tick->taken, tick->device);
        return;
    }
    fsm_put(tick->device, tick->taken);
    counts->stale_ticks++;
    if (wrong != FSM_FAULT_NONE) {
        counts->rejected++;
        counts->rejected_total++;
        counts->attention = 1;
    }
    if (counts->phase != FSM_LIVE_RUNNING) {
        return;
    }
    if (counts->rejected > counts->outliers && wrong != FSM_FAULT_NONE) {
        fsm_fail(tick, wrong);
    } else if (fsm_ticks_without_sample(tick) > counts->stall_ticks) {
        fsm_fail(tick, FSM_FAULT_STALLED);
    }
}

/* Return the ticks without a sample that could be taken, as many as fit the time since the last one. */
FSM_LOCAL int64_t fsm_ticks_without_sample(const struct fsm_tick *tick)
{
    const struct fsm_tick_counts *counts = tick->counts;
    if (counts->stale_ticks == 0 || counts->paced == 0) {
        return counts->stale_ticks;
    }
    double since = FSM_NANOSECOND * (double)(counts->wall - counts->accepted_wall);
    return fsm_most(counts->stale_ticks, (int64_t)(since / tick->numbers->period));
}

/* Return the fault that a sample shows, FSM_FAULT_NONE where it can be taken. */
static int64_t examine(const struct fsm_tick *tick)
{
    int64_t n_d = tick->force.n;
    for (int64_t i = 0; i < n_d; i++) {
        if (!(fsm_is_finite(tick->device.at[i]) && fsm_is_finite(tick->device.at[n_d + i]))) {
            return FSM_FAULT_NON_FINITE;
        }
    }
    for (int64_t i = 0; i < n_d; i++) {
        if (tick->device.at[i] < tick->low.at[i] || tick->device.at[i] > tick->high.at[i]) {
            return FSM_FAULT_OUT_OF_WORKSPACE;
        }
    }
    if (tick->counts->admittance == 0 && too_fast(tick, false, 1.0)) {
        return FSM_FAULT_VELOCITY_EXCEEDED;
    }
    if (tick->counts->sample_accepted != 0 && tick->counts->may_jump == 0 && too_fast(tick, true, time_since(tick))) {
        return FSM_FAULT_JUMPED;
    }
    return FSM_FAULT_NONE;
}

/* Return the time since the sample taken last, s: by the clock, by the ticks or by the device's clock, whichever is most.

   The device's clock counts as far as a line may lag without the device being released. */
static double time_since(const struct fsm_tick *tick)
{
    const struct fsm_tick_counts *counts = tick->counts;
    const struct fsm_tick_numbers *numbers = tick->numbers;
    double by_clock = FSM_NANOSECOND * (double)(counts->wall - counts->accepted_wall);
    double since = fsm_larger(by_clock, (double)(counts->ticks - counts->accepted_tick) * numbers->period);
    double by_device = numbers->sample_time - numbers->accepted_time;
    double most = since + fsm_smaller((double)counts->release_ticks, (double)counts->stall_ticks) * numbers->period;
    return by_device > since ? fsm_smaller(by_device, most) : since;
}

/* Whether a sample's velocity or, for a `jump`, its displacement in a time (s) is beyond the limits. */
static bool too_fast(const struct fsm_tick *tick, bool jump, double time)
{
    int64_t n_d = tick->force.n;
    for (int64_t i = 0; i < n_d; i++) {
        if (fabs(change_of(tick, jump, i)) > time * tick->fastest.at[i]) {
            return true;
        }
    }
    for (int64_t k = 0; k < fsm_part_count(tick); k++) {
        if (beyond(tick, jump, k, 0, time * tick->numbers->velocity_limit) ||
            beyond(tick, jump, k, 1, time * tick->numbers->angular_velocity_limit)) {
            return true;
        }
    }
    return false;
}

/* Return an axis's displacement since the sample taken last (`jump`), or its velocity. */
static double change_of(const struct fsm_tick *tick, bool jump, int64_t axis)
{
    return jump ? tick->device.at[axis] - tick->taken.at[axis] : tick->device.at[tick->force.n + axis];
}

/* Whether the norm of these along one kind of axes of a device (0: translation, 1: rotation) is beyond a limit. */
static bool beyond(const struct fsm_tick *tick, bool jump, int64_t part, int64_t turns, double limit)
{
    double square = 0.0;
    for (int64_t i = 0; i < tick->force.n; i++) {
        if (fsm_is_of(tick, i, part, turns)) {
            square += change_of(tick, jump, i) * change_of(tick, jump, i);
        }
    }
    return square > limit * limit;
}
