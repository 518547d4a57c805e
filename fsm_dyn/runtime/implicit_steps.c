/* Steps of implicit methods for stiff models, which a solver outside takes.

   Its steps are read off their dense output (dense_output.c) and followed as those of an explicit method are: guards are
   watched and located by the same functions, and transitions are the same. */

#include "stepping.h"

/* Do one part of an implicit step.

   `what`: FSM_SERVE_DERIVATIVE writes x_dot at `t` and `work->y` into `work->k`; FSM_SERVE_FOLLOW accepts the dense output
   up to `t`, to the next event, or as far as guards are known, where a step must end at `target` (s); FSM_SERVE_CHART
   changes to a better chart; FSM_SERVE_LOOK looks for change points ahead of a step of length `target` (s), and writes
   the length that keeps clear of them into `work->y.at[0]`. */
FSM_API enum fsm_status fsm_implicit_step(const struct fsm_run *run, int64_t what, double t, double target)
{
    switch (what) {
    case FSM_SERVE_DERIVATIVE: {
        struct fsm_state *state = run->state;
        struct fsm_work *work = run->work;
        fsm_update_inputs(run->inputs, t, state->counters->segment, work->y, state->c);
        if (state->rank->lands != 0.0) {
            fsm_land(run, t, work->y, FSM_INFINITY);
        }
        state->spent.at[state->counters->mode]++;
        run->tables->mode_rhs.at[state->counters->mode](t, work->y.at, state->c.at, work->k.at);
        return FSM_CONTINUE;
    }
    case FSM_SERVE_CHART:
        return fsm_choose_chart(run);
    case FSM_SERVE_LOOK:
        return fsm_look(run, target, &run->work->y.at[0]);
    default: {
        enum fsm_status status = fsm_find_and_accept(run, t, target);
        fsm_look_at_far_here(run);
        return status;
    }
    }
}
