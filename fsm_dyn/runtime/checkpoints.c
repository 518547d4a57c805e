/* Checkpoints of a live session, from which it can be rewound: copies of the stepper's state every few ticks. */

#include "live.h"

/* Copy the stepper's state and the inputs into the ring of checkpoints where one is due and the tick was completed. */
FSM_LOCAL void fsm_leave_checkpoint(const struct fsm_tick *tick)
{
    struct fsm_checkpoints *checkpoints = tick->places->checkpoints;
    if (tick->counts->advancing == 0 || tick->counts->status != FSM_DONE) {
        return;
    }
    checkpoints->counts->since++;
    if (checkpoints->counts->since < FSM_CHECKPOINT_EVERY) {
        return;
    }
    checkpoints->counts->since = 0;
    int64_t slot = checkpoints->counts->saved % checkpoints->states.n;
    fsm_put_indices(fsm_index_row(checkpoints->states, slot), checkpoints->block);
    fsm_vector inputs = fsm_row(checkpoints->inputs, slot);
    inputs.at[0] = tick->places->run.state->clock->time;
    fsm_put(fsm_vector_from(inputs, 1), tick->now);
    fsm_put(fsm_vector_from(inputs, 1 + tick->now.n), tick->motion);
    checkpoints->counts->saved++;
}
