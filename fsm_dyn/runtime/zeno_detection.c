/* Zeno detection: sequences of impacts that accumulate in finite time.

   When the same cycle of contacts strikes three times over with durations that shrink by a steady ratio `r < 1`,
   and the gaps between have become smaller than the tolerance, the remaining strokes add up to a geometric series:
   the sequence ends `d r / (1 - r)` after the last stroke, `d` being the last duration.

   Strokes of several contacts need not fall into a cycle, and sequences may consist of sequences.  When the last few have kept
   within the tolerance all together, what is left of them takes about as long again. */

#include "stepping.h"

#define FSM_ACYCLIC_STROKES 8   // that are looked at where there is no cycle
#define FSM_STEADINESS      0.2 // how far two ratios in a row may differ, as a fraction of 1 - r

/* Where the entry of the event `back` events ago begins in the history, a ring. */
static int64_t entry(const struct fsm_state *state, int64_t back)
{
    return fsm_modulo(state->counters->history - 1 - back, FSM_RING_LENGTH) * FSM_RING_WIDTH;
}

/* Enter the event in the history; return whether a gap closes in it. */
FSM_LOCAL bool fsm_remember_event(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    state->counters->history++;
    int64_t at = entry(state, 0);
    int64_t most = tables->sizes->max_guards;
    double sign = 0.0, speed = 0.0;
    bool closes = false;
    for (int64_t k = 0; k < state->counters->fired; k++) {
        int64_t guard = state->fired.at[k];
        double mark = (double)tables->guard_event.at[guard] + 8.0 * (double)tables->guard_contact.at[guard];
        sign += mark * mark;
        if (tables->guard_event.at[guard] == FSM_EVENT_CLOSES &&
            (tables->contact_flags.at[tables->guard_contact.at[guard]] & (FSM_FLAG_RIGID | FSM_FLAG_NO_GAP)) ==
                FSM_FLAG_RIGID) {
            closes = true;
            int64_t row = AT(tables->contact_rows, tables->guard_contact.at[guard], 0);
            speed = fsm_larger(speed, -state->guards.at[4 * most + k] / tables->row_unit.at[row]);
        }
    }
    state->history.at[at + FSM_RING_TIME] = state->clock->time;
    state->history.at[at + FSM_RING_MODE] = (double)state->counters->mode;
    state->history.at[at + FSM_RING_SIGN] = sign;
    state->history.at[at + FSM_RING_SPEED] = speed;
    state->history.at[at + FSM_RING_CONTACT] = (double)(closes ? tables->guard_contact.at[state->fired.at[0]] : -1);
    return closes;
}

/* Take the event of this instant out of the history, if it was entered: nothing happened in it. */
FSM_LOCAL void fsm_forget_event(const struct fsm_state *state)
{
    if (state->counters->history > 0 && state->history.at[entry(state, 0) + FSM_RING_TIME] == state->clock->time) {
        state->counters->history--;
    }
}

/* Return the largest closing speed of the last events (m/s). */
static double largest_speed(const struct fsm_state *state, int64_t count)
{
    double speed = 0.0;
    for (int64_t i = 0; i < count; i++) {
        speed = fsm_larger(speed, state->history.at[entry(state, i) + FSM_RING_SPEED]);
    }
    return speed;
}

/* Return how long the Zeno sequence of impacts under way will continue (s), and how many impacts back its contacts are
   met.

   The length is negative where there is no such train or its apex is still above `gap` (m), the apex being
   estimated as that of a parabola with the last duration and the largest closing speed.  The number of strokes is
   that of the cycle, or more than any cycle has where there is none and the length is but a guess. */
FSM_LOCAL double fsm_zeno_duration(const struct fsm_state *state, double gap, int64_t *strokes)
{
    for (int64_t cycle = 1; cycle < FSM_LONGEST_CYCLE + 1; cycle++) {
        if (state->counters->history < 3 * cycle + 1) {
            break;
        }
        bool same = true;
        for (int64_t i = 0; i < 2 * cycle + 1; i++) {
            const double *one = state->history.at + entry(state, i),
                         *other = state->history.at + entry(state, i + cycle);
            same = same && one[FSM_RING_MODE] == other[FSM_RING_MODE] && one[FSM_RING_SIGN] == other[FSM_RING_SIGN];
        }
        if (!same) {
            continue;
        }
        double t0 = state->history.at[entry(state, 0) + FSM_RING_TIME];
        double t1 = state->history.at[entry(state, cycle) + FSM_RING_TIME];
        double t2 = state->history.at[entry(state, 2 * cycle) + FSM_RING_TIME];
        double t3 = state->history.at[entry(state, 3 * cycle) + FSM_RING_TIME];
        if (!(t0 > t1 && t1 > t2 && t2 > t3)) {
            continue;
        }
        double ratio = (t0 - t1) / (t1 - t2);
        double before = (t1 - t2) / (t2 - t3);
        if (ratio >= 1.0 || before >= 1.0 ||
            fabs(ratio - before) > FSM_STEADINESS * (1.0 - fsm_larger(ratio, before))) {
            continue;
        }
        double speed = largest_speed(state, cycle);
        if (speed > 0.0 && 0.25 * speed * (t0 - t1) < gap) {
            *strokes = cycle;
            return (t0 - t1) * ratio / (1.0 - ratio);
        }
    }
    if (state->counters->history >= FSM_ACYCLIC_STROKES) {
        double duration = state->history.at[entry(state, 0) + FSM_RING_TIME];
        duration -= state->history.at[entry(state, FSM_ACYCLIC_STROKES - 1) + FSM_RING_TIME];
        if (0.25 * largest_speed(state, FSM_ACYCLIC_STROKES) * duration < gap) {
            *strokes = FSM_ACYCLIC_STROKES;
            return duration;
        }
    }
    *strokes = 0;
    return -1.0;
}

/* Add the guards of contacts that strike in the cycle and are near to the fired ones: they close together. */
FSM_LOCAL void fsm_add_cycle_guards(const struct fsm_run *run, int64_t cycle)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode;
    int64_t most = tables->sizes->max_guards;
    int64_t first = tables->mode_guard_start.at[mode], n_g = fsm_guard_count(tables, mode);
    for (int64_t i = 0; i < cycle; i++) {
        double contact = state->history.at[entry(state, i) + FSM_RING_CONTACT];
        for (int64_t j = 0; j < n_g; j++) {
            if (tables->guard_event.at[first + j] != FSM_EVENT_CLOSES ||
                (double)tables->guard_contact.at[first + j] != contact) {
                continue;
            }
            int64_t row = AT(tables->contact_rows, tables->guard_contact.at[first + j], 0);
            bool known = state->guards.at[j] > fsm_gap_tolerance(tables, row);
            for (int64_t k = 0; k < state->counters->fired; k++) {
                known = known || state->fired.at[k] == first + j;
            }
            if (!known) {
                int64_t k = state->counters->fired;
                state->fired.at[k] = first + j;
                state->guards.at[3 * most + k] = state->guards.at[j];
                state->guards.at[4 * most + k] = state->guards.at[most + j];
                state->counters->fired = k + 1;
            }
        }
    }
}

/* Whether a contact, or another of its corner with the same outline, is closed in a mode. */
static bool is_closed(const struct fsm_tables *tables, int64_t mode, int64_t contact)
{
    int64_t outline = tables->contact_outline.at[contact];
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        bool same = k == contact || (outline >= 0 && tables->contact_outline.at[k] == outline);
        if (same && AT(tables->mode_states, mode, k) != FSM_CONTACT_FREE) {
            return true;
        }
    }
    return false;
}

/* Whether all contacts that strike in the cycle are closed in a mode.

   If not, those still open have strokes of their own to make, and time must not be advanced over them. */
FSM_LOCAL bool fsm_cycle_is_closed(const struct fsm_run *run, int64_t mode)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    for (int64_t i = 0; i < state->counters->cycle; i++) {
        int64_t contact = (int64_t)state->history.at[entry(state, i) + FSM_RING_CONTACT];
        if (contact >= 0 && !is_closed(tables, mode, contact)) {
            return false;
        }
    }
    return true;
}
