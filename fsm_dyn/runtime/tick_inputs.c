/* From the device to the model's inputs: the ramp of the engagement, the map from device to port, and the filter of
   prescribed coordinates, which must move smoothly. */

#include "live.h"

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
}

/* Set the targets of inputs that no device gives to their schedule at `end`, the end of the tick (s). */
FSM_LOCAL void fsm_follow_schedule(struct fsm_tick *tick, double end)
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
    while (fsm_next_breakpoint(schedule, tick->counts->segment) <= end) {
        tick->counts->segment = schedule->next_hard.at[tick->counts->segment];
    }
    fsm_write_inputs(schedule, end, tick->counts->segment, state->x, tick->context);
    for (int64_t i = 0; i < n_w; i++) {
        tick->targets.at[i] = tick->context.at[at + i];
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
