/* The phases of an exported model: conditions of which the first true one applies, in the order of the model. */

#ifndef FSM_PHASES_H
#define FSM_PHASES_H

#include "runtime/run.h"

/* Phases as data.

   A condition is a comparison, by its number, or behind these a condition on contact states.  `rules` has of each phase, in
   order: how many phases it may follow (0: all) and these; then the conjunctions of which one has to be true for it to
   begin, as their number and of each its length and its conditions; then, in the same form, those that end it (none: it
   applies as long as it could begin). */
struct fsm_phases {
    int64_t count, n_compared;
    fsm_kernel margins;     // writes of each comparison a number above zero where it is true; NULL without any
    int64_t reads_forces;   // 1: it reads rates of speeds and multipliers behind the state
    const int8_t *strict;   // of each comparison: 1: false at zero
    const int64_t *begin;   // of each condition on contact states, its index in `states`
    const int64_t *states;  // 1 if negated, 1 if one contact suffices, the number of contacts; of each contact its number
                            // and its state
    const int64_t *rules;
};

#endif
