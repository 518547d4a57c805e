/* What the units for FMI 2 and FMI 3 share: an instance, its states, its variables by value reference. */

#ifndef FSM_FMU_H
#define FSM_FMU_H

#include "fsm_exchange.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const struct fsm_model *const fsm_fmu_model;
extern const char *const fsm_fmu_token;
extern const bool fsm_fmu_reals;             // the mode and contact states are reals
extern const int64_t fsm_fmu_indicators;     // number of event indicators
extern const int32_t fsm_fmu_indicator_of[]; // of every guard in the tables, then of those of spare modes
extern const fsm_kernel fsm_fmu_tangents[];  // of every mode, as fmi_tangents.py describes
extern const fsm_kernel fsm_fmu_output_tangent;
extern const fsm_kernel fsm_fmu_pin_tangent; // NULL without outputs of connections

/* Calls are refused in the wrong state. */
enum fmu_phase {
    FMU_INSTANTIATED = 1,
    FMU_INITIALIZATION = 2,
    FMU_EVENT = 4,
    FMU_STEP = 8,
    FMU_TERMINATED = 16,
    FMU_FAILED = 32,
    FMU_CONTINUOUS = 64,
};

#define FMU_RUNNING  (FMU_EVENT | FMU_STEP | FMU_CONTINUOUS)
#define FMU_WRITABLE (FMU_RUNNING | FMU_INSTANTIATED | FMU_INITIALIZATION)
#define FMU_COMPUTED (FMU_RUNNING | FMU_INITIALIZATION | FMU_TERMINATED)
#define FMU_READABLE (FMU_COMPUTED | FMU_INSTANTIATED)

struct fmu {
    enum fmu_phase phase;
    bool exchange;   // model exchange: the importer integrates
    bool stale;      // time, states, inputs or parameters were set since the last evaluation
    bool event_mode; // the importer handles events in event mode
    bool returns_early;
    bool logs;
    bool stopped;           // by a transition that ends the run
    double begin;           // time of the importer at the machine's time 0 (s)
    struct fsm_watch watch; // in model exchange
    double *rates;          // of the inputs over the next step (per s)
    double *start;          // coordinates and speeds that the importer gave
    int8_t *given;          // which of them; the others follow
    bool starts_elsewhere;  // some were given since the start was assembled
    void *environment;
    void (*report)(struct fmu *fmu, bool error, const char *category, const char *text);
    /* Let the importer read the state at this time, the begin of what follows; true: it wants the step to end here.  NULL
       without such an importer. */
    bool (*update)(struct fmu *fmu);
    void (*updater)(void); // its function
    void (*logger)(void); // of the importer, whose type depends on the version
    int64_t undecided; // steps that were halved, of which it has been reported
    struct fsm_machine *machine;
    char name[64];
};

/* Value references: time, parameters, inputs, outputs, states, the mode, contacts, the phase of a model that states
   some, derivatives, event indicators. */
struct fmu_places {
    int64_t parameters, inputs, outputs, states, mode, contacts, phase, derivatives, indicators, end;
};

/* What event mode has found; times in s. */
struct fmu_update {
    bool again, jumped, ended, has_next;
    double next;
};

/* Where a step of co-simulation has ended (s), and why. */
struct fmu_step {
    bool event, ended, early;
    double reached;
};

/* A copy of an instance: its own fields, the machine, the rates of its inputs, which guards are low. */
struct fmu_copy {
    uint64_t seal; // of the model and of all that follows
    enum fmu_phase phase;
    bool stopped, exchange;
    double begin;
    double due;
    int64_t due_guard;
    double machine[];
};

/* fsm_fmu.c */
FSM_LOCAL struct fmu_places fmu_places(void);
FSM_LOCAL struct fmu *fmu_create(const char *name, const char *token);
FSM_LOCAL void fmu_free(struct fmu *fmu);
FSM_LOCAL const char *fmu_event_name(int64_t event);
FSM_LOCAL void fmu_error(struct fmu *fmu, const char *format, ...);
FSM_LOCAL bool fmu_allows(struct fmu *fmu, int phases, const char *function);
FSM_LOCAL bool fmu_has_room(struct fmu *fmu, const void *place, const char *function);
FSM_LOCAL bool fmu_has_length(struct fmu *fmu, size_t n, int64_t length);
FSM_LOCAL double fmu_time(const struct fmu *fmu);
FSM_LOCAL int64_t fmu_state_count(void);
FSM_LOCAL bool fmu_get_reals(struct fmu *fmu, const uint32_t *references, size_t n, double *values,
                             const char *function);
FSM_LOCAL bool fmu_set_reals(struct fmu *fmu, const uint32_t *references, size_t n, const double *values,
                             const char *function);
FSM_LOCAL bool fmu_get_integer(struct fmu *fmu, int64_t reference, int64_t *value);
FSM_LOCAL bool fmu_is_boolean(int64_t reference);
FSM_LOCAL bool fmu_get_boolean(struct fmu *fmu, int64_t reference, bool *value);
FSM_LOCAL bool fmu_set_boolean(struct fmu *fmu, int64_t reference, bool value);
FSM_LOCAL bool fmu_evaluate(struct fmu *fmu);
FSM_LOCAL void fmu_indicators(const struct fmu *fmu, double *values);

/* fsm_fmu_run.c */
FSM_LOCAL bool fmu_enter(struct fmu *fmu, int from, enum fmu_phase to, const char *function);
FSM_LOCAL bool fmu_set_begin(struct fmu *fmu, double start, const char *function);
FSM_LOCAL bool fmu_begin_initialization(struct fmu *fmu, const char *function);
FSM_LOCAL bool fmu_end_initialization(struct fmu *fmu, const char *function);
FSM_LOCAL bool fmu_enter_event_mode(struct fmu *fmu, const char *function);
FSM_LOCAL bool fmu_update_event(struct fmu *fmu, struct fmu_update *update, const char *function);
FSM_LOCAL bool fmu_enter_continuous_time(struct fmu *fmu, const char *function);
FSM_LOCAL bool fmu_take_step(struct fmu *fmu, double point, double size, struct fmu_step *step, const char *function);
FSM_LOCAL bool fmu_terminate(struct fmu *fmu, const char *function);
FSM_LOCAL void fmu_reset(struct fmu *fmu);
FSM_LOCAL bool fmu_set_time(struct fmu *fmu, double time);
FSM_LOCAL bool fmu_set_states(struct fmu *fmu, const double *x, size_t n, const char *function);
FSM_LOCAL bool fmu_get_states(struct fmu *fmu, double *x, size_t n, const char *function);
FSM_LOCAL bool fmu_get_rates(struct fmu *fmu, double *x_dot, size_t n, const char *function);
FSM_LOCAL bool fmu_get_indicators(struct fmu *fmu, double *values, size_t n, const char *function);
FSM_LOCAL bool fmu_get_nominals(struct fmu *fmu, double *values, size_t n, const char *function);
FSM_LOCAL bool fmu_end_step(struct fmu *fmu, bool *due, const char *function);

/* fsm_fmu_tangents.c */
FSM_LOCAL bool fmu_directional(struct fmu *fmu, const uint32_t *unknowns, size_t n, const uint32_t *knowns, size_t m,
                               const double *seed, double *sensitivity, const char *function);

/* fsm_fmu_copies.c */
FSM_LOCAL size_t fmu_copy_bytes(const struct fmu *fmu);
FSM_LOCAL bool fmu_copy_out(struct fmu *fmu, void **copy, const char *function);
FSM_LOCAL bool fmu_copy_in(struct fmu *fmu, const void *bytes, const char *function);
FSM_LOCAL bool fmu_serialize(struct fmu *fmu, const void *copy, void *bytes, size_t size, const char *function);
FSM_LOCAL bool fmu_deserialize(struct fmu *fmu, const void *bytes, size_t size, void **copy, const char *function);

#endif
