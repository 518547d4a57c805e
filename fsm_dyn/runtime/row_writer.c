/* Writing rows and transitions into the buffers of a run. */

#include "stepping.h"

/* Record the state at hand; `x_mid` is the state at the middle of the step that led here. */
FSM_LOCAL void fsm_write_row(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_buffers *buffers,
                             fsm_vector x_mid)
{
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
static int64_t subject(const struct fsm_tables *tables, struct fsm_work *work, int64_t guard)
{
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

/* Record the transition that led to the row written last. */
FSM_LOCAL void fsm_write_transition(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                    struct fsm_buffers *buffers, int64_t source)
{
    int64_t i = state->counters->transitions;
    fsm_matrix record = buffers->transitions;
    int64_t n_fired = fsm_least(state->counters->fired, FSM_MAX_FIRED);
    int64_t most = tables->sizes->max_guards;
    AT(record, i, FSM_RECORD_TIME) = state->clock->time;
    AT(record, i, FSM_RECORD_SOURCE) = (double)source;
    AT(record, i, FSM_RECORD_TARGET) = (double)state->counters->mode;
    AT(record, i, FSM_RECORD_ROW) = (double)(state->counters->rows - 1);
    AT(record, i, FSM_RECORD_REASON) = (double)state->counters->reason;
    AT(record, i, FSM_RECORD_FIRED) = (double)n_fired;
    AT(record, i, FSM_RECORD_CANDIDATES) = (double)work->notes->candidates;
    AT(record, i, FSM_RECORD_CONSISTENT) = (double)work->notes->consistent;
    AT(record, i, FSM_RECORD_CHOSEN_BY) = (double)work->notes->chosen_by;
    AT(record, i, FSM_RECORD_WRITTEN) = (double)work->notes->written_transition;
    AT(record, i, FSM_RECORD_ENERGY_BEFORE) = work->energy->before;
    AT(record, i, FSM_RECORD_ENERGY_AFTER) = work->energy->after;
    AT(record, i, FSM_RECORD_BETA) = work->energy->beta;
    int64_t at = FSM_RECORD_GUARDS;
    for (int64_t k = 0; k < n_fired; k++) {
        int64_t guard = state->fired.at[k];
        AT(record, i, at) = (double)tables->guard_event.at[guard];
        AT(record, i, at + 1) = (double)subject(tables, work, guard);
        AT(record, i, at + 2) = tables->guard_direction.at[guard];
        AT(record, i, at + 3) = state->guards.at[3 * most + k];
        AT(record, i, at + 4) = state->guards.at[4 * most + k];
        at += FSM_GUARD_WIDTH;
    }
    at = FSM_RECORD_GUARDS + FSM_MAX_FIRED * FSM_GUARD_WIDTH;
    for (int64_t r = 0; r < tables->sizes->n_rows; r++) {
        AT(record, i, at + r) = work->impulse.at[r];
    }
    at += tables->sizes->n_rows;
    int64_t n_u = tables->sizes->n_u;
    for (int64_t j = 0; j < n_u; j++) {
        AT(record, i, at + j) = work->u_before.at[j];
        AT(record, i, at + n_u + j) = state->x.at[tables->sizes->n_q + j];
    }
    at += 2 * n_u;
    for (int64_t j = 0; j < FSM_LOG_LENGTH; j++) {
        AT(record, i, at + j) = work->log.at[j];
    }
    state->counters->transitions = i + 1;
}

/* Record that the step just made passed a change point. */
FSM_LOCAL void fsm_write_passage(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_buffers *buffers)
{
    int64_t i = state->counters->passed;
    struct fsm_rank *rank = state->rank;
    fsm_matrix record = buffers->passages;
    int64_t n_rows = tables->sizes->n_rows;
    AT(record, i, FSM_PASSAGE_TIME) = rank->passes_at;
    AT(record, i, FSM_PASSAGE_MODE) = (double)state->counters->mode;
    AT(record, i, FSM_PASSAGE_RANK) = rank->independent;
    AT(record, i, FSM_PASSAGE_LOST) = rank->lost;
    AT(record, i, FSM_PASSAGE_ERROR) = rank->tried_error;
    for (int64_t r = 0; r < n_rows; r++) {
        AT(record, i, FSM_PASSAGE_ROWS + r) = fsm_rank_weights(rank, n_rows).at[r];
    }
    rank->passes_at = FSM_INFINITY;
    rank->tried_error = 0.0;
    state->counters->passed = i + 1;
}
