/* The step of a tick: advance, energy at the port, checkpoints, rows. */

#include "live.h"
#include "atomic.h"

/* -- Passivity observer and passivity controller: the excess energy of the sampled interface, and the added damping that
   dissipates it (Hannaford and Ryu 2002, *Time-domain passivity control of haptic interfaces*, IEEE Trans. Robot. Autom. 18).

   The balance of an axis of the device has three parts (docs/theory.md, "Passivity at run time"): the energy given to the
   device, exact without delay, since the force is constant over a tick; the energy given to the model at the port; and the
   known dissipation of coupler and device.  Neither a motor in the model nor an impact adds to the sum, only sampling, hold
   and limits do. */

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

/* -- Checkpoints of a live session, from which it can be rewound: copies of the stepper's state every few ticks. */

/* Copy the stepper's state and the inputs into the ring of checkpoints where one is due and the tick was completed. */
FSM_LOCAL void fsm_leave_checkpoint(const struct fsm_tick *tick)
{
    struct fsm_checkpoints *checkpoints = tick->places->checkpoints;
    if (tick->counts->advancing == 0 || tick->counts->status != FSM_DONE) {
        return;
    }
    checkpoints->counts->since++;
    if (checkpoints->counts->since < FSM_CHECKPOINT_EVERY) {
        return;
    }
    checkpoints->counts->since = 0;
    int64_t slot = checkpoints->counts->saved % checkpoints->states.n;
    fsm_put_indices(fsm_index_row(checkpoints->states, slot), checkpoints->block);
    fsm_vector inputs = fsm_row(checkpoints->inputs, slot);
    inputs.at[0] = tick->places->run.state->clock->time;
    fsm_put(fsm_vector_from(inputs, 1), tick->now);
    fsm_put(fsm_vector_from(inputs, 1 + tick->now.n), tick->motion);
    checkpoints->counts->saved++;
}

/* -- Publication of a tick to other processes: heartbeats, its row and its transitions in rings, its times in histograms.

   The rings and counters lie in a shared memory block; this process alone writes them (atomic.h). */

#define NANOJOULES 1e9 // in a joule

/* Return the bin of a time (ns) in a histogram: sixteen bins to an octave, single ones below sixteen. */
FSM_LOCAL int64_t fsm_bin_of(int64_t value)
{
    int64_t octave = 0;
    while (value >= 32) {
        value >>= 1;
        octave++;
    }
    if (value < 16) {
        return fsm_most(value, 0);
    }
    return fsm_least(16 * (octave + 1) + (value & 15), FSM_BINS - 1);
}

/* Give a heartbeat, `since` ns after the one before; return for how long the watchdog process has given none (ns). */
FSM_LOCAL int64_t fsm_beat(struct fsm_ring *ring, struct fsm_tick_counts *counts, int64_t since)
{
    FSM_RELEASE(ring->header->beats, ring->header->beats + 1);
    int64_t beats = FSM_ACQUIRE(ring->header->watchdog_beats), patience = counts->watchdog_timeout;
    // a tick that was itself delayed could not see heartbeats meanwhile
    if (beats != counts->watchdog_beats || 2 * since > patience) {
        counts->watchdog_beats = beats;
        counts->watchdog_seen = counts->wall;
    }
    return patience != 0 ? counts->wall - counts->watchdog_seen : 0;
}

/* Note whether the owner of the run still gives heartbeats, `since` ns after this was asked last. */
FSM_LOCAL void fsm_look_at_owner(struct fsm_ring *ring, struct fsm_tick_counts *counts, int64_t since)
{
    int64_t beats = FSM_ACQUIRE(ring->header->owner_beats), patience = counts->owner_timeout;
    if (beats != counts->owner_beats || 2 * since > patience) {
        counts->owner_beats = beats;
        counts->owner_seen = counts->wall;
    }
    bool silent = patience != 0 && counts->wall - counts->owner_seen > patience;
    if (silent != (counts->owner_silent != 0)) {
        counts->owner_silent = silent;
        counts->attention = 1;
    }
}

/* Whether the watchdog process has sent a safe packet, a force of zero, since this was asked last. */
FSM_LOCAL bool fsm_was_zeroed(struct fsm_ring *ring, struct fsm_tick_counts *counts)
{
    int64_t zeroed = FSM_ACQUIRE(ring->header->zero_force_packets);
    bool anew = zeroed != counts->zero_force_packets;
    counts->zero_force_packets = zeroed;
    return anew;
}

/* Write values into a row from column `at` on; return the column behind them. */
static int64_t append(fsm_vector row, int64_t at, fsm_vector values)
{
    for (int64_t i = 0; i < values.n; i++) {
        row.at[at + i] = values.at[i];
    }
    return at + values.n;
}

/* Fill the row of a tick; its columns are those of fsm_dyn/live/tick.py. */
static void fill_row(const struct fsm_tick *tick, fsm_vector row)
{
    const struct fsm_state *state = tick->places->run.state;
    const struct fsm_tick_counts *counts = tick->counts;
    const double fixed[] = {
        (double)counts->ticks,
        state->clock->time,
        (double)counts->wall * FSM_NANOSECOND,
        (double)fsm_most(counts->execution_time, 0) * FSM_NANOSECOND,
        (double)counts->wakeup_latency * FSM_NANOSECOND,
        (double)state->counters->mode,
        (double)counts->status,
        (double)counts->phase,
        (double)counts->fault,
        (double)counts->advancing,
        (double)counts->incomplete,
        (double)counts->transitions,
        tick->numbers->engagement,
        (double)counts->buttons,
    };
    int64_t at = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        row.at[at++] = fixed[i];
    }
    at = append(row, at, tick->next);
    at = append(row, at, state->x);
    at = append(row, at, tick->device);
    at = append(row, at, tick->force);
    at = append(row, at, tick->ports);
    // slip directions and memory stand in the context before the third rates of the inputs
    int64_t discrete = row.n - at - tick->motion_next.n, end = state->c.n - tick->next.n;
    at = append(row, at, fsm_vector_part(state->c, end - discrete, end));
    append(row, at, tick->motion_next);
}

/* Write phase, fault and counts of a tick into the header. */
static void publish_counts(const struct fsm_tick *tick, struct fsm_live_header *header)
{
    const struct fsm_tick_counts *counts = tick->counts;
    FSM_RELEASE(header->phase, counts->phase);
    FSM_RELEASE(header->fault, counts->fault);
    FSM_RELEASE(header->saturated_ticks, counts->saturated_ticks);
    FSM_RELEASE(header->rejected, counts->rejected_total);
    FSM_RELEASE(header->releases, counts->releases);
    FSM_RELEASE(header->saturations, counts->saturations);
    FSM_RELEASE(header->faded_ticks, counts->faded_ticks);
    FSM_RELEASE(header->lagging_ticks, counts->lagging_ticks);
    FSM_RELEASE(header->running_time, (int64_t)(tick->numbers->running / FSM_NANOSECOND));
    FSM_RELEASE(header->progress, (int64_t)(tick->numbers->progress / FSM_NANOSECOND));
    FSM_RELEASE(header->sample_interval, (int64_t)(tick->numbers->sample_interval / FSM_NANOSECOND));
    if (counts->passivity != FSM_PASSIVITY_OFF) {
        FSM_RELEASE(header->passivity_on, counts->passivity);
        FSM_RELEASE(header->excess_energy, (int64_t)(NANOJOULES * tick->numbers->excess_energy));
        FSM_RELEASE(header->release_excess_energy, (int64_t)(NANOJOULES * tick->numbers->release_excess_energy));
        FSM_RELEASE(header->dissipated, (int64_t)(NANOJOULES * tick->numbers->dissipated));
    }
}

/* Append the row of a tick and its transitions to their rings and count its times. */
FSM_LOCAL void fsm_publish(struct fsm_tick *tick)
{
    struct fsm_ring *ring = tick->places->ring;
    struct fsm_tick_counts *counts = tick->counts;
    int64_t rows = ring->header->rows;
    FSM_FENCE();
    fill_row(tick, fsm_row(ring->rows, rows % ring->rows.n));
    if (counts->advancing != 0) {
        fsm_put_records(tick);
    }
    ring->latenesses.at[fsm_bin_of(counts->wakeup_latency)]++;
    if (counts->execution_time >= 0) {
        ring->durations.at[fsm_bin_of(counts->execution_time)]++;
        ring->processor.at[fsm_bin_of(counts->cpu_time)]++;
    }
    publish_counts(tick, ring->header);
    FSM_RELEASE(ring->header->rows, rows + 1);
}

/* Append the records of the transitions made since the stepper was called last, the number of the tick in front. */
FSM_LOCAL void fsm_put_records(struct fsm_tick *tick)
{
    struct fsm_ring *ring = tick->places->ring;
    fsm_matrix made = tick->places->run.buffers->transitions;
    int64_t count = tick->places->run.state->counters->transitions;
    for (int64_t k = 0; k < count; k++) {
        int64_t records = ring->header->transitions;
        FSM_FENCE();
        fsm_vector record = fsm_row(ring->records, records % ring->records.n);
        record.at[0] = (double)tick->counts->ticks;
        append(record, 1, fsm_row(made, k));
        FSM_RELEASE(ring->header->transitions, records + 1);
    }
}

/* -- One tick of a live session: whether the model advances and the device is engaged, the step, the force, the row.

   fsm_live_tick does all of it in one call.  Where the model asks for a mode, a chart or room meanwhile, the tick is left
   unfinished, and fsm_finish_tick ends it once the caller has provided that (docs/theory.md, "Live sessions"). */

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
        fsm_follow_schedule(tick, begin, end);
        fsm_next_inputs(tick, end - begin);
    }
    fsm_write_pieces(tick, begin, end);
    if (state->counters->started == 0) {
        return true;
    }
    fsm_write_inputs(run->inputs, begin, 0, state->x, state->c);
    if (fsm_tick_switches(tick) && state->counters->phase == FSM_PHASE_STEPPING) {
        fsm_decide_again(state->counters, FSM_REASON_INPUT_JUMP);
    }
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
    } else if (counts->settling > 0) {
        counts->settling--;
    }
    bool held = !released && counts->settling == 0 && may_engage(counts);
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

/* Set the force to zero and disengage at once, for `reason` (FSM_RELEASED_...); engagement is ramped up anew.

   It begins after as many ticks in time as make a release: samples under way meanwhile, and velocities filtered across the
   gap, are old, and a coupler anchored at an old position would pull the device back. */
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
    counts->settling = fsm_release_ticks(tick);
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
            counts->attention = 1;
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
