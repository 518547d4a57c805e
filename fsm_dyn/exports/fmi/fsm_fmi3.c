/* FMI 3.0: co-simulation with event mode and early return, and model exchange.

   The types and signatures are those of the standard (https://fmi-standard.org, version 3.0.2, section 2.2). */

#include "fsm_fmu_api.h"

#include "fsm_fmu.c"

#include "fsm_fmu_copies.c"
#include "fsm_fmu_run.c"
#include "fsm_fmu_tangents.c"

typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef bool fmi3Boolean;
typedef const char *fmi3String;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3Callback)(void);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, double time, fmi3Boolean set_requested,
                                               fmi3Boolean get_allowed, fmi3Boolean step_finished,
                                               fmi3Boolean can_return_early, fmi3Boolean *early_requested,
                                               double *early_time);

#define REFERENCES const fmi3ValueReference references[], size_t n

static void report(struct fmu *fmu, bool error, const char *category, const char *text)
{
    fmi3LogMessageCallback logger = (fmi3LogMessageCallback)fmu->logger;
    if (logger != NULL) {
        logger(fmu->environment, error ? fmi3Error : fmi3OK, category, text);
    }
}

static fmi3Status status_of(bool good)
{
    return good ? fmi3OK : fmi3Error;
}

FMU_API fmi3String fmi3GetVersion(void)
{
    return "3.0";
}

FMU_API fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    (void)n, (void)categories;
    if (instance == NULL) {
        return fmi3Error;
    }
    ((struct fmu *)instance)->logs = on;
    return fmi3OK;
}

/* Let the importer read variables within a step; whether it wants the step to end here. */
static bool update(struct fmu *fmu)
{
    fmi3Boolean early = false;
    double time = fmu_time(fmu), early_time = time;
    ((fmi3IntermediateUpdateCallback)fmu->updater)(fmu->environment, time, false, true, true, fmu->returns_early,
                                                   &early, &early_time);
    return early && fmu->returns_early;
}

/* Make an instance, or report why not. */
static struct fmu *instantiate(fmi3String name, fmi3String token, bool logs, fmi3InstanceEnvironment environment,
                               fmi3LogMessageCallback logger)
{
    struct fmu *fmu = fmu_create(name, token);
    if (fmu == NULL) {
        if (logger != NULL) {
            logger(environment, fmi3Error, "logStatusError", "the instantiation token is wrong, or there is no memory");
        }
        return NULL;
    }
    fmu->environment = environment;
    fmu->report = report;
    fmu->logger = (void (*)(void))logger;
    fmu->logs = logs;
    return fmu;
}

FMU_API fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String path,
                                                 fmi3Boolean visible, fmi3Boolean logs, fmi3Boolean event_mode,
                                                 fmi3Boolean returns_early, const fmi3ValueReference required[],
                                                 size_t n, fmi3InstanceEnvironment environment,
                                                 fmi3LogMessageCallback logger,
                                                 fmi3IntermediateUpdateCallback intermediate)
{
    (void)path, (void)visible, (void)required, (void)n;
    struct fmu *fmu = instantiate(name, token, logs, environment, logger);
    if (fmu != NULL) {
        fmu->event_mode = event_mode;
        fmu->returns_early = returns_early;
        fmu->update = intermediate == NULL ? NULL : update;
        fmu->updater = (void (*)(void))intermediate;
    }
    return fmu;
}

FMU_API fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String path,
                                                  fmi3Boolean visible, fmi3Boolean logs,
                                                  fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger)
{
    (void)path, (void)visible;
    struct fmu *fmu = instantiate(name, token, logs, environment, logger);
    if (fmu != NULL) {
        fmu->exchange = true;
    }
    return fmu;
}

FMU_API void fmi3FreeInstance(fmi3Instance instance)
{
    fmu_free(instance);
}

FMU_API fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean has_tolerance, double tolerance,
                                               double start, fmi3Boolean has_stop, double stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    const char *name = "fmi3EnterInitializationMode";
    return status_of(fmu_set_begin(instance, start, name) && fmu_begin_initialization(instance, name));
}

FMU_API fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    return status_of(fmu_end_initialization(instance, "fmi3ExitInitializationMode"));
}

FMU_API fmi3Status fmi3EnterEventMode(fmi3Instance instance)
{
    return status_of(fmu_enter_event_mode(instance, "fmi3EnterEventMode"));
}

FMU_API fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance)
{
    return status_of(fmu_enter_continuous_time(instance, "fmi3EnterContinuousTimeMode"));
}

FMU_API fmi3Status fmi3EnterStepMode(fmi3Instance instance)
{
    bool has_it = instance != NULL && !((struct fmu *)instance)->exchange;
    return status_of(fmu_enter(instance, has_it ? FMU_EVENT : 0, FMU_STEP, "fmi3EnterStepMode"));
}

FMU_API fmi3Status fmi3Terminate(fmi3Instance instance)
{
    return status_of(fmu_terminate(instance, "fmi3Terminate"));
}

FMU_API fmi3Status fmi3Reset(fmi3Instance instance)
{
    if (instance == NULL) {
        return fmi3Error;
    }
    fmu_reset(instance);
    return fmi3OK;
}

FMU_API fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *again, fmi3Boolean *terminate,
                                            fmi3Boolean *nominals_changed, fmi3Boolean *states_changed,
                                            fmi3Boolean *next_defined, double *next)
{
    struct fmu_update update;
    bool has_room = again != NULL && terminate != NULL && nominals_changed != NULL && states_changed != NULL &&
                    next_defined != NULL && next != NULL;
    if (!has_room) {
        return fmi3Error;
    }
    bool good = fmu_update_event(instance, &update, "fmi3UpdateDiscreteStates");
    *again = update.again;
    *nominals_changed = false;
    *states_changed = update.jumped;
    *terminate = update.ended;
    *next_defined = update.has_next;
    *next = update.next;
    return status_of(good);
}

FMU_API fmi3Status fmi3DoStep(fmi3Instance instance, double point, double size, fmi3Boolean keeps, fmi3Boolean *event,
                              fmi3Boolean *terminate, fmi3Boolean *early, double *reached)
{
    (void)keeps;
    struct fmu_step step;
    bool has_room = event != NULL && terminate != NULL && early != NULL && reached != NULL;
    if (!has_room || !fmu_take_step(instance, point, size, &step, "fmi3DoStep")) {
        return fmi3Error;
    }
    *event = step.event;
    *terminate = step.ended;
    *early = step.early;
    *reached = step.reached;
    return fmi3OK;
}

/* ---- variables ---- */

FMU_API fmi3Status fmi3GetFloat64(fmi3Instance instance, REFERENCES, double values[], size_t n_values)
{
    bool good = n == n_values && fmu_get_reals(instance, references, n, values, "fmi3GetFloat64");
    return status_of(good);
}

FMU_API fmi3Status fmi3SetFloat64(fmi3Instance instance, REFERENCES, const double values[], size_t n_values)
{
    bool good = n == n_values && fmu_set_reals(instance, references, n, values, "fmi3SetFloat64");
    return status_of(good);
}

FMU_API fmi3Status fmi3GetInt64(fmi3Instance instance, REFERENCES, int64_t values[], size_t n_values)
{
    bool good = fmu_allows(instance, FMU_READABLE, "fmi3GetInt64") && n == n_values;
    good = good && (n == 0 || (references != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_get_integer(instance, (int64_t)references[i], &values[i]);
    }
    return status_of(good);
}

FMU_API fmi3Status fmi3GetBoolean(fmi3Instance instance, REFERENCES, fmi3Boolean values[], size_t n_values)
{
    bool good = fmu_allows(instance, FMU_READABLE, "fmi3GetBoolean") && n == n_values;
    good = good && (n == 0 || (references != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_get_boolean(instance, (int64_t)references[i], &values[i]);
    }
    return status_of(good);
}

FMU_API fmi3Status fmi3SetBoolean(fmi3Instance instance, REFERENCES, const fmi3Boolean values[], size_t n_values)
{
    bool good = fmu_allows(instance, FMU_WRITABLE, "fmi3SetBoolean") && n == n_values;
    good = good && (n == 0 || (references != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_set_boolean(instance, (int64_t)references[i], values[i]);
    }
    return status_of(good);
}

FMU_API fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                                size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns,
                                                const double seed[], size_t n_seed, double sensitivity[],
                                                size_t n_sensitivity)
{
    bool fits = n_seed == n_knowns && n_sensitivity == n_unknowns;
    return status_of(fits && fmu_directional(instance, unknowns, n_unknowns, knowns, n_knowns, seed, sensitivity,
                                             "fmi3GetDirectionalDerivative"));
}

/* ---- states of instances ---- */

FMU_API fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    return status_of(fmu_copy_out(instance, state, "fmi3GetFMUState"));
}

FMU_API fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    return status_of(instance != NULL && fmu_copy_in(instance, state, "fmi3SetFMUState"));
}

FMU_API fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return fmi3OK;
}

FMU_API fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    if (instance == NULL || state == NULL || size == NULL) {
        return fmi3Error;
    }
    *size = fmu_copy_bytes(instance);
    return fmi3OK;
}

FMU_API fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, uint8_t bytes[], size_t size)
{
    bool good = instance != NULL && fmu_serialize(instance, state, bytes, size, "fmi3SerializeFMUState");
    return status_of(good);
}

FMU_API fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const uint8_t bytes[], size_t size,
                                           fmi3FMUState *state)
{
    bool good = instance != NULL && fmu_deserialize(instance, bytes, size, state, "fmi3DeserializeFMUState");
    return status_of(good);
}

/* ---- model exchange ---- */

FMU_API fmi3Status fmi3SetTime(fmi3Instance instance, double time)
{
    return status_of(fmu_allows(instance, FMU_CONTINUOUS, "fmi3SetTime") && fmu_set_time(instance, time));
}

FMU_API fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const double values[], size_t n)
{
    return status_of(fmu_set_states(instance, values, n, "fmi3SetContinuousStates"));
}

FMU_API fmi3Status fmi3GetContinuousStates(fmi3Instance instance, double values[], size_t n)
{
    return status_of(fmu_get_states(instance, values, n, "fmi3GetContinuousStates"));
}

FMU_API fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, double values[], size_t n)
{
    return status_of(fmu_get_rates(instance, values, n, "fmi3GetContinuousStateDerivatives"));
}

FMU_API fmi3Status fmi3GetEventIndicators(fmi3Instance instance, double values[], size_t n)
{
    return status_of(fmu_get_indicators(instance, values, n, "fmi3GetEventIndicators"));
}

FMU_API fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, double values[], size_t n)
{
    return status_of(fmu_get_nominals(instance, values, n, "fmi3GetNominalsOfContinuousStates"));
}

FMU_API fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean keeps, fmi3Boolean *event,
                                               fmi3Boolean *terminate)
{
    (void)keeps;
    if (event == NULL || terminate == NULL) {
        return fmi3Error;
    }
    *terminate = false;
    return status_of(fmu_end_step(instance, event, "fmi3CompletedIntegratorStep"));
}

FMU_API fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *count)
{
    if (instance == NULL || count == NULL) {
        return fmi3Error;
    }
    *count = (size_t)fsm_fmu_indicators;
    return fmi3OK;
}

FMU_API fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *count)
{
    if (instance == NULL || count == NULL) {
        return fmi3Error;
    }
    *count = (size_t)fmu_state_count();
    return fmi3OK;
}

#include "fsm_fmi3_absent.c"
