/* From the device to the model's inputs: grip, anchor, and the filter of what must move smoothly.

   Nothing here makes an array. */

#include "live.h"

static void smooth_inputs(struct fsm_tick *tick, double h);

/* Move the grip by a step towards its target; return the target. */
static double new_grip(struct fsm_tick *tick)
{
    // at an anchor the inputs move to the port first: the grip begins to close with the tick after
    double step = tick->counts->anchor == 0 ? tick->numbers->grip_step : 0.0;
    double grip = tick->numbers->grip, target = tick->numbers->grip_target;
    if (tick->counts->fault != FSM_FAULT_NONE) {
        grip = 0.0;
        target = 0.0;
    }
    tick->numbers->grip = grip < target ? fsm_smaller(grip + step, target) : fsm_larger(grip - step, target);
    return target;
}

/* Write the inputs at the end of a tick of length `h` (s).

   The place of a coupler follows the device for as long as the grip is not open: while it opens, the spring goes slack
   with the way that the device goes, and the force only falls.  After a fault, or once the device was released, it
   stays: the grip is gone at the end of the tick, whatever the device says. */
FSM_LOCAL void fsm_next_inputs(struct fsm_tick *tick, double h)
{
    int64_t n_a = tick->source.n, n_d = tick->force.n;
    bool grips = tick->numbers->grip > 0.0;
    double target = new_grip(tick);
    bool follows = target > 0.0 || (grips && tick->counts->fault == FSM_FAULT_NONE);
    for (int64_t a = 0; a < n_a; a++) {
        int64_t source = tick->source.at[a], at = tick->slot.at[a], rate = tick->slot.at[n_a + a],
                grip = tick->slot.at[2 * n_a + a];
        double place = tick->now.at[at], velocity = 0.0;
        if (source >= 0 && follows) {
            if (tick->counts->anchor != 0 && tick->counts->absolute == 0) {
                double begin = tick->row.at[a] >= 0 ? tick->now.at[at] : tick->ports.at[n_a + a];
                tick->offset.at[a] = begin - tick->scale.at[a] * tick->device.at[source];
            }
            place = tick->offset.at[a] + tick->scale.at[a] * tick->device.at[source];
            velocity = tick->scale.at[a] * tick->device.at[n_d + source] / tick->numbers->speed;
        }
        tick->targets.at[at] = place;
        if (tick->row.at[a] >= 0) {
            tick->target_rate.at[rate] = velocity;
        } else {
            tick->targets.at[rate] = velocity;
            tick->targets.at[grip] = source >= 0 ? tick->numbers->grip : 0.0;
        }
    }
    tick->counts->anchor = 0;
    int64_t last1 = tick->next.n;
    for (int64_t i = 0; i < last1; i++) {
        tick->next.at[i] = tick->targets.at[i];
    }
    smooth_inputs(tick, h);
}

/* Lead the smooth inputs to their targets.

   A filter of the third order whose third rate is constant over the tick, so that value, rate and second rate are
   continuous: `w''' = g^3 (target - w) + 3 g^2 (target' - w') - 3 g w''` with the right side at the end of the
   tick.  At a constant rate of the target nothing lags.  Stable for `g h` up to 3 and more
   (docs/theory.md, "Kinematic ports"). */
static void smooth_inputs(struct fsm_tick *tick, double h)
{
    int64_t n = tick->smooth.n;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = tick->smooth.at[k];
        double g = tick->bandwidth.at[k];
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

/* Let the inputs run from where they are to where they are to be; as sampled. */
FSM_LOCAL void fsm_write_pieces(struct fsm_tick *tick, const struct fsm_input_tables *drive, double begin, double end)
{
    double h = end - begin;
    drive->start.at[0] = begin;
    drive->origin.at[0] = begin;
    for (int64_t i = 0; i < tick->next.n; i++) {
        AT3(drive->pieces, 0, i, 0) = tick->now.at[i];
        AT3(drive->pieces, 0, i, 1) = (tick->next.at[i] - tick->now.at[i]) / h;
        AT3(drive->pieces, 0, i, 2) = 0.0;
        AT3(drive->pieces, 0, i, 3) = 0.0;
    }
    int64_t n = tick->smooth.n;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = tick->smooth.at[k];
        AT3(drive->pieces, 0, i, 1) = tick->motion.at[k];
        AT3(drive->pieces, 0, i, 2) = 0.5 * tick->motion.at[n + k];
        AT3(drive->pieces, 0, i, 3) = (tick->motion_next.at[n + k] - tick->motion.at[n + k]) / (6.0 * h);
    }
}

/* Set the inputs that no device gives to their schedule at the end of the tick (s). */
FSM_LOCAL void fsm_follow_schedule(struct fsm_tick *tick, const struct fsm_input_tables *schedule,
                                   struct fsm_state *state, double end)
{
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

/* Whether the grip is open, at the device and in the model's inputs. */
FSM_LOCAL bool fsm_compiled_inputs_is_open(struct fsm_tick *tick)
{
    int64_t n_a = tick->source.n;
    bool opened = tick->numbers->grip == 0.0;
    for (int64_t a = 0; a < n_a; a++) {
        int64_t grip = tick->slot.at[2 * n_a + a];
        opened = opened && (grip < 0 || tick->now.at[grip] == 0.0);
    }
    return opened;
}

/* Make the inputs at the end of the tick those at hand. */
FSM_LOCAL void fsm_take_over(struct fsm_tick *tick)
{
    int64_t last1 = tick->now.n;
    for (int64_t i = 0; i < last1; i++) {
        tick->now.at[i] = tick->next.at[i];
    }
    int64_t last2 = tick->motion.n;
    for (int64_t k = 0; k < last2; k++) {
        tick->motion.at[k] = tick->motion_next.at[k];
    }
}
