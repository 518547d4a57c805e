/* Influence of the end time of a run on its next step.

   The last step is shortened to end there, so a run that is to be continued is saved before it (saved_state.c): what goes
   on from there takes the step that a run with a later end takes. */

#include "stepping.h"

#define FSM_PASSAGES 32.0 // times a step's length up to which one over a change point may be made longer

/* Return the length of the first step (s) up to `target` (s), as fsm_advance would choose it. */
static double first_length_up_to(const struct fsm_run *run, double target)
{
    return fsm_first_step(run, fsm_smaller(target - run->state->clock->time, run->options->numbers->max_step));
}

/* Whether the next step, or the transition that is pending, may depend on where the run ends. */
FSM_API bool fsm_end_is_near(const struct fsm_run *run)
{
    const struct fsm_state *state = run->state;
    const struct fsm_clock *clock = state->clock;
    double until = run->options->numbers->until;
    double jump = fsm_next_jump(run);
    if (until > jump) {
        return false;
    }
    if (state->counters->phase == FSM_PHASE_RESOLVING) {
        return state->counters->reason == FSM_REASON_ZENO && clock->jump > 0.0 && clock->time + clock->jump > until;
    }
    if (run->method->counts->adaptive == 0) {
        return until <= fsm_grid_point(run);
    }
    double length = clock->step;
    if (length <= 0.0) {
        length = first_length_up_to(run, jump);
        if (length != first_length_up_to(run, until)) {
            return true;
        }
    }
    length = fsm_smaller(length, run->options->numbers->max_step);
    if ((run->tables->mode_flags.at[state->counters->mode] & FSM_MODE_RANKS) != 0) {
        length *= FSM_PASSAGES;
    }
    return until - clock->time <= length + 32.0 * FSM_EPS * fsm_larger(fabs(clock->time), fabs(until));
}
