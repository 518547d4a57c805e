/* Runs of stiff models: scipy's implicit methods over the same kernels, guards and transitions.

   The implicit step is taken in Python.  The compiled loop of stepper follows its dense output
   as it follows the steps of an explicit method: guards are watched and located by the same functions and rules, and all
   that happens at a transition is done there. */

#include "stepping.h"

// what ``serve`` is asked to do
#define FSM_SERVE_DERIVATIVE 0 // work.k[:n] = x_dot(t, work.y)
#define FSM_SERVE_FOLLOW     1 // accept the dense output up to t, to the next event, or as far as it can be trusted
#define FSM_SERVE_CHART      2 // choose a better chart if there is one
#define FSM_SERVE_LOOK                                                                                                 \
    3 // look for change points up to a length ahead; work.y[0] is then the length that keeps clear of them
#define FSM_IMPLICIT_STEPS_STARTED 5 // steps after an event that bdf leaves to radau
#define FSM_SMALL_SHIFT 10.0 // times the tolerance of a step, up to which a projection leaves the solver as it is

/* Do one compiled part of an implicit step; see the codes above.  Returns a status. */
FSM_API int64_t fsm_implicit_step(int64_t what, const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                  const struct fsm_method *method, const struct fsm_options *options,
                                  struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers, double t,
                                  double target)
{
    if (what == FSM_SERVE_DERIVATIVE) {
        int64_t mode = state->counters->mode;
        fsm_update_inputs(drive, t, state->counters->segment, work->y, state->c);
        if (state->rank->lands != 0.0) {
            fsm_land(work, tables, t, work->y, state->c, mode, state->rank, FSM_INFINITY);
        }
        tables->mode_rhs.at[mode](t, work->y.at, state->c.at, work->k.at);
        return FSM_CONTINUE;
    }
    if (what == FSM_SERVE_CHART) {
        return fsm_choose_chart(tables, state, work);
    }
    int64_t status;
    if (what == FSM_SERVE_LOOK) {
        status = fsm_look(tables, state, work, t, target, &work->y.at[0]);
        return status;
    }
    double t_end;
    int64_t lead;
    status = fsm_find_step(tables, drive, method, options, state, work, t, &t_end, &lead);
    if (status != FSM_CONTINUE) {
        return status;
    }
    status = fsm_accept_step(tables, drive, method, options, state, work, buffers, t_end, target, lead);
    if (state->rank->passes_at < FSM_INFINITY) {
        fsm_write_passage(tables, state, buffers);
    }
    return status;
}
