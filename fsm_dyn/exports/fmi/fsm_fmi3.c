/* FMI 3.0: co-simulation with event mode and early return, and model exchange (fsm_fmi3_exchange.c).

   The types and signatures are those of the standard (https://fmi-standard.org, version 3.0.2, section 2.2). */

#include "fsm_fmu.c"

typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef bool fmi3Boolean;
typedef const char *fmi3String;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3Callback)(void);

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

FSM_API fmi3String fmi3GetVersion(void);
FSM_API fmi3String fmi3GetVersion(void)
{
    return "3.0";
}

FSM_API fmi3Status fmi3SetDebugLogging(fmi3Instance, fmi3Boolean, size_t, const fmi3String[]);
FSM_API fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    (void)n, (void)categories;
    if (instance == NULL) {
        return fmi3Error;
    }
    ((struct fmu *)instance)->logs = on;
    return fmi3OK;
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

FSM_API fmi3Instance fmi3InstantiateCoSimulation(fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean,
                                                 fmi3Boolean, fmi3Boolean, const fmi3ValueReference[], size_t,
                                                 fmi3InstanceEnvironment, fmi3LogMessageCallback, fmi3Callback);
FSM_API fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String path,
                                                 fmi3Boolean visible, fmi3Boolean logs, fmi3Boolean event_mode,
                                                 fmi3Boolean returns_early, const fmi3ValueReference required[],
                                                 size_t n, fmi3InstanceEnvironment environment,
                                                 fmi3LogMessageCallback logger, fmi3Callback intermediate)
{
    (void)path, (void)visible, (void)required, (void)n, (void)intermediate;
    struct fmu *fmu = instantiate(name, token, logs, environment, logger);
    if (fmu != NULL) {
        fmu->event_mode = event_mode;
        fmu->returns_early = returns_early;
    }
    return fmu;
}

FSM_API void fmi3FreeInstance(fmi3Instance);
FSM_API void fmi3FreeInstance(fmi3Instance instance)
{
    fmu_free(instance);
}

FSM_API fmi3Status fmi3EnterInitializationMode(fmi3Instance, fmi3Boolean, double, double, fmi3Boolean, double);
FSM_API fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean has_tolerance, double tolerance,
                                               double start, fmi3Boolean has_stop, double stop)
{
    struct fmu *fmu = instance;
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    if (!fmu_allows(fmu, FMU_INSTANTIATED, "fmi3EnterInitializationMode")) {
        return fmi3Error;
    }
    fmu->begin = start;
    fmu->phase = FMU_INITIALIZATION;
    return fmi3OK;
}

FSM_API fmi3Status fmi3ExitInitializationMode(fmi3Instance);
FSM_API fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, FMU_INITIALIZATION, "fmi3ExitInitializationMode") || !fmu_finish_initialization(fmu)) {
        return fmi3Error;
    }
    fmu->phase = fmu->event_mode || fmu->exchange ? FMU_EVENT : FMU_STEP;
    return fmi3OK;
}

FSM_API fmi3Status fmi3EnterEventMode(fmi3Instance);
FSM_API fmi3Status fmi3EnterEventMode(fmi3Instance instance)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, FMU_STEP | FMU_CONTINUOUS, "fmi3EnterEventMode")) {
        return fmi3Error;
    }
    fmu->phase = FMU_EVENT;
    return fmi3OK;
}

FSM_API fmi3Status fmi3UpdateDiscreteStates(fmi3Instance, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *,
                                            fmi3Boolean *, double *);
FSM_API fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean *again, fmi3Boolean *terminate,
                                            fmi3Boolean *nominals_changed, fmi3Boolean *states_changed,
                                            fmi3Boolean *next_defined, double *next)
{
    struct fmu *fmu = instance;
    bool jumped = false;
    if (!fmu_allows(fmu, FMU_EVENT, "fmi3UpdateDiscreteStates") || !fmu_resolve(fmu, &jumped)) {
        return fmi3Error;
    }
    double next_time = fsm_machine_next_time(fmu->machine);
    *again = *nominals_changed = false; // one call resolves an instant
    *states_changed = jumped || !fmu->exchange;
    *terminate = fmu->stopped;
    *next_defined = fmu->exchange && next_time < FSM_INFINITY;
    *next = *next_defined ? fmu->begin + next_time : 0.0;
    return fmi3OK;
}

FSM_API fmi3Status fmi3EnterStepMode(fmi3Instance);
FSM_API fmi3Status fmi3EnterStepMode(fmi3Instance instance)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, FMU_EVENT, "fmi3EnterStepMode")) {
        return fmi3Error;
    }
    if (fmu->exchange) {
        fmu_error(fmu, "there is no step mode in model exchange");
        return fmi3Error;
    }
    fmu->phase = FMU_STEP;
    return fmi3OK;
}

FSM_API fmi3Status fmi3DoStep(fmi3Instance, double, double, fmi3Boolean, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *,
                              double *);
FSM_API fmi3Status fmi3DoStep(fmi3Instance instance, double point, double size, fmi3Boolean keeps, fmi3Boolean *event,
                              fmi3Boolean *terminate, fmi3Boolean *early, double *reached)
{
    struct fmu *fmu = instance;
    (void)keeps;
    if (!fmu_allows(fmu, FMU_STEP, "fmi3DoStep")) {
        return fmi3Error;
    }
    if (event == NULL || terminate == NULL || early == NULL || reached == NULL) {
        fmu_error(fmu, "fmi3DoStep has nowhere to write its results");
        return fmi3Error;
    }
    double end = point + size - fmu->begin;
    if (!(size > 0.0 && end >= fsm_machine_time(fmu->machine) && end <= DBL_MAX) || fmu->stopped) {
        fmu_error(fmu, "a step from %.12g s over %.12g s is not possible at %.12g s", point, size, fmu_time(fmu));
        return fmi3Error;
    }
    enum fsm_status status =
        fmu->returns_early ? fsm_machine_advance_to_event(fmu->machine, end) : fsm_machine_advance(fmu->machine, end);
    bool paused = status == FSM_PAUSED;
    if (paused && !fmu->event_mode) {
        status = fsm_machine_advance(fmu->machine, fsm_machine_time(fmu->machine));
    }
    bool good = fmu_judge(fmu, status);
    *event = paused && fmu->event_mode;
    *terminate = fmu->stopped;
    *reached = fmu_time(fmu);
    *early = fsm_machine_time(fmu->machine) < end;
    return status_of(good);
}

FSM_API fmi3Status fmi3Terminate(fmi3Instance);
FSM_API fmi3Status fmi3Terminate(fmi3Instance instance)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, FMU_STEP | FMU_EVENT | FMU_CONTINUOUS, "fmi3Terminate")) {
        return fmi3Error;
    }
    fmu->phase = FMU_TERMINATED;
    return fmi3OK;
}

FSM_API fmi3Status fmi3Reset(fmi3Instance);
FSM_API fmi3Status fmi3Reset(fmi3Instance instance)
{
    if (instance == NULL) {
        return fmi3Error;
    }
    fmu_reset(instance);
    return fmi3OK;
}

/* ---- variables ---- */

#define READABLE (FMU_INITIALIZATION | FMU_EVENT | FMU_STEP | FMU_CONTINUOUS | FMU_TERMINATED)
#define WRITABLE (FMU_INSTANTIATED | FMU_INITIALIZATION | FMU_EVENT | FMU_STEP | FMU_CONTINUOUS)

FSM_API fmi3Status fmi3GetFloat64(fmi3Instance, REFERENCES, double[], size_t);
FSM_API fmi3Status fmi3GetFloat64(fmi3Instance instance, REFERENCES, double values[], size_t n_values)
{
    bool good = fmu_allows(instance, READABLE | FMU_INSTANTIATED, "fmi3GetFloat64") && n == n_values;
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_get_real(instance, (int64_t)references[i], &values[i]);
    }
    return status_of(good);
}

FSM_API fmi3Status fmi3SetFloat64(fmi3Instance, REFERENCES, const double[], size_t);
FSM_API fmi3Status fmi3SetFloat64(fmi3Instance instance, REFERENCES, const double values[], size_t n_values)
{
    bool good = fmu_allows(instance, WRITABLE, "fmi3SetFloat64") && n == n_values;
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_set_real(instance, (int64_t)references[i], values[i]);
    }
    return status_of(good);
}

FSM_API fmi3Status fmi3GetInt64(fmi3Instance, REFERENCES, int64_t[], size_t);
FSM_API fmi3Status fmi3GetInt64(fmi3Instance instance, REFERENCES, int64_t values[], size_t n_values)
{
    bool good = fmu_allows(instance, READABLE | FMU_INSTANTIATED, "fmi3GetInt64") && n == n_values;
    for (size_t i = 0; good && i < n; i++) {
        good = fmu_get_integer(instance, (int64_t)references[i], &values[i]);
    }
    return status_of(good);
}

/* ---- states of instances ---- */

FSM_API fmi3Status fmi3GetFMUState(fmi3Instance, fmi3FMUState *);
FSM_API fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, READABLE | FMU_INSTANTIATED, "fmi3GetFMUState") || state == NULL) {
        return fmi3Error;
    }
    if (*state == NULL) {
        *state = malloc(fmu_copy_bytes(fmu));
    }
    if (*state == NULL) {
        return fmi3Error;
    }
    fmu_copy_out(fmu, *state);
    return fmi3OK;
}

FSM_API fmi3Status fmi3SetFMUState(fmi3Instance, fmi3FMUState);
FSM_API fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state)
{
    if (instance == NULL || state == NULL) {
        return fmi3Error;
    }
    return status_of(fmu_copy_in(instance, state));
}

FSM_API fmi3Status fmi3FreeFMUState(fmi3Instance, fmi3FMUState *);
FSM_API fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return fmi3OK;
}

FSM_API fmi3Status fmi3SerializedFMUStateSize(fmi3Instance, fmi3FMUState, size_t *);
FSM_API fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    if (instance == NULL || state == NULL) {
        return fmi3Error;
    }
    *size = fmu_copy_bytes(instance);
    return fmi3OK;
}

FSM_API fmi3Status fmi3SerializeFMUState(fmi3Instance, fmi3FMUState, uint8_t[], size_t);
FSM_API fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, uint8_t bytes[], size_t size)
{
    if (instance == NULL || state == NULL || size != fmu_copy_bytes(instance)) {
        return fmi3Error;
    }
    memcpy(bytes, state, size);
    return fmi3OK;
}

FSM_API fmi3Status fmi3DeserializeFMUState(fmi3Instance, const uint8_t[], size_t, fmi3FMUState *);
FSM_API fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const uint8_t bytes[], size_t size,
                                           fmi3FMUState *state)
{
    if (instance == NULL || state == NULL || bytes == NULL) {
        return fmi3Error;
    }
    if (size != fmu_copy_bytes(instance) || !fmu_copy_is_whole(instance, bytes)) {
        fmu_error(instance, "the serialized state is damaged, or that of another model");
        return fmi3Error;
    }
    if (*state == NULL) {
        *state = malloc(size);
    }
    if (*state == NULL) {
        return fmi3Error;
    }
    memcpy(*state, bytes, size);
    return fmi3OK;
}

/* ---- what the unit does not have ---- */

static fmi3Status refuse(fmi3Instance instance, const char *function)
{
    if (instance != NULL) {
        fmu_error(instance, "%s is not supported", function);
    }
    return fmi3Error;
}

/* Variables of a type that the unit has none of. */
#define NO_VALUES(name, type)                                                                                          \
    FSM_API fmi3Status name(fmi3Instance, REFERENCES, type[], size_t);                                                 \
    FSM_API fmi3Status name(fmi3Instance instance, REFERENCES, type values[], size_t n_values)                         \
    {                                                                                                                  \
        (void)references, (void)values, (void)n_values;                                                                \
        return n == 0 && instance != NULL ? fmi3OK : refuse(instance, #name);                                          \
    }

NO_VALUES(fmi3GetFloat32, float)
NO_VALUES(fmi3SetFloat32, const float)
NO_VALUES(fmi3GetInt8, int8_t)
NO_VALUES(fmi3SetInt8, const int8_t)
NO_VALUES(fmi3GetUInt8, uint8_t)
NO_VALUES(fmi3SetUInt8, const uint8_t)
NO_VALUES(fmi3GetInt16, int16_t)
NO_VALUES(fmi3SetInt16, const int16_t)
NO_VALUES(fmi3GetUInt16, uint16_t)
NO_VALUES(fmi3SetUInt16, const uint16_t)
NO_VALUES(fmi3GetInt32, int32_t)
NO_VALUES(fmi3SetInt32, const int32_t)
NO_VALUES(fmi3GetUInt32, uint32_t)
NO_VALUES(fmi3SetUInt32, const uint32_t)
NO_VALUES(fmi3GetUInt64, uint64_t)
NO_VALUES(fmi3SetUInt64, const uint64_t)
NO_VALUES(fmi3GetBoolean, fmi3Boolean)
NO_VALUES(fmi3SetBoolean, const fmi3Boolean)
NO_VALUES(fmi3GetString, fmi3String)
NO_VALUES(fmi3SetString, const fmi3String)
NO_VALUES(fmi3SetInt64, const int64_t)

FSM_API fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n, size_t sizes[],
                                 const uint8_t *values[], size_t n_values);
FSM_API fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n, size_t sizes[],
                                 const uint8_t *values[], size_t n_values)
{
    (void)references, (void)n, (void)sizes, (void)values, (void)n_values;
    return refuse(instance, "fmi3GetBinary");
}

FSM_API fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                 const size_t sizes[], const uint8_t *const values[], size_t n_values);
FSM_API fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                 const size_t sizes[], const uint8_t *const values[], size_t n_values)
{
    (void)references, (void)n, (void)sizes, (void)values, (void)n_values;
    return refuse(instance, "fmi3SetBinary");
}

FSM_API fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                fmi3Boolean values[]);
FSM_API fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                fmi3Boolean values[])
{
    (void)references, (void)n, (void)values;
    return refuse(instance, "fmi3GetClock");
}

FSM_API fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                const fmi3Boolean values[]);
FSM_API fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                const fmi3Boolean values[])
{
    (void)references, (void)n, (void)values;
    return refuse(instance, "fmi3SetClock");
}

FSM_API fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference reference,
                                                       size_t *count);
FSM_API fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference reference,
                                                       size_t *count)
{
    (void)reference, (void)count;
    return refuse(instance, "fmi3GetNumberOfVariableDependencies");
}

FSM_API fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent, size_t elements[],
                                               fmi3ValueReference independents[], size_t of_independents[], int kinds[],
                                               size_t n);
FSM_API fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent, size_t elements[],
                                               fmi3ValueReference independents[], size_t of_independents[], int kinds[],
                                               size_t n)
{
    (void)dependent, (void)elements, (void)independents, (void)of_independents, (void)kinds, (void)n;
    return refuse(instance, "fmi3GetVariableDependencies");
}

FSM_API fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                                size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns,
                                                const double seed[], size_t n_seed, double sensitivity[],
                                                size_t n_sensitivity);
FSM_API fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                                size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns,
                                                const double seed[], size_t n_seed, double sensitivity[],
                                                size_t n_sensitivity)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)n_seed, (void)sensitivity,
        (void)n_sensitivity;
    return refuse(instance, "fmi3GetDirectionalDerivative");
}

FSM_API fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                            size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns,
                                            const double seed[], size_t n_seed, double sensitivity[],
                                            size_t n_sensitivity);
FSM_API fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                            size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns,
                                            const double seed[], size_t n_seed, double sensitivity[],
                                            size_t n_sensitivity)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)n_seed, (void)sensitivity,
        (void)n_sensitivity;
    return refuse(instance, "fmi3GetAdjointDerivative");
}

FSM_API fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance);
FSM_API fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance)
{
    return refuse(instance, "fmi3EnterConfigurationMode");
}

FSM_API fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance);
FSM_API fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance)
{
    return refuse(instance, "fmi3ExitConfigurationMode");
}

FSM_API fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance);
FSM_API fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance)
{
    return refuse(instance, "fmi3EvaluateDiscreteStates");
}

FSM_API fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                          double intervals[], int qualifiers[]);
FSM_API fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                          double intervals[], int qualifiers[])
{
    (void)references, (void)n, (void)intervals, (void)qualifiers;
    return refuse(instance, "fmi3GetIntervalDecimal");
}

FSM_API fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                           uint64_t counters[], uint64_t resolutions[], int qualifiers[]);
FSM_API fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                           uint64_t counters[], uint64_t resolutions[], int qualifiers[])
{
    (void)references, (void)n, (void)counters, (void)resolutions, (void)qualifiers;
    return refuse(instance, "fmi3GetIntervalFraction");
}

FSM_API fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                       double shifts[]);
FSM_API fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                       double shifts[])
{
    (void)references, (void)n, (void)shifts;
    return refuse(instance, "fmi3GetShiftDecimal");
}

FSM_API fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                        uint64_t counters[], uint64_t resolutions[]);
FSM_API fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                        uint64_t counters[], uint64_t resolutions[])
{
    (void)references, (void)n, (void)counters, (void)resolutions;
    return refuse(instance, "fmi3GetShiftFraction");
}

FSM_API fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                          const double intervals[]);
FSM_API fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                          const double intervals[])
{
    (void)references, (void)n, (void)intervals;
    return refuse(instance, "fmi3SetIntervalDecimal");
}

FSM_API fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                           const uint64_t counters[], const uint64_t resolutions[]);
FSM_API fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                           const uint64_t counters[], const uint64_t resolutions[])
{
    (void)references, (void)n, (void)counters, (void)resolutions;
    return refuse(instance, "fmi3SetIntervalFraction");
}

FSM_API fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                       const double shifts[]);
FSM_API fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                       const double shifts[])
{
    (void)references, (void)n, (void)shifts;
    return refuse(instance, "fmi3SetShiftDecimal");
}

FSM_API fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                        const uint64_t counters[], const uint64_t resolutions[]);
FSM_API fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                        const uint64_t counters[], const uint64_t resolutions[])
{
    (void)references, (void)n, (void)counters, (void)resolutions;
    return refuse(instance, "fmi3SetShiftFraction");
}

FSM_API fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                            const int32_t orders[], double values[], size_t n_values);
FSM_API fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                            const int32_t orders[], double values[], size_t n_values)
{
    (void)references, (void)n, (void)orders, (void)values, (void)n_values;
    return refuse(instance, "fmi3GetOutputDerivatives");
}

FSM_API fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clock, double time);
FSM_API fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clock, double time)
{
    (void)clock, (void)time;
    return refuse(instance, "fmi3ActivateModelPartition");
}

FSM_API fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String path,
                                                       fmi3Boolean visible, fmi3Boolean logs,
                                                       fmi3InstanceEnvironment environment,
                                                       fmi3LogMessageCallback logger, fmi3Callback update,
                                                       fmi3Callback lock, fmi3Callback unlock);
FSM_API fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String path,
                                                       fmi3Boolean visible, fmi3Boolean logs,
                                                       fmi3InstanceEnvironment environment,
                                                       fmi3LogMessageCallback logger, fmi3Callback update,
                                                       fmi3Callback lock, fmi3Callback unlock)
{
    (void)name, (void)token, (void)path, (void)visible, (void)logs, (void)environment, (void)logger, (void)update,
        (void)lock, (void)unlock;
    return NULL;
}

#include "fsm_fmi3_exchange.c"
