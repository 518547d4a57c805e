/* A mechanism that runs by itself: an exported model, its state, and all that the runtime works on.

   Everything lives in one block of memory that the caller gives: nothing is allocated, and there are no globals, so any
   number of machines may run at once, one per thread. */

#ifndef FSM_MACHINE_H
#define FSM_MACHINE_H

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error "compile without -ffast-math and -ffinite-math-only: what is not a number or infinite would pass for a number"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#include "fsm_phases.h"
#include "fsm_spare_modes.h"
#include "runtime/run.h"

/* The numbers of this machine. */
typedef double fsm_real;

#define FSM_MACHINE_HEAD 4096 // bytes: at least the size of struct fsm_machine, on every platform

/* What was exported of a model: data, constant.  Arrays of names have the length of what they name. */
struct fsm_model {
    const char *name;
    const struct fsm_tables *tables;
    const fsm_kernel *resets; // of the user-defined transitions, NULL where there is none
    const struct fsm_input_tables *schedule;
    int64_t segment; // of the schedule, at its begin
    const struct fsm_method *method;
    fsm_kernel report; // writes the outputs at first_output; n_report numbers are its room and that of `pins`
    int64_t n_report, first_output, n_outputs;
    const double *x, *c; // the model's own start, with the context there
    int64_t mode;
    const double *atol;
    double rtol, step, until;  // step (s): of a method with fixed steps; until (s): end of the model's own schedule
    const int8_t *input_moves; // an enum fsm_input_motion for each input
    const char *const *mode_names, *const *contact_names, *const *state_names, *const *input_names;
    const char *const *parameter_names, *const *output_names;
    const struct fsm_spare_parts *spare; // modes embedded online where they are met; NULL: such a mode ends the run
    int64_t n_embedded; // modes among them that have names, with their contact states
    const char *const *embedded_names;
    const int8_t *embedded_states;
    int64_t reads_time; // 1: its equations read the time, or it has controllers, which sample at times
    const int8_t *tunable;        // of each parameter: 1: it can be set while the machine runs
    const double *lowest, *highest; // of each parameter, both included
    const int8_t *start_states, *start_fixed; // of contacts: state in which a start is assembled (NULL: no start but the
                                              // model's own), and whether the model states it
    fsm_kernel pins; // writes the outputs of connections, the last n_pins, from state, rates of speeds and multipliers
    int64_t n_pins;
    fsm_kernel start_values;    // writes the coordinates and speeds that the model states at the start, in their places
    const int8_t *start_stated; // which of them it states
    const int8_t *start_reads;  // of each parameter, an enum fsm_start_use; NULL: none can be set for the start
    const struct fsm_phases *phases;    // NULL: the model states none
    const char *const *phase_names;
};

/* A transition as it is reported; valid during the call only.

   `fired`: of each guard that fired event (enum fsm_event), contact (of FSM_EVENT_TRANSITION the transition, also where it
   waited for a contact and has no guard), slip direction, value and slope; `impulse` (n_rows,), `u_before`, `u_after` (n_u,). */
struct fsm_transition {
    double time;            // s
    int64_t source, target; // modes
    enum fsm_reason reason;
    int64_t n_fired;
    const double *fired, *impulse, *u_before, *u_after;
};

/* What fsm_machine_advance returns, and has done nothing, where the time asked for is past, infinite or not a number. */
#define FSM_REFUSED ((enum fsm_status)255)

/* Receivers of what happens; each may be NULL.  `x` are coordinates and speeds at `time` (s), after every step; a `phase`,
   -1 for none, begins at `time` (s). */
struct fsm_listener {
    void *data;
    void (*transition)(void *data, const struct fsm_transition *transition);
    void (*row)(void *data, double time, const double *x, int64_t mode);
    void (*phase)(void *data, double time, int64_t phase);
};

struct fsm_machine;

/* Bytes of the block of a machine; FSM_MACHINE_HEAD is among them. */
FSM_API int64_t fsm_machine_bytes(const struct fsm_model *model);

/* Make a machine in `memory`, which must be aligned for int64_t and have `bytes`; NULL where that is too little. */
FSM_API struct fsm_machine *fsm_machine_create(const struct fsm_model *model, void *memory, int64_t bytes);

/* Put it back to the model's own start, at time 0, with the model's own schedule and parameters. */
FSM_API void fsm_machine_restart(struct fsm_machine *machine);

/* Begin at these coordinates and speeds in place of the model's own start, before the first call of fsm_machine_advance.

   `given`: 1 where the value of `x` holds; the others are guesses, and follow from the constraints, and from the contacts
   that the model states to be closed at the start, by least moves in the metric of the inertias.  Contacts that touch are
   decided by the next call of fsm_machine_advance, which ends at once where surfaces overlap.  False, and nothing is
   changed: the machine has begun to run, a value is not finite, no values nearby satisfy the constraints, there is no
   room for the mode, or the model follows curves or kinks, whose starts are solved for at the export alone. */
FSM_API bool fsm_machine_start(struct fsm_machine *machine, const double *x, const int8_t *given);

FSM_API void fsm_machine_listen(struct fsm_machine *machine, struct fsm_listener listener);

/* Run to the time `until` (s), which is not before the present one.

   Returns FSM_DONE, or how the run ended; after an end other than FSM_DONE and FSM_REFUSED the machine has to be
   restarted. */
FSM_API enum fsm_status fsm_machine_advance(struct fsm_machine *machine, double until);

/* Run to the next event, or to `until` (s): FSM_PAUSED where an event was located and is not resolved yet, so that the state
   is that before it; else as fsm_machine_advance.  The next call of either function resolves it. */
FSM_API enum fsm_status fsm_machine_advance_to_event(struct fsm_machine *machine, double until);

/* Bytes of what a machine knows, and copying that out and in: all that its further motion depends on.  It may be read by
   another machine of the same model and program.  Restoring returns false, and changes nothing, where the bytes are not
   those that a machine of this model saved. */
FSM_API int64_t fsm_machine_saved_bytes(const struct fsm_machine *machine);
FSM_API void fsm_machine_save(const struct fsm_machine *machine, void *bytes);
FSM_API bool fsm_machine_restore(struct fsm_machine *machine, const void *bytes);

/* Let an input run linearly from its present value to this one in the next call of fsm_machine_advance, and stay there.
   The first call takes all inputs out of the model's schedule, at their present values.  A boolean input has its value,
   0 or 1, from now on, as by fsm_machine_hold_input.  False, and nothing is changed, if there is no such input or the value
   is not a number or infinite, or none of a boolean. */
FSM_API bool fsm_machine_set_input(struct fsm_machine *machine, int64_t input, double value);

/* Let an input have this value from now on; contact states are decided again.  An input that drives a constraint on
   coordinates runs to the value linearly instead, as by fsm_machine_set_input.  False as there. */
FSM_API bool fsm_machine_hold_input(struct fsm_machine *machine, int64_t input, double value);

/* Set a parameter, from the next call of fsm_machine_advance on; contact states are decided again, as forces may jump.
   Before the first of these calls the start is assembled again where it depends on the parameter, from what the model
   states.  False, and nothing is changed, if there is no such parameter, it enters gaps, constraints, inertia or a table of
   the schedule, only the start reads it and the run has begun, the value is outside its limits, or a coefficient of a
   contact would become impossible at the present state: a restitution is from 0 to 1, kinetic friction from 0 to the
   static one. */
FSM_API bool fsm_machine_set_parameter(struct fsm_machine *machine, int64_t parameter, double value);

FSM_API double fsm_machine_time(const struct fsm_machine *machine);
/* Call the present time `time` (s) from now on, which changes nothing else: floats resolve small times better.  False, and
   nothing is changed, where the model reads the time, the inputs still follow its schedule or `time` is no number. */
FSM_API bool fsm_machine_set_time(struct fsm_machine *machine, double time);
FSM_API const double *fsm_machine_state(const struct fsm_machine *machine);   // coordinates, then speeds
FSM_API const double *fsm_machine_context(const struct fsm_machine *machine); // parameters, then inputs
FSM_API int64_t fsm_machine_mode(const struct fsm_machine *machine); // at and above the number exported: embedded online
/* Name of a mode, "other" if it was not exported. */
FSM_API const char *fsm_machine_mode_name(const struct fsm_machine *machine, int64_t mode);
FSM_API enum fsm_contact_state fsm_machine_contact(const struct fsm_machine *machine, int64_t contact);
/* How many modes there are, with those embedded online, and the contact states of one. */
FSM_API int64_t fsm_machine_mode_count(const struct fsm_machine *machine);
FSM_API enum fsm_contact_state fsm_machine_mode_contact(const struct fsm_machine *machine, int64_t mode, int64_t contact);
/* The contact states of a mode that was reached and for which there is no room, after FSM_MODE_NOT_LISTED. */
FSM_API enum fsm_contact_state fsm_machine_missing(const struct fsm_machine *machine, int64_t contact);
/* The phase at the present state, -1 where none applies: the first one whose condition is true, as the model states.  Its
   visits are those of a run with all short ones: how long one lasts is not known at its begin. */
FSM_API int64_t fsm_machine_phase(struct fsm_machine *machine);
FSM_API const char *fsm_machine_phase_name(const struct fsm_machine *machine, int64_t phase);
FSM_API double fsm_machine_output(struct fsm_machine *machine, int64_t output);
/* How many steps were halved since the start because bounds of a guard were too wide to decide it; of the last such guard
   `event` is its event, and `subject` the number of its contact, or of its user-defined transition.  Either may be
   NULL.  No event is missed by that, but steps are short: bring repeated terms of its expression together. */
FSM_API int64_t fsm_machine_undecided(const struct fsm_machine *machine, int64_t *event, int64_t *subject);

#ifdef __cplusplus
}
#endif

#endif
