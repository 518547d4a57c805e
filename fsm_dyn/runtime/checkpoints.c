/* Marks on the way of a run, to which it can go back: copies of all that the stepper knows, every few ticks. */

#include "live.h"

#define FSM_EVERY                   10   // ticks
#define FSM_CHECKPOINTS_MOST        2000 // marks, of which the oldest goes: 20 s at 1 kHz
#define FSM_CHECKPOINTS_COUNT_COUNT 2

/* Leave a mark where the model stands at time `t` (s), if one is due. */
FSM_LOCAL void fsm_leave_checkpoint(struct fsm_checkpoints *marks, struct fsm_tick *tick, double t)
{
    if (tick->counts->advancing == 0 || tick->counts->status != FSM_DONE) {
        return;
    }
    marks->counts->since++;
    if (marks->counts->since < FSM_EVERY) {
        return;
    }
    marks->counts->since = 0;
    int64_t slot = fsm_modulo(marks->counts->made, marks->states.n);
    for (int64_t i = 0; i < marks->block.n; i++) {
        AT(marks->states, slot, i) = marks->block.at[i];
    }
    AT(marks->inputs, slot, 0) = t;
    int64_t n_w = tick->now.n;
    for (int64_t i = 0; i < n_w; i++) {
        AT(marks->inputs, slot, 1 + i) = tick->now.at[i];
    }
    for (int64_t k = 0; k < tick->motion.n; k++) {
        AT(marks->inputs, slot, 1 + n_w + k) = tick->motion.at[k];
    }
    marks->counts->made++;
}
