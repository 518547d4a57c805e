/* FMI 2.0: co-simulation and model exchange.

   The types and signatures are those of the standard (https://fmi-standard.org, version 2.0.4, section 2.1). */

#include "fsm_fmu_api.h"

#include "fsm_fmu.c"

#include "fsm_fmu_copies.c"
#include "fsm_fmu_run.c"
#include "fsm_fmu_tangents.c"

typedef void *fmi2Component;
typedef void *fmi2ComponentEnvironment;
typedef void *fmi2FMUstate;
typedef uint32_t fmi2ValueReference;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;
typedef void (*fmi2CallbackLogger)(fmi2ComponentEnvironment, fmi2String name, fmi2Status, fmi2String category,
                                   fmi2String message, ...);
typedef struct {
    fmi2CallbackLogger logger;
    void *(*allocateMemory)(size_t count, size_t size);
    void (*freeMemory)(void *memory);
    void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
    fmi2Boolean newDiscreteStatesNeeded;
    fmi2Boolean terminateSimulation;
    fmi2Boolean nominalsOfContinuousStatesChanged;
    fmi2Boolean valuesOfContinuousStatesChanged;
    fmi2Boolean nextEventTimeDefined;
    double nextEventTime;
} fmi2EventInfo;

#define REFERENCES const fmi2ValueReference references[], size_t n

static void report(struct fmu *fmu, bool error, const char *category, const char *text)
{
    fmi2CallbackLogger logger = (fmi2CallbackLogger)fmu->logger;
    if (logger != NULL) {
        logger(fmu->environment, fmu->name, error ? fmi2Error : fmi2OK, category, "%s", text);
    }
}

static fmi2Status status_of(bool good)
{
    return good ? fmi2OK : fmi2Error;
}

FMU_API fmi2String fmi2GetTypesPlatform(void)
{
    return "default";
}

FMU_API fmi2String fmi2GetVersion(void)
{
    return "2.0";
}

FMU_API fmi2Status fmi2SetDebugLogging(fmi2Component instance, fmi2Boolean on, size_t n, const fmi2String categories[])
{
    (void)n, (void)categories;
    if (instance == NULL) {
        return fmi2Error;
    }
    ((struct fmu *)instance)->logs = on != 0;
    return fmi2OK;
}

FMU_API fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String token, fmi2String path,
                                      const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logs)
{
    (void)path, (void)visible;
    struct fmu *fmu = fmu_create(name, token);
    if (fmu == NULL) {
        if (functions != NULL && functions->logger != NULL) {
            functions->logger(functions->componentEnvironment, name == NULL ? "" : name, fmi2Error, "logStatusError",
                              "the GUID is wrong, or there is no memory");
        }
        return NULL;
    }
    fmu->exchange = type == fmi2ModelExchange;
    fmu->environment = functions == NULL ? NULL : functions->componentEnvironment;
    fmu->logger = functions == NULL ? NULL : (void (*)(void))functions->logger;
    fmu->report = report;
    fmu->logs = logs != 0;
    return fmu;
}

FMU_API void fmi2FreeInstance(fmi2Component instance)
{
    fmu_free(instance);
}

FMU_API fmi2Status fmi2SetupExperiment(fmi2Component instance, fmi2Boolean has_tolerance, double tolerance,
                                       double start, fmi2Boolean has_stop, double stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    return status_of(fmu_set_begin(instance, start, "fmi2SetupExperiment"));
}

FMU_API fmi2Status fmi2EnterInitializationMode(fmi2Component instance)
{
    return status_of(fmu_begin_initialization(instance, "fmi2EnterInitializationMode"));
}

FMU_API fmi2Status fmi2ExitInitializationMode(fmi2Component instance)
{
    return status_of(fmu_end_initialization(instance, "fmi2ExitInitializationMode"));
}

FMU_API fmi2Status fmi2EnterEventMode(fmi2Component instance)
{
    return status_of(fmu_enter_event_mode(instance, "fmi2EnterEventMode"));
}

FMU_API fmi2Status fmi2EnterContinuousTimeMode(fmi2Component instance)
{
    return status_of(fmu_enter_continuous_time(instance, "fmi2EnterContinuousTimeMode"));
}

FMU_API fmi2Status fmi2Terminate(fmi2Component instance)
{
    return status_of(fmu_terminate(instance, "fmi2Terminate"));
}

FMU_API fmi2Status fmi2Reset(fmi2Component instance)
{
    if (instance == NULL) {
        return fmi2Error;
    }
    fmu_reset(instance);
    return fmi2OK;
}

FMU_API fmi2Status fmi2NewDiscreteStates(fmi2Component instance, fmi2EventInfo *found)
{
    struct fmu_update update;
    if (found == NULL) {
        return fmi2Error;
    }
    bool good = fmu_update_event(instance, &update, "fmi2NewDiscreteStates");
    *found = (fmi2EventInfo){.newDiscreteStatesNeeded = update.again,
                             .terminateSimulation = update.ended,
                             .valuesOfContinuousStatesChanged = update.jumped,
                             .nextEventTimeDefined = update.has_next,
                             .nextEventTime = update.next};
    return status_of(good);
}

/* ---- variables ---- */

FMU_API fmi2Status fmi2GetReal(fmi2Component instance, REFERENCES, double values[])
{
    return status_of(fmu_get_reals(instance, references, n, values, "fmi2GetReal"));
}

FMU_API fmi2Status fmi2SetReal(fmi2Component instance, REFERENCES, const double values[])
{
    return status_of(fmu_set_reals(instance, references, n, values, "fmi2SetReal"));
}

FMU_API fmi2Status fmi2GetInteger(fmi2Component instance, REFERENCES, fmi2Integer values[])
{
    bool good = fmu_allows(instance, FMU_READABLE, "fmi2GetInteger");
    good = good && (n == 0 || (references != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        int64_t value = 0;
        good = fmu_get_integer(instance, (int64_t)references[i], &value);
        values[i] = (fmi2Integer)value;
    }
    return status_of(good);
}

FMU_API fmi2Status fmi2GetBoolean(fmi2Component instance, REFERENCES, fmi2Boolean values[])
{
    bool good = fmu_allows(instance, FMU_READABLE, "fmi2GetBoolean");
    good = good && (n == 0 || (references != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        bool value = false;
        good = fmu_get_boolean(instance, (int64_t)references[i], &value);
        values[i] = value;
    }
    return status_of(good);
}

FMU_API fmi2Status fmi2SetBoolean(fmi2Component instance, REFERENCES, const fmi2Boolean values[])
{
    bool good = fmu_allows(instance, FMU_WRITABLE, "fmi2SetBoolean");
    good = good && (n == 0 || (references != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_set_boolean(instance, (int64_t)references[i], values[i] != 0);
    }
    return status_of(good);
}

/* Variables that the unit has none of, or none that can be set. */
#define NO_VALUES(name, type)                                                                                          \
    FMU_API fmi2Status name(fmi2Component instance, REFERENCES, type values[])                                         \
    {                                                                                                                  \
        (void)references, (void)values;                                                                                \
        return n == 0 && instance != NULL ? fmi2OK : refuse(instance, #name);                                          \
    }

static fmi2Status refuse(fmi2Component instance, const char *function)
{
    if (instance != NULL) {
        fmu_error(instance, "%s is not supported", function);
    }
    return fmi2Error;
}

NO_VALUES(fmi2SetInteger, const fmi2Integer)
NO_VALUES(fmi2GetString, fmi2String)
NO_VALUES(fmi2SetString, const fmi2String)

/* ---- states of instances ---- */

FMU_API fmi2Status fmi2GetFMUstate(fmi2Component instance, fmi2FMUstate *state)
{
    return status_of(fmu_copy_out(instance, state, "fmi2GetFMUstate"));
}

FMU_API fmi2Status fmi2SetFMUstate(fmi2Component instance, fmi2FMUstate state)
{
    return status_of(instance != NULL && fmu_copy_in(instance, state, "fmi2SetFMUstate"));
}

FMU_API fmi2Status fmi2FreeFMUstate(fmi2Component instance, fmi2FMUstate *state)
{
    (void)instance;
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return fmi2OK;
}

FMU_API fmi2Status fmi2SerializedFMUstateSize(fmi2Component instance, fmi2FMUstate state, size_t *size)
{
    if (instance == NULL || state == NULL || size == NULL) {
        return fmi2Error;
    }
    *size = fmu_copy_bytes(instance);
    return fmi2OK;
}

FMU_API fmi2Status fmi2SerializeFMUstate(fmi2Component instance, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    bool good = instance != NULL && fmu_serialize(instance, state, bytes, size, "fmi2SerializeFMUstate");
    return status_of(good);
}

FMU_API fmi2Status fmi2DeSerializeFMUstate(fmi2Component instance, const fmi2Byte bytes[], size_t size,
                                           fmi2FMUstate *state)
{
    bool good = instance != NULL && fmu_deserialize(instance, bytes, size, state, "fmi2DeSerializeFMUstate");
    return status_of(good);
}

/* ---- model exchange ---- */

FMU_API fmi2Status fmi2SetTime(fmi2Component instance, double time)
{
    bool allowed = fmu_allows(instance, FMU_CONTINUOUS | FMU_EVENT, "fmi2SetTime");
    return status_of(allowed && fmu_set_time(instance, time));
}

FMU_API fmi2Status fmi2SetContinuousStates(fmi2Component instance, const double values[], size_t n)
{
    return status_of(fmu_set_states(instance, values, n, "fmi2SetContinuousStates"));
}

FMU_API fmi2Status fmi2GetContinuousStates(fmi2Component instance, double values[], size_t n)
{
    return status_of(fmu_get_states(instance, values, n, "fmi2GetContinuousStates"));
}

FMU_API fmi2Status fmi2GetDerivatives(fmi2Component instance, double values[], size_t n)
{
    return status_of(fmu_get_rates(instance, values, n, "fmi2GetDerivatives"));
}

FMU_API fmi2Status fmi2GetEventIndicators(fmi2Component instance, double values[], size_t n)
{
    return status_of(fmu_get_indicators(instance, values, n, "fmi2GetEventIndicators"));
}

FMU_API fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component instance, double values[], size_t n)
{
    return status_of(fmu_get_nominals(instance, values, n, "fmi2GetNominalsOfContinuousStates"));
}

FMU_API fmi2Status fmi2CompletedIntegratorStep(fmi2Component instance, fmi2Boolean keeps, fmi2Boolean *event,
                                               fmi2Boolean *terminate)
{
    (void)keeps;
    bool due = false;
    if (event == NULL || terminate == NULL || !fmu_end_step(instance, &due, "fmi2CompletedIntegratorStep")) {
        return fmi2Error;
    }
    *event = due;
    *terminate = 0;
    return fmi2OK;
}

FMU_API fmi2Status fmi2GetDirectionalDerivative(fmi2Component instance, const fmi2ValueReference unknowns[],
                                                size_t n_unknowns, const fmi2ValueReference knowns[], size_t n_knowns,
                                                const double seed[], double sensitivity[])
{
    return status_of(fmu_directional(instance, unknowns, n_unknowns, knowns, n_knowns, seed, sensitivity,
                                     "fmi2GetDirectionalDerivative"));
}

/* ---- co-simulation ---- */

/* A step that the model has ended in is not finished: fmi2Terminated is the reason. */
FMU_API fmi2Status fmi2DoStep(fmi2Component instance, double point, double size, fmi2Boolean keeps)
{
    (void)keeps;
    struct fmu_step step;
    if (!fmu_take_step(instance, point, size, &step, "fmi2DoStep")) {
        return fmi2Error;
    }
    return step.early ? fmi2Discard : fmi2OK;
}

FMU_API fmi2Status fmi2CancelStep(fmi2Component instance)
{
    return refuse(instance, "fmi2CancelStep");
}

/* Let an input change at this rate (per s) over the next step of co-simulation. */
static bool set_rate(struct fmu *fmu, int64_t reference, double rate)
{
    struct fmu_places at = fmu_places();
    bool is_input = reference >= at.inputs && reference < at.outputs;
    if (!is_input || !(fabs(rate) <= DBL_MAX) ||
        fsm_fmu_model->input_moves[reference - at.inputs] == FSM_INPUT_SWITCHES) {
        fmu_error(fmu, "the variable with value reference %ld cannot have the rate %g", (long)reference, rate);
        return false;
    }
    fmu->rates[reference - at.inputs] = rate;
    return true;
}

FMU_API fmi2Status fmi2SetRealInputDerivatives(fmi2Component instance, REFERENCES, const fmi2Integer order[],
                                               const double values[])
{
    bool good = fmu_allows(instance, FMU_STEP | FMU_INITIALIZATION, "fmi2SetRealInputDerivatives");
    good = good && (n == 0 || (references != NULL && order != NULL && values != NULL));
    for (size_t i = 0; good && i < n; i++) {
        if (order[i] != 1) {
            return refuse(instance, "a derivative of an input of higher order than 1");
        }
        good = set_rate(instance, (int64_t)references[i], values[i]);
    }
    return status_of(good);
}

FMU_API fmi2Status fmi2GetRealOutputDerivatives(fmi2Component instance, REFERENCES, const fmi2Integer order[],
                                                double values[])
{
    (void)references, (void)n, (void)order, (void)values;
    return refuse(instance, "fmi2GetRealOutputDerivatives");
}

/* Steps end within their call, so that no status is pending. */
FMU_API fmi2Status fmi2GetStatus(fmi2Component instance, const fmi2StatusKind kind, fmi2Status *value)
{
    (void)kind, (void)value;
    return refuse(instance, "fmi2GetStatus");
}

FMU_API fmi2Status fmi2GetRealStatus(fmi2Component instance, const fmi2StatusKind kind, double *value)
{
    if (instance == NULL || kind != fmi2LastSuccessfulTime || value == NULL) {
        return refuse(instance, "fmi2GetRealStatus");
    }
    *value = fmu_time(instance);
    return fmi2OK;
}

FMU_API fmi2Status fmi2GetIntegerStatus(fmi2Component instance, const fmi2StatusKind kind, fmi2Integer *value)
{
    (void)kind, (void)value;
    return refuse(instance, "fmi2GetIntegerStatus");
}

FMU_API fmi2Status fmi2GetBooleanStatus(fmi2Component instance, const fmi2StatusKind kind, fmi2Boolean *value)
{
    if (instance == NULL || kind != fmi2Terminated || value == NULL) {
        return refuse(instance, "fmi2GetBooleanStatus");
    }
    *value = ((struct fmu *)instance)->stopped;
    return fmi2OK;
}

FMU_API fmi2Status fmi2GetStringStatus(fmi2Component instance, const fmi2StatusKind kind, fmi2String *value)
{
    (void)kind, (void)value;
    return refuse(instance, "fmi2GetStringStatus");
}
