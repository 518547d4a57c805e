/* Runs of one automaton one after the other, as those of a study: the same inputs, method and options; each run has its
   own start.  What they record is stored in the same buffers, of one run after that of another. */

#include "stepping.h"

/* Make the state and the workspace those of a run that is about to start. */
static void start_run(struct fsm_run_batch *batch)
{
    struct fsm_state *state = batch->run->state;
    int64_t number = batch->next;
    fsm_put_indices(batch->state, batch->state_at_start);
    fsm_put_indices(batch->work, batch->work_at_start);
    fsm_put(state->x, fsm_row(batch->x, number));
    fsm_put(state->c, fsm_row(batch->c, number));
    state->counters->mode = batch->modes.at[number];
    batch->under_way = 1;
}

/* Note how a run ended and how much room it took. */
static void finish_run(struct fsm_run_batch *batch, enum fsm_status status)
{
    const struct fsm_counters *counters = batch->run->state->counters;
    fsm_indices end = fsm_index_row(batch->ends, batch->next);
    end.at[FSM_END_STATUS] = status;
    end.at[FSM_END_ROWS] = counters->rows;
    end.at[FSM_END_TRANSITIONS] = counters->transitions;
    batch->rows += counters->rows;
    batch->transitions += counters->transitions;
    batch->passages += counters->passed;
    batch->next++;
    batch->under_way = 0;
}

/* The matrix without its first rows. */
static fsm_matrix rows_from(fsm_matrix a, int64_t first)
{
    return (fsm_matrix){a.at + first * a.m, a.n - first, a.m};
}

/* Make runs up to number `end`; return FSM_DONE, or what the run `next` wants of the caller, with which it continues.

   Where the buffers are full, the caller takes what was recorded, sets `rows`, `transitions` and `passages` to zero, and
   `under_way` as well: the run begins again. */
FSM_API enum fsm_status fsm_advance_batch(struct fsm_run_batch *batch, int64_t end)
{
    const struct fsm_buffers *all = batch->run->buffers;
    while (batch->next < end) {
        struct fsm_buffers room = {
            rows_from(all->rows, batch->rows),
            fsm_indices_from(all->modes, batch->rows),
            rows_from(all->transitions, batch->transitions),
            rows_from(all->passages, batch->passages),
        };
        struct fsm_run run = *batch->run;
        run.buffers = &room;
        if (batch->under_way == 0) {
            start_run(batch);
        }
        enum fsm_status status = fsm_advance(&run);
        if (status <= FSM_LAST_INTERNAL) {
            return status;
        }
        finish_run(batch, status);
    }
    return FSM_DONE;
}
