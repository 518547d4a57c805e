/* A machine for a simulator that integrates, which asks for derivatives and guards and decides where an event is. */

#ifndef FSM_EXCHANGE_H
#define FSM_EXCHANGE_H

#include "fsm_machine.h"

/* What is known of guards whose sign may not show an event.

   `due`: time (s) of an event that was foreseen, FSM_INFINITY where none was, and `guard`, its number within the mode.
   `low`: of every guard whether it is zero up to its tolerance, which is added to its indicator until it has risen
   above that: else rounding would have it cross zero. */
struct fsm_watch {
    double due;
    int64_t guard;
    int8_t *low; // as many as the modes have guards at most
};

/* Let an input have this value from now on, as one of a continuous function: contact states are not decided again. */
FSM_LOCAL void fsm_machine_follow_input(struct fsm_machine *machine, int64_t input, double value);

/* Let the value that an input has at the end of the next step be higher by `rise`; it is linear in time until there. */
FSM_LOCAL void fsm_machine_ramp_input(struct fsm_machine *machine, int64_t input, double rise);

/* Move to `time` (s) and the state `x`, which is copied. */
FSM_LOCAL void fsm_machine_place(struct fsm_machine *machine, double time, const double *x);

/* Evaluate there; false where that is not finite.  Dependent speeds are made those that the constraints require. */
FSM_LOCAL bool fsm_machine_evaluate(struct fsm_machine *machine);

/* Derivatives of the last evaluation. */
FSM_LOCAL const double *fsm_machine_rates(const struct fsm_machine *machine);

/* Return how many guards the mode has; the number of one of them among those of the exported modes, and behind them those
   that spare modes are made of; and its event indicator. */
FSM_LOCAL int64_t fsm_machine_guard_count(const struct fsm_machine *machine);
FSM_LOCAL int64_t fsm_machine_guard(const struct fsm_machine *machine, int64_t guard);
FSM_LOCAL double fsm_machine_indicator(const struct fsm_machine *machine, const struct fsm_watch *watch, int64_t guard);

/* State, rates of the speeds and multipliers here: the arguments of the outputs of connections. */
FSM_LOCAL const double *fsm_machine_motion(struct fsm_machine *machine);

/* Whether the mode was exported, and not embedded online. */
FSM_LOCAL bool fsm_machine_is_exported(const struct fsm_machine *machine);

/* Return the item of the present mode in its enumeration: 0 without a name. */
FSM_LOCAL int64_t fsm_machine_mode_item(const struct fsm_machine *machine);

/* Write what the kernel of the mode gives a step `h` along a direction of the state (n) and the inputs (n_w). */
FSM_LOCAL void fsm_machine_probe(struct fsm_machine *machine, const double *along, double h, double *full);

/* To be called after every step that the simulator keeps; FSM_PAUSED: a guard has fallen below zero, or a phase
   begins, so that fsm_machine_resolve is due. */
FSM_LOCAL enum fsm_status fsm_machine_end_step(struct fsm_machine *machine, struct fsm_watch *watch);

/* Make the transitions that are due at the present time, none where no guard has fired; the state may jump.  FSM_DONE,
   or how the run ended. */
FSM_LOCAL enum fsm_status fsm_machine_resolve(struct fsm_machine *machine, struct fsm_watch *watch);

/* Whether fsm_machine_resolve has more to do at the present time: the next event is there too, up to the resolution. */
FSM_LOCAL bool fsm_machine_is_due(struct fsm_machine *machine, struct fsm_watch *watch);

/* Time (s) of the next corner or jump of the schedule, at which fsm_machine_resolve is due too; FSM_INFINITY: none. */
FSM_LOCAL double fsm_machine_breakpoint(const struct fsm_machine *machine);

#endif
