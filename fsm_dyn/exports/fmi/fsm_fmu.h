/* What the units for FMI 2 and FMI 3 share: an instance, its states, its variables by value reference. */

#ifndef FSM_FMU_H
#define FSM_FMU_H

#include "fsm_machine.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const struct fsm_model *const fsm_fmu_model;
extern const char *const fsm_fmu_token;
extern const int64_t fsm_fmu_indicators;      // number of event indicators
extern const int32_t fsm_fmu_indicator_of[]; // of every guard in the tables

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

struct fmu {
    enum fmu_phase phase;
    bool exchange;   // model exchange: the importer integrates
    bool stale;      // time, states, inputs or parameters were set since the last evaluation
    bool event_mode; // the importer handles events in event mode
    bool returns_early;
    bool logs;
    bool stopped; // by a transition that ends the run
    double begin; // time of the importer at the machine's time 0 (s)
    void *environment;
    void (*report)(struct fmu *fmu, bool error, const char *category, const char *text);
    void (*logger)(void); // of the importer, whose type depends on the version
    struct fsm_machine *machine;
    char name[64];
};

/* Value references: time, parameters, inputs, outputs, states, the mode, contacts, derivatives, event indicators. */
struct fmu_places {
    int64_t parameters, inputs, outputs, states, mode, contacts, derivatives, indicators, end;
};

FSM_LOCAL struct fmu_places fmu_places(void);
FSM_LOCAL struct fmu *fmu_create(const char *name, const char *token);
FSM_LOCAL void fmu_free(struct fmu *fmu);
FSM_LOCAL bool fmu_allows(struct fmu *fmu, int phases, const char *function);
FSM_LOCAL void fmu_error(struct fmu *fmu, const char *format, ...);
FSM_LOCAL bool fmu_get_real(struct fmu *fmu, int64_t reference, double *value);
FSM_LOCAL bool fmu_set_real(struct fmu *fmu, int64_t reference, double value);
FSM_LOCAL bool fmu_get_integer(struct fmu *fmu, int64_t reference, int64_t *value);
FSM_LOCAL bool fmu_finish_initialization(struct fmu *fmu);
FSM_LOCAL int64_t fmu_state_count(void);
FSM_LOCAL bool fmu_has_length(struct fmu *fmu, size_t n, int64_t length);
FSM_LOCAL bool fmu_set_time(struct fmu *fmu, double time);
FSM_LOCAL bool fmu_set_states(struct fmu *fmu, const double *x);
FSM_LOCAL bool fmu_evaluate(struct fmu *fmu);
FSM_LOCAL void fmu_indicators(const struct fmu *fmu, double *values);
FSM_LOCAL bool fmu_resolve(struct fmu *fmu, bool *jumped);
FSM_LOCAL bool fmu_end_step(struct fmu *fmu, bool *due);
FSM_LOCAL bool fmu_judge(struct fmu *fmu, enum fsm_status status);
FSM_LOCAL double fmu_time(const struct fmu *fmu);
FSM_LOCAL void fmu_reset(struct fmu *fmu);

/* A copy of an instance: its own fields and the machine. */
struct fmu_copy {
    uint64_t seal; // of the model and of all that follows
    enum fmu_phase phase;
    bool stopped, exchange;
    double begin;
    double machine[];
};

FSM_LOCAL size_t fmu_copy_bytes(const struct fmu *fmu);
FSM_LOCAL void fmu_copy_out(const struct fmu *fmu, void *copy);
FSM_LOCAL bool fmu_copy_is_whole(const struct fmu *fmu, const void *copy);
FSM_LOCAL bool fmu_copy_in(struct fmu *fmu, const void *copy);

#endif
