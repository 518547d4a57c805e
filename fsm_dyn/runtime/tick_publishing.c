/* The compiled end of a tick: its row into the ring of shared memory, its times into the histograms. */

#include "live.h"

#define FSM_LAST_BIN 1023

/* Return the bin of a time (ns): sixteen to an octave, single below sixteen. */
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
    return fsm_least(16 * (octave + 1) + (value & 15), FSM_LAST_BIN);
}

/* Give a sign of life, `since` ns after the one before; return for how long the guard has given none, ns. */
FSM_LOCAL int64_t fsm_beat(struct fsm_ring *ring, struct fsm_tick_counts *counts, int64_t since)
{
    ring->header->beats++;
    int64_t beats = ring->header->guard_beats, patience = counts->guard_patience;
    // whoever was held up himself has seen nothing meanwhile
    if (beats != counts->guard_beats || 2 * since > patience) {
        counts->guard_beats = beats;
        counts->guard_seen = counts->wall;
    }
    return patience != 0 ? counts->wall - counts->guard_seen : 0;
}

/* See whether the owner still gives signs of life, `since` ns after having looked before. */
FSM_LOCAL void fsm_look_at_owner(struct fsm_ring *ring, struct fsm_tick_counts *counts, int64_t since)
{
    int64_t beats = ring->header->owner_beats, patience = counts->owner_patience;
    if (beats != counts->owner_beats || 2 * since > patience) {
        counts->owner_beats = beats;
        counts->owner_seen = counts->wall;
    }
    bool silent = patience != 0 && counts->wall - counts->owner_seen > patience;
    if (silent != counts->owner_silent) {
        counts->owner_silent = silent;
        counts->look = 1;
    }
}

/* Whether the guard has shown a force of zero since this was asked last. */
FSM_LOCAL bool fsm_was_zeroed(struct fsm_ring *ring, struct fsm_tick_counts *counts)
{
    bool zeroed = ring->header->zeroed != counts->zeroed;
    counts->zeroed = ring->header->zeroed;
    return zeroed;
}

static int64_t append(fsm_matrix row, int64_t slot, int64_t at, fsm_vector values)
{
    for (int64_t i = 0; i < values.n; i++) {
        AT(row, slot, at + i) = values.at[i];
    }
    return at + values.n;
}

/* Write the row of a tick (rows) and its transitions into their rings, then count them. */
FSM_LOCAL void fsm_publish(struct fsm_state *state, struct fsm_tick *tick, struct fsm_ring *ring,
                           struct fsm_buffers *buffers)
{
    struct fsm_live_header *header = ring->header;
    struct fsm_tick_counts *counts = tick->counts;
    int64_t count = header->rows;
    int64_t slot = count % ring->rows.n;
    fsm_matrix row = ring->rows;
    AT(row, slot, 0) = (double)counts->ticks;
    AT(row, slot, 1) = state->clock->time;
    AT(row, slot, 2) = (double)counts->wall * 1e-09;
    AT(row, slot, 3) = (double)fsm_most(counts->duration, 0) * 1e-09;
    AT(row, slot, 4) = (double)counts->lateness * 1e-09;
    AT(row, slot, 5) = (double)state->counters->mode;
    AT(row, slot, 6) = (double)counts->status;
    AT(row, slot, 7) = (double)counts->phase;
    AT(row, slot, 8) = (double)counts->fault;
    AT(row, slot, 9) = (double)counts->advancing;
    AT(row, slot, 10) = (double)counts->unfinished;
    AT(row, slot, 11) = (double)counts->transitions;
    AT(row, slot, 12) = tick->numbers->grip;
    AT(row, slot, 13) = (double)counts->buttons;
    int64_t at = append(row, slot, 14, tick->next);
    at = append(row, slot, at, state->x);
    at = append(row, slot, at, tick->device);
    at = append(row, slot, at, tick->force);
    at = append(row, slot, at, tick->ports);
    int64_t last = row.m - at - tick->motion_next.n; // slip directions and memory: before the third rates
    int64_t from_c = state->c.n - tick->next.n - last;
    for (int64_t i = 0; i < last; i++) {
        AT(row, slot, at + i) = state->c.at[from_c + i];
    }
    append(row, slot, at + last, tick->motion_next);
    if (counts->advancing != 0) {
        fsm_put_records(ring, buffers, counts->ticks, state->counters->transitions);
    }
    ring->latenesses.at[fsm_bin_of(counts->lateness)]++;
    if (counts->duration >= 0) {
        ring->durations.at[fsm_bin_of(counts->duration)]++;
        ring->processor.at[fsm_bin_of(counts->processor)]++;
    }
    header->phase = counts->phase;
    header->fault = counts->fault;
    header->limited = counts->limited;
    header->rejected = counts->rejected_ever;
    header->releases = counts->releases;
    header->saturations = counts->saturations;
    header->faded = counts->faded;
    header->behind = counts->behind;
    if (counts->passivity != FSM_PASSIVITY_OFF) {
        header->watched = counts->passivity;
        header->leak = (int64_t)(1000000000.0 * tick->numbers->leak);
        header->leak_opening = (int64_t)(1000000000.0 * tick->numbers->leak_opening);
        header->taken_back = (int64_t)(1000000000.0 * tick->numbers->taken_back);
    }
    header->rows = count + 1;
}

/* Append the records of the transitions of a tick, with its number in front, to their ring. */
FSM_LOCAL void fsm_put_records(struct fsm_ring *ring, struct fsm_buffers *buffers, int64_t number, int64_t made)
{
    for (int64_t k = 0; k < made; k++) {
        int64_t count = ring->header->transitions;
        int64_t slot = count % ring->records.n;
        AT(ring->records, slot, 0) = (double)number;
        for (int64_t i = 0; i < buffers->transitions.m; i++) {
            AT(ring->records, slot, 1 + i) = AT(buffers->transitions, k, i);
        }
        ring->header->transitions = count + 1;
    }
}
