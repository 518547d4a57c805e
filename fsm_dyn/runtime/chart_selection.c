/* Chart selection for an active set. */

#include "stepping.h"

#define FSM_BETTER 2.0  // how many times the pivot of the other chart must be larger
#define FSM_GOOD   0.01 // pivot with which a mode is entered without looking for another chart

/* Return the chart of the active set with the largest pivot at the current state, -1 if none is enough better.

   `work->full_mid` is overwritten. */
FSM_LOCAL int64_t fsm_better_chart(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    double t = state->clock->time;
    fsm_vector x = state->x;
    double pivot = state->clock->pivot;
    int64_t mode = state->counters->mode;
    int64_t at = x.n + tables->sizes->n_u;
    double least = pivot > 0.0 ? FSM_BETTER * pivot : 0.0;
    int64_t best = -1;
    for (int64_t other = 0; other < tables->sizes->n_modes; other++) {
        if (other == mode || tables->mode_group.at[other] != tables->mode_group.at[mode]) {
            continue;
        }
        tables->mode_full.at[other](t, x.at, state->c.at, work->full_mid.at);
        double found = work->full_mid.at[at];
        if (found > least) {
            least = found;
            best = other;
        }
    }
    return best;
}

/* Whether a mode embedded online has taken as many evaluations as kernels of its own would be worth. */
FSM_LOCAL bool fsm_has_earned_kernels(const struct fsm_run *run, int64_t mode)
{
    return run->state->spent.at[mode] > run->tables->mode_allowance.at[mode];
}

/* Return a chart of the mode `target` with kernels of its own that is good at the current state, -1 if there is none.

   `work->full_mid` is overwritten. */
FSM_LOCAL int64_t fsm_own_kernels(const struct fsm_run *run, int64_t target)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t at = state->x.n + tables->sizes->n_u;
    for (int64_t chart = 0; chart < tables->sizes->n_modes; chart++) {
        if (tables->mode_group.at[chart] != tables->mode_group.at[target] ||
            tables->mode_allowance.at[chart] != FSM_NEVER) {
            continue;
        }
        tables->mode_full.at[chart](state->clock->time, state->x.at, state->c.at, work->full_mid.at);
        if (work->full_mid.at[at] >= FSM_GOOD) {
            return chart;
        }
    }
    return -1;
}

/* Return a chart of the mode `target` that is good at the current state: one with kernels of its own if the mode has
   earned them, else `target` itself if it is good.

   Where none is, -1; or, once one was asked for, the best there is.  `work->full_mid` is overwritten. */
FSM_LOCAL int64_t fsm_entry_chart(const struct fsm_run *run, int64_t target)
{
    if (fsm_has_earned_kernels(run, target)) {
        int64_t own = fsm_own_kernels(run, target);
        if (own >= 0) {
            return own;
        }
    }
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t at = state->x.n + tables->sizes->n_u;
    int64_t best = target;
    double largest = -1.0;
    for (int64_t k = -1; k < tables->sizes->n_modes; k++) {
        int64_t chart = k < 0 ? target : k;
        if (tables->mode_group.at[chart] != tables->mode_group.at[target]) {
            continue;
        }
        tables->mode_full.at[chart](state->clock->time, state->x.at, state->c.at, work->full_mid.at);
        if (work->full_mid.at[at] >= FSM_GOOD) {
            return chart;
        }
        if (work->full_mid.at[at] > largest) {
            best = chart;
            largest = work->full_mid.at[at];
        }
    }
    return state->counters->asked == 1 ? best : -1;
}
