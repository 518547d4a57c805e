/* Samples of the device are untrusted: they are examined before anything follows from them.

   A sample is rejected where a number in it is none, its position lies outside the workspace, its velocity beyond the
   limit or the force of the hand beyond its own or that of its rate, or where the position is farther from that of the sample taken last than the velocity limit allows in the time
   between them, whatever velocity comes with it; a device that shows no force may jump.  The time is that between their
   arrivals, or by the device's clock where a line held the earlier one up.  A rejected sample counts as none:
   the one taken last stands, and the ticks of a stall go on being counted (`stall_ticks`).  More than `outliers` in
   succession are a fault, which the last of them names. */

#include "live.h"

#define FSM_MEDIAN_FACTOR   1.05 // by which a sample moves the median time between samples
#define FSM_MEDIAN_SAMPLES  100  // after which the median is known
#define FSM_SLOW_DEVICE     1.5  // periods between samples, from which on a device is slow
#define FSM_INTERVALS       6.0  // of a device's samples until it is released: all of its force for the first of them
#define FSM_RELEASE_STRETCH 5.0  // times what is set, at most
#define FSM_HALF            0.5

static void note_interval(struct fsm_tick *tick);
static int64_t examine(const struct fsm_tick *tick);
static int64_t examine_force(const struct fsm_tick *tick, double time);
static bool too_fast(const struct fsm_tick *tick, fsm_vector changes, double time);
static bool any_beyond(const struct fsm_tick *tick, fsm_vector changes, double straight, double turning);
static bool beyond(const struct fsm_tick *tick, fsm_vector changes, int64_t part, int64_t turns, double limit);
static fsm_vector since_taken(const struct fsm_tick *tick, int64_t from);
static double time_since(const struct fsm_tick *tick);

/* Latch a fault: the device is disengaged until the fault is cleared. */
FSM_LOCAL void fsm_fail(struct fsm_tick *tick, int64_t fault)
{
    tick->counts->fault = fault;
    tick->counts->phase = FSM_LIVE_FAULT;
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
        note_interval(tick);
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

/* Take the time since the sample before into the median time between samples, and note whether the device is slow.

   The median moves by a constant factor towards every time, of any size. */
static void note_interval(struct fsm_tick *tick)
{
    struct fsm_tick_counts *counts = tick->counts;
    struct fsm_tick_numbers *numbers = tick->numbers;
    if (counts->sample_accepted == 0) {
        numbers->sample_interval = numbers->period;
        return;
    }
    double by_clock = counts->paced != 0 ? FSM_NANOSECOND * (double)(counts->wall - counts->accepted_wall) : 0.0;
    double since = fsm_larger(by_clock, (double)(counts->ticks - counts->accepted_tick) * numbers->period);
    double median = numbers->sample_interval;
    median = since > median ? fsm_smaller(since, median * FSM_MEDIAN_FACTOR) : fsm_larger(since, median / FSM_MEDIAN_FACTOR);
    numbers->sample_interval = fsm_larger(median, numbers->period);
    counts->samples++;
    if (counts->samples == FSM_MEDIAN_SAMPLES && numbers->sample_interval > FSM_SLOW_DEVICE * numbers->period) {
        counts->slow_device = 1;
        counts->attention = 1;
    }
}

/* Return after how many ticks without a sample the device is released: six intervals between its samples, as far as that is allowed. */
FSM_LOCAL int64_t fsm_release_ticks(const struct fsm_tick *tick)
{
    int64_t given = tick->counts->release_ticks;
    double own = FSM_INTERVALS * tick->numbers->sample_interval / tick->numbers->period;
    return fsm_most(given, (int64_t)fsm_smaller(own + FSM_HALF, FSM_RELEASE_STRETCH * (double)given));
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
    double time = time_since(tick);
    bool compared = tick->counts->sample_accepted != 0 && tick->counts->may_jump == 0;
    if (tick->counts->admittance != 0) {
        int64_t wrong = examine_force(tick, compared ? time : FSM_INFINITY);
        if (wrong != FSM_FAULT_NONE) {
            return wrong;
        }
    } else if (too_fast(tick, fsm_vector_part(tick->device, n_d, 2 * n_d), 1.0)) {
        return FSM_FAULT_VELOCITY_EXCEEDED;
    }
    if (compared && too_fast(tick, since_taken(tick, 0), time)) {
        return FSM_FAULT_JUMPED;
    }
    return FSM_FAULT_NONE;
}

/* Return the fault that a measured force shows, a `time` (s) after the one taken last; FSM_FAULT_NONE where it can be taken. */
static int64_t examine_force(const struct fsm_tick *tick, double time)
{
    const struct fsm_tick_numbers *numbers = tick->numbers;
    int64_t n_d = tick->force.n;
    fsm_vector force = fsm_vector_part(tick->device, n_d, 2 * n_d);
    if (any_beyond(tick, force, numbers->hand_force_limit, numbers->hand_torque_limit)) {
        return FSM_FAULT_HAND_FORCE_EXCEEDED;
    }
    bool jumped = any_beyond(tick, since_taken(tick, n_d), time * numbers->hand_force_rate, time * numbers->hand_torque_rate);
    return jumped ? FSM_FAULT_HAND_FORCE_JUMPED : FSM_FAULT_NONE;
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

/* Whether velocities or, in a time (s), displacements of a sample are beyond the limits. */
static bool too_fast(const struct fsm_tick *tick, fsm_vector changes, double time)
{
    for (int64_t i = 0; i < changes.n; i++) {
        if (fabs(changes.at[i]) > time * tick->fastest.at[i]) {
            return true;
        }
    }
    return any_beyond(tick, changes, time * tick->numbers->velocity_limit, time * tick->numbers->angular_velocity_limit);
}

/* Whether the norm of these is beyond a limit for any device: of its axes that are `straight`, or `turning`. */
static bool any_beyond(const struct fsm_tick *tick, fsm_vector changes, double straight, double turning)
{
    for (int64_t k = 0; k < fsm_part_count(tick); k++) {
        if (beyond(tick, changes, k, 0, straight) || beyond(tick, changes, k, 1, turning)) {
            return true;
        }
    }
    return false;
}

/* Whether the norm of these along one kind of axes of a device (0: translation, 1: rotation) is beyond a limit. */
static bool beyond(const struct fsm_tick *tick, fsm_vector changes, int64_t part, int64_t turns, double limit)
{
    double square = 0.0;
    for (int64_t i = 0; i < changes.n; i++) {
        if (fsm_is_of(tick, i, part, turns)) {
            square += changes.at[i] * changes.at[i];
        }
    }
    return square > limit * limit;
}

/* Return the changes of positions (`from` 0), or of velocities or forces (`from` n_d), since the sample taken last. */
static fsm_vector since_taken(const struct fsm_tick *tick, int64_t from)
{
    fsm_vector changes = tick->changes;
    for (int64_t i = 0; i < changes.n; i++) {
        changes.at[i] = tick->device.at[from + i] - tick->taken.at[from + i];
    }
    return changes;
}
