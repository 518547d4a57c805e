/* A tick before and after its step: inputs of the model, force of the device. */

#include "live.h"

/* -- From the device to the model's inputs: the ramp of the engagement, the map from device to port, and the filter of
   prescribed coordinates, which must move smoothly. */

#define FSM_APPROACH (1.0 / 30.0) // of the largest velocity: of a coupler's end on its way to the device

static void smooth_inputs(struct fsm_tick *tick, double h);
static double glide(struct fsm_tick *tick, int64_t axis, double velocity, double h);
static double approach(struct fsm_tick *tick, int64_t axis, double place, double h);
static double share_left(double engagement);
static double applied_force(const struct fsm_tick *tick, int64_t axis);

/* Ramp the engagement towards its target by what a tick of the wall clock is worth, also where the model does not keep up.

   It falls by as much as a late tick took; it rises by a step a tick. */
FSM_LOCAL void fsm_ramp_engagement(struct fsm_tick *tick)
{
    struct fsm_tick_numbers *numbers = tick->numbers;
    if (tick->counts->fault != FSM_FAULT_NONE) {
        numbers->engagement = 0.0;
        numbers->engagement_target = 0.0;
    }
    double grip = numbers->engagement, target = numbers->engagement_target;
    // where an engagement begins the inputs move to the port first, and the ramp begins with the tick after
    double rise = tick->counts->anchor == 0 ? numbers->engagement_step : 0.0;
    double fall = numbers->engagement_step * fsm_larger(1.0, numbers->elapsed / numbers->period);
    tick->counts->follows = target > 0.0 || grip > 0.0;
    numbers->engagement = grip < target ? fsm_smaller(grip + rise, target) : fsm_larger(grip - fall, target);
}

/* Write the inputs at the end of a tick of length `h` (s).

   The position of a coupler follows the device for as long as it is engaged: while the engagement is ramped down, the
   spring follows the device's motion, and the force only falls.  After a fault, or once the device was released, it
   stays: the engagement is zero at the end of the tick, whatever the device says. */
FSM_LOCAL void fsm_next_inputs(struct fsm_tick *tick, double h)
{
    int64_t n_a = tick->source.n, n_d = tick->force.n;
    bool follows = tick->counts->follows != 0;
    for (int64_t a = 0; a < n_a; a++) {
        int64_t source = tick->source.at[a], at = tick->slot.at[a], rate = tick->slot.at[n_a + a],
                grip = tick->slot.at[2 * n_a + a];
        if (tick->row.at[a] == FSM_APPLIED) {
            tick->targets.at[at] = follows && source >= 0 ? applied_force(tick, a) : 0.0;
            continue;
        }
        double place = tick->now.at[at], velocity = 0.0;
        if (source >= 0 && follows) {
            velocity = tick->scale.at[a] * tick->device.at[n_d + source] / tick->numbers->speed;
            if (tick->counts->absolute_offset == 0) {
                if (tick->counts->anchor != 0) {
                    double begin = tick->row.at[a] >= 0 ? tick->now.at[at] : tick->ports.at[n_a + a];
                    tick->offset.at[a] = begin - tick->scale.at[a] * tick->device.at[source];
                }
                velocity += glide(tick, a, velocity, h);
            }
            place = tick->offset.at[a] + tick->scale.at[a] * tick->device.at[source];
            velocity += approach(tick, a, place, h);
            place += tick->shift.at[a];
        }
        tick->targets.at[at] = place;
        if (tick->row.at[a] >= 0) {
            tick->target_rate.at[rate] = velocity;
        } else {
            tick->targets.at[rate] = velocity;
            tick->targets.at[grip] = source >= 0 ? tick->numbers->engagement : 0.0;
        }
    }
    tick->counts->anchor = 0;
    fsm_put(tick->next, tick->targets);
    smooth_inputs(tick, h);
}

/* Move the end of a coupler on with the port that was engaged in motion, in a tick of length `h` (s); return at what rate.

   `velocity`: of the device, at the port.  A hand that closes on a moving port would take up its momentum at once; so it
   does over the ramp.  A port at rest is engaged where it is, however the device moves. */
static double glide(struct fsm_tick *tick, int64_t axis, double velocity, double h)
{
    int64_t n_a = tick->source.n;
    if (tick->row.at[axis] != FSM_COUPLED) {
        return 0.0;
    }
    if (tick->counts->anchor != 0) {
        double rate = tick->ports.at[2 * n_a + axis];
        double common = rate > 0.0 ? fsm_larger(0.0, fsm_smaller(velocity, rate)) : fsm_smaller(0.0, fsm_larger(velocity, rate));
        tick->glide.at[axis] = rate - common;
    } else if (tick->numbers->engagement_target == 0.0) {
        tick->glide.at[axis] = 0.0;
    }
    double rate = tick->glide.at[axis] * (1.0 - tick->numbers->engagement);
    tick->glide.at[n_a + axis] = rate;
    tick->offset.at[axis] += h * rate;
    return rate;
}

/* Lead the end of a coupler from the port to where a device with an absolute zero is, in a tick of length `h` (s); return at
   what rate.

   `place`: of the device, in the model.  The port may have been left far behind while the device was disengaged: a spring that
   spans the distance would draw the device to it.  So its end begins at the port and arrives with the ramp, or later where
   that is far; the device feels the force that brings the port along. */
static double approach(struct fsm_tick *tick, int64_t axis, double place, double h)
{
    if (tick->row.at[axis] != FSM_COUPLED || tick->counts->absolute_offset == 0) {
        tick->shift.at[axis] = 0.0;
        return 0.0;
    }
    double before = tick->shift.at[axis];
    if (tick->counts->anchor != 0) {
        tick->shift.at[axis] = tick->ports.at[tick->source.n + axis] - place;
        return 0.0;
    }
    if (tick->numbers->engagement_target == 0.0) {
        return 0.0;
    }
    double from = tick->now.at[tick->slot.at[2 * tick->source.n + axis]], to = tick->numbers->engagement;
    double left = from < 1.0 ? before * share_left(to) / share_left(from) : 0.0;
    double most = h * FSM_APPROACH * fsm_fastest_port(tick, axis);
    tick->shift.at[axis] = before + fsm_larger(-most, fsm_smaller(left - before, most));
    return (tick->shift.at[axis] - before) / h;
}

/* Return the share of a distance that is left at an engagement from 0 to 1: it begins and ends at rest. */
static double share_left(double engagement)
{
    double open = 1.0 - engagement;
    return open * open * (1.0 + 2.0 * engagement);
}

/* Return the force of the hand on the model along an axis: as measured, the same power on both sides. */
static double applied_force(const struct fsm_tick *tick, int64_t axis)
{
    double measured = tick->device.at[tick->force.n + tick->source.at[axis]];
    return tick->numbers->engagement * measured / (tick->scale.at[axis] * tick->numbers->force_scale);
}

/* Filter the smooth inputs over a tick of length `h` (s) of model time.

   A filter of the third order whose third rate is constant over the tick, so that value, rate and second rate are
   continuous: `w''' = g^3 (target - w) + 3 g^2 (target' - w') - 3 g w''` with the right side at the end of the
   tick.  At a constant rate of the target nothing lags.  Stable for `g h` up to 3 and more
   (docs/theory.md, "Kinematic ports"). */
static void smooth_inputs(struct fsm_tick *tick, double h)
{
    int64_t n = tick->smooth.n;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = tick->smooth.at[k];
        double g = tick->bandwidth.at[k] * (double)tick->counts->periods;
        double value = tick->now.at[i], rate = tick->motion.at[k] * h, second = tick->motion.at[n + k] * h * h;
        double ahead = tick->targets.at[i] - value - rate - 0.5 * second;
        double faster = tick->target_rate.at[k] * h - rate - second;
        double third =
            (g * g * g * ahead + 3.0 * g * g * faster - 3.0 * g * second) / (1.0 + g * (3.0 + g * (1.5 + g / 6.0)));
        tick->next.at[i] = value + rate + 0.5 * second + third / 6.0;
        tick->motion_next.at[k] = (rate + second + 0.5 * third) / h;
        tick->motion_next.at[n + k] = (second + third) / (h * h);
    }
}

/* Write the inputs from `begin` to `end` (s) as polynomials: linear in between the samples, cubic where smooth. */
FSM_LOCAL void fsm_write_pieces(const struct fsm_tick *tick, double begin, double end)
{
    const struct fsm_input_tables *inputs = tick->places->run.inputs;
    double h = end - begin;
    inputs->start.at[0] = begin;
    inputs->origin.at[0] = begin;
    for (int64_t i = 0; i < tick->next.n; i++) {
        AT3(inputs->pieces, 0, i, 0) = tick->now.at[i];
        AT3(inputs->pieces, 0, i, 1) = (tick->next.at[i] - tick->now.at[i]) / h;
        AT3(inputs->pieces, 0, i, 2) = 0.0;
        AT3(inputs->pieces, 0, i, 3) = 0.0;
    }
    int64_t n = tick->smooth.n;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = tick->smooth.at[k];
        AT3(inputs->pieces, 0, i, 1) = tick->motion.at[k];
        AT3(inputs->pieces, 0, i, 2) = 0.5 * tick->motion.at[n + k];
        AT3(inputs->pieces, 0, i, 3) = (tick->motion_next.at[n + k] - tick->motion.at[n + k]) / (6.0 * h);
    }
    for (int64_t k = 0; k < tick->switches.n; k++) {
        int64_t i = tick->switches.at[k];
        AT3(inputs->pieces, 0, i, 0) = tick->next.at[i];
        AT3(inputs->pieces, 0, i, 1) = 0.0;
    }
}

/* Whether a boolean input changes with the begin of the tick. */
FSM_LOCAL bool fsm_tick_switches(const struct fsm_tick *tick)
{
    bool changes = false;
    for (int64_t k = 0; k < tick->switches.n; k++) {
        int64_t i = tick->switches.at[k];
        changes = changes || tick->next.at[i] != tick->now.at[i];
    }
    return changes;
}

/* Write the inputs of the schedule at `time` (s), later than the last one asked for, into the context of the tick. */
static void read_schedule(struct fsm_tick *tick, double time)
{
    const struct fsm_input_tables *schedule = tick->places->schedule;
    while (fsm_next_breakpoint(schedule, tick->counts->segment) <= time) {
        tick->counts->segment = schedule->next_hard.at[tick->counts->segment];
    }
    fsm_write_inputs(schedule, time, tick->counts->segment, tick->places->run.state->x, tick->context);
}

/* Set the targets of inputs that no device gives to their schedule at `end`, the end of the tick (s), of boolean ones at its
   `begin`. */
FSM_LOCAL void fsm_follow_schedule(struct fsm_tick *tick, double begin, double end)
{
    const struct fsm_input_tables *schedule = tick->places->schedule;
    const struct fsm_state *state = tick->places->run.state;
    if (tick->counts->scheduled == 0) {
        return;
    }
    int64_t n_w = tick->next.n, at = schedule->counts->n_parameters;
    for (int64_t i = 0; i < at; i++) {
        tick->context.at[i] = state->c.at[i];
    }
    fsm_vector booleans = fsm_vector_first(tick->next, tick->switches.n); // written again behind this
    if (booleans.n > 0) {
        read_schedule(tick, begin);
    }
    for (int64_t k = 0; k < booleans.n; k++) {
        booleans.at[k] = tick->context.at[at + tick->switches.at[k]];
    }
    read_schedule(tick, end);
    for (int64_t i = 0; i < n_w; i++) {
        tick->targets.at[i] = tick->context.at[at + i];
    }
    for (int64_t k = 0; k < booleans.n; k++) {
        tick->targets.at[tick->switches.at[k]] = booleans.at[k];
    }
    for (int64_t k = 0; k < tick->smooth.n; k++) {
        tick->target_rate.at[k] = tick->context.at[at + n_w + tick->smooth.at[k]];
    }
}

/* Whether the engagement is zero, at the device and in the model's inputs. */
FSM_LOCAL bool fsm_is_disengaged(const struct fsm_tick *tick)
{
    int64_t n_a = tick->source.n;
    bool opened = tick->numbers->engagement == 0.0;
    for (int64_t a = 0; a < n_a; a++) {
        int64_t grip = tick->slot.at[2 * n_a + a];
        opened = opened && (grip < 0 || (tick->now.at[grip] == 0.0 && tick->next.at[grip] == 0.0));
    }
    return opened;
}

/* Make the inputs at the end of the tick the current ones. */
FSM_LOCAL void fsm_take_over(struct fsm_tick *tick)
{
    fsm_put(tick->now, tick->next);
    fsm_put(tick->motion, tick->motion_next);
}

/* -- From the model to the device: forces and motions of the ports, and the force on the device within its saturation
   limits and slew-rate limits. */

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
static double trusted(struct fsm_tick *tick);
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
    fsm_full_of(tables, mode, state->clock->time, state->x.at, state->c.at, tick->full.at);
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

/* Let the force fade while no sample comes, as it would push on, whatever becomes of the device, and while positions and
   velocities contradict each other.

   Without samples all of it stays for a sixth of the time after which the device is released, nothing after half of it. */
static void fade(struct fsm_tick *tick)
{
    int64_t most = fsm_release_ticks(tick), missing = fsm_ticks_without_sample(tick);
    double part = trusted(tick);
    if (6 * missing > most && most > 0) {
        part *= fsm_larger(0.0, 1.5 - 3.0 * (double)missing / (double)most);
        tick->counts->faded_ticks++;
    }
    for (int64_t i = 0; i < tick->wanted.n && part < 1.0; i++) {
        tick->wanted.at[i] *= part;
    }
}

#define FSM_DOUBTFUL    0.0005 // J that a force may have given to a device without its position, or its velocity, showing it
#define FSM_UNKNOWN     0.002  // J, from which on there is no force
#define FSM_LOSE_TRUST  150.0  // parts of the force a second: one outlier takes a seventh of it
#define FSM_TRUST_AGAIN 10.0

/* Return the part of the force that is shown although positions and velocities of the last samples contradict each other.

   What they leave unexplained of the displacement, times the force, is energy that the device may have been given unseen: a
   light touch may be wrong by a millimetre, a firm one by less, and a coarse sensor by its step.  It comes back slowly: a
   force that falls and rises with every sample would itself drive the hand. */
static double trusted(struct fsm_tick *tick)
{
    struct fsm_tick_numbers *numbers = tick->numbers;
    double part = 1.0;
    for (int64_t k = 0; k < fsm_part_count(tick) && tick->counts->admittance == 0; k++) {
        double energy = 0.0;
        for (int64_t i = 0; i < tick->wanted.n; i++) {
            double most = tick->turns.at[i] != 0 ? numbers->angular_velocity_limit : numbers->velocity_limit;
            double unseen = fsm_larger(0.0, tick->unexplained.at[i] - numbers->grain * most);
            energy += tick->part.at[i] == k ? fabs(tick->wanted.at[i]) * unseen : 0.0;
        }
        part = fsm_smaller(part, (FSM_UNKNOWN - energy) / (FSM_UNKNOWN - FSM_DOUBTFUL));
    }
    double doubt = 1.0 - fsm_larger(0.0, part), before = numbers->doubt;
    doubt = fsm_larger(before - FSM_TRUST_AGAIN * numbers->period, fsm_smaller(doubt, before + FSM_LOSE_TRUST * numbers->period));
    numbers->doubt = doubt;
    return 1.0 - doubt;
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
