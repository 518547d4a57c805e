/* From the model to the device: forces and motions of the ports, and the force on the device within its saturation
   limits and slew-rate limits. */

#include "live.h"

#define FSM_CATCH_UP   10.0 // ticks in which a small lag is made up for
#define FSM_MARGIN     0.02 // of the workspace, at its ends, that a device which follows is kept out of
#define FSM_AHEAD_MOST 4.0  // periods that a port is moved on by where the model is behind the clock

static void show(struct fsm_tick *tick, bool shown);
static void note_saturation(struct fsm_tick *tick, double force, double torque);
static void update_lag(struct fsm_tick *tick, bool shown);
static void combine_ports(struct fsm_tick *tick);
static double from_port(const struct fsm_tick *tick, int64_t axis);
static double fastest_device(const struct fsm_tick *tick, int64_t device);
static double longest_lag(const struct fsm_tick *tick, int64_t device);
static double coupler_force(const struct fsm_tick *tick, int64_t axis);
static double braking(const struct fsm_tick *tick, int64_t device, double distance);
static double caught_up(struct fsm_tick *tick, int64_t device, double velocity);
static double within_workspace(const struct fsm_tick *tick, int64_t device, double velocity);
static void fade(struct fsm_tick *tick);
static double saturate(struct fsm_tick *tick, int64_t part, int64_t turns, double limit);
static bool limit_slew_rate(struct fsm_tick *tick, int64_t part, int64_t turns, double limit);

/* Evaluate force, position and rate of all axes into `tick->ports`; the force of a prescribed one is the multiplier of
   its row. */
FSM_LOCAL void fsm_report_ports(struct fsm_tick *tick)
{
    const struct fsm_tables *tables = tick->places->run.tables;
    const struct fsm_state *state = tick->places->run.state;
    ((fsm_kernel)(intptr_t)tick->counts->kernel)(state->clock->time, state->x.at, state->c.at, tick->ports.at);
    bool prescribed = false;
    for (int64_t a = 0; a < tick->row.n; a++) {
        prescribed = prescribed || tick->row.at[a] >= 0;
    }
    if (!prescribed) {
        return;
    }
    int64_t mode = state->counters->mode;
    tables->mode_full.at[mode](state->clock->time, state->x.at, state->c.at, tick->full.at);
    int64_t n = tables->sizes->n_q + tables->sizes->n_u;
    int64_t at = n + tables->sizes->n_u + 1 + 2 * fsm_guard_count(tables, mode);
    for (int64_t a = 0; a < tick->row.n; a++) {
        if (tick->row.at[a] >= 0) {
            tick->ports.at[a] = tick->numbers->engagement * tick->full.at[at + tick->row.at[a]];
        }
    }
}

/* Compute the force on the device (N, N m) or, where it follows, its velocity (m/s, rad/s) into `tick->force`.

   It is zero unless `shown`, and after a fault or a release. */
FSM_LOCAL void fsm_show(struct fsm_tick *tick, bool shown)
{
    show(tick, shown);
    for (int64_t a = 0; a < tick->left.n; a++) {
        if (tick->row.at[a] == FSM_APPLIED || tick->counts->incomplete == 0) {
            tick->left.at[a] = tick->ports.at[tick->left.n + a];
        }
    }
    update_lag(tick, shown);
}

static void show(struct fsm_tick *tick, bool shown)
{
    shown = shown && tick->counts->released == 0;
    if (shown && tick->counts->fault == FSM_FAULT_NONE) {
        combine_ports(tick);
        fade(tick);
    }
    if (!shown || tick->counts->fault != FSM_FAULT_NONE) {
        fsm_vector_fill(tick->force, 0.0);
        return;
    }
    double force = 0.0, torque = 0.0;
    bool limited = false;
    // a force beyond its limit would stay there for most of the ramp of the engagement: the limit falls with it
    double part = tick->counts->admittance != 0 ? 1.0 : tick->numbers->engagement;
    for (int64_t k = 0; k < fsm_part_count(tick); k++) {
        double beyond_force = saturate(tick, k, 0, part * tick->numbers->force_limit);
        double beyond_torque = saturate(tick, k, 1, part * tick->numbers->torque_limit);
        if (part == 1.0) {
            force = fsm_larger(force, beyond_force);
            torque = fsm_larger(torque, beyond_torque);
        }
        limited = limit_slew_rate(tick, k, 0, tick->numbers->slew_limit) || limited;
        limited = limit_slew_rate(tick, k, 1, tick->numbers->torque_slew_limit) || limited;
    }
    note_saturation(tick, force, torque);
    if (limited || force > 0.0 || torque > 0.0) {
        tick->counts->saturated_ticks++;
    }
}

/* Return the number of devices whose axes are those of the tick. */
FSM_LOCAL int64_t fsm_part_count(const struct fsm_tick *tick)
{
    return tick->part.n > 0 ? tick->part.at[tick->part.n - 1] + 1 : 0;
}

/* Whether an axis is one of device `part`, and of the kind `turns` (0: translation, 1: rotation). */
FSM_LOCAL bool fsm_is_of(const struct fsm_tick *tick, int64_t axis, int64_t part, int64_t turns)
{
    return tick->part.at[axis] == part && tick->turns.at[axis] == turns;
}

/* Carry the forces of the ports over to the device, the same power on both sides but for the force scale.

   The force of the passivity controller is added. */
static void combine_ports(struct fsm_tick *tick)
{
    for (int64_t i = 0; i < tick->force.n; i++) {
        double wanted = 0.0;
        for (int64_t a = 0; a < tick->source.n; a++) {
            if (tick->source.at[a] == i) {
                wanted += from_port(tick, a);
            }
        }
        if (tick->back.at[i] != 0.0) {
            wanted += tick->back.at[i];
        }
        if (tick->counts->admittance != 0) {
            double port = wanted, followed = caught_up(tick, i, port);
            wanted = within_workspace(tick, i, followed);
            // a device at the end of its workspace is left behind by any port
            if (wanted == followed && fabs(port) > fastest_device(tick, i) && fabs(tick->lag.at[i]) > longest_lag(tick, i)) {
                tick->counts->fault = FSM_FAULT_OUTRUN;
            }
        }
        if (!fsm_is_finite(wanted)) {
            tick->counts->fault = FSM_FAULT_NON_FINITE;
        }
        tick->wanted.at[i] = wanted;
    }
}

/* Return what an axis of a port asks of the device: the force on it or, where it follows, the velocity of the port. */
static double from_port(const struct fsm_tick *tick, int64_t axis)
{
    if (tick->row.at[axis] != FSM_APPLIED) {
        return -tick->numbers->force_scale * tick->scale.at[axis] * coupler_force(tick, axis);
    }
    // the mean over the tick: their sum is the displacement of the port
    double moved = tick->ports.at[tick->source.n + axis] - tick->left.at[axis];
    return tick->numbers->engagement * moved / (tick->scale.at[axis] * tick->numbers->period);
}

/* Return the force on the model along an axis of a port, at the end of the tick.

   Where the model is behind the clock, the force of the instant that it has reached is some ticks old, and a hand feels it
   for too long.  The coupler is then taken between the device, as sampled last, and the port, moved on at its present
   rate (docs/theory.md, "The work of a tick"), with the engagement of the clock, which the model may not have reached.  A
   port farther behind than one tick makes up for, or faster than the device may be, is none to be followed: it stands where
   the last complete tick left it. */
static double coupler_force(const struct fsm_tick *tick, int64_t axis)
{
    int64_t n_a = tick->source.n, device = tick->source.at[axis];
    double behind = fsm_time_behind(tick);
    if (behind <= 0.0 || tick->row.at[axis] >= 0 || device < 0) {
        return tick->ports.at[axis];
    }
    fsm_vector c = tick->places->run.state->c;
    double place = tick->offset.at[axis] + tick->scale.at[axis] * tick->device.at[device] + tick->shift.at[axis];
    double velocity =
        tick->scale.at[axis] * tick->device.at[tick->force.n + device] / tick->numbers->speed + tick->glide.at[n_a + axis];
    double rate = tick->ports.at[2 * n_a + axis], port = tick->ports.at[n_a + axis];
    double period = (double)tick->counts->substeps * tick->places->run.options->numbers->fixed_step;
    if (behind <= FSM_CAUGHT_UP_MOST * period && fabs(rate) <= fsm_fastest_port(tick, axis)) {
        port += fsm_smaller(behind, FSM_AHEAD_MOST * period) * rate;
    } else {
        rate = 0.0;
        port = tick->left.at[axis];
    }
    double spring = c.at[tick->law.at[axis]] * (place - port), damper = c.at[tick->law.at[n_a + axis]] * (velocity - rate);
    return tick->numbers->engagement * (spring + damper);
}

/* Return the rate of a port (m/s, rad/s) at the largest velocity that the device may have. */
FSM_LOCAL double fsm_fastest_port(const struct fsm_tick *tick, int64_t axis)
{
    const struct fsm_tick_numbers *numbers = tick->numbers;
    bool turns = tick->turns.at[tick->source.at[axis]] != 0;
    double most = turns ? numbers->angular_velocity_limit : numbers->velocity_limit;
    return fabs(tick->scale.at[axis]) * most / numbers->speed;
}

/* Return the model time (s) by which the model is behind the end of the tick. */
FSM_LOCAL double fsm_time_behind(const struct fsm_tick *tick)
{
    const struct fsm_tick_counts *counts = tick->counts;
    const struct fsm_run *run = &tick->places->run;
    double period = (double)counts->substeps * run->options->numbers->fixed_step;
    double left = counts->incomplete != 0 ? run->options->numbers->until - run->state->clock->time : 0.0;
    return left + (double)counts->behind * period;
}

/* Return the largest velocity from which a device comes to rest within a distance, slowing down as fast as it may. */
static double braking(const struct fsm_tick *tick, int64_t device, double distance)
{
    double slew = tick->turns.at[device] != 0 ? tick->numbers->torque_slew_limit : tick->numbers->slew_limit;
    return distance > 0.0 ? sqrt(2.0 * slew / tick->numbers->period * distance) : 0.0;
}

/* Return the largest speed of a device, m/s or rad/s. */
static double fastest_device(const struct fsm_tick *tick, int64_t device)
{
    return tick->turns.at[device] != 0 ? tick->numbers->torque_limit : tick->numbers->force_limit;
}

/* Return the distance in which a device comes to rest from its largest speed. */
static double longest_lag(const struct fsm_tick *tick, int64_t device)
{
    double slew = tick->turns.at[device] != 0 ? tick->numbers->torque_slew_limit : tick->numbers->slew_limit;
    double speed = fastest_device(tick, device);
    return 0.5 * speed * speed * tick->numbers->period / slew;
}

/* Subtract from the lag what the device is commanded to move.

   It is at most the distance in which the device comes to rest from its largest speed.  Beyond that a port that is faster
   than the device may be has outrun it, which is a fault; one that the workspace keeps the device from is not followed. */
static void update_lag(struct fsm_tick *tick, bool shown)
{
    const struct fsm_tick_numbers *numbers = tick->numbers;
    bool follows = shown && tick->counts->fault == FSM_FAULT_NONE && numbers->engagement > 0.0;
    for (int64_t i = 0; i < tick->lag.n; i++) {
        double most = longest_lag(tick, i);
        double lag = tick->lag.at[i] - numbers->period * tick->force.at[i];
        tick->lag.at[i] = follows ? fsm_larger(-most, fsm_smaller(lag, most)) : 0.0;
    }
}

/* Return the velocity of the port with what brings the device back to it where the limits have held it up. */
static double caught_up(struct fsm_tick *tick, int64_t device, double velocity)
{
    double lag = tick->lag.at[device], period = tick->numbers->period;
    tick->lag.at[device] += period * velocity;
    double most = fsm_smaller(fabs(lag) / (FSM_CATCH_UP * period), 0.5 * braking(tick, device, fabs(lag)));
    return velocity + (lag < 0.0 ? -most : most);
}

/* Return a velocity reduced so that the device comes to rest within its workspace. */
static double within_workspace(const struct fsm_tick *tick, int64_t device, double velocity)
{
    double low = tick->low.at[device], high = tick->high.at[device], at = tick->device.at[device];
    double room = (velocity > 0.0 ? high - at : at - low) - FSM_MARGIN * (high - low);
    double most = braking(tick, device, room);
    return fsm_larger(-most, fsm_smaller(velocity, most));
}

/* Let the force fade while no sample comes: it would push on, whatever becomes of the device.

   All of it for a sixth of the time after which the device is released, nothing after half of it. */
static void fade(struct fsm_tick *tick)
{
    int64_t most = fsm_release_ticks(tick), missing = fsm_ticks_without_sample(tick);
    if (6 * missing <= most) {
        return;
    }
    double part = most > 0 ? fsm_larger(0.0, 1.5 - 3.0 * (double)missing / (double)most) : 1.0;
    tick->counts->faded_ticks += most > 0;
    for (int64_t i = 0; i < tick->wanted.n; i++) {
        tick->wanted.at[i] *= part;
    }
}

/* Scale what is wanted along one kind of axes of a device (0: translation, 1: rotation) to a norm of at most `limit`.

   Returns the norm it had if that was beyond the limit, else 0. */
static double saturate(struct fsm_tick *tick, int64_t part, int64_t turns, double limit)
{
    double square = 0.0;
    for (int64_t i = 0; i < tick->wanted.n; i++) {
        if (fsm_is_of(tick, i, part, turns)) {
            square += tick->wanted.at[i] * tick->wanted.at[i];
        }
    }
    if (square <= limit * limit) {
        return 0.0;
    }
    double norm = sqrt(square);
    for (int64_t i = 0; i < tick->wanted.n; i++) {
        if (fsm_is_of(tick, i, part, turns)) {
            tick->wanted.at[i] *= limit / norm;
        }
    }
    return norm;
}

/* Count the occasions on which the model asks for more than the device may show; norms, 0 within the limits.

   An occasion ends when nothing was beyond the limits for a while; a device that shows no force has none. */
static void note_saturation(struct fsm_tick *tick, double force, double torque)
{
    struct fsm_tick_counts *counts = tick->counts;
    if ((force > 0.0 || torque > 0.0) && counts->may_jump == 0) {
        if (counts->saturation_ticks_left == 0) {
            counts->saturations++;
            counts->attention = 1;
            tick->numbers->force_requested = force;
            tick->numbers->torque_requested = torque;
        }
        counts->saturation_ticks_left = fsm_most(1, (int64_t)(FSM_OCCASION / tick->numbers->period));
    } else if (counts->saturation_ticks_left > 0) {
        counts->saturation_ticks_left--;
    }
}

/* Move the force along one kind of axes of a device towards what is wanted, by at most `limit` in a tick; return whether it was
   limited. */
static bool limit_slew_rate(struct fsm_tick *tick, int64_t part, int64_t turns, double limit)
{
    double square = 0.0;
    for (int64_t i = 0; i < tick->wanted.n; i++) {
        if (fsm_is_of(tick, i, part, turns)) {
            double change = tick->wanted.at[i] - tick->force.at[i];
            square += change * change;
        }
    }
    double factor = square <= limit * limit ? 1.0 : limit / sqrt(square);
    for (int64_t i = 0; i < tick->wanted.n; i++) {
        if (fsm_is_of(tick, i, part, turns)) {
            tick->force.at[i] += factor * (tick->wanted.at[i] - tick->force.at[i]);
        }
    }
    return factor < 1.0;
}
