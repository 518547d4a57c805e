/* Writing rows and transitions into the buffers of a run. */

#include "stepping.h"

/* Record the current state; `x_mid` is the state at the middle of the step that led here. */
FSM_LOCAL void fsm_write_row(const struct fsm_run *run, fsm_vector x_mid)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_buffers *buffers = run->buffers;
    int64_t i = state->counters->rows;
    int64_t n = state->x.n;
    int64_t n_p = tables->sizes->n_p;
    double *row = buffers->rows.at + i * buffers->rows.m;
    row[0] = state->clock->time;
    double *at = row + 1;
    double *rates = row + (1 + n);
    double *middle = row + (1 + 2 * n);
    for (int64_t j = 0; j < n; j++) {
        at[j] = state->x.at[j];
        rates[j] = state->x_dot.at[j];
        middle[j] = x_mid.at[j];
    }
    double *held = row + (1 + 3 * n - n_p);
    for (int64_t j = n_p; j < state->c.n; j++) {
        held[j] = state->c.at[j];
    }
    buffers->modes.at[i] = state->counters->mode;
    state->counters->rows = i + 1;
}

/* Return whose guard fired: of the faces of an outline that share one, the face that was met. */
static int64_t subject(const struct fsm_run *run, int64_t guard)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    int64_t contact = tables->guard_contact.at[guard];
    if (tables->guard_event.at[guard] != FSM_EVENT_CLOSES || tables->contact_outline.at[contact] < 0) {
        return contact;
    }
    const struct fsm_terms *terms = fsm_terms_of(work);
    int64_t best = contact;
    double largest = -FSM_INFINITY;
    for (int64_t k = contact; k < tables->sizes->n_contacts; k++) {
        double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
        bool same = tables->contact_outline.at[k] == tables->contact_outline.at[contact];
        if (same && gap > largest && fsm_within_face(tables, terms, k)) {
            best = k;
            largest = gap;
        }
    }
    return best;
}

/* Write the guard of the condition that made a user-defined transition due; return how many that are. */
static int64_t write_condition(const struct fsm_state *state, int64_t transition, double *guard)
{
    const double *entry = state->conditions.at + FSM_CONDITION_WIDTH * transition;
    if (entry[FSM_CONDITION_DUE] != FSM_DUE_BY_CONDITION) {
        return 0;
    }
    guard[0] = FSM_EVENT_TRANSITION;
    guard[1] = (double)transition;
    guard[2] = 0.0;
    guard[3] = entry[FSM_CONDITION_VALUE];
    guard[4] = entry[FSM_CONDITION_SLOPE];
    return 1;
}

/* Record the transition that led to the row written last. */
FSM_LOCAL void fsm_write_transition(const struct fsm_run *run, int64_t source)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    struct fsm_buffers *buffers = run->buffers;
    int64_t i = state->counters->transitions;
    fsm_vector record = fsm_row(buffers->transitions, i);
    int64_t n_fired = fsm_least(state->counters->fired, FSM_MAX_FIRED);
    int64_t most = tables->sizes->max_guards;
    record.at[FSM_RECORD_TIME] = state->clock->time;
    record.at[FSM_RECORD_SOURCE] = (double)source;
    record.at[FSM_RECORD_TARGET] = (double)state->counters->mode;
    record.at[FSM_RECORD_ROW] = (double)(state->counters->rows - 1);
    record.at[FSM_RECORD_REASON] = (double)state->counters->reason;
    record.at[FSM_RECORD_FIRED] = (double)n_fired;
    record.at[FSM_RECORD_CANDIDATES] = (double)work->notes->candidates;
    record.at[FSM_RECORD_CONSISTENT] = (double)work->notes->consistent;
    record.at[FSM_RECORD_CHOSEN_BY] = (double)work->notes->chosen_by;
    record.at[FSM_RECORD_WRITTEN] = (double)work->notes->written_transition;
    record.at[FSM_RECORD_ENERGY_BEFORE] = work->energy->before;
    record.at[FSM_RECORD_ENERGY_AFTER] = work->energy->after;
    record.at[FSM_RECORD_BETA] = work->energy->beta;
    int64_t at = FSM_RECORD_GUARDS;
    for (int64_t k = 0; k < n_fired; k++) {
        int64_t guard = state->fired.at[k];
        record.at[at] = (double)tables->guard_event.at[guard];
        record.at[at + 1] = (double)subject(run, guard);
        record.at[at + 2] = tables->guard_direction.at[guard];
        record.at[at + 3] = state->guards.at[3 * most + k];
        record.at[at + 4] = state->guards.at[4 * most + k];
        at += FSM_GUARD_WIDTH;
    }
    if (work->notes->written_transition >= 0 && n_fired < FSM_MAX_FIRED) {
        n_fired += write_condition(state, work->notes->written_transition, record.at + at);
        record.at[FSM_RECORD_FIRED] = (double)n_fired;
    }
    at = FSM_RECORD_GUARDS + FSM_MAX_FIRED * FSM_GUARD_WIDTH;
    fsm_put(fsm_vector_from(record, at), work->impulse);
    at += tables->sizes->n_rows;
    fsm_put(fsm_vector_from(record, at), work->u_before);
    at += tables->sizes->n_u;
    fsm_put(fsm_vector_from(record, at), fsm_speeds_of(run));
    at += tables->sizes->n_u;
    fsm_put(fsm_vector_from(record, at), work->log);
    state->counters->transitions = i + 1;
}

/* Record that the step just made passed a change point. */
FSM_LOCAL void fsm_write_passage(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_buffers *buffers = run->buffers;
    int64_t i = state->counters->passed;
    struct fsm_rank *rank = state->rank;
    fsm_vector record = fsm_row(buffers->passages, i);
    int64_t n_rows = tables->sizes->n_rows;
    record.at[FSM_PASSAGE_TIME] = rank->passes_at;
    record.at[FSM_PASSAGE_MODE] = (double)state->counters->mode;
    record.at[FSM_PASSAGE_RANK] = rank->independent;
    record.at[FSM_PASSAGE_LOST] = rank->lost;
    record.at[FSM_PASSAGE_ERROR] = rank->tried_error;
    fsm_put(fsm_vector_from(record, FSM_PASSAGE_ROWS), fsm_rank_weights(rank, n_rows));
    rank->passes_at = FSM_INFINITY;
    rank->tried_error = 0.0;
    state->counters->passed = i + 1;
}
