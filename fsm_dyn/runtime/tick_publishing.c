/* Publication of a tick to other processes: heartbeats, its row and its transitions in rings, its times in histograms.

   The rings and counters lie in a shared memory block; this process alone writes them (atomic.h). */

#include "atomic.h"
#include "live.h"

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
