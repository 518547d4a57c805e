/* A tick before its step: samples of the device, examined and taken. */

#include "live.h"

/* -- Samples of the device are untrusted: they are examined before anything follows from them.

   A sample is rejected where a number in it is none, its position lies outside the workspace, its velocity beyond the
   limit or the force of the hand beyond its own or that of its rate, or where the position is farther from that of the
   sample taken last than the velocity limit allows in the time between them, or than the velocities of both explain, and
   where its velocity exceeds that of the displacement, or where positions and velocities of the last samples contradict
   each other; a device that shows no force may jump.  The time is that between their arrivals, or by the device's clock
   where a line held the earlier one up.  A rejected sample counts as none:
   the one taken last stands, and the ticks of a stall continue to be counted (`stall_ticks`).  More than `outliers` in
   succession are a fault, which the last of them names. */

#define FSM_MEDIAN_FACTOR   1.05 // by which a sample moves the median time between samples
#define FSM_MEDIAN_SAMPLES  100  // after which the median is known
#define FSM_SLOW_DEVICE     1.5  // periods between samples, from which on a device is slow
#define FSM_INTERVALS       6.0  // of a device's samples until it is released: all of its force for the first of them
#define FSM_RELEASE_STRETCH 5.0  // times what is set, at most
#define FSM_HALF            0.5

struct fsm_track;

static void note_interval(struct fsm_tick *tick);
static int64_t examine(const struct fsm_tick *tick);
static int64_t examine_force(const struct fsm_tick *tick, double time);
static bool too_fast(const struct fsm_tick *tick, fsm_vector changes, double time);
static bool disagrees(const struct fsm_tick *tick, double time);
static bool drifts(const struct fsm_tick *tick, double time);
static bool repeats(struct fsm_tick *tick);
static bool is_compared(const struct fsm_tick *tick);
static double unexplained(const struct fsm_tick *tick, const struct fsm_track *track, double velocity);
static struct fsm_track followed(const struct fsm_tick *tick, int64_t axis, double time);
static void keep_tracks(struct fsm_tick *tick, double time);
static void note_clock(struct fsm_tick *tick, double time);
static double credit(const struct fsm_tick *tick);
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
    bool fresh = counts->sequence != counts->last_sequence && !repeats(tick);
    counts->last_sequence = counts->sequence;
    int64_t wrong = fresh ? examine(tick) : FSM_FAULT_NONE;
    if (fresh && wrong == FSM_FAULT_NONE) {
        note_interval(tick);
        counts->stale_ticks = 0;
        counts->rejected = 0;
        double time = time_since(tick);
        keep_tracks(tick, time);
        note_clock(tick, time);
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
    if (counts->paced == 0) {
        return counts->stale_ticks;
    }
    if (counts->stale_ticks == 0) {
        int64_t age = (int64_t)(tick->numbers->sample_age / tick->numbers->period);
        return age > fsm_release_ticks(tick) ? age : 0;
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

#define FSM_EQUAL_LONGEST 0.025 // s of equal numbers in motion: velocities estimated from counts change within some 20 ms
#define FSM_EQUAL_GRAINS  1.5   // of the time in which a velocity makes a change of position, likewise
#define FSM_IN_MOTION     1e-6  // of the largest velocity: a filter that has come to rest keeps less

/* Whether the sample has the numbers of the one taken last though the device moves, for longer than its sensors explain.

   A device at rest has equal numbers too.  In motion, one that counts steps has them until the next step is due: the
   smallest change of position seen so far is such a step.  Norms of all axes are in units of their largest velocities. */
static bool repeats(struct fsm_tick *tick)
{
    int64_t n_d = tick->force.n;
    struct fsm_tick_counts *counts = tick->counts;
    struct fsm_tick_numbers *numbers = tick->numbers;
    if (counts->sample_accepted == 0 || counts->admittance != 0) {
        counts->changed_tick = counts->ticks;
        return false;
    }
    double moved = 0.0, speed = 0.0;
    bool equal = true;
    for (int64_t i = 0; i < n_d; i++) {
        double most = tick->turns.at[i] != 0 ? numbers->angular_velocity_limit : numbers->velocity_limit;
        double change = (tick->device.at[i] - tick->taken.at[i]) / most, velocity = tick->device.at[n_d + i] / most;
        moved += change * change;
        speed += velocity * velocity;
        equal = equal && change == 0.0 && tick->device.at[n_d + i] == tick->taken.at[n_d + i];
    }
    if (!equal) {
        counts->changed_tick = counts->ticks;
        if (moved > 0.0 && (numbers->grain == 0.0 || moved < numbers->grain * numbers->grain)) {
            numbers->grain = sqrt(moved);
        }
        return false;
    }
    double since = (double)(counts->ticks - counts->changed_tick) * numbers->period, rate = sqrt(speed);
    if (rate <= FSM_IN_MOTION) {
        return false;
    }
    double next = numbers->grain > 0.0 ? FSM_EQUAL_GRAINS * numbers->grain / rate : FSM_EQUAL_LONGEST;
    return since > fsm_smaller(FSM_EQUAL_LONGEST, next);
}

/* Whether a sample is compared with the one taken last.  While a released device settles it shows no force, and what waited
   in its line is as old as the stop. */
static bool is_compared(const struct fsm_tick *tick)
{
    const struct fsm_tick_counts *counts = tick->counts;
    return counts->sample_accepted != 0 && !(counts->released != 0 && counts->settling > 0);
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
    bool compared = is_compared(tick) && tick->counts->may_jump == 0;
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
    if (!compared || tick->counts->admittance != 0) {
        return FSM_FAULT_NONE;
    }
    return disagrees(tick, time) || drifts(tick, time) ? FSM_FAULT_DISAGREED : FSM_FAULT_NONE;
}

#define FSM_PLACE_SLACK    0.001 // m, of a displacement that the velocities do not explain: a step of the sensor, a late sample
#define FSM_SPEED_SLACK    1.0  // m/s, of a velocity that the displacement does not show: a filter
#define FSM_TURN_SLACK     10.0 // times these, in rad and rad/s
#define FSM_UP_TO_VELOCITY 0.02 // s in which a device may reach the largest velocity

/* Whether position and velocity of a sample, a `time` (s) after the one taken last, contradict each other.

   A displacement lies between zero and those by the velocities at its beginning and its end: after late ticks the device
   may have moved for a part of the time only.  A speed exceeds neither the one before nor that of the displacement, also
   where the device strikes a stop.  Both hold up to a slack and an acceleration. */
static bool disagrees(const struct fsm_tick *tick, double time)
{
    fsm_vector changes = tick->changes;
    const struct fsm_tick_numbers *numbers = tick->numbers;
    int64_t n_d = changes.n;
    double straight = numbers->velocity_limit * time / FSM_UP_TO_VELOCITY; // gained in the time, m/s
    double turning = numbers->angular_velocity_limit * time / FSM_UP_TO_VELOCITY;
    for (int64_t i = 0; i < n_d; i++) {
        double begin = tick->taken.at[n_d + i] * time, end = tick->device.at[n_d + i] * time;
        double moved = tick->device.at[i] - tick->taken.at[i];
        double least = fsm_smaller(0.0, fsm_smaller(begin, end)), most = fsm_larger(0.0, fsm_larger(begin, end));
        changes.at[i] = moved - fsm_larger(least, fsm_smaller(moved, most));
    }
    if (any_beyond(tick, changes, FSM_PLACE_SLACK + FSM_HALF * straight * time,
                   FSM_TURN_SLACK * FSM_PLACE_SLACK + FSM_HALF * turning * time)) {
        return true;
    }
    for (int64_t i = 0; i < n_d; i++) {
        double moved = fabs(tick->device.at[i] - tick->taken.at[i]);
        double speed = fsm_larger(fabs(tick->taken.at[n_d + i]), time > 0.0 ? moved / time : 0.0);
        changes.at[i] = fsm_larger(0.0, fabs(tick->device.at[n_d + i]) - speed);
    }
    return any_beyond(tick, changes, FSM_SPEED_SLACK + straight, FSM_TURN_SLACK * FSM_SPEED_SLACK + turning);
}

#define FSM_TRACK_MEMORY   0.05 // s, in which what positions and velocities leave unexplained is forgotten
#define FSM_OTHER_FILTER   0.3  // of the lag, for what a filter of another kind leaves unexplained
#define FSM_VELOCITY_ERROR 0.1  // share by which a velocity may be wrong
#define FSM_LATE_SAMPLE    1.5  // intervals between samples, from which on the device may have moved for a part of the time

/* What the velocities leave unexplained of an axis's displacement lately, m or rad, between two bounds, and the range of
   the velocity. */
struct fsm_track {
    double least, most, slowest, fastest;
};

/* Whether the displacements of the last samples and their velocities contradict each other, a `time` (s) after the one
   taken last.

   A position that creeps, or is held, with an honest velocity, a velocity that is stuck or reversed, and jumps below the
   slack of one sample are seen by their sum alone.  A filter of first order with lag `d` leaves `d (v - v_0)` unexplained
   in any motion, with `v_0` a mean of the velocities before; other filters a little more. */
static bool drifts(const struct fsm_tick *tick, double time)
{
    fsm_vector changes = tick->changes;
    for (int64_t i = 0; i < changes.n; i++) {
        struct fsm_track track = followed(tick, i, time);
        changes.at[i] = unexplained(tick, &track, tick->device.at[changes.n + i]);
    }
    // with the largest acceleration, in the time of one sample: rejected ones do not add to it
    double usual = fsm_smaller(time, fsm_larger(tick->numbers->period, tick->numbers->sample_interval));
    double gained = FSM_HALF / FSM_UP_TO_VELOCITY * usual * usual;
    return any_beyond(tick, changes, FSM_PLACE_SLACK + gained * tick->numbers->velocity_limit,
                      FSM_TURN_SLACK * FSM_PLACE_SLACK + gained * tick->numbers->angular_velocity_limit);
}

/* Return what remains of a track that no filter of velocities explains, m or rad. */
static double unexplained(const struct fsm_tick *tick, const struct fsm_track *track, double velocity)
{
    double lag = tick->numbers->velocity_lag;
    double more = track->least - lag * (velocity - track->slowest), less = -track->most - lag * (track->fastest - velocity);
    double beside = FSM_OTHER_FILTER * lag * (track->fastest - track->slowest);
    return fsm_larger(0.0, fsm_larger(more, less) - beside);
}

/* Return the shortest time that may lie between a sample and the one taken last, at most `time` (s). */
static double least_time(const struct fsm_tick *tick, double time)
{
    const struct fsm_tick_counts *counts = tick->counts;
    double by_device = tick->numbers->sample_time - tick->numbers->accepted_time;
    double by_clock = counts->paced != 0 ? FSM_NANOSECOND * (double)(counts->wall - counts->accepted_wall) : time;
    double by_ticks = (double)(counts->ticks - counts->accepted_tick) * tick->numbers->period;
    double least = fsm_smaller(time, fsm_smaller(by_clock, by_ticks));
    return by_device > 0.0 ? fsm_smaller(least, by_device) : least;
}

/* Return the track of an axis with the sample, a `time` (s) after the one taken last. */
static struct fsm_track followed(const struct fsm_tick *tick, int64_t axis, double time)
{
    int64_t n_d = tick->force.n;
    const struct fsm_tick_numbers *numbers = tick->numbers;
    double before = tick->taken.at[n_d + axis], now = tick->device.at[n_d + axis], least = least_time(tick, time);
    double slower = fsm_smaller(before, now), faster = fsm_larger(before, now);
    double low = (slower < 0.0 ? (1.0 + FSM_VELOCITY_ERROR) * time : (1.0 - FSM_VELOCITY_ERROR) * least) * slower;
    double high = (faster > 0.0 ? (1.0 + FSM_VELOCITY_ERROR) * time : (1.0 - FSM_VELOCITY_ERROR) * least) * faster;
    if (tick->counts->rejected == 0 && time > FSM_LATE_SAMPLE * fsm_larger(numbers->period, numbers->sample_interval)) {
        double most = tick->turns.at[axis] != 0 ? numbers->angular_velocity_limit : numbers->velocity_limit;
        double gained = FSM_HALF * most / FSM_UP_TO_VELOCITY * time * time;
        low = fsm_smaller(low, 0.0) - gained;
        high = fsm_larger(high, 0.0) + gained;
    }
    const double *track = tick->tracks.at + 4 * axis;
    double kept = fsm_larger(0.0, 1.0 - time / FSM_TRACK_MEMORY), moved = tick->device.at[axis] - tick->taken.at[axis];
    return (struct fsm_track){
        .least = kept * track[0] + moved - high,
        .most = kept * track[1] + moved - low,
        .slowest = fsm_smaller(now, now + kept * (track[2] - now)),
        .fastest = fsm_larger(now, now + kept * (track[3] - now)),
    };
}

/* Take the sample into the tracks, a `time` (s) after the one taken last. */
static void keep_tracks(struct fsm_tick *tick, double time)
{
    int64_t n_d = tick->force.n;
    for (int64_t i = 0; i < n_d; i++) {
        double velocity = tick->device.at[n_d + i];
        struct fsm_track track = {0.0, 0.0, velocity, velocity};
        if (is_compared(tick)) {
            track = followed(tick, i, time);
        }
        double *kept = tick->tracks.at + 4 * i;
        kept[0] = track.least;
        kept[1] = track.most;
        kept[2] = track.slowest;
        kept[3] = track.fastest;
        tick->unexplained.at[i] = unexplained(tick, &track, velocity);
    }
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

#define FSM_CLOCK_MEMORY 2.0  // s, in which the device's clock may drift against that of the loop

/* Note how old the sample is, a `time` (s) after the one taken last: by how much the device's clock is behind the loop's,
   compared with the least of the last seconds.  A sample as old as a release is none.  Late ticks are not
   the device's: one that is simulated tick by tick stands still meanwhile. */
static void note_clock(struct fsm_tick *tick, double time)
{
    struct fsm_tick_numbers *numbers = tick->numbers;
    const struct fsm_tick_counts *counts = tick->counts;
    double lead = numbers->sample_time - FSM_NANOSECOND * (double)counts->wall;
    double late = FSM_NANOSECOND * (double)(counts->wall - counts->accepted_wall) -
                  (double)(counts->ticks - counts->accepted_tick) * numbers->period;
    double behind = numbers->clock_lead - lead - late; // of either sign, so that jitter adds up to nothing
    bool runs = counts->sample_accepted != 0 && numbers->sample_time > numbers->accepted_time;
    if (!runs || !(fabs(behind) < FSM_CLOCK_MEMORY)) { // a device without a clock, or a clock set again
        behind = 0.0;
    }
    behind = fsm_larger(0.0, behind * (1.0 - fsm_smaller(1.0, time / FSM_CLOCK_MEMORY)));
    numbers->clock_lead = fsm_is_finite(lead) ? lead + behind : 0.0;
    numbers->sample_age = behind;
}

/* Return by how much more than the loop's clock that of the device may count: the age of the sample taken last, at most
   the time in which a line may lag without the device being released, s. */
static double credit(const struct fsm_tick *tick)
{
    const struct fsm_tick_counts *counts = tick->counts;
    double most = fsm_smaller((double)counts->release_ticks, (double)counts->stall_ticks) * tick->numbers->period;
    return counts->paced != 0 ? fsm_smaller(most, tick->numbers->sample_age) : most;
}

/* Return the time since the sample taken last, s: by the clock, by the ticks or by the device's clock, whichever is most. */
static double time_since(const struct fsm_tick *tick)
{
    const struct fsm_tick_counts *counts = tick->counts;
    const struct fsm_tick_numbers *numbers = tick->numbers;
    double by_clock = FSM_NANOSECOND * (double)(counts->wall - counts->accepted_wall);
    double since = fsm_larger(by_clock, (double)(counts->ticks - counts->accepted_tick) * numbers->period);
    double by_device = numbers->sample_time - numbers->accepted_time;
    return by_device > since ? fsm_smaller(by_device, since + credit(tick)) : since;
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
