/* Passivity observer and passivity controller: the excess energy of the sampled interface, and the added damping that
   dissipates it (Hannaford and Ryu 2002, *Time-domain passivity control of haptic interfaces*, IEEE Trans. Robot. Autom. 18).

   The balance of an axis of the device has three parts (docs/theory.md, "Passivity at run time"): the energy given to the
   device, exact without delay, since the force is constant over a tick; the energy given to the model at the port; and the
   known dissipation of coupler and device.  Neither a motor in the model nor an impact adds to the sum, only sampling, hold
   and limits do. */

#include "live.h"

#define FSM_MEMORY                                                                                                     \
    0.1 // s, in which a deficit decays, and for which the damping of the device does not count after an excess

static void device_side(struct fsm_tick *tick);
static void take_back(struct fsm_tick *tick, bool wanted);
static void model_side(struct fsm_tick *tick);
static double acting(struct fsm_tick *tick, int64_t device);
static double most_damping(const struct fsm_tick *tick, int64_t device);

/* Update the energy balances with the last tick, and compute the force of the controller. */
FSM_LOCAL void fsm_watch_energy(struct fsm_tick *tick)
{
    bool held = tick->numbers->engagement > 0.0 && tick->counts->advancing != 0;
    device_side(tick);
    if (tick->counts->incomplete == 0) {
        model_side(tick);
    }
    double excess = 0.0;
    for (int64_t i = 0; i < tick->balance.n; i++) {
        if (!held) {
            tick->balance.at[i] = 0.0;
        } else if (tick->balance.at[i] < 0.0) {
            tick->balance.at[i] *= fsm_larger(0.0, 1.0 - tick->numbers->period / FSM_MEMORY);
        }
        excess += fsm_larger(0.0, tick->balance.at[i]);
        // for a while after an excess the damping of the device is not credited to the loop
        tick->distrust.at[i] = fsm_larger(0.0, tick->distrust.at[i] - tick->numbers->period);
        if (tick->balance.at[i] > 0.0 && tick->counts->passivity == FSM_PASSIVITY_CONTROL) {
            tick->distrust.at[i] = FSM_MEMORY;
        }
    }
    if (held && tick->numbers->engagement_target == 0.0) {
        tick->numbers->release_excess_energy =
            fsm_larger(tick->numbers->release_excess_energy, excess - tick->numbers->engaged_excess);
    } else {
        tick->numbers->excess_energy = fsm_larger(tick->numbers->excess_energy, excess);
        tick->numbers->engaged_excess = excess;
    }
    take_back(tick, held && tick->counts->passivity == FSM_PASSIVITY_CONTROL);
}

/* Add the energy given to the device since the tick before, less the dissipation of its own damping. */
static void device_side(struct fsm_tick *tick)
{
    double period = tick->numbers->period;
    for (int64_t i = 0; i < tick->balance.n; i++) {
        double way = tick->device.at[i] - tick->before.at[i];
        tick->before.at[i] = tick->device.at[i];
        // lower bound of the integral of b v^2 over a given displacement and time
        double heat = tick->distrust.at[i] <= 0.0 ? tick->device_damping.at[i] * way * way / period : 0.0;
        tick->balance.at[i] += acting(tick, i) * way - heat;
        tick->numbers->dissipated -= tick->back.at[i] * way;
    }
}

/* Return the force on an axis of the device between its last two samples, delayed as far as known. */
static double acting(struct fsm_tick *tick, int64_t device)
{
    int64_t first = device * (FSM_LATEST + 2), whole = (int64_t)tick->numbers->delay;
    for (int64_t k = FSM_LATEST + 1; k > 0; k--) {
        tick->shown.at[first + k] = tick->shown.at[first + k - 1];
    }
    tick->shown.at[first] = tick->force.at[device];
    double part = tick->numbers->delay - (double)whole;
    return (1.0 - part) * tick->shown.at[first + whole] + part * tick->shown.at[first + whole + 1];
}

/* Add the energy given to the model in a tick by the coupled axes, less the dissipation of the couplers. */
static void model_side(struct fsm_tick *tick)
{
    int64_t n_a = tick->source.n;
    double h = tick->numbers->period * tick->numbers->speed * (double)tick->counts->periods;
    fsm_vector c = tick->places->run.state->c;
    for (int64_t a = 0; a < n_a; a++) {
        double force = tick->ports.at[a], place = tick->now.at[tick->slot.at[a]], rate = 0.0,
               port = tick->ports.at[2 * n_a + a];
        double way = place - tick->coupled.at[n_a + a];
        double energy = 0.5 * (tick->coupled.at[a] + force) * way;
        if (tick->row.at[a] < 0) {
            // the damper's force follows the sampled rate, its elongation the positions: both vary linearly
            rate = tick->now.at[tick->slot.at[n_a + a]] - port;
            double rate_before = tick->coupled.at[2 * n_a + a], opens_before = way / h - tick->coupled.at[3 * n_a + a];
            double opens = way / h - port;
            double mean = 2.0 * (rate_before * opens_before + rate * opens) + rate_before * opens + rate * opens_before;
            energy -= tick->now.at[tick->slot.at[2 * n_a + a]] * c.at[tick->law.at[n_a + a]] * mean * h / 6.0;
        }
        tick->coupled.at[a] = force;
        tick->coupled.at[n_a + a] = place;
        tick->coupled.at[2 * n_a + a] = rate;
        tick->coupled.at[3 * n_a + a] = port;
        if (tick->source.at[a] >= 0) {
            tick->balance.at[tick->source.at[a]] += tick->numbers->force_scale * energy;
        }
    }
}

/* Compute the damping forces that dissipate the excess energy. */
static void take_back(struct fsm_tick *tick, bool wanted)
{
    int64_t n_d = tick->balance.n;
    for (int64_t i = 0; i < n_d; i++) {
        tick->back.at[i] = 0.0;
        double velocity = tick->device.at[n_d + i];
        if (!wanted || tick->balance.at[i] <= 0.0 || velocity == 0.0) {
            continue;
        }
        // within a tick at the present velocity, with at most twice the damping that a rigid wall requires
        double damping = tick->balance.at[i] / (tick->numbers->period * velocity * velocity);
        tick->back.at[i] = -fsm_smaller(damping, most_damping(tick, i)) * velocity;
    }
}

/* Return `K (T + 2 t_d) + 2 |B|` of what an axis of the device feels; zero where it prescribes a coordinate. */
static double most_damping(const struct fsm_tick *tick, int64_t device)
{
    int64_t n_a = tick->source.n;
    fsm_vector c = tick->places->run.state->c;
    double found = 0.0;
    double late = tick->numbers->period * (1.0 + 2.0 * tick->numbers->delay);
    for (int64_t a = 0; a < n_a; a++) {
        if (tick->source.at[a] == device && tick->row.at[a] < 0) {
            double stiffness = c.at[tick->law.at[a]], damping = c.at[tick->law.at[n_a + a]];
            double felt = tick->numbers->force_scale * tick->scale.at[a] * tick->scale.at[a];
            found += felt * (fabs(stiffness) * late + 2.0 * fabs(damping));
        }
    }
    return found;
}
